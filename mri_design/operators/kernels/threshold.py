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
    """r / m for r >= 0 with r + level r / sqrt(r^2 + epsilon) = m = sqrt(power); 0 where m is.

    Parameters
    ----------
    level, epsilon : real arrays, of the shape of ``power``, or single numbers
        Positive; of the precision of ``power``.
    power : real array
        Not negative.
    iterations : int
        Limit; a few are enough, to a few times the rounding of m.

    Notes
    -----
    The left side is concave in r, so Newton's steps from below stay below. Soft thresholding is below, and so is
    m / (1 + level / sqrt(epsilon)).
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
        iterations,
        np.empty((3, BLOCK), dtype=real),
        out.reshape(-1),
    )
    return out


@compiled
def _threshold(level, epsilon, power, accuracy, tiny, iterations, work, out):
    one, zero = accuracy / accuracy, accuracy - accuracy
    levels, rounding, m = work[0], work[1], work[2]
    for first in range(0, power.size, BLOCK):
        count = min(BLOCK, power.size - first)
        r = out[first : first + count]
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
            m[i] = np.sqrt(power[first + i])
        for i in range(count):
            r[i] = max(m[i] - levels[i], m[i] / (one + levels[i] / np.sqrt(max(rounding[i], tiny))))
        for _ in range(iterations):
            unsolved = np.int32(0)
            for i in range(count):
                square = r[i] * r[i] + rounding[i]
                root = np.sqrt(square)
                step = ((m[i] - r[i]) * root - levels[i] * r[i]) * square
                step /= square * root + (levels[i] * rounding[i] + tiny)
                r[i] += step
                # What Newton's step leaves: |f''| step^2 / (2 f') <= 3 r step^2 / (2 square), with the new r.
                unsolved += np.int32(r[i] * step * step > accuracy * m[i] * square)
            if unsolved == 0:
                break
        for i in range(count):
            r[i] = max(r[i], zero) / max(m[i], tiny)
