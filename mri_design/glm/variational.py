"""The best Gaussian in the sense of Kullback and Leibler: by natural gradients, and by the decoupled dual of Khan 2014.

`VariationalGaussian` replaces every site by a Gaussian exp(Re<eta, s> - pi |s|^2 / 2). With s in units of sigma
A = X^H X + B^H diag(pi) B, and the mean is A^-1 (X^H y + B^H (pi offset + sigma eta)). At the optimum of the bound
pi_i = E[-(log t_i)''] and eta_i = pi_i E s_i + E[(log t_i)']: Khan 2014, theorem 4.1 (Opper & Archambeau 2009). Moving
pi and eta part of the way to these values is a step along the natural gradient (Khan & Lin 2017), and needs only a
solve for the mean and marginal variances.

`DecoupledGaussian` is algorithm 1 of Khan 2014. Constraints sd_i^2 = v_i tie the variances of all sites to the
covariance. Linearised at the last sd they leave a dual (equation 11) over alpha and lambda in which sites appear one by
one, through their conjugates

    f*(alpha, lambda) = max over h, sd > 0 of E log t + alpha h + lambda a (2 sd - a) / 2 - k (sd - a)^2 / 2
                        - delta (sd - a)^4 / 2,

maxima over the mean h and the standard deviation sd of one site, with a and k the standard deviation and precision at
the last linearisation: equations (12) and (20), in units of sigma.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import scipy.optimize

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.glm.dense import DualState, PriorAndSites
from mri_design.inference.base import (
    LoopEngine,
    LoopState,
    StepInfo,
    WarmStart,
    cold_start,
    non_gaussian_blocks,
    pooled_variances,
)
from mri_design.inference.evidence import LogDeterminant
from mri_design.krylov import squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock, require_determined
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, Variances
from mri_design.operators.base import Array
from mri_design.sites.base import ENGINES, Site
from mri_design.status import Convergence, Status
from mri_design.variances.base import Exact, VarianceEstimator, require_estimator
from mri_design.variances.columns import ExactByColumns
from mri_design.variances.control_variate import MonteCarlo


@dataclass(frozen=True)
class SiteGaussians:
    """One pi per site and one eta per coefficient, block by block; eta in units of 1 / sigma, like the slope of log t.

    Parameters
    ----------
    precisions : tuple of float arrays
        pi, of the blocks' site shapes.
    slopes : tuple of arrays
        eta, of the shapes of the coefficients, complex where these are.
    """

    precisions: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def towards(self, other: SiteGaussians, step: float) -> SiteGaussians:
        """The sites a part of the way to others: a natural-gradient step of this size."""
        pairs = ((self.precisions, other.precisions), (self.slopes, other.slopes))
        return SiteGaussians(
            *(tuple((a + step * (b - a)).astype(a.dtype) for a, b in zip(*pair, strict=True)) for pair in pairs)
        )


@dataclass(frozen=True, kw_only=True)
class SiteState:
    """Mean, variances and wanted sites under given site Gaussians, as `VariationalGaussian` finds them.

    Parameters
    ----------
    sites : SiteGaussians
        As given.
    mean : array
        Posterior mean.
    precision : PosteriorPrecision
        A.
    marginals : Variances
        Per coefficient.
    wanted : SiteGaussians or None
        The stationary sites at this mean and these variances; None where E log t is not finite.
    expected_log_sites : float
        sum_i E log t_i.
    solved : Convergence
        Of the mean.
    z : tuple of float arrays
        Variances pooled over groups.
    coefficients : tuple of arrays
        E s in units of sigma.
    """

    sites: SiteGaussians
    mean: Array
    precision: PosteriorPrecision
    marginals: Variances
    wanted: SiteGaussians | None
    expected_log_sites: float
    solved: Convergence
    z: tuple[Array, ...]
    coefficients: tuple[Array, ...]

    @property
    def broken(self) -> bool:
        """Whether the solver or the variances broke down, or the stationary Gaussians were not finite."""
        statuses = (self.solved.status, self.marginals.convergence.status)
        return self.wanted is None or Status.BREAKDOWN in statuses

    @property
    def distance(self) -> float:
        """Mean over sites of |pi_wanted - pi| z + |eta_wanted - eta - (pi_wanted - pi) E s| sqrt z, z pooled."""
        if self.wanted is None:
            return float("inf")
        total, count = 0.0, 0
        for block, z, (change, descent) in zip(self.precision.blocks, self.z, self._updates(self.wanted), strict=True):
            total += float(np.sum(np.abs(change) * z + np.sqrt(block.site_power(descent) * z), dtype=np.float64))
            count += int(np.prod(block.site_shape))
        return total / count

    def predicted_decrease(self, trial: SiteState) -> float:
        """Decrease of phi that is predicted, to first order, for the way to a state a step ahead.

        The gradient of phi / 2 is minus ``descent`` in the mean of s, and half the ``change`` of pi in its variances.
        """
        total = 0.0
        if self.wanted is None or trial.wanted is None:
            return float("nan")
        for j, (change, descent) in enumerate(self._updates(self.wanted)):
            z, later, moved = self.z[j], trial.z[j], trial.coefficients[j] - self.coefficients[j]
            total += float(np.sum(np.real(np.conj(descent) * moved), dtype=np.float64))
            total += 0.5 * float(np.sum(change * (z - later), dtype=np.float64))
        return 2 * total

    def _updates(self, wanted: SiteGaussians) -> Iterator[tuple[Array, Array]]:
        """Per block the changes of pi to the wanted sites, and those of the slopes at E s."""
        pairs = zip(wanted.precisions, self.sites.precisions, wanted.slopes, self.sites.slopes, strict=True)
        for (pi, old_pi, eta, old_eta), s in zip(pairs, self.coefficients, strict=True):
            change = pi - old_pi
            yield change, eta - old_eta - change * s

    @property
    def stationarity(self) -> float:
        """Mean over sites of the relative difference of pi and the stationary pi."""
        if self.wanted is None:
            return float("nan")
        tiny = np.finfo(np.float32).tiny
        parts = [
            (2 * np.abs(a - b) / (np.abs(a) + np.abs(b) + tiny)).ravel()
            for a, b in zip(self.sites.precisions, self.wanted.precisions, strict=True)
        ]
        return float(np.mean(np.concatenate(parts), dtype=np.float64))


def _stationary_gaussians(
    block: SiteBlock, s: Array, z: Array, least_precision: float
) -> tuple[Array, Array, float] | None:
    """pi and eta of the Gaussians at which the bound is stationary in the sites of one block, and the sum of E log t.

    Parameters
    ----------
    s : array
        E s in units of sigma.
    z : float array
        Variances, pooled over groups.
    least_precision : float
        Of pi: zero where it must not become negative, which it does only for sites that are not log-concave.

    Returns
    -------
    pi, eta, total
        None where an expectation is not finite.

    Notes
    -----
    pi = -2 d E log t / d variance and eta = d E log t / d mean + pi E s: Khan 2014, equations (9) and (10), with its
    alpha = -d / d mean. On moduli the derivative in the variance is shared by the real numbers, and eta points along
    E s.
    """
    count = block.sharing
    modulus = s if count == 1 else np.sqrt(block.site_power(s))
    expected = block.potential.expected_log_t(modulus, np.broadcast_to(z, block.site_shape) / count, count)
    total = float(np.sum(np.broadcast_to(expected.value, block.site_shape), dtype=np.float64))
    if not (np.isfinite(total) and np.isfinite(expected.d_mean).all() and np.isfinite(expected.d_variance).all()):
        return None
    real = s.real.dtype
    pi = np.broadcast_to(np.maximum(-2 * expected.d_variance / count, least_precision), block.site_shape)
    along = expected.d_mean if count == 1 else s * (expected.d_mean / np.maximum(modulus, np.finfo(real).tiny))
    return pi.astype(real), np.broadcast_to(along + pi * s, s.shape).astype(s.dtype), total


def _bound_at(block: SiteBlock, s: Array, z: Array) -> tuple[Array, Array]:
    """pi and eta of one block, as the Gaussian-shaped lower bounds of its sites have them that touch at |s|^2 + z."""
    at = np.broadcast_to(block.site_power(s) + z, block.site_shape)
    pi = np.broadcast_to(block.represented.site_precision(at), block.site_shape)
    return pi.astype(s.real.dtype), np.broadcast_to(block.potential.shift, s.shape).astype(s.dtype)


def _fitting(model: GeneralizedLinearModel, start: WarmStart) -> WarmStart:
    """The start with its mean X^H y times the number for which it fits y best: one step of steepest descent."""
    expected = model.measurement(start.mean)
    power, explained = squared_norm(start.mean), squared_norm(expected)
    return start if explained == 0 else replace(start, mean=(start.mean * (power / explained)).astype(start.mean.dtype))


def bound_criterion(model: GeneralizedLinearModel, state: SiteState, log_determinant: float) -> float:
    """phi of the variational Gaussian; `evidence_bound` turns it into the bound on log P(y).

    Notes
    -----
    phi = log|A| + |y - X E u|^2 / sigma^2 - sum pi z - 2 sum E log t: E_Q log P(y, u) and the entropy of Q, with
    tr X^H X A^-1 = n - sum pi z. Khan 2014, equation (5), with the constant that it leaves out.
    """
    residual = model.data - model.measurement(state.mean)
    total = log_determinant + float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / model.noise_variance
    for pi, z in zip(state.sites.precisions, state.marginals.values, strict=True):
        total -= float(np.sum(pi * z, dtype=np.float64))
    return total - 2 * state.expected_log_sites


SMALLEST_STEP = 2.0**-12
LEAST_KEPT = 0.15  # least actual over predicted decrease of phi with which a step is kept


@dataclass(frozen=True, kw_only=True)
class UpdateState(LoopState):
    """Between two updates of the sites; ``loop`` counts those that were taken.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model that is inferred.
    noise_seed : int
        Random estimators see the same noise at every state.
    sites : SiteState
        Mean, variances and wanted sites under the current ones; its distance is ``change``.
    step : float
        Size of the next update.
    trace : tuple of float
        The criterion at the start and after every update, where log|A| is exact.
    """

    model: GeneralizedLinearModel
    noise_seed: int
    sites: SiteState
    step: float
    trace: tuple[float, ...]


@dataclass(frozen=True)
class VariationalGaussian(LoopEngine[UpdateState]):
    """Settings of the variational Gaussian (KL) approximation.

    Its bound on log P(y) is at least that of the `DoubleLoop`, and it takes sites that are not super-Gaussian (counts).

    Parameters
    ----------
    variances : VarianceEstimator
        The estimator of z.
    iterations : int
        Updates of all sites at most.
    tolerance : float
        Stop when the update that the current posterior implies would change the sites by less than this: mean over
        sites of |change of pi| z + |change of the slope at the mean| sqrt z, both without dimension.
    criterion : {"none", "estimate"}
        The treatment of the bound where ``variances`` does not know log|A|: leave it out, or estimate log|A| once, for
        the result, by `LogDeterminant`.

    Raises
    ------
    InputError
        For settings out of range or of another kind, where X and B share a null space, or where E log t is not finite
        at the start.

    Notes
    -----
    On complex coefficients and groups Q is taken to be isotropic over the real numbers that share a site. For complex
    coefficients of a complex-linear model it is, and the bound is that of the best circular Gaussian; in groups the
    expectations, and with them the bound, are approximate. Sites that are not log-concave may need a negative pi:
    they get it from `Exact` and `ExactByColumns`, and zero where variances come from draws.

    The first update takes a whole step; later ones are halved where the bound gains much less than its slope promises
    (where it is not known: where the distance above would grow), and grow again.

    A loop of `infer` is an update that was taken; ``criterion`` falls from one to the next (`evidence_bound` turns it
    into a bound on log P(y)), and ``change`` is the distance that ``tolerance`` is held against.
    """

    variances: VarianceEstimator = field(default_factory=MonteCarlo)
    iterations: int = 100
    tolerance: float = 1e-4
    criterion: Literal["none", "estimate"] = "none"

    def __post_init__(self) -> None:
        require_estimator(variances=self.variances)
        require_counts(iterations=self.iterations, least=1)
        require_numbers(tolerance=self.tolerance)
        require_choice(("none", "estimate"), criterion=self.criterion)

    @property
    def most_loops(self) -> int:
        return self.iterations

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> UpdateState:
        require_determined(model)
        seed, begin = int(rng.integers(2**63)), (warm_start or cold_start(model)).mean
        sites = self._state_at(model, seed, self._first_sites(model, warm_start), begin, None)
        phi = _criterion(model, sites)
        return UpdateState(
            change=sites.distance,
            matvecs=_products(sites),
            model=model,
            noise_seed=seed,
            sites=sites,
            step=1.0,
            trace=() if phi is None else (phi,),
        )

    def step(self, state: UpdateState) -> UpdateState:
        model, sites = state.model, state.sites
        assert sites.wanted is not None
        trial = None
        with suppress(
            InputError
        ):  # A has no inverse where site precisions are negative, or so small that rounding loses them next to X
            ahead = sites.sites.towards(sites.wanted, state.step)
            trial = self._state_at(model, state.noise_seed, ahead, sites.mean, sites.marginals)
        matvecs = state.matvecs + (0 if trial is None else _products(trial))
        new_phi = None if trial is None else _criterion(model, trial)
        phi = state.trace[-1] if state.trace else None
        kept = 0.0 if trial is None or trial.broken else _decrease_ratio(phi, new_phi, sites, trial)
        if trial is None or not kept >= LEAST_KEPT:
            return replace(state, step=state.step / 2, matvecs=matvecs, info=None)
        loop = state.loop + 1
        return replace(
            state,
            loop=loop,
            change=trial.distance,
            matvecs=matvecs,
            info=StepInfo(loop, new_phi, trial.distance, trial.solved, trial.marginals.convergence),
            sites=trial,
            step=min(1.0, 2 * state.step) if kept > 0.7 else state.step,
            trace=state.trace if new_phi is None else (*state.trace, new_phi),
        )

    def done(self, state: UpdateState) -> Status | None:
        if state.change < self.tolerance:
            return Status.CONVERGED
        if state.sites.broken:
            return Status.BREAKDOWN
        return Status.STALLED if state.step < SMALLEST_STEP else None

    def advice(self, state: UpdateState, status: Status) -> str:
        if status is Status.MAX_ITERATIONS:
            return f"raise iterations ({self.iterations})"
        return f"loosen tolerance ({self.tolerance:g})" if status is Status.STALLED else ""

    def finish(self, state: UpdateState, convergence: Convergence) -> GaussianPosterior:
        model, sites, trace = state.model, state.sites, state.trace
        if not trace and self.criterion == "estimate":
            noise = np.random.default_rng(state.noise_seed)
            log_determinant, _, estimated = LogDeterminant()(sites.precision, noise, sites.mean)
            convergence = replace(convergence, matvecs=convergence.matvecs + estimated.matvecs)
            trace = (bound_criterion(model, sites, log_determinant),)
        return GaussianPosterior(
            model=model,
            mean=sites.mean,
            precision=sites.precision,
            marginals=sites.marginals,
            convergence=convergence,
            criterion=trace,
            criterion_kind="none" if not trace else "exact" if state.trace else "estimate",
            stationarity=sites.stationarity,
        )

    def _first_sites(self, model: GeneralizedLinearModel, warm: WarmStart | None) -> SiteGaussians:
        """Site Gaussians at a warm start's mean and z; from cold, at guesses that need not be near the posterior.

        From cold, super-Gaussian sites begin as the bound that touches at `cold_start`, as in the double loop, whose
        mean is first scaled to what fits the data best, so that it does not depend on the units of X. Their
        stationary precision falls as fast as a Gaussian with E s, to nothing where the guess is far off; the precision
        of the bound falls slowly, so that A is positive definite whatever the guess. The others begin with their
        stationary Gaussian, at their own guess of E s where they know one.
        """
        given, sigma = warm or _fitting(model, cold_start(model)), float(np.sqrt(model.noise_variance))
        precisions, slopes = [], []
        for block, s, z in zip(model.blocks, model.analysis_coefficients(given.mean), given.z, strict=True):
            guess, own = (s / sigma).astype(s.dtype, copy=False), block.potential.start_mean
            if warm is None and "g" in block.offers:
                site = _bound_at(block, guess, z)
            else:
                known = None if own is None else np.broadcast_to(own, s.shape).astype(s.dtype)
                guesses = [guess, known] if warm is not None else [guess if known is None else known]
                # pi of zero or more: A is positive definite
                stationary = (_stationary_gaussians(block, at, z, 0.0) for at in guesses if at is not None)
                finite = next((one for one in stationary if one is not None), None)
                if finite is None:
                    raise InputError(
                        "start of the inference",
                        "an expectation of log t that is not finite",
                        "a guess of mean and variances at which every site is",
                        "Give a warm start nearer to the posterior.",
                    )
                site = finite[:2]
            precisions.append(site[0])
            slopes.append(site[1])
        return SiteGaussians(tuple(precisions), tuple(slopes))

    def _state_at(
        self,
        model: GeneralizedLinearModel,
        noise_seed: int,
        sites: SiteGaussians,
        mean: Array,
        previous: Variances | None,
    ) -> SiteState:
        """The state under these sites; ``mean`` and ``previous`` are places to start from."""
        sigma = float(np.sqrt(model.noise_variance))
        precision = PosteriorPrecision(model.measurement, model.blocks, sites.precisions)
        rhs = model.back_projection()
        for block, pi, eta in zip(model.blocks, sites.precisions, sites.slopes, strict=True):
            linear = sigma * eta if block.offset is None else sigma * eta + pi * block.offset
            rhs = rhs + block.analysis.adjoint(linear.astype(eta.dtype, copy=False))
        solution, solved = precision.solve(
            rhs[None],
            start=mean[None].astype(rhs.dtype, copy=False),
            tolerance=max(1e-3 * self.tolerance**2, 10 * float(np.finfo(rhs.dtype).eps)),
            max_iterations=2000,
        )
        analyses, rng = [block.analysis for block in model.blocks], np.random.default_rng(noise_seed)
        marginals = self.variances(precision, analyses, rng, solution[0], previous)
        z = pooled_variances(model, marginals)
        coefficients = tuple((s / sigma).astype(s.dtype) for s in model.analysis_coefficients(solution[0]))
        least = -np.inf if isinstance(self.variances, Exact | ExactByColumns) else 0.0
        stationary = [_stationary_gaussians(*each, least) for each in zip(model.blocks, coefficients, z, strict=True)]
        finite = [each for each in stationary if each is not None]
        wanted, total = None, -np.inf
        if len(finite) == len(stationary):
            precisions, slopes, totals = zip(*finite, strict=True)
            wanted, total = SiteGaussians(precisions, slopes), sum(totals)
        return SiteState(
            sites=sites,
            mean=solution[0],
            precision=precision,
            marginals=marginals,
            wanted=wanted,
            expected_log_sites=total,
            solved=solved,
            z=z,
            coefficients=coefficients,
        )


def _criterion(model: GeneralizedLinearModel, state: SiteState) -> float | None:
    """phi where z and log|A| are exact."""
    known = state.marginals.log_determinant
    return bound_criterion(model, state, known) if known is not None and state.marginals.kind == "exact" else None


def _decrease_ratio(phi: float | None, new: float | None, state: SiteState, trial: SiteState) -> float:
    """Actual over predicted decrease of phi.

    Where phi is unknown or its decrease is lost in rounding, the distance to stationarity decides: 1 (phi unknown) or
    0.5 (rounding) for a step that may be kept, 0 for one that may not.
    """
    if phi is None or new is None:
        return 1.0 if trial.distance < 1.2 * state.distance else 0.0
    predicted = state.predicted_decrease(trial)
    rounding = 1e-12 * (1 + abs(phi))
    if predicted < rounding and new - phi < rounding:
        return 0.5 if trial.distance < state.distance else 0.0
    return (phi - new) / predicted if predicted > 0 else float(new < phi)


def _products(state: SiteState) -> int:
    return state.solved.matvecs + state.marginals.convergence.matvecs


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
        return non_gaussian_blocks(model)

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
        Where Newton's method begins at the first call, with the anchor's standard deviations; from then on it begins
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
