"""The Laplace site."""

from __future__ import annotations

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.potentials.base import DualForm, SuperGaussian, Values, log_sphere, positive_scale
from mri_design.potentials.expectation import LEAST, Expectation


def mean_modulus(mean: ArrayLike, variance: ArrayLike, dimensions: int = 1) -> Expectation:
    """E |s| for s ~ N(mean, variance I), and its derivatives in the mean (its modulus) and the variance.

    Parameters
    ----------
    mean : array
        Of s on the line, its modulus in more dimensions.
    variance : array
        Of each real number.
    dimensions : int
        d; of Rice's distribution 2.

    Notes
    -----
    With x = m^2 / (2 v): E |s| = c sqrt(2 v) 1F1(-1/2; d/2; -x), c = Gamma((d + 1) / 2) / Gamma(d / 2); on the line
    m (2 Phi(m / sd) - 1) + 2 sd phi(m / sd).
    """
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST))
    spread = np.sqrt(v)
    if dimensions == 1:
        inside = scipy.special.erf(m / (spread * np.sqrt(2)))
        density = np.exp(-0.5 * (m / spread) ** 2) / np.sqrt(2 * np.pi)
        return Expectation(m * inside + 2 * spread * density, inside, density / spread)
    x = 0.5 * (m / spread) ** 2
    half = 0.5 * dimensions
    scale = np.exp(scipy.special.gammaln(half + 0.5) - scipy.special.gammaln(half)) * np.sqrt(2)
    # The variance's derivative is half the expected Laplacian of |s|, (d - 1) / 2 E[1 / |s|].
    return Expectation(
        scale * spread * _kummer(-0.5, half, x),
        scale * _kummer(0.5, half + 1, x) / dimensions * m / spread,
        0.5 * scale / spread * _kummer(0.5, half, x),
    )


def _kummer(a: float, b: float, x: Values) -> Values:
    """1F1(a; b; -x) for x >= 0: beyond 50 by its asymptotic series."""
    near = scipy.special.hyp1f1(a, b, -np.minimum(x, 50.0))
    far = np.maximum(x, 50.0)
    term, total = np.ones_like(far), np.ones_like(far)
    for k in range(12):
        term = term * (a + k) * (a - b + 1 + k) / ((k + 1) * far)
        total = total + term
    lead = np.exp(scipy.special.gammaln(b) - scipy.special.gammaln(b - a)) * far**-a
    return np.asarray(np.where(x > 50.0, lead * total, near))


TINY = 1e-12
"""Keeps 1 / sqrt(x) finite; x and z are in units of the noise variance."""


class Laplace(SuperGaussian):
    """t(s) = exp(-(tau / sigma) |s|): log-concave, g(x) = -tau sqrt(x), h(gamma) = tau^2 gamma.

    Parameters
    ----------
    scale : float or array
        tau, dimensionless; an array is broadcast against the coefficients (one tau per subband, say).
    """

    offers = SuperGaussian.offers | {"log_concave", "scale"}

    def __init__(self, scale: ArrayLike) -> None:
        self.scale = positive_scale("Laplace scale", scale)

    def _tau(self, x: Values) -> Values:
        return self.scale.astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -self._tau(x) * np.sqrt(x)

    def dg(self, x: Values) -> Values:
        return (-0.5 * self._tau(x)) / np.sqrt(np.maximum(x, TINY))

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

    def conjugate_maximum(self, alpha: Values, beta: Values, weight: Values) -> tuple[Values, Values]:
        """In closed form: h / sd follows from alpha alone."""
        rho = scipy.special.ndtri(0.5 * (1 + alpha / self.scale))
        density = np.exp(-0.5 * rho**2) / np.sqrt(2 * np.pi)
        spread = np.maximum((beta - 2 * self.scale * density) / weight, 0.0)
        return rho * spread, spread

    def dual_form(self, t: Values) -> DualForm:
        """h(gamma) = tau^2 gamma."""
        return DualForm(linear=self.scale**2)

    @property
    def modulus_scale(self) -> Values:
        return self.scale

    @property
    def start_variance(self) -> Values | float:
        return 0.09 / self.scale**2

    def rescaled(self, factor: ArrayLike) -> Laplace:
        return Laplace(self.scale * np.asarray(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        return log_sphere(dimensions) + scipy.special.gammaln(dimensions) - dimensions * np.log(self.scale)
