"""The Student-t site: heavy tails, not log-concave."""

from __future__ import annotations

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.potentials.base import SMOOTH, DualForm, SuperGaussian, Values, log_sphere, one_number, positive_scale


class StudentT(SuperGaussian):
    """t(s) = (1 + (tau / nu) |s|^2 / sigma^2)^(-(nu + 1) / 2): inference has local optima.

    Parameters
    ----------
    degrees : float
        nu > 0.
    scale : float or array
        tau > 0, dimensionless.
    """

    offers = SuperGaussian.offers | SMOOTH | {"scale"}

    def __init__(self, degrees: float, scale: ArrayLike) -> None:
        self.degrees = one_number("Student-t degrees of freedom", degrees)
        self.scale = positive_scale("Student-t scale", scale)

    def _rate(self, x: Values) -> Values:
        return (self.scale / self.degrees).astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -0.5 * (self.degrees + 1) * np.log1p(self._rate(x) * x)

    def dg(self, x: Values) -> Values:
        rate = self._rate(x)
        return -0.5 * (self.degrees + 1) * rate / (1 + rate * x)

    def d2g(self, x: Values) -> Values:
        rate = self._rate(x)
        return 0.5 * (self.degrees + 1) * (rate / (1 + rate * x)) ** 2

    def dual_form(self, t: Values) -> DualForm:
        """h(gamma) = (nu + 1) log gamma + nu / (tau gamma)."""
        return DualForm(logs=self.degrees + 1, reciprocal=self.degrees / self.scale)

    @property
    def start_variance(self) -> Values | float:
        return 0.09 / self.scale

    def rescaled(self, factor: ArrayLike) -> StudentT:
        return StudentT(self.degrees, self.scale * np.square(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        excess = self.degrees + 1 - dimensions
        if excess <= 0:
            return np.full_like(self.scale, np.inf)
        tails = scipy.special.betaln(0.5 * dimensions, 0.5 * excess) - np.log(2)
        return log_sphere(dimensions) + tails + 0.5 * dimensions * np.log(self.degrees / self.scale)
