"""The decoupled variational Gaussian of Khan 2014: a linearly constrained Lagrangian, solved in its dual.

The variances of all sites are tied to the covariance by constraints sd_i^2 = v_i; linearised at the last sd they leave
a dual (equation 11) over alpha and lambda that takes the sites one by one, through their conjugates

    f*(alpha, lambda) = max over h, sd > 0 of E log t + alpha h + lambda a (2 sd - a) / 2 - k (sd - a)^2 / 2
                        - delta (sd - a)^4 / 2,

maxima over one site's mean h and standard deviation sd, with a and k the standard deviation and precision at the last
linearisation: Khan 2014, equations (12) and (20). In units of sigma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.optimize

from mri_design.errors import require_counts, require_numbers
from mri_design.glm.dense import DualState, PriorAndSites
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, beside_gaussian
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.sites.base import ENGINES, Site
from mri_design.status import Convergence, Status

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


Peaks = tuple[Array, Array, Array]
"""Mean and standard deviation where the maximum of every site is, and its value."""


def slope_range(site: Site, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Infimum and supremum of (log t)' for log-concave sites, the whole line for others."""
    if not site.log_concave:
        return np.full(shape, -np.inf), np.full(shape, np.inf)
    far = 1e8 * np.broadcast_to(np.sqrt(np.asarray(site.start_variance, dtype=float)), shape)
    return np.broadcast_to(site.dlog_t(far), shape), np.broadcast_to(site.dlog_t(-far), shape)


def conjugate(site: Site, alpha: Array, weights: Array, anchor: Anchor, start: Peaks | None) -> Peaks:
    """The maximum for every site; a local one, from ``start``, where a site is not log-concave.

    Parameters
    ----------
    alpha, weights : arrays
        Dual variables, of the sites' shape; -alpha within `slope_range`.
    start : arrays, optional
        Where Newton's method begins.
    """
    closed = None
    if anchor.delta == 0:
        closed = site.conjugate_maximum(alpha, (weights + anchor.weight) * anchor.spread, anchor.weight)
    begin = start[:2] if start else (np.zeros_like(alpha), anchor.spread)
    mean, spread = closed or _newton(site, alpha, weights, anchor, *begin)
    return mean, spread, _value(site, alpha, weights, anchor, mean, spread)


def _value(site: Site, alpha: Array, weights: Array, anchor: Anchor, mean: Array, spread: Array) -> Array:
    away = spread - anchor.spread
    linear = 0.5 * weights * anchor.spread * (2 * spread - anchor.spread)
    tied = linear - 0.5 * anchor.weight * away**2 - 0.5 * anchor.delta * away**4
    return np.asarray(site.expected_log_t(mean, spread**2).value + alpha * mean + tied)


def _newton(site: Site, alpha: Array, weights: Array, anchor: Anchor, h: Array, sd: Array) -> tuple[Array, Array]:
    """Damped Newton steps on (h, sd), all sites side by side; third derivatives of E log t by central differences."""
    sd = np.maximum(sd, 1e-8)
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


LEAST_WEIGHT = 1e-4  # of lambda at a linearisation: without it conjugates have no maximum


@dataclass(frozen=True, kw_only=True)
class DualLoopState(LoopState):
    """Between two linearisations.

    Parameters
    ----------
    split : PriorAndSites
        The model.
    S : array
        Prior covariance of all rows.
    alpha, weights : arrays
        The dual variables alpha and lambda of every row.
    trace : tuple of float
        phi at the start and after every linearisation.
    """

    split: PriorAndSites
    S: Array
    alpha: Array
    weights: Array
    trace: tuple[float, ...]


