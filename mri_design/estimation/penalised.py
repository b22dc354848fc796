"""Penalised least squares, the inner problem of variational inference and of MAP estimation, and two of its solvers.

    J(u) = ||y - X u||^2 / sigma^2 + sum_i psi_i(|s_i|^2 / sigma^2) - 2 sum_i b_i s_i / sigma,   s = B u - offset

psi is concave and rising, so that at every x its tangent, with slope pi = psi'(x), is a quadratic bound of the whole.
With psi(x) = -2 g(x + z) and z the marginal variances, the minimiser is the posterior mean of the current bound (TR-175
section 4.2, in the closed form that follows from g alone); with z -> 0 it is the MAP estimate.

All solvers share an estimate of how far J still is above its minimum (`remaining_excess`), and a line search that needs
no further products (`bound_along`). The solvers here are limited-memory quasi-Newton steps in circulant coordinates
(`LBFGS`) and iteratively reweighted least squares (`IRLS`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.linalg

from mri_design.brief import briefly
from mri_design.errors import require_counts, require_numbers, require_working
from mri_design.krylov import quick_inner, real_inner, squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import PosteriorPrecision, Products, add_weighted_grams, pooled_products
from mri_design.operators.base import Array
from mri_design.operators.conventions import laid_out
from mri_design.sites.base import SuperGaussian
from mri_design.sites.priors import TINY, Laplace
from mri_design.status import Convergence, Status


class SitePenalty(Protocol):
    """psi of one block, concave in x = |s|^2 / sigma^2, vectorised over sites."""

    def value(self, x: Array) -> Array:
        """psi(x)."""
        ...

    def precision(self, x: Array) -> Array:
        """pi = psi'(x), positive: the site precision of the quadratic bound that touches at x."""
        ...

    def dual_argument(self, x: Array) -> Array:
        """The t >= 0 at which the site's dual h is attained for these x: h = -(t pi' + 2 g(t)), pi' = -2 g'(t)."""
        ...


@dataclass(frozen=True)
class Smoothed:
    """psi(x) = -2 g(x + z): the tangent bound of log|A| in pi (second class), or a smoothed MAP penalty.

    Parameters
    ----------
    potential : SuperGaussian
        The site.
    z : float array
        Pooled over groups, broadcastable to the sites, positive, in units of sigma^2.
    """

    potential: SuperGaussian
    z: Array

    @property
    def even(self) -> SuperGaussian:
        """The site without its odd part, which psi does not know of."""
        return self.potential.even

    def dual_argument(self, x: Array) -> Array:
        """t = x + z, where the site's dual is attained, with pi = -2 g'(x + z)."""
        return (x + self.z).astype(x.dtype, copy=False)

    def value(self, x: Array) -> Array:
        return -2 * self.potential.g(self.dual_argument(x))

    def precision(self, x: Array) -> Array:
        return self.potential.site_precision(self.dual_argument(x))


