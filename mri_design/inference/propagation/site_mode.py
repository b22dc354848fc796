"""The mode of one site times a Gaussian on its projection: the one-dimensional problem of a Laplace filter.

    maximise  log t(s) - (s - m)^2 / (2 v),   so that   s = m + v (log t)'(s).

Lewi, Butera & Paninski 2007, after equation (4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from mri_design.potentials.base import Site

ITERATIONS = 200
GRID = 8 * np.linspace(-1, 1, 257)


@dataclass(frozen=True)
class SiteMode:
    """Where a site times a Gaussian is largest.

    Parameters
    ----------
    position : float
        s, in units of sigma.
    slope, curvature : float
        (log t)'(s), and D = -(log t)''(s), which may be negative where the site is not log-concave.
    """

    position: float
    slope: float
    curvature: float


def site_mode(site: Site, mean: float, variance: float) -> SiteMode:
    """The mode, by Newton's method inside a bracket.

    Parameters
    ----------
    site : Site
        One site (scales and slopes are numbers).
    mean, variance : float
        m and v > 0 of the projection, in units of sigma and its square.

    Notes
    -----
    For log-concave sites the equation has one root, uphill from m and no further than m + v (log t)'(m). Others may
    have several modes: the best point of a grid over eight standard deviations to either side is refined.
    """
    position = (_uphill if site.log_concave else _best_of_grid)(site, mean, variance)
    slope, bend = _derivatives(site, position)
    # Where the site is the sharper of the two, its slope feels the rounding of s more than the Gaussian's does.
    return SiteMode(position, slope if -bend * variance < 1 else (position - mean) / variance, -bend)


def _derivatives(site: Site, s: float) -> tuple[float, float]:
    point = np.array([s])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(site.dlog_t(point)).item(), np.asarray(site.d2log_t(point)).item()


def _uphill(site: Site, mean: float, variance: float) -> float:
    """Root of f(s) = (s - m) / v - (log t)'(s), which increases."""
    slope, bend = _derivatives(site, mean)
    if slope == 0:
        return mean
    sign = float(np.sign(slope))
    near, far, reach = mean, mean, np.sqrt(variance)
    longest = variance * abs(slope)  # infinite where the slope overflows
    while True:
        far = mean + sign * min(reach, longest)
        ahead, bend_ahead = _derivatives(site, far)
        if reach >= longest or sign * ((far - mean) / variance - ahead) >= 0:
            break
        near, slope, bend, reach = far, ahead, bend_ahead, 2 * reach
    low, high = sorted((near, far))
    s, last = near, np.inf
    for _ in range(ITERATIONS):
        residual = (s - mean) / variance - slope
        if residual > 0:
            high = s
        elif residual < 0:
            low = s
        else:
            break
        rise = 1 / variance - bend
        new = s - residual / rise if np.isfinite(residual) and np.isfinite(rise) and rise > 0 else np.nan
        if abs(new - s) <= 4 * np.finfo(float).eps * max(abs(s), np.sqrt(variance)):
            return new
        if not low < new < high or abs(new - s) > 0.5 * last:
            new = 0.5 * (low + high)  # also where Newton's steps do not shrink, as down an exponential
        last = abs(new - s)
        s = new
        slope, bend = _derivatives(site, s)
    return s


def _best_of_grid(site: Site, mean: float, variance: float) -> float:
    def loss(s: np.ndarray) -> np.ndarray:
        return 0.5 * (s - mean) ** 2 / variance - site.log_t(s)

    grid = mean + np.sqrt(variance) * GRID
    best = int(np.argmin(loss(grid)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    minimum = scipy.optimize.minimize_scalar(
        lambda s: loss(np.array([s])).item(), bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    s = float(minimum.x)
    for _ in range(20):  # to rounding
        slope, bend = _derivatives(site, s)
        rise = 1 / variance - bend
        new = s - ((s - mean) / variance - slope) / rise if rise > 0 else s
        if not low <= new <= high:
            return s
        if abs(new - s) <= 4 * np.finfo(float).eps * max(abs(s), np.sqrt(variance)):
            return new
        s = new
    return s
