"""The inner problem of variational inference, and MAP estimation: penalised least squares.

    J(u) = ||y - X u||^2 / sigma^2 - 2 sum_i g_i(|s_i|^2 / sigma^2 + z_i),   s = B u

With z the marginal variances its minimiser is the posterior mean of the current bound (TR-175 section 4.2, in the
closed form that follows from g alone); with z -> 0 it is the MAP estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.model import GeneralizedLinearModel
from mri_design.operators import Array

__all__ = ["PenalisedProblem"]


@dataclass(frozen=True)
class PenalisedProblem:
    """J for one model and one z.

    Parameters
    ----------
    model : GeneralizedLinearModel
        X, y, sigma^2 and sites.
    z : tuple of float arrays
        Per block, pooled over groups, broadcastable to the block's sites, positive, in units of sigma^2.
    """

    model: GeneralizedLinearModel
    z: tuple[Array, ...]

    def site_arguments(self, coefficients: tuple[Array, ...]) -> tuple[Array, ...]:
        """x + z per block for the given s = B u."""
        sigma2 = self.model.noise_variance
        return tuple(
            (block.site_power(s) / sigma2 + z).astype(s.real.dtype, copy=False)
            for block, s, z in zip(self.model.blocks, coefficients, self.z, strict=True)
        )

    def site_precisions(self, coefficients: tuple[Array, ...]) -> tuple[Array, ...]:
        """pi = -2 g'(x + z) per block."""
        arguments = self.site_arguments(coefficients)
        return tuple(b.potential.site_precision(x) for b, x in zip(self.model.blocks, arguments, strict=True))

    def value(self, residual: Array, coefficients: tuple[Array, ...]) -> float:
        """J from y - X u and s = B u."""
        total = float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / self.model.noise_variance
        for block, x in zip(self.model.blocks, self.site_arguments(coefficients), strict=True):
            total -= 2 * float(np.sum(block.potential.g(x), dtype=np.float64))
        return total
