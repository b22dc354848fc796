"""Tangent bounds of the criterion, site by site: the penalties of the inner problem for each algorithm of TR-175.

With gamma eliminated each is a function psi of x = |s|^2 / sigma^2, concave and rising, so that every solver of the
penalised problem serves all algorithms:

- second class (section 4.2): log|A| <= z^T pi + const, and
  psi = min over gamma of (z + x) / gamma + h(gamma) = -2 g(x + z);
- first class (4.1): log|A| + log|Gamma| <= z1^T gamma + const with z1 = pi - pi^2 z, and
  psi = min over gamma of z1 gamma + h(gamma) - log gamma + x / gamma;
- hybrid (4.2): the second class's tangent of log|A|, and a tangent in gamma of the concave part of h as well.

A site shared by d real numbers (a modulus, a group) counts d times in log|Gamma|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from mri_design.estimation.penalised import Smoothed
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.potentials.base import SuperGaussian

ITERATIONS = 100
GRID = 48


def dual_argument_of(site: SuperGaussian, pi: Array) -> Array:
    """t >= 0 with -2 g'(t) = pi, by bisection; zero where pi is larger than any slope of the site."""
    pi = np.asarray(pi, dtype=float)
    shape = np.broadcast_shapes(pi.shape, np.shape(site.start_variance))
    low, high = np.full(shape, -70.0), np.full(shape, 70.0)
    for _ in range(ITERATIONS):
        middle = 0.5 * (low + high)
        too_steep = site.site_precision(np.exp(middle)) > pi
        low, high = np.where(too_steep, middle, low), np.where(too_steep, high, middle)
    return np.where(site.site_precision(np.full(shape, np.exp(-70.0))) > pi, np.exp(0.5 * (low + high)), 0.0)


def stationary_width(site: SuperGaussian, slope: Array, count: int, x: Array) -> tuple[Array, Array]:
    """gamma that minimises slope gamma + h(gamma) - count log gamma + x / gamma, and t with gamma = -1 / (2 g'(t)).

    Parameters
    ----------
    site : SuperGaussian
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


def _excess(site: SuperGaussian, slope: Array, count: int, x: Array, t: Array) -> tuple[Array, Array]:
    """t - x - d gamma(t) + slope gamma(t)^2, and its derivative."""
    descent = site.dg(t)
    width = -0.5 / descent
    widening = 0.5 * site.d2g(t) / descent**2
    return t - x - count * width + slope * width**2, 1 - count * widening + 2 * slope * width * widening


def _bracket(site: SuperGaussian, slope: Array, count: int, x: Array) -> tuple[Array, Array]:
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


Algorithm = Literal["second", "first", "hybrid"]


class SiteBound(Protocol):
    """psi of one block (see `SitePenalty`), and the point of g that its gamma belongs to."""

    def value(self, x: Array) -> Array:
        """psi(x), up to a constant."""
        ...

    def precision(self, x: Array) -> Array:
        """pi = 1 / gamma = psi'(x)."""
        ...

    def dual_argument(self, x: Array) -> Array:
        """t >= 0 with h(gamma) = -(t pi' + 2 g(t)), pi' = -2 g'(t): where the site's own dual is attained."""
        ...


def site_bounds(
    algorithm: Algorithm, model: GeneralizedLinearModel, z: tuple[Array, ...], arguments: tuple[Array, ...]
) -> tuple[SiteBound, ...]:
    """One bound per block that touches where z was computed.

    Parameters
    ----------
    algorithm : {"second", "first", "hybrid"}
        Which bound.
    z : tuple of float arrays
        d log|A| / d pi, pooled over groups.
    arguments : tuple of float arrays
        Where the sites are developed, per block. First class: t with pi = -2 g'(t) for the pi under which z was
        computed. Hybrid: any t >= 0, best x + z. The second class does not look at it.
    """
    if algorithm == "second":
        return tuple(Smoothed(block.represented, z_j) for block, z_j in zip(model.blocks, z, strict=True))
    make = first_class if algorithm == "first" else hybrid
    return tuple(make(block, z_j, t) for block, z_j, t in zip(model.blocks, z, arguments, strict=True))


