"""The conjugates that decouple sites from the prior: maxima over one site's mean h and standard deviation sd.

f*(alpha, lambda) = max over h, sd > 0 of E log t + alpha h + lambda a (2 sd - a) / 2 - k (sd - a)^2 / 2
- delta (sd - a)^4 / 2, with a and k the standard deviation and precision at the last linearisation: Khan 2014,
equations (12) and (20). In units of sigma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.operators.base import Array
from mri_design.potentials.base import Site

NEWTON_STEPS = 60
DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Anchor:
    """Where the constraint sd^2 = v was linearised.

    Parameters
    ----------
    spread, weight : arrays
        a and k of every site.
    delta : float
        Of the quartic term, for sites that are not log-concave.
    """

    spread: Array
    weight: Array
    delta: float = 0.0


@dataclass(frozen=True)
class Conjugate:
    """Where the maximum is, and its value, for every site."""

    mean: Array
    spread: Array
    value: Array


def slope_range(site: Site, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Infimum and supremum of (log t)' for log-concave sites, the whole line for others."""
    if not site.log_concave:
        return np.full(shape, -np.inf), np.full(shape, np.inf)
    far = 1e8 * np.broadcast_to(np.sqrt(np.asarray(site.start_variance, dtype=float)), shape)
    return np.broadcast_to(site.dlog_t(far), shape), np.broadcast_to(site.dlog_t(-far), shape)


def conjugate(site: Site, alpha: Array, weights: Array, anchor: Anchor, start: Conjugate | None) -> Conjugate:
    """The maximum for every site; a local one, from ``start``, where a site is not log-concave.

    Parameters
    ----------
    alpha, weights : arrays
        Dual variables, of the sites' shape; -alpha within `slope_range`.
    start : Conjugate, optional
        Where Newton's method begins.
    """
    closed = None
    if anchor.delta == 0:
        closed = site.conjugate_maximum(alpha, (weights + anchor.weight) * anchor.spread, anchor.weight)
    begin = start or Conjugate(np.zeros_like(alpha), anchor.spread, alpha)
    mean, spread = closed or _newton(site, alpha, weights, anchor, begin)
    return Conjugate(mean, spread, _value(site, alpha, weights, anchor, mean, spread))


def _value(site: Site, alpha: Array, weights: Array, anchor: Anchor, mean: Array, spread: Array) -> Array:
    away = spread - anchor.spread
    linear = 0.5 * weights * anchor.spread * (2 * spread - anchor.spread)
    tied = linear - 0.5 * anchor.weight * away**2 - 0.5 * anchor.delta * away**4
    return np.asarray(site.expected_log_t(mean, spread**2).value + alpha * mean + tied)


def _newton(site: Site, alpha: Array, weights: Array, anchor: Anchor, start: Conjugate) -> tuple[Array, Array]:
    """Damped Newton steps on (h, sd), all sites side by side; third derivatives of E log t by central differences."""
    h, sd = start.mean.copy(), np.maximum(start.spread, 1e-8)
    value = _value(site, alpha, weights, anchor, h, sd)
    for _ in range(NEWTON_STEPS):
        here = site.expected_log_t(h, sd**2)
        away = sd - anchor.spread
        by_h = here.d_mean + alpha
        by_sd = 2 * sd * here.d_variance + weights * anchor.spread - anchor.weight * away
        by_sd = by_sd - 2 * anchor.delta * away**3
        scale = 1 + np.abs(alpha) + weights * anchor.spread
        if max(np.max(np.abs(by_h) / scale), np.max(np.abs(by_sd) / scale)) < 1e-10:
            break
        step = DIFFERENCE * sd
        aside = [site.expected_log_t(h + move, sd**2).d_variance for move in (step, -step)]
        wider = [(sd + move) * site.expected_log_t(h, (sd + move) ** 2).d_variance for move in (step, -step)]
        hh = 2 * here.d_variance
        hs = 2 * sd * (aside[0] - aside[1]) / (2 * step)
        ss = 2 * (wider[0] - wider[1]) / (2 * step) - anchor.weight - 6 * anchor.delta * away**2
        # A negative definite matrix near the Hessian, so that the direction ascends.
        hh, ss = -np.abs(hh) - 1e-10, -np.abs(ss) - 1e-10
        bound = 0.99 * np.sqrt(hh * ss)
        hs = np.clip(hs, -bound, bound)
        determinant = hh * ss - hs**2
        dh, ds = -(ss * by_h - hs * by_sd) / determinant, -(hh * by_sd - hs * by_h) / determinant
        length = np.minimum(1.0, 0.9 * sd / np.maximum(-ds, 1e-300))
        for _ in range(40):
            trial = _value(site, alpha, weights, anchor, h + length * dh, sd + length * ds)
            short = ~(trial >= value - 1e-13 * (1 + np.abs(value)))
            if not short.any():
                break
            length = np.where(short, 0.5 * length, length)
        length = np.where(short, 0.0, length)
        if not length.any():
            break
        h, sd, value = h + length * dh, sd + length * ds, np.where(short, value, trial)
    return h, sd
