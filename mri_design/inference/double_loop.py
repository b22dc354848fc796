"""Convex variational inference by the double loop, in the three forms of TR-175 section 4.

The criterion phi(gamma) = log|A| + h(gamma) + min_u R(u, gamma) is bounded by replacing its concave part by a tangent:
log|A|, concave in pi = 1/gamma, by z^T pi with z = d log|A| / d pi = diag(B A^-1 B^H) in the second class.
The bound is minimised by a penalised least-squares problem (inner loop, `estimation`); the tangent is renewed by
marginal variances (outer loop, `variances`).

The penalties of the inner problem are tangent bounds of the criterion, site by site. With gamma eliminated each is a
function psi of x = |s|^2 / sigma^2, concave and rising, so that every solver of the penalised problem serves all
algorithms:

- second class (section 4.2): log|A| <= z^T pi + const, and
  psi = min over gamma of (z + x) / gamma + h(gamma) = -2 g(x + z);
- first class (4.1): log|A| + log|Gamma| <= z1^T gamma + const with z1 = pi - pi^2 z, and
  psi = min over gamma of z1 gamma + h(gamma) - log gamma + x / gamma;
- hybrid (4.2): the second class's tangent of log|A|, and a tangent in gamma of the concave part of h as well.

A site shared by d real numbers (a modulus, a group) counts d times in log|Gamma|.

Sites whose Gaussian-form bound has a position that moves (TR-175 appendix A.4) are, between two renewals, the Gaussian
form N^U(s | b, pi) that touches them: tilted Gaussian sites. Every renewal lowers the inner problem J, and the
criterion with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.estimation.map_estimate import Automatic
from mri_design.estimation.penalised import InnerSolver, PenalisedProblem, SitePenalty, Smoothed, require_solver
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, cold_start, pooled_variances
from mri_design.inference.evidence import LogDeterminant, criterion_value, dual_arguments
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock, require_determined
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, Variances
from mri_design.operators.base import Array
from mri_design.sites.base import ENGINES, MovingSite, SuperGaussian
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator, require_estimator
from mri_design.variances.control_variate import ControlVariate, MonteCarlo

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
    """Ends of an interval in which the excess rises through zero; around the lowest minimum if there are several."""
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


def site_bounds(
    algorithm: Algorithm, model: GeneralizedLinearModel, z: tuple[Array, ...], arguments: tuple[Array, ...]
) -> tuple[SitePenalty, ...]:
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


def first_class(block: SiteBlock, z: Array, t: Array) -> SitePenalty:
    """The first class's bound of one block; by the site's own dual form, where it has one, a quadratic equation."""
    site = block.represented
    count = block.sharing
    t = np.asarray(t, dtype=float)
    pi = site.site_precision(t)
    # In exact arithmetic z <= d gamma; estimates may lie above.
    slope = np.maximum(count * pi - pi**2 * z, np.finfo(float).eps * pi)
    form = site.dual_form(t)
    if form is None:
        return _FirstClass(site, slope, count)
    linear, of_logs, reciprocal = form
    excess = np.asarray(of_logs, dtype=float) - count  # of h - d log gamma: that many log gamma, concave where positive
    concave, logs = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
    return _PowerWidth(site, slope + linear + concave * pi, logs, np.asarray(reciprocal))


def hybrid(block: SiteBlock, z: Array, t: Array) -> SitePenalty:
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
        linear, logs, reciprocal = form
        return _PowerWidth(site, linear + logs * site.site_precision(t), np.zeros(()), reciprocal + z)
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


RENEWALS = 500


class MovingBounds:
    """The blocks of a model whose sites are `MovingSite`, their z, and the solution of inner problems that hold some.

    Parameters
    ----------
    model : GeneralizedLinearModel
        With or without such blocks.
    z : tuple of float arrays
        The tangent of log|A|.
    near : PosteriorPrecision, optional
        A precision near that of the inner problem, as that of the loop before; not used where sites move.
    """

    def __init__(
        self, model: GeneralizedLinearModel, z: tuple[Array, ...], near: PosteriorPrecision | None = None
    ) -> None:
        self.model = model
        self.z = z
        self.near = near
        sites = [block.potential for block in model.blocks]
        self.moving = {j: site for j, site in enumerate(sites) if isinstance(site, MovingSite)}

    def at(self, u: Array) -> GeneralizedLinearModel:
        """The model with the Gaussian forms that touch at u."""
        if not self.moving:
            return self.model
        blocks = list(self.model.blocks)
        for j, site in self.moving.items():
            form = site.gaussian_form(self._coefficients(j, u), self.z[j])
            blocks[j] = replace(blocks[j], potential=form)
        return replace(self.model, blocks=tuple(blocks))

    def problem(self, bounded: GeneralizedLinearModel, bounds: tuple[SitePenalty, ...]) -> PenalisedProblem:
        """The inner problem of `at` (some u), with ``bounds`` for the blocks that do not move."""
        penalties = list(bounds)
        for j in self.moving:
            penalties[j] = Smoothed(bounded.blocks[j].represented, np.zeros((), dtype=bounded.data.real.dtype))
        return PenalisedProblem(bounded, tuple(penalties))

    def surplus(self, u: Array) -> float:
        """The difference to add to the criterion of `at` (u): psi - z pi - (pi s^2 - 2 b s) / sigma^2, summed."""
        total, bounded = 0.0, self.at(u)
        for j, site in self.moving.items():
            s, form = self._coefficients(j, u), bounded.blocks[j].represented
            pi = form.site_precision(s)
            total += float(np.sum(-2 * site.smoothed_log_t(s, self.z[j]) - self.z[j] * pi + 2 * form.log_t(s)))
        return total

    def solve(self, solver: InnerSolver, bounds: tuple[SitePenalty, ...], u: Array) -> tuple[Array, Convergence]:
        """Minimise the inner problem, whose moving blocks' entries in ``bounds`` are not used."""
        if not self.moving:
            return solver(PenalisedProblem(self.model, bounds, self.near), u)
        matvecs, value, status, solved, count, decrease = 0, np.inf, Status.MAX_ITERATIONS, None, 0, np.inf
        for count in range(1, RENEWALS + 1):  # noqa: B007 (reported)
            bounded = self.at(u)
            problem = self.problem(bounded, bounds)
            u, solved = solver(problem, u)
            matvecs += solved.matvecs
            residual = bounded.data - bounded.measurement(u)
            forms = touching = 0.0
            for j, site in self.moving.items():
                s = self._coefficients(j, u)
                touching -= 2 * float(np.sum(site.smoothed_log_t(s, self.z[j])))
                forms += 2 * float(np.sum(bounded.blocks[j].potential.log_t(s)))
            new_value = problem.value(residual, bounded.analysis_coefficients(u)) + forms + touching
            decrease, value = (value - new_value) / self.model.measurement.in_size, new_value
            if solved.status is Status.BREAKDOWN:
                status = Status.BREAKDOWN
                break
            if decrease < solver.tolerance and solved.converged:
                status = Status.CONVERGED
                break
        return u, Convergence(status, count, float(decrease), matvecs)

    def _coefficients(self, j: int, u: Array) -> Array:
        """s of block j in units of sigma."""
        s = self.model.blocks[j].coefficients(u)
        return np.asarray(s / np.sqrt(self.model.noise_variance)).astype(s.dtype, copy=False)


