"""Limited-memory quasi-Newton steps in circulant coordinates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg

from mri_design.errors import require_counts, require_numbers
from mri_design.estimation.penalised import (
    Line,
    PenalisedProblem,
    RemainingExcess,
    SitePowers,
    minimising_length,
    moved,
    rounding_of,
    site_products,
    stalled_status,
)
from mri_design.krylov import quick_inner, squared_norm
from mri_design.model.generalized_linear import SiteBlock
from mri_design.model.precision import PosteriorPrecision, Products, add_weighted_grams, pooled_products
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status


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
class _Place:
    """An image with the powers of its sites.

    Coefficients are kept where sites need more of them than their powers, or where powers are not had without them
    (`pooled_products`); elsewhere None.
    """

    problem: PenalisedProblem
    u: Array
    s: Sequence[Array | None]
    x: tuple[Array, ...] = field(init=False)
    penalty: float = field(init=False)

    def __post_init__(self) -> None:
        sites = zip(self.problem.model.blocks, self.s, self.products(self.u), strict=True)
        powers = (block.site_power(s) if products is None else products[1] for block, s, products in sites)  # type: ignore[arg-type]
        self.x = tuple(power * self.scale for power in powers)
        self.penalty = -2 * self.problem.model.odd_part(self.s)
        for penalty, x in zip(self.problem.penalties, self.x, strict=True):
            self.penalty += float(np.sum(penalty.value(x), dtype=np.float64))

    @classmethod
    def at(cls, problem: PenalisedProblem, u: Array) -> _Place:
        """With all coefficients that are kept."""
        found = _products(problem, u, u)
        pairs = zip(problem.model.blocks, found, strict=True)
        return cls(problem, u, [block.coefficients(u) if products is None else None for block, products in pairs])

    @property
    def scale(self) -> Array:
        """1 / sigma^2 in the precision of u."""
        return self.u.real.dtype.type(1 / self.problem.model.noise_variance)

    def products(self, direction: Array) -> list[Products | None]:
        """Products of the coefficients of u and of a direction, block by block; None where these are kept."""
        return _products(self.problem, self.u, direction)

    def directions(self, direction: Array) -> list[Array | None]:
        """B d of the blocks whose coefficients are kept."""
        pairs = zip(self.problem.model.blocks, self.s, strict=True)
        return [None if s is None else block.analysis(direction) for block, s in pairs]

    def along(self, direction: Array, s_direction: Sequence[Array | None]) -> list[SitePowers]:
        """Powers of the sites along a direction."""
        powers: list[SitePowers] = []
        blocks, found = self.problem.model.blocks, self.products(direction)
        for block, x, s, d, products in zip(blocks, self.x, self.s, s_direction, found, strict=True):
            pair = site_products(block, s, d) if products is None else products  # type: ignore[arg-type]
            cross, power = (product * self.scale for product in pair)
            powers.append((x, cross, power))
        return powers

    def moved(self, step: Array, s_direction: Sequence[Array | None], length: float) -> _Place:
        """The place u + ``step``, where the step is ``length`` times the direction."""
        kept = [s if s is None or d is None else moved(s, d, length) for s, d in zip(self.s, s_direction, strict=True)]
        return _Place(self.problem, self.u + step, kept)


def _products(problem: PenalisedProblem, u: Array, direction: Array) -> list[Products | None]:
    blocks = problem.model.blocks
    made = iter(pooled_products([block for block in blocks if _by_powers(block)], u, direction))
    return [next(made) if _by_powers(block) else None for block in blocks]


class _Point:
    """A place with X^H (X u - y), J, and its gradient."""

    def __init__(self, place: _Place, data_gradient: Array, data_value: float) -> None:
        self.problem, self.place = place.problem, place
        self.data_gradient, self.data_value = data_gradient, data_value
        self.gram = self.problem.model.measurement.gram
        self.value = data_value + place.penalty
        self._differentiate()

    @classmethod
    def at(cls, problem: PenalisedProblem, start: Array) -> _Point:
        model = problem.model
        u = start.astype(model.back_projection().dtype, copy=True)
        residual = model.data - model.measurement(u)
        fit = squared_norm(residual) / model.noise_variance
        return cls(_Place.at(problem, u), -model.measurement.adjoint(residual), fit)

    @property
    def u(self) -> Array:
        return self.place.u

    def _differentiate(self) -> None:
        """sigma^2 / 2 times the gradient of J."""
        place = self.place
        self.precisions = tuple(p.precision(x) for p, x in zip(self.problem.penalties, place.x, strict=True))
        self.gradient = self.data_gradient + self.problem.site_gradient(place.s, self.precisions)
        each = zip(self.problem.model.blocks, place.s, self.precisions, strict=True)
        without = [(block.analysis, np.asarray(pi)) for block, s, pi in each if s is None]
        operators, weights = [operator for operator, _ in without], [pi for _, pi in without]
        add_weighted_grams(operators, weights, place.u, self.gradient)

    def predicted_decrease(self, direction: Array) -> float:
        """By how much J would fall to its minimum if it were the quadratic that ``direction`` solves."""
        return -float(quick_inner(self.gradient, direction, direction.ndim)) / self.problem.model.noise_variance

    @property
    def rounding(self) -> float:
        """Rounding of J, in the precision of the data."""
        return rounding_of(self.data_value, self.value - self.data_value, self.u)

    def step_along(self, direction: Array) -> float | None:
        """Move down along ``direction``; by how much J fell, or None, unmoved, where it does not fall."""
        model, real = self.problem.model, self.u.real.dtype.type
        descent = self.predicted_decrease(direction)
        if not descent > 0:
            return None
        gram_direction = self.gram(direction)
        s_direction = self.place.directions(direction)
        data_descent = -float(quick_inner(self.data_gradient, direction, direction.ndim)) / model.noise_variance
        curvature = float(quick_inner(direction, gram_direction, direction.ndim)) / model.noise_variance
        line = Line(
            self.problem.penalties,
            self.place.along(direction, s_direction),
            data_descent + model.odd_part(s_direction),
            curvature,
        )
        for length in _lengths(line, descent):
            step = real(length) * direction
            place = self.place.moved(step, s_direction, length)
            data_value = self.data_value - 2 * length * data_descent + length**2 * curvature
            value = data_value + place.penalty
            if value < self.value:
                break
        if not np.isfinite(value):
            self.value = value
            return None
        if value >= self.value:
            return None
        decrease, gradient = self.value - value, self.gradient
        self.place, self.data_value, self.value = place, data_value, value
        self.data_gradient = self.data_gradient + real(length) * gram_direction
        self._differentiate()
        self.last_change = step, self.gradient - gradient
        return decrease


def _lengths(line: Line, descent: float) -> Iterator[float]:
    """Lengths to try: the one that nearly minimises J, and one under the bound at u, where J rises by rounding only."""
    yield minimising_length(line.bound, enough=0.3 * descent)
    _, steepest = line.bound(0.0)
    yield descent / steepest if steepest > 0 else np.nan


def _by_powers(block: SiteBlock) -> bool:
    """Whether J depends on a block's coefficients by the powers of B u alone."""
    return block.offset is None and not np.any(block.potential.shift)


