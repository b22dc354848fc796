"""A model as real matrices: what the dense references compute with.

Cholesky factors of precisions that must be proper, and the scale below which a mean counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from mri_design.errors import InputError
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array, LinearOperator


@dataclass(frozen=True, kw_only=True)
class DenseModel:
    """A model as real matrices on (real parts, imaginary parts).

    Parameters
    ----------
    X, y : arrays
        Measurement matrix and data.
    noise_variance : float
        sigma^2.
    blocks : tuple of SiteBlock
        As in the model.
    analyses : tuple of arrays
        B of every block, one row per real coefficient.
    site_of_row : tuple of int arrays
        The number of the site that a row belongs to.
    offsets, shifts : tuple of arrays
        Offset and odd part of every row.
    """

    X: Array
    y: Array
    noise_variance: float
    blocks: tuple[SiteBlock, ...]
    analyses: tuple[Array, ...]
    site_of_row: tuple[Array, ...]
    offsets: tuple[Array, ...]
    shifts: tuple[Array, ...]

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> DenseModel:
        numbers = []
        for block in model.blocks:
            site = np.arange(int(np.prod(block.site_shape))).reshape(block.site_shape)
            rows = np.broadcast_to(site, block.analysis.out_shape).ravel()
            numbers.append(np.tile(rows, 2) if block.analysis.out_complex else rows)
        return cls(
            X=model.measurement.to_dense_real(),
            y=_embedded(model.data, model.measurement),
            noise_variance=model.noise_variance,
            blocks=model.blocks,
            analyses=tuple(block.analysis.to_dense_real() for block in model.blocks),
            site_of_row=tuple(numbers),
            offsets=tuple(_embedded(block.offset, block.analysis) for block in model.blocks),
            shifts=tuple(_embedded(np.asarray(block.potential.shift), block.analysis) for block in model.blocks),
        )


def _embedded(values: Array | None, operator: LinearOperator) -> Array:
    """One value per output of an operator as real parts, then imaginary parts."""
    full = np.broadcast_to(0.0 if values is None else values, operator.out_shape).ravel()
    return np.concatenate([full.real, full.imag]) if operator.out_complex else full.real


def as_vector(image: Array) -> Array:
    """(real parts, imaginary parts) of an image."""
    flat = np.asarray(image).ravel()
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat.astype(float)


def as_image(theta: Array, model: GeneralizedLinearModel) -> Array:
    """The image of a vector (real parts, imaginary parts)."""
    if not model.measurement.in_complex:
        return theta.reshape(model.image_shape)
    half = len(theta) // 2
    return (theta[:half] + 1j * theta[half:]).reshape(model.image_shape)


NEGLIGIBLE = 1e-6
"""Fraction of a standard deviation below which a mean counts as zero."""


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
    """The error to raise where a chunk's cavity and its sites do not determine theta."""
    return InputError(
        "a chunk and its cavity",
        "a product that is not a proper distribution",
        "a Gaussian part (X and Gaussian blocks) on every direction, or messages that stand for the rest",
        "Add Gaussian sites, or give a warm start: messages then begin as the expansion there.",
    )