@dataclass(frozen=True)
class DecoupledGaussian(LoopEngine[DualLoopState]):
    """Algorithm 1 of Khan 2014, dense: a proper Gaussian part (X and Gaussian sites) and sites on real coefficients.

    It ends in the optimum of `VariationalGaussian`, which is faster and takes any model; this one is the paper's own.

    Parameters
    ----------
    iterations : int
        Linearisations at most.
    tolerance : float
        Stop where (alpha + E (log t)') sd and (lambda + E (log t)'') v are below this for every site.
    inner_iterations : int
        Of L-BFGS on each dual.
    delta : float
        Weight of the quartic term (equation 20); a positive one for sites that are not log-concave. Their conjugates
        are local maxima, and steps that raise phi are halved.

    Raises
    ------
    InputError
        For settings out of range, an improper Gaussian part, sites on moduli, sites that are not log-concave with
        delta = 0, Hinge sites.

    Notes
    -----
    Nothing is random, and a warm start is not used. ``criterion`` of the posterior is phi at the start and after every
    linearisation: every one makes a bound, and the last need not be the best where it has not converged.
    """

    relief: ClassVar[dict[str, str]] = {"log_concave": "Set delta=1."}

    iterations: int = 50
    tolerance: float = 1e-4
    inner_iterations: int = 200
    delta: float = 0.0

    def __post_init__(self) -> None:
        require_counts(iterations=self.iterations, inner_iterations=self.inner_iterations, least=1)
        require_numbers(tolerance=self.tolerance)
        require_numbers(delta=self.delta)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Real coefficients and conjugates that Newton's method finds; log-concave sites where ``delta`` is zero."""
        return ENGINES["DecoupledGaussian"] - ({"log_concave"} if self.delta > 0 else set())

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """All blocks but the Gaussian ones, which belong to the prior."""
        return beside_gaussian(model)

    @property
    def most_loops(self) -> int:
        return self.iterations

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> DualLoopState:
        split = PriorAndSites.of(model)
        S = split.rows @ split.rows.T
        if not split.parts:
            return DualLoopState(change=0.0, split=split, S=S, alpha=split.means, weights=split.means, trace=())
        low, high = open_range(split)
        _, d_mean, d_variance = split.expectation(split.means, np.minimum(np.diag(S), 1.0))
        alpha, weights = np.clip(-d_mean, low, high), np.maximum(-2 * d_variance, LEAST_WEIGHT)
        phi = 2 * DualState.of(S, split.means, alpha, weights).half_phi(split, S, alpha)[0]
        return DualLoopState(split=split, S=S, alpha=alpha, weights=weights, trace=(phi,))

    def step(self, state: DualLoopState) -> DualLoopState:
        split, S, alpha, weights = state.split, state.S, state.alpha, state.weights
        low, high = open_range(split)
        here = DualState.of(S, split.means, alpha, weights)
        anchor = Anchor(np.sqrt(here.variance), np.maximum(weights, LEAST_WEIGHT), self.delta)
        least, most = np.r_[low, np.full(len(S), 1e-10)], np.r_[high, np.full(len(S), np.inf)]
        if self.delta > 0:  # the conjugates are local: no further than they are known
            reach = 0.5 * (1 + np.abs(alpha))
            least = np.maximum(least, np.r_[alpha - reach, 0.25 * weights])
            most = np.minimum(most, np.r_[alpha + reach, 4 * weights + LEAST_WEIGHT])
        before = np.concatenate([alpha, weights])
        minimum = scipy.optimize.minimize(
            linearised_dual(split, S, anchor, here.mean),
            before,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(least, most, strict=True)),
            options={"maxiter": self.inner_iterations, "maxcor": 20, "ftol": 1e-14, "gtol": 0.01 * self.tolerance},
        )
        for part_way in 0.5 ** np.arange(12 if self.delta > 0 else 1):
            alpha, weights = np.split(before + part_way * (minimum.x - before), 2)
            here = DualState.of(S, split.means, alpha, weights)
            half_phi, d_mean, d_variance = here.half_phi(split, S, alpha)
            if 2 * half_phi <= state.trace[-1]:
                break
        off = np.abs(alpha + d_mean) * np.sqrt(here.variance), np.abs(weights + 2 * d_variance) * here.variance
        loop, change = state.loop + 1, float(max(off[0].max(), off[1].max()))
        inner = Convergence(Status.CONVERGED if minimum.success else Status.MAX_ITERATIONS, minimum.nit, change)
        exact = Convergence(Status.CONVERGED, 1, 0.0)
        return replace(
            state,
            loop=loop,
            change=change,
            info=StepInfo(loop, 2 * half_phi, change, inner, exact),
            alpha=alpha,
            weights=weights,
            trace=(*state.trace, 2 * half_phi),
        )

    def done(self, state: DualLoopState) -> Status | None:
        if not state.split.parts or state.change < self.tolerance:
            return Status.CONVERGED
        return Status.BREAKDOWN if state.loop and not np.isfinite(state.change) else None

    def advice(self, state: DualLoopState, status: Status) -> str:
        return f"raise iterations ({self.iterations})" if status is Status.MAX_ITERATIONS else ""

    def finish(self, state: DualLoopState, convergence: Convergence) -> GaussianPosterior:
        split = state.split
        if not split.parts:
            return split.gaussian()
        return split.posterior(-split.rows.T @ state.alpha, state.weights, convergence, state.trace, state.change)


def open_range(split: PriorAndSites) -> tuple[Array, Array]:
    """The open range of alpha of every row: minus that of (log t)', a little smaller."""
    ranges = [slope_range(part.block.potential, part.block.site_shape) for part in split.parts]
    least, most = (np.concatenate([np.ravel(ends) for ends in side]) for side in zip(*ranges, strict=True))
    width = most - least
    inside = 1e-9 * np.where(np.isfinite(width), width, 1 + np.minimum(np.abs(least), np.abs(most)))
    inside = np.where(np.isfinite(inside), inside, 0.0)
    return -(most - inside), -(least + inside)


def linearised_dual(
    split: PriorAndSites, S: Array, anchor: Anchor, means: Array | None = None
) -> Callable[[Array], tuple[float, Array]]:
    """Equation (11) as a function of (alpha, lambda), with its gradient (13).

    Parameters
    ----------
    split : PriorAndSites
        The model.
    S : array
        Prior covariance of all rows.
    anchor : Anchor
        Of the linearisation, a and k of every row.
    means : array, optional
        Where Newton's method begins at the first call, beside the anchor's standard deviations; from then on it begins
        where it ended the last time.
    """
    parts, starts = [], list[Peaks | None]()
    for part in split.parts:
        spread, weight = (a[part.rows].reshape(part.block.site_shape) for a in (anchor.spread, anchor.weight))
        parts.append((part, Anchor(spread, weight, anchor.delta)))
        starts.append(None if means is None else (means[part.rows].reshape(spread.shape), spread, spread))

    def dual(flat: Array) -> tuple[float, Array]:
        alpha, weights = np.split(flat, 2)
        state = DualState.of(S, split.means, alpha, weights)
        total = float(-0.5 * state.log_determinant + 0.5 * alpha @ S @ alpha - split.means @ alpha)
        h, sd = np.empty_like(alpha), np.empty_like(alpha)
        for number, (part, own) in enumerate(parts):
            a, w = (side[part.rows].reshape(part.block.site_shape) for side in (alpha, weights))
            mean, spread, value = starts[number] = conjugate(part.block.potential, a, w, own, starts[number])
            h[part.rows], sd[part.rows] = (np.broadcast_to(each, value.shape).ravel() for each in (mean, spread))
            total += float(np.sum(value))
        by_weights = 0.5 * (2 * anchor.spread * sd - anchor.spread**2 - state.variance)
        return total, np.concatenate([h - state.mean, by_weights])

    return dual
