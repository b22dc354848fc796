"""The inner problem of variational inference, and MAP estimation: penalised least squares.

    J(u) = ||y - X u||^2 / sigma^2 + sum_i psi_i(|s_i|^2 / sigma^2) - 2 sum_i b_i s_i / sigma,   s = B u - offset

psi is concave and rising, so that at every x its tangent, with slope pi = psi'(x), is a quadratic bound of the whole.
With psi(x) = -2 g(x + z) and z the marginal variances, the minimiser is the posterior mean of the current bound (TR-175
section 4.2, in the closed form that follows from g alone); with z -> 0 it is the MAP estimate.

Beside the problem there is what its solvers share: an estimate of how far J still is above its minimum, and steps along
a line from products that were made once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from mri_design.brief import briefly
from mri_design.errors import require_working
from mri_design.krylov import squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.kernels.suitable import laid_out
from mri_design.potentials.base import SuperGaussian
from mri_design.potentials.priors import TINY, Laplace
from mri_design.status import Convergence, Status


class SitePenalty(Protocol):
    """psi of one block, concave in x = |s|^2 / sigma^2, vectorised over sites."""

    def value(self, x: Array) -> Array:
        """psi(x)."""
        ...

    def precision(self, x: Array) -> Array:
        """pi = psi'(x), positive: the site precision of the quadratic bound that touches at x."""
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
        """x + z, where the site's own dual pi = -2 g'(x + z) is attained."""
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
    """

    model: GeneralizedLinearModel
    penalties: tuple[SitePenalty, ...]

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
        """The part of J that the sites make, at s = B u - offset."""
        total = -2 * self.model.odd_part(coefficients)
        for penalty, x in zip(self.penalties, powers or self.site_powers(coefficients), strict=True):
            total += float(np.sum(penalty.value(x), dtype=np.float64))
        return total

    def site_slope(self, block: SiteBlock, s: Array, site_precision: Array) -> Array:
        """pi s - sigma b: sigma^2 / 2 times the gradient of what a block adds to J, in its coefficients s."""
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


class RemainingExcess:
    """Sum of the geometric series that the last decreases begin.

    Looks must be equally many iterations apart. With d the last decrease and q its ratio to the one before (or that
    one's, if it was larger) what remains is d q / (1 - q); q is kept between 1/3 and 19/20, so that neither one lucky
    step ends a run nor one that rises ends it never. An estimate, not a bound: it is short of the truth where
    convergence slows down.
    """

    def __init__(self, value: float) -> None:
        self._value = value
        self._decrease = self._ratio = 0.0
        self._looks = 0

    def after(self, value: float) -> float:
        """The estimate, now that J is ``value``; infinite at the first look, zero where two saw no change."""
        self._looks += 1
        before, last = self._decrease, abs(self._value - value)
        ratio = min(max(last / before, 1 / 3), 0.95) if before > 0 else 0.0
        slowest = max(ratio, self._ratio)
        self._value, self._decrease, self._ratio = value, last, ratio
        if slowest > 0:
            return last * slowest / (1 - slowest)
        return 0.0 if self._looks > 1 and last == before == 0 else float("inf")


def rounding_of(fit: float, penalty: float, u: Array) -> float:
    """Uncertainty of J = fit + penalty from rounding in the precision of u: the sites' terms are each rounded."""
    return 10 * float(np.finfo(u.dtype).eps) * (abs(fit) + abs(penalty))


def stalled_status(excess: float, tolerance: float, rounding: float) -> Status:
    """Where J falls no more: converged if the excess estimated there is below the tolerance or the rounding of J."""
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


class Line:
    """J along u + t d.

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

    def __init__(
        self,
        penalties: Sequence[SitePenalty],
        powers: Sequence[SitePowers],
        data_descent: float,
        data_curvature: float,
    ) -> None:
        self._descent, self._curvature = data_descent, data_curvature
        self._sites = [_sums_along(penalty, each) for penalty, each in zip(penalties, powers, strict=True)]

    def bound(self, t: float) -> tuple[float, float]:
        """The derivative of J / 2 along d at u + t d, and the curvature of the quadratic bound that touches there."""
        slope, curvature = t * self._curvature - self._descent, self._curvature
        for of_block in self._sites:
            rise, bend = of_block(t)
            slope, curvature = slope + rise, curvature + bend
        return slope, curvature


def _sums_along(penalty: SitePenalty, powers: SitePowers) -> Bound:
    """t -> sums over sites of pi (c + t p) and of pi p."""
    x, cross, power = powers
    real = x.dtype.type
    if isinstance(penalty, Smoothed) and type(penalty.potential) is Laplace:
        from mri_design.operators.kernels.pointwise import laplace_along

        shape = np.broadcast_shapes(x.shape, np.shape(penalty.z))
        laid = tuple(laid_out(v, shape, x) for v in powers)
        z, rate = laid_out(penalty.z, shape, x), laid_out(penalty.potential.scale, shape, x)
        return lambda t: laplace_along((laid[0], laid[1], laid[2]), z, rate, t, TINY)

    def sums(t: float) -> tuple[float, float]:
        there = np.maximum(x + real(t) * (2 * cross + real(t) * power), 0)
        pi = np.broadcast_to(penalty.precision(there), cross.shape)
        weighted = float(np.sum(pi * power, dtype=np.float64))
        return float(np.sum(pi * cross, dtype=np.float64)) + t * weighted, weighted

    return sums


def minimising_length(bound: Bound, *, iterations: int = 4, enough: float = 0.0) -> float:
    """Length t > 0 that nearly minimises t -> J(u + t d); majorise-minimise steps in one dimension, accelerated.

    At each t the quadratic bound gives the next t exactly; the secant of two such steps extrapolates. No
    multiplication with X or B is needed. With ``enough`` the length 1 is taken where the derivative there is smaller
    than that already.
    """
    t_old, (slope_old, curvature) = 1.0, bound(1.0)
    if not curvature > 0 or not np.isfinite(slope_old) or abs(slope_old) < enough:
        return 1.0
    t = t_old - slope_old / curvature
    for _ in range(iterations - 2):
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
