"""Rounded soft thresholding: a scalar equation a site, solved by Newton's method many sites at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

__all__ = ["rounded_shrinkage"]

Array = NDArray[Any]

BLOCK = 512
"""Sites that go on together until all of them are solved; their numbers stay in the innermost cache."""


def rounded_shrinkage(level: Array, epsilon: Array, power: Array, iterations: int) -> Array:
    """r / m for r >= 0 with r + level r / sqrt(r^2 + epsilon) = m = sqrt(power); the limit of m -> 0 where m is 0.

    Parameters
    ----------
    level, epsilon : real arrays, of the shape of ``power``, or single numbers
        Positive; of the precision of ``power``.
    power : real array
        Not negative.
    iterations : int
        Limit; a few are enough, to a few times the rounding of 1.

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
        real.type(4 * limits.eps / 1.5),
        limits.tiny,
        real.type(1 / limits.eps**2),
        iterations,
        np.empty((4, BLOCK), dtype=real),
        out.reshape(-1),
    )
    return out


@compiled
def _threshold(level, epsilon, power, accuracy, tiny, largest, iterations, work, out):
    """``largest`` bounds e, beyond which x is known, and the square root of a, beyond which x is nearly zero."""
    one, zero = accuracy / accuracy, accuracy - accuracy
    levels, rounding, a, e = work[0], work[1], work[2], work[3]
    root_of_largest = np.sqrt(largest)
    for first in range(0, power.size, BLOCK):
        count = min(BLOCK, power.size - first)
        x = out[first : first + count]
        # Values that are the same for all are filled in once.
        if level.size > 1:
            levels[:count] = level[first : first + count]
        elif first == 0:
            levels[:] = level[0]
        if epsilon.size > 1:
            rounding[:count] = epsilon[first : first + count]
        elif first == 0:
            rounding[:] = epsilon[0]
        for i in range(count):
            inverse = one / max(np.sqrt(power[first + i]), tiny)
            near = levels[i] / np.sqrt(max(rounding[i], tiny))  # a / sqrt(e), whatever m is
            e[i] = min(rounding[i] * inverse * inverse, largest)
            a[i] = min(near * root_of_largest if e[i] == largest else levels[i] * inverse, largest * largest)
            x[i] = max(one - a[i], one / (one + near))
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
