"""E log t(s) of one site under a Gaussian, and its derivatives in mean and variance, by quadrature.

With f = log t and s ~ N(m, v) on the line, d/dm E f = E f' and d/dv E f = E f'' / 2 = E[f'(s) (s - m)] / (2 v): first
derivatives are all that is needed, and kinks do no harm. On a modulus s is a vector of d real numbers with covariance
v I, and f a function of |s|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.floating]
Function = Callable[[Values], Values]

REACH = 10.0  # standard deviations on either side: what lies beyond is below rounding
LEAST = 1e-200  # variances are kept above: their roots and reciprocals stay finite


@dataclass(frozen=True)
class Expectation:
    """E log t(s) for s ~ N(mean, variance), per site and in units of sigma.

    Parameters
    ----------
    value : array
        E log t.
    d_mean : array
        Its derivative in the mean (on moduli: in the modulus of the mean).
    d_variance : array
        Its derivative in the variance per real number: twice it is E (log t)'' on the line, the expected Laplacian
        of log t on a modulus.
    """

    value: Values
    d_mean: Values
    d_variance: Values


@cache
def _tanh_sinh() -> tuple[Values, Values, Values]:
    """Distances from either end and weights on (0, 1); ends where the site is not smooth cost no accuracy."""
    t = np.arange(-3.2, 3.2001, 0.04)
    near = 1 / (1 + np.exp(np.pi * np.sinh(-t)))
    far = 1 / (1 + np.exp(np.pi * np.sinh(t)))
    return near, far, 0.04 * np.pi * np.cosh(t) * near * far


def line_expectation(
    log_t: Function, dlog_t: Function, mean: ArrayLike, variance: ArrayLike, breaks: Sequence[float] = (0.0,)
) -> Expectation:
    """The expectation of a site on real coefficients.

    Parameters
    ----------
    log_t, dlog_t : callable
        Site and derivative, of arrays of shape (nodes, *sites).
    mean, variance : arrays
        Of s, in units of sigma.
    breaks : sequence of float
        Where the site has kinks, or its structure of smallest scale: ends of the intervals of integration.

    Notes
    -----
    The tanh-sinh rule of Takahasi & Mori (1974) on every interval between breaks within ten standard deviations.
    """
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST))
    spread = np.sqrt(v)
    near, far, weights = (a.reshape(-1, *(1 for _ in m.shape)) for a in _tanh_sinh())
    ends = [m - REACH * spread, *(np.clip(b, m - REACH * spread, m + REACH * spread) for b in sorted(breaks))]
    ends.append(m + REACH * spread)
    value, slope, curvature = (np.zeros(m.shape) for _ in range(3))
    reference = np.asarray(dlog_t(m))
    for low, high in pairwise(ends):
        length = high - low
        s = np.where(near < 0.5, low + near * length, high - far * length)
        ahead = np.where(near < 0.5, (low - m) + near * length, (high - m) - far * length)
        mass = weights * (length / spread) * np.exp(-0.5 * (ahead / spread) ** 2) / np.sqrt(2 * np.pi)
        slopes = dlog_t(s)
        value = value + np.sum(mass * log_t(s), axis=0)
        slope = slope + np.sum(mass * slopes, axis=0)
        curvature = curvature + np.sum(mass * (slopes - reference) * (ahead / spread), axis=0)
    return Expectation(value, slope, 0.5 * curvature / spread)


def radial_expectation(
    g: Function, dg: Function, modulus: ArrayLike, variance: ArrayLike, dimensions: int
) -> Expectation:
    """The expectation of a site g(|s|^2) on moduli of ``dimensions`` >= 2 real numbers.

    Parameters
    ----------
    g, dg : callable
        log t as a function of |s|^2 and its derivative, of arrays of shape (nodes, *sites).
    modulus : array
        |E s|, in units of sigma.
    variance : array
        Of every one of the real numbers, which are independent.
    dimensions : int
        How many share the site.

    Notes
    -----
    |s| has a non-central chi density, and given |s| the cosine between s and its mean the expectation
    I_(d/2) / I_(d/2 - 1) of |s| |E s| / v. With F(r) = g(r^2): d/dm E F = E[F' cos], and
    d/dv E F = E[F' (r - m cos)] / (2 v).
    """
    m, v = np.broadcast_arrays(np.asarray(modulus, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST))
    spread = np.sqrt(v)
    near, _, weights = (a.reshape(-1, *(1 for _ in m.shape)) for a in _tanh_sinh())
    low = np.maximum(-m, -REACH * spread)  # relative to m
    length = (REACH + np.sqrt(dimensions)) * spread - low
    ahead = low + near * length
    r = np.where(near < 0.5, (m + low) + near * length, m + ahead)
    kappa = r * (m / v)
    log_mass = (dimensions - 1) * np.log(np.maximum(r / spread, 1e-300)) - 0.5 * (ahead / spread) ** 2
    mass = weights * (length / spread) * np.exp(log_mass) * _scaled_bessel(0.5 * dimensions - 1, kappa)
    aside = _cosine_deficit(dimensions, kappa)
    slopes = 2 * r * dg(r**2)
    reference = 2 * m * dg(m**2)
    curvature = (slopes - reference) * ahead + aside * (m * slopes + reference * r)
    return Expectation(
        np.sum(mass * g(r**2), axis=0),
        np.sum(mass * slopes * (1 - aside), axis=0),
        0.5 * np.sum(mass * curvature, axis=0) / v,
    )


def _scaled_bessel(order: float, kappa: Values) -> Values:
    """kappa^-order exp(-kappa) I_order(kappa), finite at zero."""
    near, middle, far = np.minimum(kappa, 1e-4), np.clip(kappa, 1e-4, 1e4), np.maximum(kappa, 1e4)
    start = np.exp(-near) * 0.5**order / scipy.special.gamma(order + 1) * (1 + 0.25 * near**2 / (order + 1))
    e = 4 * order**2
    end = far ** (-order - 0.5) / np.sqrt(2 * np.pi)
    end = end * (1 - (e - 1) / (8 * far) * (1 - (e - 9) / (16 * far) * (1 - (e - 25) / (24 * far))))
    between = scipy.special.ive(order, middle) / middle**order
    return np.asarray(np.where(kappa < 1e-4, start, np.where(kappa > 1e4, end, between)))


def _cosine_deficit(dimensions: int, kappa: Values) -> Values:
    """1 - I_(d/2)(kappa) / I_(d/2 - 1)(kappa), without cancellation far out."""
    order = 0.5 * dimensions - 1
    small = np.clip(kappa, 1e-4, 1e3)
    ratio = scipy.special.ive(order + 1, small) / scipy.special.ive(order, small)
    k, e = np.maximum(kappa, 1e3), float(dimensions)
    far = (e - 1) / (2 * k) - (e - 1) * (e - 3) / (8 * k**2) - (e - 1) * (e - 3) / (8 * k**3)
    return np.asarray(np.where(kappa < 1e-4, 1 - kappa / dimensions, np.where(kappa > 1e3, far, 1 - ratio)))