@briefly
@dataclass(frozen=True)
class PenalisedProblem:
    """The penalised least-squares objective J(u) of one model, with one penalty for each block of sites.

    Parameters
    ----------
    model : GeneralizedLinearModel
        X, y, sigma^2, and the sites' operators, offsets and shifts.
    penalties : tuple of SitePenalty
        One per block.
    near : PosteriorPrecision, optional
        A precision near J's at the start, whose preconditioner is known already and may serve.
    """

    model: GeneralizedLinearModel
    penalties: tuple[SitePenalty, ...]
    near: PosteriorPrecision | None = None

    @classmethod
    def smoothed(cls, model: GeneralizedLinearModel, z: tuple[Array, ...]) -> PenalisedProblem:
        """psi(x) = -2 g(x + z) in every block."""
        pairs = zip(model.blocks, z, strict=True)
        return cls(model, tuple(Smoothed(block.represented, z_j) for block, z_j in pairs))

    def site_powers(self, coefficients: tuple[Array, ...]) -> tuple[Array, ...]:
        """x = |s|^2 / sigma^2 per block for the given s = B u - offset."""
        sigma2 = self.model.noise_variance
        pairs = zip(self.model.blocks, coefficients, strict=True)
        return tuple((block.site_power(s) / sigma2).astype(s.real.dtype, copy=False) for block, s in pairs)

    def site_precisions(
        self, coefficients: tuple[Array, ...], powers: tuple[Array, ...] | None = None
    ) -> tuple[Array, ...]:
        """pi = psi'(x) per block; ``powers`` are the x, where they are known already."""
        pairs = zip(self.penalties, powers or self.site_powers(coefficients), strict=True)
        return tuple(penalty.precision(x) for penalty, x in pairs)

    def value(self, residual: Array, coefficients: tuple[Array, ...], powers: tuple[Array, ...] | None = None) -> float:
        """J from y - X u and s = B u - offset, of which the ``powers`` may be known already."""
        return squared_norm(residual) / self.model.noise_variance + self.penalty_value(coefficients, powers)

    def penalty_value(self, coefficients: tuple[Array, ...], powers: tuple[Array, ...] | None = None) -> float:
        """Contribution of the sites to J at s = B u - offset."""
        total = -2 * self.model.odd_part(coefficients)
        for penalty, x in zip(self.penalties, powers or self.site_powers(coefficients), strict=True):
            total += float(np.sum(penalty.value(x), dtype=np.float64))
        return total

    def site_slope(self, block: SiteBlock, s: Array, site_precision: Array) -> Array:
        """pi s - sigma b: sigma^2 / 2 times the gradient of a block's contribution to J, in its coefficients s."""
        slope = site_precision * s
        if not np.any(block.potential.shift):
            return slope
        pull = float(np.sqrt(self.model.noise_variance)) * np.asarray(block.potential.shift)
        return np.asarray(slope - pull).astype(s.dtype, copy=False)

    def site_slopes(self, coefficients: tuple[Array, ...], site_precisions: tuple[Array, ...]) -> tuple[Array, ...]:
        """`site_slope` of every block."""
        triples = zip(self.model.blocks, coefficients, site_precisions, strict=True)
        return tuple(self.site_slope(block, s, pi) for block, s, pi in triples)

    def site_gradient(self, coefficients: Sequence[Array | None], site_precisions: tuple[Array, ...]) -> Array | float:
        """sigma^2 / 2 times the gradient of `penalty_value` in u: sum over blocks of B^H (pi s - sigma b).

        Blocks without coefficients are left out; zero where all are.
        """
        triples = zip(self.model.blocks, coefficients, site_precisions, strict=True)
        return sum(block.analysis.adjoint(self.site_slope(block, s, pi)) for block, s, pi in triples if s is not None)


class InnerSolver(Protocol):
    """Minimises J; a frozen dataclass of settings, so that `dataclasses.replace` tightens them.

    ``tolerance`` is in units of J per real unknown for every solver: a posterior's own J is about one per unknown, so
    1e-4 is a gap of about 1e-4 of it. ``residual`` of the returned `Convergence` is what was compared to it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def tolerance(self) -> float:
        """Stop at this (estimated) excess of J per real unknown."""
        ...

    @property
    def max_iterations(self) -> int:
        """Limit of the outermost loop."""
        ...

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``, which is left alone."""
        ...