class _CirculantMemory:
    """The quasi-Newton matrix: C^-1 corrected by the last steps."""

    def __init__(self, start: _Point, history: int) -> None:
        model = start.problem.model
        precision = PosteriorPrecision(model.measurement, model.blocks, start.precisions)
        self.precondition = precision.preconditioner or (lambda r: r)
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=history)
        self.add = scipy.linalg.blas.get_blas_funcs("axpy", (_numbers(start.u),))

    def remember(self, step: Array, change: Array) -> None:
        """Take in s and y unless J bends the wrong way along s."""
        step, change = _numbers(step), _numbers(change)
        curvature = float(step @ change)
        if curvature > 1e-7 * np.sqrt(float(step @ step) * float(change @ change)):
            self.pairs.append((step, change, curvature))

    def direction(self, gradient: Array) -> Array:
        """Minus the quasi-Newton matrix times the gradient (two-loop recursion)."""
        d = -gradient
        numbers, weights = _numbers(d), []
        for step, change, curvature in reversed(self.pairs):
            weight = float(step @ numbers) / curvature
            weights.append(weight)
            self.add(change, numbers, a=-weight)
        d = np.require(self.precondition(d), requirements=["C", "W"])
        numbers = _numbers(d)
        for (step, change, curvature), weight in zip(self.pairs, reversed(weights), strict=True):
            self.add(step, numbers, a=weight - float(change @ numbers) / curvature)
        return d


def _numbers(a: Array) -> Array:
    """The array's own memory as one row of real numbers."""
    return a.reshape(-1).view(a.real.dtype)
