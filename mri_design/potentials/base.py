"""One site t(s) of a generalized linear model, through its super-Gaussian representation.

With x = |s|^2 / sigma^2 a site is log t(s) = g(x) + b s / sigma. It is super-Gaussian where g is convex and decreasing;
then g(x) = max over gamma > 0 of -(x / gamma + h(gamma)) / 2 (TR-175 section 2), and

    min over gamma of (z + x) / gamma + h(gamma) = -2 g(x + z),   attained at 1 / gamma = -2 g'(x + z),

so that an engine needs g and its derivatives only. Sites on complex coefficients act on the modulus, and have b = 0.
The paper's beta is b sigma.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError

__all__ = ["Potential", "positive_scale"]

Values = NDArray[np.floating]


class Potential(ABC):
    """A site, vectorised over coefficients.

    ``log_concave`` decides whether inference is a convex problem; ``super_gaussian`` whether the double loop applies;
    ``shift`` is the slope b of the odd part b s / sigma, dimensionless, broadcastable to the coefficients.
    """

    log_concave: bool
    super_gaussian: bool = True
    shift: Values | float = 0.0

    @abstractmethod
    def g(self, x: Values) -> Values:
        """log t as a function of x = |s|^2 / sigma^2 (x >= 0)."""

    @abstractmethod
    def dg(self, x: Values) -> Values:
        """Derivative of g (negative)."""

    @abstractmethod
    def d2g(self, x: Values) -> Values:
        """Second derivative of g (non-negative where super-Gaussian)."""

    @property
    @abstractmethod
    def start_variance(self) -> Values | float:
        """A first guess of z = Var[s] / sigma^2 for a cold start, from the site's own scale."""

    def site_precision(self, x_plus_z: Values) -> Values:
        """pi = 1 / gamma = -2 g'(x + z), the optimal site precision."""
        return -2 * self.dg(x_plus_z)

    def h_at_optimum(self, x_plus_z: Values) -> Values:
        """h(gamma) at the gamma that is optimal for x + z: -(t pi + 2 g(t)), t = x + z."""
        return -(x_plus_z * self.site_precision(x_plus_z) + 2 * self.g(x_plus_z))


def positive_scale(name: str, scale: ArrayLike) -> NDArray[np.float64]:
    """``scale`` as an array, refused unless positive and finite."""
    array = np.asarray(scale, dtype=float)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise InputError(field=name, got=str(scale), wanted="positive finite numbers")
    return array
