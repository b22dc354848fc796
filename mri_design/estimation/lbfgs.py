"""Limited-memory quasi-Newton steps in circulant coordinates."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from mri_design.errors import require_counts, require_numbers
from mri_design.estimation.excess import RemainingExcess, rounding_of, stalled_status
from mri_design.estimation.line_search import Coefficients, bound_along, minimising_length, moved
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.krylov.conjugate_gradients import real_inner, squared_norm
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status

__all__ = ["LBFGS"]


@dataclass(frozen=True)
class LBFGS:
    """Minimise J by L-BFGS in the coordinates v = C^(1/2) u, C the circulant nearest to A(pi) at the start.

    Every iteration costs one product with A. For the step d it computes X^H X d and B d once; with these the line
    search needs no further product, and the next gradient only one with B^H. Where X or B has no circulant
    approximation, the coordinates are u itself.

    Parameters
    ----------
    tolerance : float
        Stop when J is within this of its minimum, per real unknown, by two estimates: from its fall in the last
        iterations, and from the decrease that their quasi-Newton steps predicted.
    max_iterations : int
        Steps.
    history : int
        Pairs of steps and gradient changes that are remembered.
    window : int
        Iterations between two evaluations of J.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a count that is too small.

    Notes
    -----
    Vectors keep the precision of the data, scalars are double. Nocedal & Wright, Numerical Optimization, algorithm
    7.4, with C^-1 for the first matrix: the same iterates as with the identity in v, without square roots.
    """

    tolerance: float = 1e-4
    max_iterations: int = 500
    history: int = 8
    window: int = 3

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance)
        require_counts(max_iterations=self.max_iterations, history=self.history, least=0)
        require_counts(window=self.window, least=1)

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``.

        Returns
        -------
        u : array
            The minimiser found.
        convergence : Convergence
            ``residual`` is the estimated excess of J per real unknown, the larger of two (see ``tolerance``). Stalled
            where J cannot be lowered although more than its rounding is predicted.
        """
        point = _Point.at(replace(problem, model=problem.model.rotated), start)
        memory = _CirculantMemory(point, self.history)
        excess, size = RemainingExcess(point.value), problem.model.measurement.in_size
        predicted: deque[float] = deque(maxlen=self.window)
        status, iteration, residual, matvecs = Status.MAX_ITERATIONS, 0, np.inf, 1
        for iteration in range(1, self.max_iterations + 1):
            direction = memory.direction(point.gradient)
            predicted.append(point.predicted_decrease(direction))
            decreases = [predicted[-1]]
            matvecs += 1
            decrease = point.step_along(direction)
            if decrease is None and memory.pairs:
                memory.pairs.clear()
                matvecs += 1
                direction = memory.direction(point.gradient)
                decreases.append(point.predicted_decrease(direction))
                decrease = point.step_along(direction)
            if not np.isfinite(point.value):
                status = Status.BREAKDOWN
                break
            if decrease is None:  # not even the preconditioned gradient leads down: nothing but rounding is left
                residual = max(decreases) / size
                status = stalled_status(residual, self.tolerance, point.rounding / size)
                break
            memory.remember(*point.last_change)
            if iteration % self.window == 0:
                residual = max(excess.after(point.value), *predicted) / size
                if residual < self.tolerance:
                    status = Status.CONVERGED
                    break
        return point.u, Convergence(status, iteration, residual, matvecs)