@dataclass(frozen=True, kw_only=True)
class DoubleLoopState(LoopState):
    """Between two outer loops.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model that is inferred.
    noise_seed : int
        Random estimators see the same noise in every loop.
    u : array
        The image.
    z, arguments : tuples of float arrays
        The tangent of log|A|, and where the sites are developed (`bounds.site_bounds`).
    marginals, precision : Variances and PosteriorPrecision, optional
        Of the last loop; draws of a warm start before the first.
    trace : tuple of float
        The criterion, loop by loop, where it was known.
    exact : bool
        Whether log|A| was exact.
    changes : tuple of float
        Of z in every loop.
    """

    model: GeneralizedLinearModel
    noise_seed: int
    u: Array
    z: tuple[Array, ...]
    arguments: tuple[Array, ...]
    marginals: Variances | None
    precision: PosteriorPrecision | None = None
    trace: tuple[float, ...] = ()
    exact: bool = False
    changes: tuple[float, ...] = ()


MOST_LOOPS = 100
"""Loops at most, where no number is given."""
PATIENCE = 3
"""Loops without a smaller change than before, after which no number of them is going to settle."""
LOOSER = 10
"""By how much the inner problems of a first estimate are solved to a looser tolerance."""


@dataclass(frozen=True)
class DoubleLoop(LoopEngine[DoubleLoopState]):
    """Settings of the double loop.

    Each loop minimises the inner problem for the current z, takes the site precisions that follow, and then computes z
    under them, so that the returned mean, precision and variances belong together.

    Parameters
    ----------
    variances : VarianceEstimator
        The estimator of z.
    algorithm : {"second", "first", "hybrid"}
        Which tangent (`bounds.site_bounds`). All end in the same minimum where the model is log-concave; the second
        class takes the fewest loops. The hybrid keeps the inner problem convex for Student-t sites too.
    criterion : {"none", "estimate"}
        The treatment of phi where ``variances`` does not know log|A|: leave it out, or estimate log|A| in every loop
        by `LogDeterminant`, for 240 products each.
    inner : InnerSolver
        The solver of the inner problem; by default `Automatic` to the square of ``tolerance`` (J is quadratic in
        the error).
    outer_iterations : int, optional
        Outer loops at most; one from a warm start is enough to choose a line, two or three to report uncertainty.
        Without a number they go on as long as they gain: the change became smaller within the last three loops
        (and there were no more than 100).
    tolerance : float
        Stop when z changed by less than this in a loop, or will change by less in all loops to come (`left_of`): mean
        over sites of 2 |z - z_old| / (z + z_old). A random estimator sees the same noise in every loop (common random
        numbers), so that this converges too.

    Raises
    ------
    InputError
        For anything but an estimator and a solver, no loop, a senseless tolerance or an unknown algorithm; for sites
        without a bound of Gaussian form; for sites whose position moves in the first class and the hybrid; where X and
        B share a null space.
    """

    relief: ClassVar[dict[str, str]] = {"g": 'The first class and the hybrid do not take it: use algorithm="second".'}

    variances: VarianceEstimator = field(default_factory=MonteCarlo)
    inner: InnerSolver | None = None
    outer_iterations: int | None = None
    tolerance: float = 1e-2
    algorithm: Algorithm = "second"
    criterion: Literal["none", "estimate"] = "none"

    def __post_init__(self) -> None:
        require_estimator(variances=self.variances)
        if self.inner is not None:
            require_solver(inner=self.inner)
        if self.outer_iterations is not None:
            require_counts(outer_iterations=self.outer_iterations, least=1)
        require_numbers(tolerance=self.tolerance)
        require_choice(get_args(Algorithm), algorithm=self.algorithm)
        require_choice(("none", "estimate"), criterion=self.criterion)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """A bound at every s; the first class and the hybrid want a representation g as well."""
        return ENGINES["DoubleLoop"] | ({"g"} if self.algorithm != "second" else set())

    @property
    def most_loops(self) -> int:
        return MOST_LOOPS if self.outer_iterations is None else self.outer_iterations

    def cut_short(self, loops: int, *, half_the_draws: bool = False) -> DoubleLoop:
        """Settings for a first estimate: a few outer loops, whose inner problems are solved to a looser tolerance.

        Parameters
        ----------
        loops : int
            Outer loops at most.
        half_the_draws : bool
            Whether variances with a control variate come from half as many draws: enough for an image that only tells
            which patches are alike, not for energies that are compared with measured ones.
        """
        inner = None if self.inner is None else replace(self.inner, tolerance=LOOSER * self.inner.tolerance)
        variances = self.variances
        if half_the_draws and isinstance(variances, ControlVariate) and variances.control != "none":
            variances = replace(variances, samples=max(2, variances.samples // 2))
        return replace(self, outer_iterations=loops, inner=inner, variances=variances)

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> DoubleLoopState:
        require_determined(model)
        start = warm_start or cold_start(model)
        marginals = None
        if start.samples is not None:
            marginals = Variances((), "unbiased", Convergence(Status.CONVERGED, 0, 0.0), samples=start.samples)
        u, z = start.mean, start.z
        arguments = dual_arguments(MovingBounds(model, z).at(u), u, z)
        return DoubleLoopState(
            model=model, noise_seed=int(rng.integers(2**63)), u=u, z=z, arguments=arguments, marginals=marginals
        )

    def image_at(self, model: GeneralizedLinearModel, start: WarmStart) -> Array:
        """The mean for given marginal variances: one inner problem, without new variances.

        Parameters
        ----------
        model : GeneralizedLinearModel
            The model that is inferred.
        start : WarmStart
            The variances, and the image to begin at.
        """
        arguments = dual_arguments(MovingBounds(model, start.z).at(start.mean), start.mean, start.z)
        return self._minimised(model, start.z, start.mean, arguments)[0]

    def _minimised(
        self,
        model: GeneralizedLinearModel,
        z: tuple[Array, ...],
        u: Array,
        arguments: tuple[Array, ...],
        near: PosteriorPrecision | None = None,
    ) -> tuple[Array, Convergence, MovingBounds, tuple[SitePenalty, ...]]:
        """The inner problem's image, how it was reached, and the bounds that it minimises."""
        solver = self.inner or Automatic(tolerance=self.tolerance**2)
        moving = MovingBounds(model, z, near)
        bounds = site_bounds(self.algorithm, moving.at(u), z, arguments)
        u, inner = moving.solve(solver, bounds, u)
        return u, inner, moving, bounds

    def step(self, state: DoubleLoopState) -> DoubleLoopState:
        model, z = state.model, state.z
        u, inner, moving, bounds = self._minimised(model, z, state.u, state.arguments, state.precision)
        bounded = moving.at(u)
        problem = moving.problem(bounded, bounds)
        coefficients = model.analysis_coefficients(u)
        powers = problem.site_powers(coefficients)
        pi = problem.site_precisions(coefficients)
        _refuse_undefined(model, pi)
        precision = PosteriorPrecision(model.measurement, model.blocks, pi)
        marginals = self.variances(
            precision, [b.analysis for b in model.blocks], np.random.default_rng(state.noise_seed), u, state.marginals
        )
        matvecs = state.matvecs + inner.matvecs + marginals.convergence.matvecs
        log_determinant = marginals.log_determinant
        exact = log_determinant is not None and marginals.kind == "exact"
        if log_determinant is None and self.criterion == "estimate":
            log_determinant, _, estimated = LogDeterminant()(precision, np.random.default_rng(state.noise_seed), u)
            matvecs += estimated.matvecs
        phi = None
        arguments = tuple(bound.dual_argument(x) for bound, x in zip(problem.penalties, powers, strict=True))
        if log_determinant is not None:
            phi = criterion_value(bounded, u, pi, arguments, log_determinant) + moving.surplus(u)
        z_new = pooled_variances(model, marginals)
        changes = (*state.changes, _relative_change(z, z_new))
        change = min(changes[-1], left_of(changes))
        if self.algorithm == "hybrid":
            arguments = dual_arguments(moving.at(u), u, z_new)
        return replace(
            state,
            loop=state.loop + 1,
            change=change,
            changes=changes,
            matvecs=matvecs,
            info=StepInfo(state.loop + 1, phi, change, inner, marginals.convergence),
            u=u,
            z=z_new,
            arguments=arguments,
            marginals=marginals,
            precision=precision,
            trace=state.trace if phi is None else (*state.trace, phi),
            exact=exact,
        )

    def done(self, state: DoubleLoopState) -> Status | None:
        if state.info is None:
            return None
        inner, variances = state.info.inner, state.info.variances
        if Status.BREAKDOWN in (inner.status, variances.status) or not np.isfinite(state.change):
            return Status.BREAKDOWN
        if state.change < self.tolerance and inner.converged and variances.converged:
            return Status.CONVERGED
        recent, before = state.changes[-PATIENCE:], state.changes[:-PATIENCE]
        gained = not before or min(recent) < min(before)
        return None if gained or self.outer_iterations is not None else Status.STALLED

    def advice(self, state: DoubleLoopState, status: Status) -> str:
        if state.info is None or status is Status.BREAKDOWN:
            return ""
        if not state.info.inner.converged:
            return "raise max_iterations of the inner solver: the inner problem ended at its limit"
        if not state.info.variances.converged:
            return f"raise the limit of iterations of {type(self.variances).__name__}: the variances ended at it"
        if status is Status.STALLED:
            return f"loosen tolerance ({self.tolerance:g}), or take variances with less error: loops gain no more"
        return f"raise outer_iterations ({self.most_loops})"

    def finish(self, state: DoubleLoopState, convergence: Convergence) -> GaussianPosterior:
        model, u, z = state.model, state.u, state.z
        assert state.marginals is not None and state.precision is not None  # outer_iterations >= 1
        bounded = MovingBounds(model, z).at(u)
        pairs = zip(bounded.blocks, dual_arguments(bounded, u, z), strict=True)
        wanted = tuple(np.asarray(block.represented.site_precision(t)) for block, t in pairs)  # -2 g'(x + z)
        return GaussianPosterior(
            model=model,
            mean=u,
            precision=state.precision,
            marginals=state.marginals,
            convergence=convergence,
            criterion=state.trace,
            criterion_kind="none" if not state.trace else "exact" if state.exact else "estimate",
            stationarity=_relative_change(state.precision.site_precisions, wanted),
        )


def left_of(changes: tuple[float, ...]) -> float:
    """Sum of the changes to come if they go on to fall as the last two did; infinite where these did not fall."""
    if len(changes) < 2 or not changes[-1] < changes[-2]:
        return float("inf")
    ratio = changes[-1] / changes[-2]
    return changes[-1] * ratio / (1 - ratio)


def _refuse_undefined(model: GeneralizedLinearModel, site_precisions: tuple[Array, ...]) -> None:
    for block, pi in zip(model.blocks, site_precisions, strict=True):
        if not np.isfinite(pi).all():
            raise InputError(
                f"block {block.name!r}",
                f"{type(block.potential).__name__} with site precisions that are not finite",
                "-2 g'(x) finite for every x > 0",
                "Look at the site's dg, or scale data and rates to ordinary numbers.",
            )


def _relative_change(old: tuple[Array, ...], new: tuple[Array, ...]) -> float:
    changes, count = 0.0, 0
    for a, b in zip(old, new, strict=True):
        a = np.broadcast_to(a, b.shape)
        changes += float(np.sum(2 * np.abs(b - a) / (a + b), dtype=np.float64))
        count += b.size
    return changes / count
