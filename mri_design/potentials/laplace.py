"""The Laplace site."""

from __future__ import annotations

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.potentials.base import Potential, Values, log_sphere, positive_scale
from mri_design.potentials.expectation import Expectation
from mri_design.potentials.mean_modulus import mean_modulus

__all__ = ["Laplace"]

TINY = 1e-12  # keeps 1/sqrt(x) finite; x and z are in units of the noise variance


class Laplace(Potential):
    """t(s) = exp(-(tau / sigma) |s|): log-concave, g(x) = -tau sqrt(x), h(gamma) = tau^2 gamma.

    Parameters
    ----------
    scale : float or array
        tau, dimensionless; an array is broadcast against the coefficients (one tau per subband, say).
    """

    log_concave = True

    def __init__(self, scale: ArrayLike) -> None:
        self.scale = positive_scale("Laplace scale", scale)

    def _tau(self, x: Values) -> Values:
        return self.scale.astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -self._tau(x) * np.sqrt(x)

    def dg(self, x: Values) -> Values:
        return -self._tau(x) / (2 * np.sqrt(np.maximum(x, TINY)))

    def d2g(self, x: Values) -> Values:
        return self._tau(x) / (4 * np.maximum(x, TINY) ** 1.5)

    def dlog_t(self, s: Values) -> Values:
        return -self._tau(s) * np.sign(s)

    def d2log_t(self, s: Values) -> Values:
        """Zero: all curvature is in the kink, which no derivative shows."""
        return np.zeros(np.broadcast_shapes(s.shape, self.scale.shape), dtype=s.dtype)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """In closed form: -tau E |s|."""
        modulus = mean_modulus(mean, variance, dimensions)
        return Expectation(-self.scale * modulus.value, -self.scale * modulus.d_mean, -self.scale * modulus.d_variance)

    @property
    def start_variance(self) -> Values | float:
        return 0.09 / self.scale**2

    def rescaled(self, factor: ArrayLike) -> Laplace:
        return Laplace(self.scale * np.asarray(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        return log_sphere(dimensions) + scipy.special.gammaln(dimensions) - dimensions * np.log(self.scale)
