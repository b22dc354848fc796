"""Convex variational inference by the double loop, in the three forms of TR-175 section 4.

The criterion phi(gamma) = log|A| + h(gamma) + min_u R(u, gamma) is bounded by replacing its concave part by a tangent
(`bounds`): log|A|, concave in pi = 1/gamma, by z^T pi with z = d log|A| / d pi = diag(B A^-1 B^H) in the second class.
The bound is minimised by a penalised least-squares problem (inner loop, `estimation`); the tangent is renewed by
marginal variances (outer loop, `variances`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.estimation.automatic import Automatic
from mri_design.estimation.base import InnerSolver, require_solver
from mri_design.inference.base import StepInfo, WarmStart, cold_start, pooled_variances, require_task
from mri_design.inference.criterion import criterion_value, dual_arguments
from mri_design.inference.double_loop.bounds import Algorithm, site_bounds
from mri_design.inference.double_loop.moving_bounds import MovingBounds
from mri_design.inference.log_determinant import LogDeterminant
from mri_design.model.determined import require_determined
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.marginals import Variances
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.potentials.super_gaussian import require_super_gaussian
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator, require_estimator
from mri_design.variances.monte_carlo import MonteCarlo

__all__ = ["DoubleLoop"]


@dataclass(frozen=True)
class DoubleLoop:
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
    outer_iterations : int
        Outer loops; one from a warm start is enough to choose a line, two or three to report uncertainty.
    tolerance : float
        Stop when z changes by less than this in a loop: mean over sites of 2 |z - z_old| / (z + z_old). A random
        estimator sees the same noise in every loop (common random numbers), so that this converges too.

    Raises
    ------
    InputError
        For anything but an estimator and a solver, no loop, a senseless tolerance or an unknown algorithm; for sites
        that are not super-Gaussian; for sites of two parameters in the first class; where X and B share a null space.
    """

    variances: VarianceEstimator = field(default_factory=MonteCarlo)
    inner: InnerSolver | None = None
    outer_iterations: int = 6
    tolerance: float = 1e-2
    algorithm: Algorithm = "second"
    criterion: Literal["none", "estimate"] = "none"

    def __post_init__(self) -> None:
        require_estimator(variances=self.variances)
        if self.inner is not None:
            require_solver(inner=self.inner)
        require_counts(outer_iterations=self.outer_iterations, least=1)
        require_numbers(tolerance=self.tolerance)
        if self.algorithm not in get_args(Algorithm):
            raise InputError(field="algorithm", got=repr(self.algorithm), wanted="second, first or hybrid")
        if self.criterion not in ("none", "estimate"):
            raise InputError(field="criterion", got=repr(self.criterion), wanted="none or estimate")

    def infer(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> GaussianPosterior:
        """Run outer loops to convergence or the limit.

        Parameters
        ----------
        model : GeneralizedLinearModel
            What to infer.
        rng : numpy Generator
            Randomness of the variance estimator.
        warm_start : WarmStart, optional
            Image, z and draws of a neighbouring problem; without it z = 0.09 / tau^2 and u = X^H y.
        callback : callable, optional
            Called with a StepInfo after every outer loop.

        Returns
        -------
        GaussianPosterior
            ``convergence.residual`` is the last relative change of z; ``iterations`` counts outer loops.
        """
        require_task(model, rng, warm_start, callback)
        self._refuse_unfit_sites(model)
        require_determined(model)
        solver = self.inner or Automatic(tolerance=self.tolerance**2)
        start = warm_start or cold_start(model)
        u, z = start.mean, start.z
        arguments = dual_arguments(MovingBounds(model, z).at(u), u, z)
        noise_seed = int(rng.integers(2**63))
        trace: list[float] = []
        marginals: Variances | None = None
        if start.samples is not None:
            marginals = Variances((), "unbiased", Convergence(Status.CONVERGED, 0, 0.0), samples=start.samples)
        status, matvecs, change, loop = Status.MAX_ITERATIONS, 0, np.inf, 0
        for loop in range(1, self.outer_iterations + 1):
            moving = MovingBounds(model, z)
            bounds = site_bounds(self.algorithm, model, z, arguments)
            u, inner = moving.solve(solver, bounds, u)
            bounded = moving.at(u)
            problem = moving.problem(bounded, bounds)
            coefficients = model.analysis_coefficients(u)
            powers = problem.site_powers(coefficients)
            pi = problem.site_precisions(coefficients)
            _refuse_undefined(model, pi)
            precision = PosteriorPrecision(model.measurement, model.blocks, pi)
            marginals = self.variances(
                precision, [b.analysis for b in model.blocks], np.random.default_rng(noise_seed), u, marginals
            )
            matvecs += inner.matvecs + marginals.convergence.matvecs
            log_determinant = marginals.log_determinant
            exact_criterion = log_determinant is not None and marginals.kind == "exact"
            if log_determinant is None and self.criterion == "estimate":
                estimate = LogDeterminant()(precision, np.random.default_rng(noise_seed), u)
                log_determinant = estimate.value
                matvecs += estimate.convergence.matvecs
            phi = None
            arguments = tuple(one.dual_argument(x) for one, x in zip(problem.penalties, powers, strict=True))
            if log_determinant is not None:
                phi = criterion_value(bounded, u, pi, arguments, log_determinant) + moving.surplus(u)
                trace.append(phi)
            z_new = pooled_variances(model, marginals)
            change = _relative_change(z, z_new)
            z = z_new
            if self.algorithm == "hybrid":
                arguments = dual_arguments(moving.at(u), u, z)
            if callback is not None:
                callback(StepInfo(loop, phi, change, inner, marginals.convergence))
            if Status.BREAKDOWN in (inner.status, marginals.convergence.status) or not np.isfinite(change):
                status = Status.BREAKDOWN
                break
            if change < self.tolerance and inner.converged and marginals.convergence.converged:
                status = Status.CONVERGED
                break
        assert marginals is not None  # outer_iterations >= 1
        return GaussianPosterior(
            model=model,
            mean=u,
            precision=precision,
            marginals=marginals,
            convergence=Convergence(status, loop, float(change), matvecs),
            criterion=tuple(trace),
            criterion_kind="none" if not trace else "exact" if exact_criterion else "estimate",
            stationarity=_relative_change(pi, _precisions_for(MovingBounds(model, z).at(u), u, z)),
        )

    def _refuse_unfit_sites(self, model: GeneralizedLinearModel) -> None:
        for block in model.blocks:
            require_super_gaussian(f"block {block.name!r}", block.potential, block.site_shape)
            if self.algorithm == "first" and block.potential.two_parameter:
                raise InputError(
                    field=f"block {block.name!r}",
                    got=f"{type(block.potential).__name__} in the first class",
                    wanted="sites with a fixed position",
                    cure='Use algorithm="second".',
                )


def _refuse_undefined(model: GeneralizedLinearModel, site_precisions: tuple[Array, ...]) -> None:
    for block, pi in zip(model.blocks, site_precisions, strict=True):
        if not np.isfinite(pi).all():
            raise InputError(
                field=f"block {block.name!r}",
                got=f"{type(block.potential).__name__} with site precisions that are not finite",
                wanted="-2 g'(x) finite for every x > 0",
                cure="Look at the site's dg, or scale data and rates to ordinary numbers.",
            )


def _precisions_for(model: GeneralizedLinearModel, u: Array, z: tuple[Array, ...]) -> tuple[Array, ...]:
    """-2 g'(x + z) per block."""
    pairs = zip(model.blocks, dual_arguments(model, u, z), strict=True)
    return tuple(np.asarray(block.potential.site_precision(t)) for block, t in pairs)


def _relative_change(old: tuple[Array, ...], new: tuple[Array, ...]) -> float:
    changes, count = 0.0, 0
    for a, b in zip(old, new, strict=True):
        a = np.broadcast_to(a, b.shape)
        changes += float(np.sum(2 * np.abs(b - a) / (a + b), dtype=np.float64))
        count += b.size
    return changes / count
