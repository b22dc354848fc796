"""Cholesky factors of precisions that must be proper, and the scale below which a mean counts as zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from mri_design.errors import InputError
from mri_design.operators.base import Array

NEGLIGIBLE = 1e-6
"""Of a standard deviation."""


def proper_factor(P: Array) -> Any:
    """Lower Cholesky factor of a precision, as `scipy.linalg.cho_solve` takes it.

    Raises
    ------
    InputError
        Where P is not positive definite, also where rounding alone makes it look so, or not finite.
    """
    matrix = np.array(P, order="F")
    norm = lapack.dlange("1", matrix)
    try:
        factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True)
    except (scipy.linalg.LinAlgError, ValueError) as error:
        raise undetermined() from error
    if lapack.dpocon(factor[0], norm, uplo="L")[0] < np.finfo(float).eps:
        raise undetermined()
    return factor


def precision_inverse(P: Array) -> Array:
    """P^-1; as `proper_factor`."""
    inverse = scipy.linalg.cho_solve(proper_factor(P), np.eye(len(P)))
    return np.asarray(0.5 * (inverse + inverse.T))


def resolution(P: Array) -> float:
    """A millionth of the norm that deviations have under the precision P: smaller means count as zero."""
    return NEGLIGIBLE * len(P) / float(np.sqrt(max(np.trace(P), np.finfo(float).tiny)))


def undetermined() -> InputError:
    """What is raised where a chunk's cavity and its sites do not determine theta."""
    return InputError(
        "a chunk and its cavity",
        "a product that is not a proper distribution",
        "a Gaussian part (X and Gaussian blocks) on every direction, or messages that stand for the rest",
        "Add Gaussian sites, or give a warm start: messages then begin as the expansion there.",
    )
