"""What every variance estimator offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mri_design.model import PosteriorPrecision, Variances
from mri_design.operators import Array, LinearOperator

__all__ = ["VarianceEstimator"]


class VarianceEstimator(Protocol):
    """Frozen settings that turn a precision into marginal variances of the coefficients of some operators."""

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
    ) -> Variances:
        """z for each operator of ``analyses``; ``like`` is an image whose dtype the computation keeps."""
        ...
