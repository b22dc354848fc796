"""Sites of likelihoods (labels, counts, margins), and families of them: one per response that a trial may have.

The response to a query x has a distribution that depends on eps = x^T u alone. D(r, eps) = -d^2 log p(r | eps) /
d eps^2 is the observed information; for canonical links it does not depend on r. Lewi, Butera & Paninski 2007,
equations (1) and (9).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike

from mri_design.brief import brief_attributes
from mri_design.errors import InputError, number_array, require_random
from mri_design.sites.base import (
    LEAST,
    SMOOTH,
    Expectation,
    Site,
    SuperGaussian,
    Values,
    label_signs,
    one_number,
    positive_array,
)
from mri_design.sites.priors import Gaussian, Tilted, log_cosh, tanh_ratio, tanh_ratio_fall


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
    rate : float or array
        tau, dimensionless (sigma where the coefficients are log odds).

    Raises
    ------
    InputError
        For other labels, or a rate that is not positive.

    Notes
    -----
    log t = b s / sigma + g(s^2 / sigma^2) with b = c tau / 2 and g(x) = -log(2 cosh((tau / 2) sqrt(x)));
    Jaakkola 1997, TR-175 equation (7).
    """

    offers = (SuperGaussian.offers - {"moduli"}) | SMOOTH | {"log_concave", "scale", "probability"}
    role = "likelihood"
    per_site = ("labels", "rate", "shift")

    def __init__(self, labels: ArrayLike, rate: ArrayLike = 1.0) -> None:
        self.labels = label_signs("Logistic labels", labels)
        self.rate = positive_array("Logistic rate", rate)
        self.shift = 0.5 * self.labels * self.rate

    def _rate(self, x: Values) -> Values:
        return (0.5 * self.rate).astype(x.dtype)

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
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / self.rate**2, np.shape(self.shift))

    def rescaled(self, factor: ArrayLike) -> Logistic:
        return Logistic(self.labels, self.rate * np.asarray(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        """Zero: the two labels' probabilities add up to one."""
        return np.zeros(np.shape(self.shift))


class Poisson(Site):
    """t(s) = (e r)^y exp(-e r) / y! with the rate r = exp(s / sigma): log-concave, not super-Gaussian.

    Parameters
    ----------
    counts : array
        y, whole numbers from 0; broadcast against the coefficients.
    exposure : float or array
        e > 0: the time or area over which was counted.

    Raises
    ------
    InputError
        For counts that are negative or not whole, or an exposure that is not positive.

    Notes
    -----
    It has no representation g(|s|^2) and no super-Gaussian bound: `VariationalGaussian`, `LaplacePropagation` and
    `LaplaceFilter` infer with it, `DoubleLoop` does not. Khan 2014, equation (21).
    """

    offers = Site.offers | SMOOTH | {"log_concave", "normaliser", "probability"}
    role = "likelihood"
    per_site = ("counts", "exposure")

    def __init__(self, counts: ArrayLike, exposure: ArrayLike = 1.0) -> None:
        given = number_array("Poisson counts", counts, wanted="whole numbers, zero or more")
        numbers = given.astype(float) if given.dtype.kind in "fiub" and given.size else np.full(1, -1.0)
        if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers == np.round(numbers)).all()):
            raise InputError("Poisson counts", str(counts), "whole numbers, zero or more")
        self.counts = numbers
        self.exposure = positive_array("Poisson exposure", exposure)

    def log_t(self, s: Values) -> Values:
        constant = self.counts * np.log(self.exposure) - scipy.special.gammaln(self.counts + 1)
        return self.counts * s - self._rate(s) + constant

    def dlog_t(self, s: Values) -> Values:
        return self.counts - self._rate(s)

    def d2log_t(self, s: Values) -> Values:
        return -self._rate(s)

    def _rate(self, s: Values) -> Values:
        """e exp(s), infinite rather than a warning where it overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(self.exposure * np.exp(s))

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """In closed form: E e^s = exp(mean + variance / 2)."""
        self._refuse_moduli(dimensions)
        v = np.maximum(variance, LEAST)
        rate = self._rate(mean + 0.5 * v)
        constant = self.counts * np.log(self.exposure) - scipy.special.gammaln(self.counts + 1)
        return Expectation(self.counts * mean - rate + constant, self.counts - rate, -0.5 * rate)

    def conjugate_maximum(self, alpha: Values, beta: Values, weight: Values) -> tuple[Values, Values]:
        """In closed form."""
        spread = beta / (self.counts + alpha + weight)
        return np.log((self.counts + alpha) / self.exposure) - 0.5 * spread**2, spread

    @property
    def start_mean(self) -> Values | float:
        """log((y + 1/2) / e), near the site's own mode."""
        return np.asarray(np.log((self.counts + 0.5) / self.exposure))

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / (self.counts + 0.5), np.broadcast_shapes(self.counts.shape, self.exposure.shape))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        """log of the integral over s: that of a gamma function, -log y; infinite at y = 0."""
        self._refuse_moduli(dimensions)
        shape = np.broadcast_shapes(self.counts.shape, self.exposure.shape)
        return np.where(self.counts > 0, -np.log(np.maximum(self.counts, 1.0)), np.inf) * np.ones(shape)


