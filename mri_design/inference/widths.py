"""Scalar equations for the width gamma of a site, solved side by side from g and its derivatives."""

from __future__ import annotations

import numpy as np

from mri_design.operators import Array
from mri_design.potentials import Potential

__all__ = ["dual_argument_of", "stationary_width"]

ITERATIONS = 100
GRID = 48


def dual_argument_of(site: Potential, pi: Array) -> Array:
    """t >= 0 with -2 g'(t) = pi, by bisection; zero where pi is larger than any slope of the site."""
    pi = np.asarray(pi, dtype=float)
    shape = np.broadcast_shapes(pi.shape, np.shape(site.start_variance))
    low, high = np.full(shape, -70.0), np.full(shape, 70.0)
    for _ in range(ITERATIONS):
        middle = 0.5 * (low + high)
        too_steep = site.site_precision(np.exp(middle)) > pi
        low, high = np.where(too_steep, middle, low), np.where(too_steep, high, middle)
    return np.where(site.site_precision(np.full(shape, np.exp(-70.0))) > pi, np.exp(0.5 * (low + high)), 0.0)


def stationary_width(site: Potential, slope: Array, count: int, x: Array) -> tuple[Array, Array]:
    """gamma that minimises slope gamma + h(gamma) - count log gamma + x / gamma, and t with gamma = -1 / (2 g'(t)).

    Parameters
    ----------
    site : Potential
        With h convex for log-concave ones, so that there is one stationary point; for others the lowest is taken.
    slope : float array
        Positive.
    count : int
        d.
    x : float array
        |s|^2 / sigma^2.

    Notes
    -----
    h'(gamma) = t / gamma^2, so that t = x + d gamma - slope gamma^2 with gamma = gamma(t). Below gamma(0) h is flat,
    and gamma solves the quadratic equation with t = 0. Newton steps on t, kept in a shrinking bracket.
    """
    x = np.asarray(x, dtype=float)
    shape = np.broadcast_shapes(x.shape, np.shape(slope), np.shape(site.start_variance))
    x, slope = np.broadcast_to(x, shape), np.broadcast_to(np.asarray(slope, dtype=float), shape)
    flat = (count + np.sqrt(count**2 + 4 * slope * x)) / (2 * slope)
    below = flat <= 1 / site.site_precision(np.zeros(shape))
    low, high = _bracket(site, slope, count, x)
    t, settled = 0.5 * (low + high), below
    for _ in range(ITERATIONS):
        excess, derivative = _excess(site, slope, count, x, t)
        low, high = np.where(excess < 0, t, low), np.where(excess < 0, high, t)
        newton = t - excess / np.where(derivative > 0, derivative, np.inf)
        inside = (newton > low) & (newton < high)
        moved = np.where(inside, newton, np.where(low > 0, np.sqrt(low * high), 1e-2 * high))
        moved = np.where(settled, t, moved)
        # Newton's error is quadratic in its step.
        settled = settled | (inside & (np.abs(moved - t) <= 1e-7 * t)) | (high - low <= 1e-14 * high)
        t = moved
        if settled.all():
            break
    width = 1 / site.site_precision(t)
    return np.where(below, flat, width), np.where(below, 0.0, t)


def _excess(site: Potential, slope: Array, count: int, x: Array, t: Array) -> tuple[Array, Array]:
    """t - x - d gamma(t) + slope gamma(t)^2, and its derivative."""
    descent = site.dg(t)
    width = -0.5 / descent
    widening = 0.5 * site.d2g(t) / descent**2
    return t - x - count * width + slope * width**2, 1 - count * widening + 2 * slope * width * widening


def _bracket(site: Potential, slope: Array, count: int, x: Array) -> tuple[Array, Array]:
    """Ends of an interval where the excess rises through zero; around the lowest minimum where there are several."""
    high = np.maximum(x, np.asarray(site.start_variance))
    for _ in range(200):
        short = _excess(site, slope, count, x, high)[0] < 0
        if not short.any():
            break
        high = np.where(short, 4 * high, high)
    low = np.zeros_like(high)
    if site.log_concave:
        return low, high
    grid = high * np.exp(np.linspace(-30, 0, GRID)).reshape(-1, *(1 for _ in high.shape))
    width = 1 / site.site_precision(grid)
    criterion = slope * width + site.h_at_optimum(grid) - count * np.log(width) + x / width
    best = np.argmin(criterion, axis=0)[None]
    below = np.take_along_axis(grid, np.maximum(best - 1, 0), axis=0)[0]
    above = np.take_along_axis(grid, np.minimum(best + 1, GRID - 1), axis=0)[0]
    return np.where(best[0] == 0, 0.0, below), above
