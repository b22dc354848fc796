"""Iteratively reweighted least squares for the penalised problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.errors import require_counts, require_numbers
from mri_design.estimation.penalised import (
    Line,
    PenalisedProblem,
    minimising_length,
    moved,
    powers_along,
    rounding_of,
    stalled_status,
)
from mri_design.krylov import real_inner, squared_norm
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status


@dataclass(frozen=True)
class IRLS:
    """Minimise J by reweighted least squares with preconditioned conjugate gradients and a line search.

    Every iteration sets pi = -2 g'(x + z) (a quadratic upper bound of J that touches it), solves
    A(pi) u' = X^H y approximately from the current u, and searches along u' - u for the least J. Since the quadratic is
    an upper bound, the step never raises J, however approximate the solution was. Where rounding leaves no lower J to
    be found, u stays as it is.

    Parameters
    ----------
    tolerance : float
        Stop when an iteration whose linear solve converged lowers J by less than ``tolerance`` per real unknown.
    max_iterations : int
        Reweightings.
    solver_tolerance : float
        Relative reduction of the residual in each linear solve.
    solver_iterations : int
        Limit of conjugate gradients for each solve. A solve that reaches it has not converged, and neither has an
        iteration that rests on it, so the limit should be generous: solves are long where site precisions span many
        decades (Lanczos variances, a MAP image), see results/benchmarks/measured-once.md.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a count that is too small.

    Notes
    -----
    TR-175 section 4.2 calls a Newton step IRLS; on moduli of complex pairs the Hessian is no longer diagonal, while
    the reweighted system keeps the form of A.
    """

    tolerance: float = 1e-4
    max_iterations: int = 50
    solver_tolerance: float = 0.1
    solver_iterations: int = 300

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance, solver_tolerance=self.solver_tolerance)
        require_counts(max_iterations=self.max_iterations, least=0)
        require_counts(solver_iterations=self.solver_iterations, least=1)

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``.

        Returns
        -------
        u : array
            The minimiser found.
        convergence : Convergence
            ``residual`` is the last decrease of J per real unknown; where J cannot be lowered any more, the one that
            the quadratic bound predicted: stalled where that is above the tolerance and the rounding of J.
        """
        model = problem.model
        u = start.astype(model.back_projection().dtype, copy=True)
        residual = model.data - model.measurement(u)
        s = model.analysis_coefficients(u)
        value = problem.value(residual, s)
        matvecs, decrease, status, iteration = 1, np.inf, Status.MAX_ITERATIONS, 0
        for iteration in range(1, self.max_iterations + 1):  # noqa: B007 (reported)
            precision = PosteriorPrecision(model.measurement, model.blocks, problem.site_precisions(s))
            # Solve for the step itself: its right-hand side is minus the gradient, so the tolerance is relative to it.
            gradient = model.right_hand_side(precision.site_precisions) - precision(u)
            step, solved = precision.solve(
                gradient[None], tolerance=self.solver_tolerance, max_iterations=self.solver_iterations
            )
            matvecs += solved.matvecs + 2
            if solved.status is Status.BREAKDOWN:
                status = Status.BREAKDOWN
                break
            direction = step[0]
            x_direction = model.measurement(direction)
            s_direction = tuple(block.analysis(direction) for block in model.blocks)
            data_descent = float(real_inner(residual, x_direction, residual.ndim)) / model.noise_variance
            data_curvature = squared_norm(x_direction) / model.noise_variance
            powers = powers_along(problem, s, s_direction)
            line = Line(problem.penalties, powers, data_descent + model.odd_part(s_direction), data_curvature)
            # The accelerated length may overshoot where J bends sharply; the full step lies under the bound.
            for length in (minimising_length(line.bound), 1.0):
                new_residual = residual - residual.real.dtype.type(length) * x_direction
                new_s = tuple(moved(a, d, length) for a, d in zip(s, s_direction, strict=True))
                new_value = problem.value(new_residual, new_s)
                if new_value <= value:
                    break
            if not np.isfinite(new_value):
                status = Status.BREAKDOWN
                break
            decrease = max(value - new_value, 0.0) / model.measurement.in_size
            if not new_value < value:  # u stays: this iteration would only be repeated
                decrease = float(real_inner(gradient, direction, direction.ndim)) / model.noise_variance
                decrease /= model.measurement.in_size
                fit = squared_norm(residual) / model.noise_variance
                rounding = rounding_of(fit, value - fit, u) / model.measurement.in_size
                status = stalled_status(decrease, self.tolerance, rounding) if solved.converged else Status.STALLED
                break
            u = u + u.real.dtype.type(length) * direction
            residual, s, value = new_residual, new_s, new_value
            if decrease < self.tolerance and solved.converged:
                status = Status.CONVERGED
                break
        return u, Convergence(status, iteration, float(decrease), matvecs)