class Hinge(Site):
    """t(s) = exp(-C max(0, 1 - c s / sigma)), label c = +-1: log-concave, with a kink and no curvature.

    Parameters
    ----------
    labels : array
        c, every entry -1 or +1; broadcast against the coefficients.
    rate : float or array
        C, the price of a violated margin.

    Raises
    ------
    InputError
        For other labels, or a rate that is not positive.

    Notes
    -----
    Smola, Vishwanathan & Eskin 2003, section 4: `LaplacePropagation` expands it to first order, h = C c alpha with
    P = 0. `VariationalGaussian` takes it as well, since E log t has no kink; `DoubleLoop` and `LaplaceFilter`, which
    want a super-Gaussian bound or a curvature, do not.
    """

    offers = (Site.offers - {"conjugate"}) | {"log_concave", "expansion"}
    role = "likelihood"
    per_site = ("labels", "rate")
    breaks = (-1.0, 1.0)  # the margins of both labels

    def __init__(self, labels: ArrayLike, rate: ArrayLike = 1.0) -> None:
        self.labels = label_signs("Hinge labels", labels)
        self.rate = positive_array("Hinge rate", rate)

    def log_t(self, s: Values) -> Values:
        return np.asarray(-self.rate * np.maximum(0.0, 1 - self.labels * s))

    def dlog_t(self, s: Values) -> Values:
        """The slope in s; at the kink that of the falling side."""
        return np.where(self.labels * s <= 1, self.rate * self.labels, 0.0)

    def d2log_t(self, s: Values) -> Values:
        """Zero, also at the kink."""
        return np.zeros(np.broadcast_shapes(np.shape(s), self.labels.shape))

    @property
    def margins(self) -> tuple[Values, Values]:
        return self.labels, self.rate

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / self.rate**2, np.broadcast_shapes(self.labels.shape, self.rate.shape))


LARGEST_EXPONENT = 700.0


class ResponseFamily(ABC):
    """Responses whose log-likelihood is concave in eps.

    ``monotone`` is True where a query with the larger variance of eps, at the same mean, is always the better one;
    ``reach`` is the change of eps by which odds or rates change e-fold.
    """

    monotone: bool = False
    reach: float = 1.0

    def __repr__(self) -> str:
        return brief_attributes(self)

    @abstractmethod
    def site(self, response: float) -> Site:
        """The likelihood of one response as a function of eps (sigma is 1)."""

    @abstractmethod
    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        """A response to each eps."""

    @abstractmethod
    def fisher(self, eps: Values) -> Values:
        """E_r D(r, eps)."""

    def log_gain(self, eps: Values, variance: Values) -> Values:
        """E_r log(1 + D(r, eps) variance); as it stands for canonical links, where D is the Fisher information."""
        return np.log1p(self.fisher(eps) * variance)

    def expected_fisher(self, mean: Values, variance: Values) -> Values | None:
        """E D under eps ~ N(mean, variance) where it has a closed form; None otherwise."""
        return None


class PoissonResponse(ResponseFamily):
    """Counts of mean exposure exp(eps).

    Parameters
    ----------
    exposure : float
        Positive.
    """

    monotone = True

    def __init__(self, exposure: float = 1.0) -> None:
        self.exposure = one_number("exposure", exposure)

    def site(self, response: float) -> Site:
        return Poisson(response, self.exposure)

    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        require_random(rng)
        return np.asarray(rng.poisson(self.fisher(np.asarray(projections, dtype=float))), dtype=float)

    def fisher(self, eps: Values) -> Values:
        return self.exposure * np.exp(np.minimum(eps, LARGEST_EXPONENT))

    def log_gain(self, eps: Values, variance: Values) -> Values:
        with np.errstate(divide="ignore"):
            return np.logaddexp(0.0, eps + np.log(self.exposure * np.asarray(variance, dtype=float)))

    def expected_fisher(self, mean: Values, variance: Values) -> Values | None:
        return self.fisher(np.asarray(mean) + 0.5 * np.asarray(variance))


class BernoulliResponse(ResponseFamily):
    """Labels -1 and +1 with log odds rate eps.

    Parameters
    ----------
    rate : float
        Positive.
    """

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = one_number("rate", rate)
        self.reach = 1 / self.rate

    def site(self, response: float) -> Site:
        return Logistic(response, self.rate)

    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        require_random(rng)
        p = scipy.special.expit(self.rate * np.asarray(projections, dtype=float))
        return np.where(rng.random(p.shape) < p, 1.0, -1.0)

    def fisher(self, eps: Values) -> Values:
        odds = self.rate * np.asarray(eps)
        return np.asarray(self.rate**2 * scipy.special.expit(odds) * scipy.special.expit(-odds))


class GaussianResponse(ResponseFamily):
    """eps with Gaussian noise.

    Parameters
    ----------
    noise_variance : float
        Positive.
    """

    monotone = True

    def __init__(self, noise_variance: float = 1.0) -> None:
        self.noise_variance = one_number("noise_variance", noise_variance)

    def site(self, response: float) -> Site:
        if not np.isfinite(response):
            raise InputError("response", str(response), "a finite number")
        return Tilted(Gaussian(1 / self.noise_variance), float(response) / self.noise_variance)

    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        require_random(rng)
        means = np.asarray(projections, dtype=float)
        return means + np.sqrt(self.noise_variance) * rng.standard_normal(means.shape)

    def fisher(self, eps: Values) -> Values:
        return np.full(np.shape(eps), 1 / self.noise_variance)

    def expected_fisher(self, mean: Values, variance: Values) -> Values | None:
        return np.full(np.broadcast_shapes(np.shape(mean), np.shape(variance)), 1 / self.noise_variance)
