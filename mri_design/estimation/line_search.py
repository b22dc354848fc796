"""Steps along a line, from products that were made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mri_design.estimation.penalised import PenalisedProblem, SitePenalty, Smoothed
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.kernels.suitable import laid_out
from mri_design.potentials.laplace import TINY, Laplace

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
        from mri_design.operators.kernels.along import laplace_along

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
