"""The sech^2 site: like Laplace in the tails, smooth at zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mri_design.potentials.base import SMOOTH, SuperGaussian, Values, positive_scale


def log_cosh(v: Values) -> Values:
    """log cosh v for v >= 0."""
    return v + np.log1p(np.exp(-2 * v)) - v.dtype.type(np.log(2))


def tanh_ratio(v: Values) -> Values:
    """tanh(v) / v for v >= 0, one at zero."""
    safe = np.maximum(v, 1e-4)
    return np.where(v < 1e-4, 1 - v**2 / 3, np.tanh(safe) / safe)


def tanh_ratio_fall(v: Values) -> Values:
    """(tanh(v) / v - 1 / cosh(v)^2) / v^2 for v >= 0, 2/3 at zero: minus the slope of tanh(v) / v, over v."""
    safe = np.maximum(v, 0.1)
    tanh = np.tanh(safe)
    square = np.minimum(v, 0.2) ** 2
    series = 2 / 3 - square * (8 / 15 - square * (34 / 105 - square * (496 / 2835 - square * (2764 / 31185))))
    return np.where(v < 0.1, series, (tanh / safe - (1 - tanh) * (1 + tanh)) / safe**2)


class Sech2(SuperGaussian):
    """t(s) = 1 / cosh(tau s / sigma)^2, the logistic density with its peak at one: log-concave.

    Parameters
    ----------
    scale : float or array
        tau, dimensionless: log t falls as -2 (tau / sigma) |s| far out, as -(tau s / sigma)^2 near zero.
    """

    offers = SuperGaussian.offers | SMOOTH | {"log_concave", "scale"}

    def __init__(self, scale: ArrayLike) -> None:
        self.scale = positive_scale("Sech2 scale", scale)

    def _tau(self, x: Values) -> Values:
        return self.scale.astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -2 * log_cosh(self._tau(x) * np.sqrt(x))

    def dg(self, x: Values) -> Values:
        tau = self._tau(x)
        return -(tau**2) * tanh_ratio(tau * np.sqrt(x))

    def d2g(self, x: Values) -> Values:
        tau = self._tau(x)
        return 0.5 * tau**4 * tanh_ratio_fall(tau * np.sqrt(x))

    @property
    def start_variance(self) -> Values | float:
        return 0.09 / self.scale**2

    def rescaled(self, factor: ArrayLike) -> Sech2:
        return Sech2(self.scale * np.asarray(factor))
