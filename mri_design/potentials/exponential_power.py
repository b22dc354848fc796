"""The exponential power site, from the Gaussian over the Laplace to sites that are not log-concave."""

from __future__ import annotations

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.errors import InputError
from mri_design.potentials.base import SMOOTH, DualForm, SuperGaussian, Values, log_sphere, positive_scale
from mri_design.potentials.laplace import TINY


class ExponentialPower(SuperGaussian):
    """t(s) = exp(-(tau |s| / sigma)^p): super-Gaussian for 0 < p <= 2, log-concave where p >= 1.

    Parameters
    ----------
    power : float
        p in (0, 2]: 2 is a Gaussian of precision 2 tau^2, 1 a Laplace site.
    scale : float or array
        tau, dimensionless.

    Raises
    ------
    InputError
        For another power (above 2 the site is not super-Gaussian), or a scale that is not positive.

    Notes
    -----
    h(gamma) is proportional to gamma^(p / (2 - p)), convex iff p >= 1 (TR-175 section 3.2).
    """

    def __init__(self, power: float, scale: ArrayLike) -> None:
        given = np.asarray(power)
        if given.ndim or given.dtype.kind not in "fiu" or not 0 < given <= 2:
            raise InputError(
                "exponential power", repr(power), "one number in (0, 2]: above 2 the site is not super-Gaussian"
            )
        self.power = float(given)
        self.scale = positive_scale("exponential power scale", scale)
        declared = SuperGaussian.offers | {"scale"}
        if self.power >= 1:
            declared |= {"log_concave"}
        self.offers = declared | SMOOTH if self.power == 2 else declared

    def _rate(self, x: Values) -> Values:
        return (self.scale**self.power).astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -self._rate(x) * x ** (self.power / 2)

    def dg(self, x: Values) -> Values:
        half = self.power / 2
        return -half * self._rate(x) * np.maximum(x, TINY) ** (half - 1)

    def d2g(self, x: Values) -> Values:
        half = self.power / 2
        return half * (1 - half) * self._rate(x) * np.maximum(x, TINY) ** (half - 2)

    def dual_form(self, t: Values) -> DualForm | None:
        """For powers below one, where h is concave as a whole: its tangent, of slope t pi^2."""
        return None if self.power >= 1 else DualForm(linear=t * self.site_precision(t) ** 2)

    @property
    def start_variance(self) -> Values | float:
        """0.09 / tau^2 for the Laplace site, and the same part of the variance for others."""
        spread = scipy.special.gammaln(3 / self.power) - scipy.special.gammaln(1 / self.power)
        return 0.045 * np.exp(min(spread, 12.0)) / self.scale**2

    def rescaled(self, factor: ArrayLike) -> ExponentialPower:
        return ExponentialPower(self.power, self.scale * np.asarray(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        radial = scipy.special.gammaln(dimensions / self.power) - np.log(self.power)
        return log_sphere(dimensions) + radial - dimensions * np.log(self.scale)