@dataclass
class _Point:
    """u with all that is linear in it: X^H (X u - y), B u - offset, and what follows from them."""

    problem: PenalisedProblem
    u: Array
    data_gradient: Array
    data_value: float
    s: Coefficients
    value: float = field(init=False)
    precisions: tuple[Array, ...] = field(init=False)
    gradient: Array = field(init=False)
    last_change: tuple[Array, Array] = field(init=False)

    def __post_init__(self) -> None:
        self.gram = self.problem.model.measurement.gram
        self.value = self.data_value + self.problem.penalty_value(self.s)
        self._differentiate()

    @classmethod
    def at(cls, problem: PenalisedProblem, start: Array) -> _Point:
        model = problem.model
        u = start.astype(model.back_projection().dtype, copy=True)
        residual = model.data - model.measurement(u)
        fit = squared_norm(residual) / model.noise_variance
        return cls(problem, u, -model.measurement.adjoint(residual), fit, model.analysis_coefficients(u))

    def _differentiate(self) -> None:
        """sigma^2 / 2 times the gradient of J."""
        self.precisions = self.problem.site_precisions(self.s)
        self.gradient = self.data_gradient + self.problem.site_gradient(self.s, self.precisions)

    def predicted_decrease(self, direction: Array) -> float:
        """By how much J would fall to its minimum if it were the quadratic that ``direction`` solves."""
        return -float(real_inner(self.gradient, direction, direction.ndim)) / self.problem.model.noise_variance

    @property
    def rounding(self) -> float:
        """Of J, in the precision of the data."""
        return rounding_of(self.data_value, self.value - self.data_value, self.u)

    def step_along(self, direction: Array) -> float | None:
        """Move down along ``direction``; by how much J fell, or None, unmoved, where it does not fall."""
        model, n_axes = self.problem.model, direction.ndim
        sigma2 = model.noise_variance
        if not -float(real_inner(self.gradient, direction, n_axes)) > 0:
            return None
        gram_direction = self.gram(direction)
        s_direction = tuple(block.analysis(direction) for block in model.blocks)
        data_descent = -float(real_inner(self.data_gradient, direction, n_axes)) / sigma2
        curvature = float(real_inner(direction, gram_direction, n_axes)) / sigma2
        bound = bound_along(self.problem, data_descent, curvature, self.s, s_direction)
        slope, steepest = bound(0.0)
        lengths = (minimising_length(bound, enough=0.3 * abs(slope)), -slope / steepest if steepest > 0 else np.nan)
        for length in lengths:  # the second lies under the bound at u, so J cannot rise but by rounding
            s = moved(self.s, s_direction, length)
            data_value = self.data_value - 2 * length * data_descent + length**2 * curvature
            value = data_value + self.problem.penalty_value(s)
            if value < self.value:
                break
        if not np.isfinite(value):
            self.value = value
            return None
        if value >= self.value:
            return None
        decrease, step = self.value - value, self.u.real.dtype.type(length) * direction
        self.u = self.u + step
        self.data_gradient = self.data_gradient + self.u.real.dtype.type(length) * gram_direction
        self.s, self.data_value, self.value = s, data_value, value
        gradient = self.gradient
        self._differentiate()
        self.last_change = step, self.gradient - gradient
        return decrease


class _CirculantMemory:
    """The quasi-Newton matrix: C^-1 corrected by the last steps."""

    def __init__(self, start: _Point, history: int) -> None:
        model = start.problem.model
        precision = PosteriorPrecision(model.measurement, model.blocks, start.precisions)
        self.precondition = precision.preconditioner or (lambda r: r)
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=history)

    def remember(self, step: Array, change: Array) -> None:
        """Take in s and y unless J bends the wrong way along s."""
        step, change = step.ravel(), change.ravel()
        curvature = _inner(step, change)
        if curvature > 1e-7 * np.sqrt(_inner(step, step) * _inner(change, change)):
            self.pairs.append((step, change, curvature))

    def direction(self, gradient: Array) -> Array:
        """Minus the quasi-Newton matrix times the gradient (two-loop recursion)."""
        d = -gradient.ravel()
        real, weights = d.real.dtype.type, []
        for step, change, curvature in reversed(self.pairs):
            weight = _inner(step, d) / curvature
            weights.append(weight)
            d -= real(weight) * change
        d = self.precondition(d.reshape(gradient.shape)).ravel()
        for (step, change, curvature), weight in zip(self.pairs, reversed(weights), strict=True):
            d += real(weight - _inner(change, d) / curvature) * step
        return np.asarray(d.reshape(gradient.shape))


def _inner(a: Array, b: Array) -> float:
    """Re<a, b> of flat arrays."""
    return float(np.vdot(a, b).real)