def require_solver(**settings: Any) -> None:
    """Refuse anything but a solver of the inner problem, its class included.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    require_working(takes=2, wanted="a solver of the inner problem, as LBFGS() or IRLS()", **settings)


def remaining_excess(value: float) -> Callable[[float], float]:
    """A function that estimates from J at every look how far it will still fall, from a first ``value`` of J.

    The estimate is the sum of the geometric series that the last decreases begin; infinite at the first look, zero
    where two saw no change. Looks must be equally many iterations apart. With d the last decrease and q its ratio to
    the one before (or that one's, if it was larger) what remains is d q / (1 - q); q is kept between 1/3 and 19/20, so
    that neither one lucky step ends a run nor one that rises ends it never. An estimate, not a bound: it is short of
    the truth where convergence slows down.
    """
    decrease = last_ratio = 0.0
    looks = 0

    def after(now: float) -> float:
        nonlocal value, decrease, last_ratio, looks
        looks += 1
        before, last = decrease, abs(value - now)
        ratio = min(max(last / before, 1 / 3), 0.95) if before > 0 else 0.0
        slowest = max(ratio, last_ratio)
        value, decrease, last_ratio = now, last, ratio
        if slowest > 0:
            return last * slowest / (1 - slowest)
        return 0.0 if looks > 1 and last == before == 0 else float("inf")

    return after


def rounding_of(fit: float, penalty: float, u: Array) -> float:
    """Uncertainty of J = fit + penalty from rounding in the precision of u: the sites' terms are each rounded."""
    return 10 * float(np.finfo(u.dtype).eps) * (abs(fit) + abs(penalty))


def stalled_status(excess: float, tolerance: float, rounding: float) -> Status:
    """Status when J falls no more: converged if the estimated excess is below the tolerance or the rounding of J."""
    if not np.isfinite(excess):
        return Status.BREAKDOWN
    return Status.CONVERGED if excess <= max(tolerance, rounding) else Status.STALLED


Coefficients = tuple[Array, ...]
SitePowers = tuple[Array, Array, Array]
"""x, c and p of the sites of one block: at u + t d its powers are x + 2 t c + t^2 p, in units of sigma^2."""
Bound = Callable[[float], tuple[float, float]]


def powers_along(problem: PenalisedProblem, s: Coefficients, s_direction: Coefficients) -> tuple[SitePowers, ...]:
    """Powers of all blocks along d, from s = B u - offset and B d."""
    found = []
    for block, x, a, d in zip(problem.model.blocks, problem.site_powers(s), s, s_direction, strict=True):
        cross, power = (v / problem.model.noise_variance for v in site_products(block, a, d))
        found.append((x, cross.astype(x.dtype, copy=False), power.astype(x.dtype, copy=False)))
    return tuple(found)


def site_products(block: SiteBlock, s: Array, d: Array) -> tuple[Array, Array]:
    """Re s* d and |d|^2 of every site, from coefficients."""
    return block.pooled(_real_product(s, d)), block.pooled(_real_product(d, d))


def bound_along(
    penalties: Sequence[SitePenalty], powers: Sequence[SitePowers], data_descent: float, data_curvature: float
) -> Bound:
    """J along u + t d: t to the derivative of J / 2 along d there, and the curvature of the quadratic bound of it.

    Parameters
    ----------
    penalties : sequence of SitePenalty
        One per block.
    powers : sequence of SitePowers
        Of its sites.
    data_descent : float
        -1/2 of the derivative of ||y - X u||^2 / sigma^2 along d at u, and what the sites' odd parts add to it.
    data_curvature : float
        ||X d||^2 / sigma^2.
    """
    sites = [_sums_along(penalty, each) for penalty, each in zip(penalties, powers, strict=True)]

    def bound(t: float) -> tuple[float, float]:
        slope, curvature = t * data_curvature - data_descent, data_curvature
        for of_block in sites:
            rise, bend = of_block(t)
            slope, curvature = slope + rise, curvature + bend
        return slope, curvature

    return bound


def _sums_along(penalty: SitePenalty, powers: SitePowers) -> Bound:
    """t -> sums over sites of pi (c + t p) and of pi p."""
    x, cross, power = powers
    real = x.dtype.type
    if isinstance(penalty, Smoothed) and type(penalty.potential) is Laplace:
        from mri_design.operators.kernels.pixels import laplace_along

        shape = np.broadcast_shapes(x.shape, np.shape(penalty.z))
        laid = tuple(laid_out(v, shape, x) for v in powers)
        z, rate = laid_out(penalty.z, shape, x), laid_out(penalty.potential.rate, shape, x)
        return lambda t: laplace_along((laid[0], laid[1], laid[2]), z, rate, t, TINY)

    def sums(t: float) -> tuple[float, float]:
        there = np.maximum(x + real(t) * (2 * cross + real(t) * power), 0)
        pi = np.broadcast_to(penalty.precision(there), cross.shape)
        weighted = float(np.sum(pi * power, dtype=np.float64))
        return float(np.sum(pi * cross, dtype=np.float64)) + t * weighted, weighted

    return sums


def minimising_length(bound: Bound, *, enough: float = 0.0) -> float:
    """Length t > 0 that nearly minimises t -> J(u + t d); majorise-minimise steps in one dimension, accelerated.

    At each t the quadratic bound gives the next t exactly; the secant of two such steps extrapolates. No
    multiplication with X or B is needed. With ``enough`` the length 1 is taken where the derivative there is smaller
    than that already.
    """
    t_old, (slope_old, curvature) = 1.0, bound(1.0)
    if not curvature > 0 or not np.isfinite(slope_old) or abs(slope_old) < enough:
        return 1.0
    t = t_old - slope_old / curvature
    for _ in range(2):
        if abs(t - t_old) < 1e-3 * max(abs(t), 1e-3):
            break
        slope, largest = bound(t)
        secant = (slope - slope_old) / (t - t_old)
        # The secant slope is the true curvature (J is convex along d for log-concave sites), at most the bound's.
        curvature = secant if 0.1 * largest < secant < largest else largest
        t_old, slope_old = t, slope
        t = t - slope / curvature
    return t if np.isfinite(t) and t > 0 else 1.0


def moved(s: Array, s_direction: Array, length: float) -> Array:
    """s + length d, in the precision of s."""
    return s + s.real.dtype.type(length) * s_direction


def _real_product(a: Array, b: Array) -> Array:
    return a.real * b.real + a.imag * b.imag if np.iscomplexobj(a) else a * b


HISTORY = 8
"""Pairs of steps and gradient changes that `LBFGS` remembers."""
WINDOW = 3
"""Iterations of `LBFGS` between two evaluations of J."""


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

    def __post_init__(self) -> None:
        require_numbers(tolerance=self.tolerance)
        require_counts(max_iterations=self.max_iterations, least=0)

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
        point = _Point(replace(problem, model=problem.model.rotated), start)
        memory = _CirculantMemory(point)
        excess, size = remaining_excess(point.value), problem.model.measurement.in_size
        predicted: deque[float] = deque(maxlen=WINDOW)
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
            if iteration % WINDOW == 0:
                residual = max(excess(point.value), *predicted) / size
                if residual < self.tolerance:
                    status = Status.CONVERGED
                    break
        return point.u, Convergence(status, iteration, residual, matvecs)


class _Point:
    """An image with the powers of its sites, X^H (X u - y), J, and its gradient.

    Coefficients are kept where sites need more of them than their powers, or where powers are not had without them
    (`pooled_products`); elsewhere None.
    """

    def __init__(self, problem: PenalisedProblem, start: Array) -> None:
        model = problem.model
        self.problem, self.gram = problem, model.measurement.gram
        self.u = start.astype(model.back_projection().dtype, copy=True)
        residual = model.data - model.measurement(self.u)
        self.data_value = squared_norm(residual) / model.noise_variance
        self.data_gradient = -model.measurement.adjoint(residual)
        pairs = zip(model.blocks, self._products(self.u, self.u), strict=True)
        self.s = [block.coefficients(self.u) if products is None else None for block, products in pairs]
        self.x, penalty = self._sites(self.u, self.s)
        self.value = self.data_value + penalty
        self._differentiate()

    @property
    def _scale(self) -> Array:
        """1 / sigma^2 in the precision of u."""
        return self.u.real.dtype.type(1 / self.problem.model.noise_variance)

    def _products(self, u: Array, direction: Array) -> list[Products | None]:
        """Products of the coefficients of u and of a direction, block by block; None where these are kept."""
        blocks = self.problem.model.blocks
        made = iter(pooled_products([block for block in blocks if _by_powers(block)], u, direction))
        return [next(made) if _by_powers(block) else None for block in blocks]

    def _sites(self, u: Array, s: Sequence[Array | None]) -> tuple[tuple[Array, ...], float]:
        """Powers of the sites at u, and their contribution to J."""
        sites = zip(self.problem.model.blocks, s, self._products(u, u), strict=True)
        powers = (block.site_power(s) if products is None else products[1] for block, s, products in sites)  # type: ignore[arg-type]
        x = tuple(power * self._scale for power in powers)
        penalty = -2 * self.problem.model.odd_part(s)
        for each, power in zip(self.problem.penalties, x, strict=True):
            penalty += float(np.sum(each.value(power), dtype=np.float64))
        return x, penalty

    def _differentiate(self) -> None:
        """sigma^2 / 2 times the gradient of J."""
        self.precisions = tuple(p.precision(x) for p, x in zip(self.problem.penalties, self.x, strict=True))
        self.gradient = self.data_gradient + self.problem.site_gradient(self.s, self.precisions)
        each = zip(self.problem.model.blocks, self.s, self.precisions, strict=True)
        without = [(block.analysis, np.asarray(pi)) for block, s, pi in each if s is None]
        operators, weights = [operator for operator, _ in without], [pi for _, pi in without]
        add_weighted_grams(operators, weights, self.u, self.gradient)

    def predicted_decrease(self, direction: Array) -> float:
        """By how much J would fall to its minimum if it were the quadratic that ``direction`` solves."""
        return -float(quick_inner(self.gradient, direction, direction.ndim)) / self.problem.model.noise_variance

    @property
    def rounding(self) -> float:
        """Rounding of J, in the precision of the data."""
        return rounding_of(self.data_value, self.value - self.data_value, self.u)

    def _bound_along(self, direction: Array, s_direction: Sequence[Array | None], descent: float, bend: float) -> Bound:
        """J along a direction, from B d of the blocks whose coefficients are kept."""
        powers: list[SitePowers] = []
        sites = zip(self.problem.model.blocks, self.x, self.s, s_direction, strict=True)
        for (block, x, s, d), products in zip(sites, self._products(self.u, direction), strict=True):
            pair = site_products(block, s, d) if products is None else products  # type: ignore[arg-type]
            cross, power = (product * self._scale for product in pair)
            powers.append((x, cross, power))
        return bound_along(self.problem.penalties, powers, descent + self.problem.model.odd_part(s_direction), bend)

    def step_along(self, direction: Array) -> float | None:
        """Move down along ``direction``; by how much J fell, or None, unmoved, where it does not fall."""
        model, real = self.problem.model, self.u.real.dtype.type
        descent = self.predicted_decrease(direction)
        if not descent > 0:
            return None
        gram_direction = self.gram(direction)
        kept = zip(model.blocks, self.s, strict=True)
        s_direction = [None if s is None else block.analysis(direction) for block, s in kept]
        data_descent = -float(quick_inner(self.data_gradient, direction, direction.ndim)) / model.noise_variance
        curvature = float(quick_inner(direction, gram_direction, direction.ndim)) / model.noise_variance
        for length in _lengths(self._bound_along(direction, s_direction, data_descent, curvature), descent):
            step = real(length) * direction
            u, pairs = self.u + step, zip(self.s, s_direction, strict=True)
            s = [s if s is None or d is None else moved(s, d, length) for s, d in pairs]
            x, penalty = self._sites(u, s)
            data_value = self.data_value - 2 * length * data_descent + length**2 * curvature
            value = data_value + penalty
            if value < self.value:
                break
        if not np.isfinite(value):
            self.value = value
            return None
        if value >= self.value:
            return None
        decrease, gradient = self.value - value, self.gradient
        self.u, self.s, self.x, self.data_value, self.value = u, s, x, data_value, value
        self.data_gradient = self.data_gradient + real(length) * gram_direction
        self._differentiate()
        self.last_change = step, self.gradient - gradient
        return decrease


def _lengths(bound: Bound, descent: float) -> Iterator[float]:
    """Lengths to try: the one that nearly minimises J, and one under the bound at u, where J rises by rounding only."""
    yield minimising_length(bound, enough=0.3 * descent)
    _, steepest = bound(0.0)
    yield descent / steepest if steepest > 0 else np.nan


def _by_powers(block: SiteBlock) -> bool:
    """Whether J depends on a block's coefficients by the powers of B u alone."""
    return block.offset is None and not np.any(block.potential.shift)


class _CirculantMemory:
    """The quasi-Newton matrix: C^-1 corrected by the last steps."""

    def __init__(self, start: _Point) -> None:
        model = start.problem.model
        here = PosteriorPrecision(model.measurement, model.blocks, start.precisions)
        self.precondition = (start.problem.near or here).preconditioner or (lambda r: r)
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=HISTORY)
        self.add = scipy.linalg.blas.get_blas_funcs("axpy", (_as_reals(start.u),))

    def remember(self, step: Array, change: Array) -> None:
        """Take in s and y unless J bends the wrong way along s."""
        step, change = _as_reals(step), _as_reals(change)
        curvature = float(step @ change)
        if curvature > 1e-7 * np.sqrt(float(step @ step) * float(change @ change)):
            self.pairs.append((step, change, curvature))

    def direction(self, gradient: Array) -> Array:
        """Minus the quasi-Newton matrix times the gradient (two-loop recursion)."""
        d = -gradient
        numbers, weights = _as_reals(d), []
        for step, change, curvature in reversed(self.pairs):
            weight = float(step @ numbers) / curvature
            weights.append(weight)
            self.add(change, numbers, a=-weight)
        d = np.require(self.precondition(d), requirements=["C", "W"])
        numbers = _as_reals(d)
        for (step, change, curvature), weight in zip(self.pairs, reversed(weights), strict=True):
            self.add(step, numbers, a=weight - float(change @ numbers) / curvature)
        return d


def _as_reals(a: Array) -> Array:
    """A view of the array as one vector of reals; complex entries are pairs."""
    return a.reshape(-1).view(a.real.dtype)


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
            bound = bound_along(problem.penalties, powers, data_descent + model.odd_part(s_direction), data_curvature)
            # The accelerated length may overshoot where J bends sharply; the full step lies under the bound.
            for length in (minimising_length(bound), 1.0):
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
