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

from mri_design.estimation import Smoothed
from mri_design.inference.widths import dual_argument_of, stationary_width
from mri_design.model import GeneralizedLinearModel, SiteBlock
from mri_design.operators import Array
from mri_design.potentials import ExponentialPower, Laplace, PositiveMixture, Potential, StudentT

__all__ = ["Algorithm", "SiteBound", "first_class", "hybrid", "site_bounds"]

Algorithm = Literal["second", "first", "hybrid"]


class SiteBound(Protocol):
    """psi of one block (see `estimation.SitePenalty`), and the point of g that its gamma belongs to."""

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
        return tuple(Smoothed(block.potential, one) for block, one in zip(model.blocks, z, strict=True))
    make = first_class if algorithm == "first" else hybrid
    return tuple(make(block, one, t) for block, one, t in zip(model.blocks, z, arguments, strict=True))


def first_class(block: SiteBlock, z: Array, t: Array) -> SiteBound:
    """The first class's bound of one block; Student-t sites and powers below one by a tangent of their concave part."""
    site = block.potential
    count = block.analysis.out_size // int(np.prod(block.site_shape))
    t = np.asarray(t, dtype=float)
    pi = site.site_precision(t)
    # In exact arithmetic z <= d gamma; estimates may lie above.
    slope = np.maximum(count * pi - pi**2 * z, np.finfo(float).eps * pi)
    if isinstance(site, Laplace):
        return _PowerWidth(site, slope + site.scale**2, float(count), np.zeros(()))
    if isinstance(site, StudentT):
        alpha = site.degrees / site.scale
        concave = max(site.degrees + 1 - count, 0.0)  # of h - d log gamma: that many log gamma
        bend = max(count - site.degrees - 1, 0.0)
        return _PowerWidth(site, slope + concave * pi, bend, alpha)
    if isinstance(site, ExponentialPower) and not site.log_concave:  # h is concave as a whole
        return _PowerWidth(site, slope + t * pi**2, float(count), np.zeros(()))
    return _FirstClass(site, slope, count)


def hybrid(block: SiteBlock, z: Array, t: Array) -> SiteBound:
    """The hybrid bound of one block: the second class's for log-concave sites, convex in s for others where known.

    Known are Student-t sites, powers below one and mixtures (whose log sum is bounded by the responsibilities at t);
    any other site keeps the second class's bound, which holds as well but is not convex in s.
    """
    site = block.potential
    if site.log_concave:
        return Smoothed(site, z)
    t = np.asarray(t, dtype=float)
    pi = site.site_precision(t)
    if isinstance(site, StudentT):
        return _PowerWidth(site, (site.degrees + 1) * pi, 0.0, site.degrees / site.scale + z)
    if isinstance(site, ExponentialPower):
        return _PowerWidth(site, t * pi**2, 0.0, np.asarray(z))
    if isinstance(site, PositiveMixture):
        return _MixtureBound(site, site.responsibilities(t), tuple(Smoothed(one, z) for one in site.sites))
    return Smoothed(site, z)


@dataclass(frozen=True)
class _PowerWidth:
    """psi(x) = min over gamma of slope gamma - bend log gamma + (x + extra) / gamma: a quadratic equation."""

    site: Potential
    slope: Array
    bend: float
    extra: Array

    def _width(self, x: Array) -> Array:
        # Away from zero, where a site without bend and extra would be as sharp as |s|.
        power = np.maximum(x + self.extra, 1e-12)
        return np.asarray((self.bend + np.sqrt(self.bend**2 + 4 * self.slope * power)) / (2 * self.slope))

    def value(self, x: Array) -> Array:
        width = self._width(x)
        total = self.slope * width + (x + self.extra) / width
        return np.asarray(total - self.bend * np.log(width) if self.bend else total).astype(x.dtype)

    def precision(self, x: Array) -> Array:
        return np.asarray(1 / self._width(x)).astype(x.dtype)

    def dual_argument(self, x: Array) -> Array:
        return dual_argument_of(self.site, 1 / self._width(x))


@dataclass(frozen=True)
class _FirstClass:
    """psi(x) = min over gamma of slope gamma + h(gamma) - count log gamma + x / gamma, from g alone."""

    site: Potential
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

    site: PositiveMixture
    responsibilities: Array
    bounds: tuple[Smoothed, ...]

    def value(self, x: Array) -> Array:
        pairs = zip(self.responsibilities, self.bounds, strict=True)
        return np.asarray(sum(q * bound.value(x) for q, bound in pairs)).astype(x.dtype)

    def precision(self, x: Array) -> Array:
        pairs = zip(self.responsibilities, self.bounds, strict=True)
        return np.asarray(sum(q * bound.precision(x) for q, bound in pairs)).astype(x.dtype)

    def dual_argument(self, x: Array) -> Array:
        return dual_argument_of(self.site, self.precision(x).astype(float))
