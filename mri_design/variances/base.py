"""What every variance estimator offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mri_design.errors import InputError, require_working
from mri_design.model.marginals import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator

__all__ = [
    "VarianceEstimator",
    "mean_over_draws",
    "not_positive_definite",
    "require_estimator",
    "squared_modulus",
    "starting_draws",
]


class VarianceEstimator(Protocol):
    """Frozen settings that turn a precision into marginal variances of the coefficients of some operators."""

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        """z for each operator of ``analyses``; ``like`` is an image whose dtype the computation keeps.

        ``previous`` may be what the estimator returned for a nearby precision from an equal ``rng``: a place to start.
        """
        ...


def require_estimator(**settings: Any) -> None:
    """Refuse anything but a variance estimator, its class included.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    require_working(takes=5, wanted="a variance estimator, as Exact() or ControlVariate(samples=8)", **settings)


def mean_over_draws(parts: Array) -> tuple[Array, Array]:
    """Mean over the first axis and its standard error."""
    return parts.mean(axis=0), parts.std(axis=0, ddof=1) / float(np.sqrt(len(parts)))


def squared_modulus(s: Array) -> Array:
    """|s|^2, in the precision of ``s``."""
    return np.square(s.real) + np.square(s.imag) if np.iscomplexobj(s) else np.square(s)


def starting_draws(previous: Variances | None, rhs: Array) -> Array | None:
    """Draws to start the solves for ``rhs`` from; None where there are none, or not as many."""
    made = None if previous is None else previous.samples
    return made.astype(rhs.dtype, copy=False) if made is not None and made.shape == rhs.shape else None


def not_positive_definite() -> InputError:
    """What every estimator raises where A has no inverse."""
    return InputError(
        field="posterior precision",
        got="a matrix that is not positive definite",
        wanted="X and B without a common null space",
        cure="Add a block of sites on the pixels.",
    )
