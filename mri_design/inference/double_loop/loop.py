"""Convex variational inference by the double loop, in the three forms of TR-175 section 4.

The criterion phi(gamma) = log|A| + h(gamma) + min_u R(u, gamma) is bounded by replacing its concave part by a tangent
(`bounds`): log|A|, concave in pi = 1/gamma, by z^T pi with z = d log|A| / d pi = diag(B A^-1 B^H) in the second class.
The bound is minimised by a penalised least-squares problem (inner loop, `estimation`); the tangent is renewed by
marginal variances (outer loop, `variances`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.estimation.automatic import Automatic
from mri_design.estimation.base import InnerSolver, require_solver
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart, cold_start, pooled_variances
from mri_design.inference.criterion import criterion_value, dual_arguments
from mri_design.inference.double_loop.bounds import Algorithm, SiteBound, site_bounds
from mri_design.inference.double_loop.moving_bounds import MovingBounds
from mri_design.inference.log_determinant import LogDeterminant
from mri_design.model.determined import require_determined
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.marginals import Variances
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.potentials.requirements import ENGINES
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator, require_estimator
from mri_design.variances.monte_carlo import MonteCarlo


@dataclass(frozen=True, kw_only=True)
class DoubleLoopState(LoopState):
    """Between two outer loops.

    Parameters
    ----------
    model : GeneralizedLinearModel
        What is inferred.
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
        ``change`` after every loop.
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
        Who computes z.
    algorithm : {"second", "first", "hybrid"}
        Which tangent (`bounds.site_bounds`). All end in the same minimum where the model is log-concave; the second
        class takes the fewest loops. The hybrid keeps the inner problem convex for Student-t sites too.
    criterion : {"none", "estimate"}
        What to do about phi where ``variances`` does not know log|A|: leave it out, or estimate log|A| in every loop
        by `LogDeterminant`, for 240 products each.
    inner : InnerSolver
        Who minimises the inner problem; by default `Automatic` to the square of ``tolerance`` (J is quadratic in
        the error).
    outer_iterations : int, optional
        Outer loops at most; one from a warm start is enough to choose a line, two or three to report uncertainty.
        Without a number they go on as long as they gain: the change became smaller within the last three loops
        (and there were no more than 100).
    tolerance : float
        Stop when z changes by less than this in a loop: mean over sites of 2 |z - z_old| / (z + z_old). A random
        estimator sees the same noise in every loop (common random numbers), so that this converges too.

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

    def cut_short(self, loops: int) -> DoubleLoop:
        """The same for a first estimate: a few outer loops, whose inner problems are solved to a looser tolerance.

        Parameters
        ----------
        loops : int
            Outer loops at most.
        """
        inner = None if self.inner is None else replace(self.inner, tolerance=LOOSER * self.inner.tolerance)
        return replace(self, outer_iterations=loops, inner=inner)

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
            What is inferred.
        start : WarmStart
            The variances, and the image to begin at.
        """
        arguments = dual_arguments(MovingBounds(model, start.z).at(start.mean), start.mean, start.z)
        return self._minimised(model, start.z, start.mean, arguments)[0]

    def _minimised(
        self, model: GeneralizedLinearModel, z: tuple[Array, ...], u: Array, arguments: tuple[Array, ...]
    ) -> tuple[Array, Convergence, MovingBounds, tuple[SiteBound, ...]]:
        """The inner problem's image, how it was reached, and the bounds that it minimises."""
        solver = self.inner or Automatic(tolerance=self.tolerance**2)
        moving = MovingBounds(model, z)
        bounds = site_bounds(self.algorithm, moving.at(u), z, arguments)
        u, inner = moving.solve(solver, bounds, u)
        return u, inner, moving, bounds

    def step(self, state: DoubleLoopState) -> DoubleLoopState:
        model, z = state.model, state.z
        u, inner, moving, bounds = self._minimised(model, z, state.u, state.arguments)
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
            estimate = LogDeterminant()(precision, np.random.default_rng(state.noise_seed), u)
            log_determinant = estimate.value
            matvecs += estimate.convergence.matvecs
        phi = None
        arguments = tuple(bound.dual_argument(x) for bound, x in zip(problem.penalties, powers, strict=True))
        if log_determinant is not None:
            phi = criterion_value(bounded, u, pi, arguments, log_determinant) + moving.surplus(u)
        z_new = pooled_variances(model, marginals)
        change = _relative_change(z, z_new)
        if self.algorithm == "hybrid":
            arguments = dual_arguments(moving.at(u), u, z_new)
        return replace(
            state,
            loop=state.loop + 1,
            change=change,
            changes=(*state.changes, change),
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
        wanted = _precisions_for(MovingBounds(model, z).at(u), u, z)
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


def _refuse_undefined(model: GeneralizedLinearModel, site_precisions: tuple[Array, ...]) -> None:
    for block, pi in zip(model.blocks, site_precisions, strict=True):
        if not np.isfinite(pi).all():
            raise InputError(
                f"block {block.name!r}",
                f"{type(block.potential).__name__} with site precisions that are not finite",
                "-2 g'(x) finite for every x > 0",
                "Look at the site's dg, or scale data and rates to ordinary numbers.",
            )


def _precisions_for(model: GeneralizedLinearModel, u: Array, z: tuple[Array, ...]) -> tuple[Array, ...]:
    """-2 g'(x + z) per block."""
    pairs = zip(model.blocks, dual_arguments(model, u, z), strict=True)
    return tuple(np.asarray(block.represented.site_precision(t)) for block, t in pairs)


def _relative_change(old: tuple[Array, ...], new: tuple[Array, ...]) -> float:
    changes, count = 0.0, 0
    for a, b in zip(old, new, strict=True):
        a = np.broadcast_to(a, b.shape)
        changes += float(np.sum(2 * np.abs(b - a) / (a + b), dtype=np.float64))
        count += b.size
    return changes / count