def first_class(block: SiteBlock, z: Array, t: Array) -> SiteBound:
    """The first class's bound of one block; by the site's own dual form, where it has one, a quadratic equation."""
    site = block.represented
    count = block.analysis.out_size // int(np.prod(block.site_shape))
    t = np.asarray(t, dtype=float)
    pi = site.site_precision(t)
    # In exact arithmetic z <= d gamma; estimates may lie above.
    slope = np.maximum(count * pi - pi**2 * z, np.finfo(float).eps * pi)
    form = site.dual_form(t)
    if form is None:
        return _FirstClass(site, slope, count)
    excess = (
        np.asarray(form.logs, dtype=float) - count
    )  # of h - d log gamma: that many log gamma, concave where positive
    concave, logs = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
    return _PowerWidth(site, slope + form.linear + concave * pi, logs, np.asarray(form.reciprocal))


def hybrid(block: SiteBlock, z: Array, t: Array) -> SiteBound:
    """The hybrid bound of one block: the second class's for log-concave sites, convex in s for others where known.

    Known are sites with a `dual_form`, and sites that say of which parts they are made (`parts_at`; the log sum of a
    mixture is bounded by its responsibilities at t). Any other site keeps the second class's bound, which holds as well
    but is not convex in s.
    """
    site = block.represented
    if site.log_concave:
        return Smoothed(site, z)
    t = np.asarray(t, dtype=float)
    form = site.dual_form(t)
    if form is not None:
        slope = form.linear + form.logs * site.site_precision(t)
        return _PowerWidth(site, slope, np.zeros(()), form.reciprocal + z)
    parts = site.parts_at(t)
    if len(parts) > 1:
        return _MixtureBound(site, tuple((q, Smoothed(part, z)) for q, part in parts))
    return Smoothed(site, z)


@dataclass(frozen=True)
class _PowerWidth:
    """psi(x) = min over gamma of slope gamma - logs log gamma + (x + extra) / gamma.

    The width gamma at the minimum solves a quadratic equation.
    """

    site: SuperGaussian
    slope: Array
    logs: Array
    extra: Array

    def _width(self, x: Array) -> Array:
        # Away from zero, where a site without logs and extra would be as sharp as |s|.
        power = np.maximum(x + self.extra, 1e-12)
        return np.asarray((self.logs + np.sqrt(self.logs**2 + 4 * self.slope * power)) / (2 * self.slope))

    def value(self, x: Array) -> Array:
        width = self._width(x)
        total = self.slope * width + (x + self.extra) / width
        return np.asarray(total - self.logs * np.log(width) if np.any(self.logs) else total).astype(x.dtype)

    def precision(self, x: Array) -> Array:
        return np.asarray(1 / self._width(x)).astype(x.dtype)

    def dual_argument(self, x: Array) -> Array:
        return dual_argument_of(self.site, 1 / self._width(x))


@dataclass(frozen=True)
class _FirstClass:
    """psi(x) = min over gamma of slope gamma + h(gamma) - count log gamma + x / gamma, from g alone."""

    site: SuperGaussian
    slope: Array
    count: int

    def value(self, x: Array) -> Array:
        width, t = stationary_width(self.site, self.slope, self.count, x)
        total = self.slope * width + self.site.h_at_optimum(t) - self.count * np.log(width) + x / width
        return np.asarray(total).astype(x.dtype)

    def precision(self, x: Array) -> Array:
        return np.asarray(1 / stationary_width(self.site, self.slope, self.count, x)[0]).astype(x.dtype)

    def dual_argument(self, x: Array) -> Array:
        return stationary_width(self.site, self.slope, self.count, x)[1]


@dataclass(frozen=True)
class _MixtureBound:
    """psi(x) = sum_k q_k psi_k(x): log sum w_k t_k from below by its terms, for fixed responsibilities q."""

    site: SuperGaussian
    parts: tuple[tuple[Array | float, Smoothed], ...]

    def value(self, x: Array) -> Array:
        return np.asarray(sum(q * bound.value(x) for q, bound in self.parts)).astype(x.dtype)

    def precision(self, x: Array) -> Array:
        return np.asarray(sum(q * bound.precision(x) for q, bound in self.parts)).astype(x.dtype)

    def dual_argument(self, x: Array) -> Array:
        return dual_argument_of(self.site, self.precision(x).astype(float))
