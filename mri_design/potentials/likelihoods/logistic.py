"""The Bernoulli or logistic site: the likelihood of a binary label."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.potentials.base import SMOOTH, SuperGaussian, Values, label_signs, positive_scale
from mri_design.potentials.expectation import LEAST, Expectation
from mri_design.potentials.sech2 import log_cosh, tanh_ratio, tanh_ratio_fall


@cache
def _panels() -> tuple[Values, Values]:
    """Gauss-Legendre nodes and weights on (-40, 40), where log(1 + e^f) is not yet max(f, 0): six panels of 48."""
    x, w = np.polynomial.legendre.leggauss(48)
    edges = np.linspace(-40.0, 40.0, 7)
    half = 0.5 * (edges[1] - edges[0])
    return (edges[:-1, None] + half * (x + 1)).ravel(), np.tile(half * w, 6)


@cache
def _hermite() -> tuple[Values, Values]:
    x, w = np.polynomial.hermite_e.hermegauss(40)
    return x, w / w.sum()


def expected_softplus(mean: Values, spread: Values) -> Expectation:
    """E log(1 + e^f), and its derivatives in the mean and the variance of f.

    Parameters
    ----------
    mean, spread : float arrays of one shape
        Of f; the spread (standard deviation) positive.

    Notes
    -----
    From sd = 1 on, max(f, 0) in closed form and the rest, which lies within 40 of zero, by Gauss-Legendre, since
    Gauss-Hermite fails for wide distributions. Below, Gauss-Hermite with 40 points.
    """
    value, slope, curvature = (np.empty(mean.shape) for _ in range(3))
    wide = spread >= 1
    m, sd = mean[wide], spread[wide]
    nodes, weights = _panels()
    f = nodes[:, None]
    density = np.exp(-0.5 * ((f - m) / sd) ** 2) * (weights[:, None] / np.sqrt(2 * np.pi)) / sd
    above = scipy.special.ndtr(m / sd)
    value[wide] = m * above + sd * np.exp(-0.5 * (m / sd) ** 2) / np.sqrt(2 * np.pi)
    value[wide] += np.log1p(np.exp(-np.abs(nodes))) @ density
    slope[wide] = above + (np.sign(nodes) * scipy.special.expit(-np.abs(nodes))) @ density * -1
    curvature[wide] = (scipy.special.expit(nodes) * scipy.special.expit(-nodes)) @ density
    nodes, weights = _hermite()
    f = mean[~wide] + spread[~wide] * nodes[:, None]
    value[~wide] = weights @ np.logaddexp(0, f)
    slope[~wide] = weights @ scipy.special.expit(f)
    curvature[~wide] = weights @ (scipy.special.expit(f) * scipy.special.expit(-f))
    return Expectation(value, slope, 0.5 * curvature)


class Logistic(SuperGaussian):
    """t(s) = 1 / (1 + exp(-c (tau / sigma) s)), the probability of label c = +-1: log-concave, with an odd part.

    Parameters
    ----------
    labels : array
        c, every entry -1 or +1; broadcast against the coefficients.
    scale : float or array
        tau, dimensionless (sigma where the coefficients are log odds).

    Raises
    ------
    InputError
        For other labels, or a scale that is not positive.

    Notes
    -----
    log t = b s / sigma + g(s^2 / sigma^2) with b = c tau / 2 and g(x) = -log(2 cosh((tau / 2) sqrt(x)));
    Jaakkola 1997, TR-175 equation (7).
    """

    offers = (SuperGaussian.offers - {"moduli"}) | SMOOTH | {"log_concave", "scale", "probability"}
    role = "likelihood"
    per_site = ("labels", "scale", "shift")

    def __init__(self, labels: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self.labels = label_signs("Logistic labels", labels)
        self.scale = positive_scale("Logistic scale", scale)
        self.shift = 0.5 * self.labels * self.scale

    def _rate(self, x: Values) -> Values:
        return (0.5 * self.scale).astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -log_cosh(self._rate(x) * np.sqrt(x)) - x.dtype.type(np.log(2))

    def dg(self, x: Values) -> Values:
        rate = self._rate(x)
        return -0.5 * rate**2 * tanh_ratio(rate * np.sqrt(x))

    def d2g(self, x: Values) -> Values:
        rate = self._rate(x)
        return 0.25 * rate**4 * tanh_ratio_fall(rate * np.sqrt(x))

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """To rounding at every variance: -E log(1 + e^f) with f = -c tau s / sigma."""
        self._refuse_moduli(dimensions)
        rate = 2 * self.shift  # c tau
        m, v, rate = np.broadcast_arrays(
            np.asarray(mean, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST), rate
        )
        soft = expected_softplus(-rate * m, np.abs(rate) * np.sqrt(v))
        return Expectation(-soft.value, rate * soft.d_mean, -(rate**2) * soft.d_variance)

    @property
    def observed(self) -> tuple[Values, ...]:
        return (self.labels,)

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / self.scale**2, np.shape(self.shift))

    def rescaled(self, factor: ArrayLike) -> Logistic:
        return Logistic(self.labels, self.scale * np.asarray(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        """Zero: the two labels' probabilities add up to one."""
        return np.zeros(np.shape(self.shift))
