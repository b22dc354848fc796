"""The Gaussian site: every engine is exact on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mri_design.potentials.base import SMOOTH, SuperGaussian, Values, positive_scale
from mri_design.potentials.expectation import Expectation


class Gaussian(SuperGaussian):
    """t(s) = exp(-(precision / 2) |s|^2 / sigma^2), so g(x) = -precision x / 2 and pi = precision."""

    offers = SuperGaussian.offers | SMOOTH | {"log_concave", "scale"}

    def __init__(self, precision: ArrayLike) -> None:
        self.precision = positive_scale("Gaussian precision", precision)

    def g(self, x: Values) -> Values:
        return -0.5 * self.precision.astype(x.dtype) * x

    def dg(self, x: Values) -> Values:
        return np.broadcast_to(-0.5 * self.precision.astype(x.dtype), x.shape)

    def d2g(self, x: Values) -> Values:
        return np.zeros_like(x)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """In closed form: -p (mean^2 + dimensions variance) / 2."""
        m, v = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
        slope = np.broadcast_to(-0.5 * dimensions * self.precision, np.broadcast_shapes(m.shape, self.precision.shape))
        return Expectation(-0.5 * self.precision * m**2 + slope * v, -self.precision * m, slope)

    @property
    def gaussian_precision(self) -> Values:
        return self.precision

    @property
    def start_variance(self) -> Values | float:
        return 1 / self.precision

    def rescaled(self, factor: ArrayLike) -> Gaussian:
        return Gaussian(self.precision * np.square(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        return 0.5 * dimensions * np.log(2 * np.pi / self.precision)
