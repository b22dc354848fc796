"""Rounded soft thresholding: a scalar equation a site, solved by Newton's method many sites at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

Array = NDArray[Any]

BLOCK = 512
"""Sites that go on together until all of them are solved; their numbers stay in the innermost cache."""


def rounded_shrinkage(level: Array, epsilon: Array, power: Array, iterations: int, unit: float = 1.0) -> Array:
    """r / m for r >= 0 with r + level r / sqrt(r^2 + epsilon) = m = sqrt(power); the limit of m -> 0 where m is 0.

    Parameters
    ----------
    level, epsilon : real arrays, of the shape of ``power``, or single numbers
        Positive; of the precision of ``power``.
    power : real array
        Not negative.
    iterations : int
        Limit; a few are enough, to a few times the rounding of 1.
    unit : float
        In which ``epsilon`` is given.

    Notes
    -----
    The equation is solved for x = r / m, so that units do not matter: x + a x / sqrt(x^2 + e) = 1 with a = level / m
    and e = epsilon / m^2. The left side is concave in x, so Newton's steps from below stay below. Soft thresholding is
    below, and so is 1 / (1 + a / sqrt(e)), which is the solution where e is large.
    """
    real = power.dtype
    out = np.empty(power.shape, dtype=real)
    limits = np.finfo(real)
    _threshold(
        level.reshape(-1),
        epsilon.reshape(-1),
        np.ascontiguousarray(power).reshape(-1),
        real.type(unit),
        (real.type(4 * limits.eps / 1.5), limits.tiny, limits.eps),
        iterations,
        np.empty((4, BLOCK), dtype=real),
        out.reshape(-1),
    )
    return out


@compiled
def _threshold(level, epsilon, power, unit, limits, iterations, work, out):
    """``limits``: what a step may leave, the least that is told from nothing, and the least beside one."""
    levels, rounding = work[0], work[1]
    one = unit / unit
    for first in range(0, power.size, BLOCK):
        last = min(first + BLOCK, power.size)
        _spread(level, one, first, last, levels)
        _spread(epsilon, unit, first, last, rounding)
        _solve(levels, rounding, power[first:last], limits, iterations, work[2], work[3], out[first:last])


@compiled
def _spread(values, unit, first, last, block):
    """``values[first:last]`` times ``unit`` as a block; one value for all is filled in once."""
    if values.size > 1:
        given = values[first:last]
        for i in range(given.size):
            block[i] = unit * given[i]
    elif first == 0:
        block[:] = unit * values[0]


@compiled
def _solve(levels, rounding, power, limits, iterations, a, e, x):
    """x for a block of sites, in loops with so few arrays that the compiler joins lanes.

    Where m is so small beside the root of epsilon that x is known, it is taken to be no smaller than that.
    """
    accuracy, tiny, least = limits
    one, zero, count = accuracy / accuracy, accuracy - accuracy, power.size
    steepest = one / (least * least * least * least)  # x is nearly zero beyond
    for i in range(count):
        e[i] = np.sqrt(max(rounding[i], tiny))
    for i in range(count):
        x[i] = e[i] / (e[i] + levels[i])
    for i in range(count):
        a[i] = one / max(max(np.sqrt(power[i]), least * e[i]), tiny)
    for i in range(count):
        e[i] = rounding[i] * a[i] * a[i]
    for i in range(count):
        a[i] = min(levels[i] * a[i], steepest)
        x[i] = max(one - a[i], x[i])
    for _ in range(iterations):
        unsolved = np.int32(0)
        for i in range(count):
            square = x[i] * x[i] + e[i]
            root = np.sqrt(square)
            step = ((one - x[i]) * root - a[i] * x[i]) * square
            step /= square * root + (a[i] * e[i] + tiny)
            x[i] += step
            # What Newton's step leaves: |f''| step^2 / (2 f') <= 3 x step^2 / (2 square), with the new x.
            unsolved += np.int32(x[i] * step * step > accuracy * square)
        if unsolved == 0:
            break
    for i in range(count):
        x[i] = max(x[i], zero)
