"""Rounded soft thresholding: a scalar equation a site, solved by Newton's method many sites at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

__all__ = ["rounded_thresholds"]

Array = NDArray[Any]

BLOCK = 512
"""Sites that go on together until all of them are solved; their numbers stay in the innermost cache."""


def rounded_thresholds(level: Array, epsilon: Array, modulus: Array, iterations: int) -> Array:
    """r >= 0 with r + level r / sqrt(r^2 + epsilon) = modulus.

    Parameters
    ----------
    level, epsilon : real arrays, of the shape of ``modulus``, or single numbers
        Positive; of the precision of ``modulus``.
    modulus : real array
        Not negative.
    iterations : int
        Limit; a few are enough, to a few times the rounding of ``modulus``.

    Notes
    -----
    The left side is concave in r, so Newton's steps from below stay below. Soft thresholding is below, and so is
    modulus / (1 + level / sqrt(epsilon)).
    """
    real = modulus.dtype
    out = np.empty(modulus.shape, dtype=real)
    limits = np.finfo(real)
    _threshold(
        level.reshape(-1),
        epsilon.reshape(-1),
        np.ascontiguousarray(modulus).reshape(-1),
        real.type(4 * limits.eps),
        limits.tiny,
        iterations,
        np.empty((2, BLOCK), dtype=real),
        out.reshape(-1),
    )
    return out


@compiled
def _threshold(level, epsilon, modulus, accuracy, tiny, iterations, work, out):
    one, zero = accuracy / accuracy, accuracy - accuracy
    levels, rounding = work[0], work[1]
    for first in range(0, modulus.size, BLOCK):
        count = min(BLOCK, modulus.size - first)
        m, r = modulus[first : first + count], out[first : first + count]
        for i in range(count):
            levels[i] = level[first + i if level.size > 1 else 0]
            rounding[i] = epsilon[first + i if epsilon.size > 1 else 0]
        for i in range(count):
            r[i] = max(m[i] - levels[i], m[i] / (one + levels[i] / np.sqrt(max(rounding[i], tiny))))
        for _ in range(iterations):
            unsolved = 0
            for i in range(count):
                inverse = one / np.sqrt(r[i] * r[i] + rounding[i])
                shrinkage = levels[i] * inverse
                step = (m[i] - r[i] - shrinkage * r[i]) / (one + shrinkage * (rounding[i] * inverse) * inverse)
                r[i] += step
                unsolved += abs(step) > accuracy * m[i]
            if unsolved == 0:
                break
        for i in range(count):
            r[i] = max(r[i], zero)
