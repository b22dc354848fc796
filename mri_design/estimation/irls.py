"""Iteratively reweighted least squares for the penalised problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.estimation.penalised import PenalisedProblem
from mri_design.krylov import conjugate_gradients, real_inner
from mri_design.model import PosteriorPrecision
from mri_design.operators import Array
from mri_design.status import Convergence, Status

__all__ = ["IRLS"]


@dataclass(frozen=True)
class IRLS:
    """Minimise J by reweighted least squares with preconditioned conjugate gradients and a line search.

    Every iteration sets pi = -2 g'(x + z) (a quadratic upper bound of J that touches it), solves
    A(pi) u' = X^H y loosely from the current u, and minimises J exactly enough along u' - u. Since the quadratic is an
    upper bound the step never raises J, however loosely it was solved. In the last digits of the precision at hand,
    where J cannot be lowered any more, u stays.

    Parameters
    ----------
    tolerance : float
        Stop when an iteration whose linear solve converged lowers J by less than ``tolerance`` per real unknown.
    max_iterations : int
        Reweightings.
    solver_tolerance : float
        Relative reduction of the residual in each linear solve.
    solver_iterations : int
        Limit of conjugate gradients for each; reached only in trouble, since nothing converges on solves that were cut
        off. Where site precisions span many decades (Lanczos variances, a MAP image) a solve takes 50 to 200.

    Notes
    -----
    TR-175 section 4.2 calls a Newton step IRLS; on moduli of complex pairs the Hessian is no longer diagonal, while
    the reweighted system keeps the form of A.
    """

    tolerance: float = 1e-4
    max_iterations: int = 50
    solver_tolerance: float = 0.1
    solver_iterations: int = 300

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``.

        Returns
        -------
        u : array
            The minimiser found.
        convergence : Convergence
            ``residual`` is the last decrease of J per real unknown.
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
            step, solved = conjugate_gradients(
                precision,
                gradient[None],
                n_axes=model.n_axes,
                preconditioner=precision.preconditioner,
                tolerance=self.solver_tolerance,
                max_iterations=self.solver_iterations,
            )
            matvecs += solved.matvecs + 2
            if solved.status is Status.BREAKDOWN:
                status = Status.BREAKDOWN
                break
            direction = step[0]
            x_direction = model.measurement(direction)
            s_direction = tuple(block.analysis(direction) for block in model.blocks)
            # The accelerated length may overshoot where J bends sharply; the full step lies under the bound.
            for length in (_line_search(problem, residual, x_direction, s, s_direction), 1.0):
                new_residual = residual - residual.real.dtype.type(length) * x_direction
                new_s = _moved(s, s_direction, length)
                new_value = problem.value(new_residual, new_s)
                if new_value <= value:
                    break
            if not np.isfinite(new_value):
                status = Status.BREAKDOWN
                break
            decrease = max(value - new_value, 0.0) / model.measurement.in_size
            if new_value <= value:  # else nothing but rounding is left
                u = u + u.real.dtype.type(length) * direction
                residual, s, value = new_residual, new_s, new_value
            if decrease < self.tolerance and solved.converged:
                status = Status.CONVERGED
                break
        return u, Convergence(status, iteration, float(decrease), matvecs)


def _line_search(
    problem: PenalisedProblem,
    residual: Array,
    x_direction: Array,
    s: tuple[Array, ...],
    s_direction: tuple[Array, ...],
    iterations: int = 4,
) -> float:
    """Length t > 0 that nearly minimises t -> J(u + t d); majorise-minimise steps in one dimension, accelerated.

    At each t the quadratic bound gives the next t exactly; the secant of two such steps extrapolates. No
    multiplication with X or B is needed.
    """
    sigma2 = problem.model.noise_variance
    pull = float(real_inner(residual, x_direction, residual.ndim)) / sigma2 + problem.model.odd_part(s_direction)
    data_curvature = float(np.sum(np.abs(x_direction) ** 2, dtype=np.float64)) / sigma2
    cross = [_real_product(a, b) for a, b in zip(s, s_direction, strict=True)]
    power = [np.abs(b) ** 2 for b in s_direction]

    def bound_minimiser(t: float) -> tuple[float, float]:
        """Derivative of J/2 at t, and the curvature of the quadratic bound that touches there."""
        moved = _moved(s, s_direction, t)
        slope, curvature = t * data_curvature - pull, data_curvature
        for block, pi, c, p in zip(problem.model.blocks, problem.site_precisions(moved), cross, power, strict=True):
            full = np.broadcast_to(pi, block.analysis.out_shape)
            weighted_power = float(np.sum(full * p, dtype=np.float64)) / sigma2
            slope += float(np.sum(full * c, dtype=np.float64)) / sigma2 + t * weighted_power
            curvature += weighted_power
        return slope, curvature

    t_old, (slope_old, bound) = 1.0, bound_minimiser(1.0)
    if not bound > 0 or not np.isfinite(slope_old):
        return 1.0
    t = t_old - slope_old / bound
    for _ in range(iterations - 2):
        if abs(t - t_old) < 1e-3 * max(abs(t), 1e-3):
            break
        slope, bound = bound_minimiser(t)
        secant = (slope - slope_old) / (t - t_old)
        # The secant slope is the true curvature (J is convex along d for log-concave sites), at most the bound's.
        curvature = secant if 0.1 * bound < secant < bound else bound
        t_old, slope_old = t, slope
        t = t - slope / curvature
    return t if np.isfinite(t) and t > 0 else 1.0


def _moved(s: tuple[Array, ...], s_direction: tuple[Array, ...], length: float) -> tuple[Array, ...]:
    return tuple(a + a.real.dtype.type(length) * b for a, b in zip(s, s_direction, strict=True))


def _real_product(a: Array, b: Array) -> Array:
    return a.real * b.real + a.imag * b.imag if np.iscomplexobj(a) else a * b
