"""How much a label would tell: scores of candidates from the mean and variance of their log odds.

A candidate's s = b^T u is N(mean, variance) under the posterior (units of sigma), its label +1 with probability
1 / (1 + exp(-tau s)). Nickisch & Seeger 2009, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy.special

from mri_design.operators.base import Array
from mri_design.potentials.base import SuperGaussian
from mri_design.potentials.likelihoods.logistic import Logistic

Score = Literal["uncertainty", "information_gain", "bald", "random"]

REACH = 9.0  # standard deviations beyond which a Gaussian is nothing
WIDE = 3.0  # log odds of a larger deviation are integrated over the logistic density


def label_probability(mean: Array, variance: Array, scale: float = 1.0) -> Array:
    """Q(c = +1) = E 1 / (1 + exp(-tau s)) for s ~ N(mean, variance).

    Notes
    -----
    By the trapezoidal rule, to 1e-10 for any variance: over s where it varies little, over the logistic variable L with
    P(L < x) = 1 / (1 + exp(-x)) elsewhere.
    """
    mean, deviation = np.broadcast_arrays(scale * np.asarray(mean), scale * np.sqrt(variance))
    values = np.empty(mean.shape)
    wide = deviation >= WIDE
    values[~wide] = _expectation(scipy.special.expit, mean[~wide], deviation[~wide])
    total = np.zeros(int(wide.sum()))
    step = 0.65
    for x in step * np.arange(-42, 43):
        density = step * scipy.special.expit(x) * scipy.special.expit(-x)
        total += density * scipy.special.ndtr((mean[wide] - x) / deviation[wide])
    values[wide] = total
    return values


def uncertainty(mean: Array, variance: Array, scale: float = 1.0) -> Array:
    """S_CU = -|Q(c = +1) - 1/2|: largest where the label is a toss-up."""
    return -np.abs(label_probability(mean, variance, scale) - 0.5)


def bald(mean: Array, variance: Array, scale: float = 1.0) -> Array:
    """Mutual information of label and weights, H[E p] - E H[p], in nats (Houlsby et al. 2011)."""

    def entropy_at(x: Array) -> Array:
        return np.logaddexp(0, x) - x * scipy.special.expit(x)

    p = label_probability(mean, variance, scale)
    within = _expectation(entropy_at, scale * np.asarray(mean), scale * np.sqrt(variance))
    return np.asarray(scipy.special.entr(p) + scipy.special.entr(1 - p) - within)


def information_gain_of_labels(mean: Array, variance: Array, scale: float = 1.0) -> Array:
    """S_IG = sum over labels of Q(c) D[Q' || Q] in nats, Q' the posterior with the candidate's site at its best width.

    Notes
    -----
    D = (log k + (v / k) ((b - m pi)^2 / k - pi)) / 2 with k = 1 + v pi and b the slope of the odd part: the divergence
    of the two Gaussians over the weights.
    """
    p = label_probability(mean, variance, scale)
    total = np.zeros(np.shape(mean))
    for label, weight in ((1.0, p), (-1.0, 1 - p)):
        site = Logistic(label, scale)
        pi = 1 / site_width(mean, variance, site)
        growth = 1 + variance * pi
        linear = float(site.shift) - mean * pi
        total += weight * 0.5 * (np.log(growth) + variance / growth * (linear**2 / growth - pi))
    return total


def site_width(
    mean: Array, variance: Array, site: SuperGaussian, *, tolerance: float = 1e-10, max_iterations: int = 25
) -> Array:
    """gamma that minimises the criterion when one site joins N(mean, variance), all candidates side by side.

    Parameters
    ----------
    mean, variance : float arrays
        Of s without the site, in units of sigma and sigma^2.
    site : SuperGaussian
        Super-Gaussian, with a scalar slope.
    tolerance : float
        Stop where no argument changes by more than this, relatively.
    max_iterations : int
        Fixed-point steps; 25 leave 1e-3 of the width at variances of some hundreds, 1e-8 at those of one.

    Notes
    -----
    The fixed point t = E_Q'[s^2], gamma = -1 / (2 g'(t)) of expectation maximisation: it lowers
    h(gamma) + log(1 + v / gamma) - (m + v b)^2 / (v (1 + v / gamma)) in every step.
    """
    mean, variance = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
    slope = float(np.asarray(site.shift))
    t = mean**2 + variance
    for _ in range(max_iterations):
        pi = site.site_precision(t)
        growth = 1 + variance * pi
        new = (mean + variance * (slope - mean * pi) / growth) ** 2 + variance / growth
        settled = np.all(np.abs(new - t) <= tolerance * t)
        t = new
        if settled:
            break
    return np.asarray(1 / site.site_precision(t))


def _expectation(function: Callable[[Array], Array], mean: Array, deviation: Array) -> Array:
    """E f(x), x ~ N(mean, deviation^2), f analytic within pi of the real line: by the trapezoidal rule."""
    mean, deviation = np.broadcast_arrays(mean, deviation)
    values = np.empty(mean.shape)
    octaves = np.ceil(2 * np.log2(np.maximum(deviation, 1.0)))  # cases of similar deviation share their nodes
    for octave in np.unique(octaves):
        alike = octaves == octave
        step = max(0.7 * 2.0 ** (-octave / 2), 0.005)
        count = int(np.ceil(REACH / step))
        nodes = step * np.arange(-count, count + 1)
        weights = np.exp(-0.5 * nodes**2)
        total = np.zeros(int(alike.sum()))
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            total += weight * function(mean[alike] + node * deviation[alike])
        values[alike] = total
    return values
