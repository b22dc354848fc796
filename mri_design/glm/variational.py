"""The best Gaussian in the sense of Kullback and Leibler, by natural-gradient updates of its sites.

Every site is replaced by a Gaussian exp(Re<eta, s> - pi |s|^2 / 2). With s in units of sigma
A = X^H X + B^H diag(pi) B, and the mean is A^-1 (X^H y + B^H (pi offset + sigma eta)). At the optimum of the bound
pi_i = E[-(log t_i)''] and eta_i = pi_i E s_i + E[(log t_i)']: Khan 2014, theorem 4.1 (Opper & Archambeau 2009). Moving
pi and eta a part of the way to what mean and variances ask for is a step along the natural gradient (Khan & Lin 2017),
and needs nothing but a mean solve and marginal variances.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, cold_start, pooled_variances
from mri_design.inference.criterion import LogDeterminant
from mri_design.krylov import squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock, require_determined
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, Variances
from mri_design.operators.base import Array
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
        The sites that mean and variances ask for; None where E log t is not finite.
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
        """Whether the solver or the variances broke down, or sites asked for nothing finite."""
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
        """Per block the changes of pi that the wanted sites ask for, and those of the slopes at E s."""
        pairs = zip(wanted.precisions, self.sites.precisions, wanted.slopes, self.sites.slopes, strict=True)
        for (pi, old_pi, eta, old_eta), s in zip(pairs, self.coefficients, strict=True):
            change = pi - old_pi
            yield change, eta - old_eta - change * s

    @property
    def stationarity(self) -> float:
        """Mean over sites of the relative difference of pi and the pi asked for."""
        if self.wanted is None:
            return float("nan")
        tiny = np.finfo(np.float32).tiny
        parts = [
            (2 * np.abs(a - b) / (np.abs(a) + np.abs(b) + tiny)).ravel()
            for a, b in zip(self.sites.precisions, self.wanted.precisions, strict=True)
        ]
        return float(np.mean(np.concatenate(parts), dtype=np.float64))


def _asked_for(block: SiteBlock, s: Array, z: Array, least_precision: float) -> tuple[Array, Array, float] | None:
    """pi and eta of the Gaussians that stationarity of the bound asks of one block's sites, and the sum of E log t.

    Parameters
    ----------
    s : array
        E s in units of sigma.
    z : float array
        Variances, pooled over groups.
    least_precision : float
        Of pi: zero where it must not become negative, which only sites that are not log-concave ask for.

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
    """phi of the variational Gaussian, from which `evidence_bound` makes the bound on log P(y).

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
    expectations, and with them the bound, are approximate. Sites that are not log-concave may ask for a negative pi:
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
        with suppress(InputError):  # A has no inverse where site precisions are negative, or lost in rounding beside X
            ahead = sites.sites.towards(sites.wanted, state.step)
            trial = self._state_at(model, state.noise_seed, ahead, sites.mean, sites.marginals)
        matvecs = state.matvecs + (0 if trial is None else _products(trial))
        new_phi = None if trial is None else _criterion(model, trial)
        phi = state.trace[-1] if state.trace else None
        kept = 0.0 if trial is None or trial.broken else _kept(phi, new_phi, sites, trial)
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
        """Sites asked for by a warm start's mean and z; from cold, by guesses that need not be near the posterior.

        From cold, super-Gaussian sites begin as the bound that touches at `cold_start`, as in the double loop, whose
        mean is first scaled to what fits the data best, so that it does not depend on the units of X. What they ask
        for falls as fast as a Gaussian with E s, to nothing where the guess is far off; the precision of the bound
        falls slowly, so that A is positive definite whatever the guess. Of the others what they ask for is taken, at
        their own guess of E s where they know one.
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
                asked = (_asked_for(block, at, z, 0.0) for at in guesses if at is not None)
                finite = next((one for one in asked if one is not None), None)
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
        asked = [_asked_for(*each, least) for each in zip(model.blocks, coefficients, z, strict=True)]
        finite = [each for each in asked if each is not None]
        wanted, total = None, -np.inf
        if len(finite) == len(asked):
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


def _kept(phi: float | None, new: float | None, state: SiteState, trial: SiteState) -> float:
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
