"""Steps along a line, from products that were made once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mri_design.estimation.penalised import PenalisedProblem
from mri_design.operators.base import Array

__all__ = ["Coefficients", "bound_along", "minimising_length", "moved"]

Coefficients = tuple[Array, ...]
Bound = Callable[[float], tuple[float, float]]


def bound_along(
    problem: PenalisedProblem, data_descent: float, data_curvature: float, s: Coefficients, s_direction: Coefficients
) -> Bound:
    """t -> the derivative of J / 2 along d at u + t d, and the curvature of the quadratic bound that touches there.

    Parameters
    ----------
    problem : PenalisedProblem
        J.
    data_descent : float
        -1/2 of the derivative of ||y - X u||^2 / sigma^2 along d at u.
    data_curvature : float
        ||X d||^2 / sigma^2.
    s, s_direction : tuple of arrays
        B u - offset and B d.
    """
    sigma2 = problem.model.noise_variance
    data_descent = data_descent + problem.model.odd_part(s_direction)
    cross = [_real_product(a, b) for a, b in zip(s, s_direction, strict=True)]
    power = [_real_product(b, b) for b in s_direction]
    blocks = problem.model.blocks
    cross = [block.pooled(c) for block, c in zip(blocks, cross, strict=True)]
    power = [block.pooled(p) for block, p in zip(blocks, power, strict=True)]

    def bound(t: float) -> tuple[float, float]:
        slope, curvature = t * data_curvature - data_descent, data_curvature
        for pi, c, p in zip(problem.site_precisions(moved(s, s_direction, t)), cross, power, strict=True):
            pi = np.broadcast_to(pi, c.shape)
            weighted_power = float(np.sum(pi * p, dtype=np.float64)) / sigma2
            slope += float(np.sum(pi * c, dtype=np.float64)) / sigma2 + t * weighted_power
            curvature += weighted_power
        return slope, curvature

    return bound


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


def moved(s: Coefficients, s_direction: Coefficients, length: float) -> Coefficients:
    """s + length d, in the precision of s."""
    return tuple(a + a.real.dtype.type(length) * b for a, b in zip(s, s_direction, strict=True))


def _real_product(a: Array, b: Array) -> Array:
    return a.real * b.real + a.imag * b.imag if np.iscomplexobj(a) else a * b
