"""Means over draws of squared moduli, in one pass over many images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

Array = NDArray[Any]

BLOCK = 512
"""Places whose sums over draws stay in the innermost cache."""


def mean_squares(draws: Array, known: Array, share: Array) -> Array:
    """Mean over the first axis of |draws - share * known|^2.

    Parameters
    ----------
    draws, known : contiguous arrays of one shape (count, ...)
        Real or complex, of one precision.
    share : real array of the shape of one draw
        Converted to their precision.

    Returns
    -------
    real array of the shape of one draw, of their precision
    """
    real = draws.real.dtype
    out = np.empty(draws.shape[1:], dtype=real)
    numbers = (np.require(array, requirements=["C", "W"]).reshape(-1).view(real) for array in (draws, known))
    on_each = np.require(np.broadcast_to(share, out.shape), dtype=real, requirements=["C", "W"])
    parts = 2 if np.iscomplexobj(draws) else 1
    _mean_squares(*numbers, on_each.reshape(-1), len(draws), parts, np.empty(2 * BLOCK, dtype=real), out.reshape(-1))
    return out


@compiled
def _mean_squares(draws, known, share, count, parts, squares, out):
    size = out.size * parts
    for first in range(0, out.size, BLOCK):
        many = min(BLOCK, out.size - first)
        w, total = share[first : first + many], out[first : first + many]
        total[:] = 0
        for k in range(count):
            at = k * size + first * parts
            s, t = draws[at : at + many * parts], known[at : at + many * parts]
            if parts == 2:
                for i in range(many):
                    re = s[2 * i] - w[i] * t[2 * i]
                    im = s[2 * i + 1] - w[i] * t[2 * i + 1]
                    total[i] += re * re + im * im
            else:
                for i in range(many):
                    re = s[i] - w[i] * t[i]
                    total[i] += re * re
        for i in range(many):
            total[i] /= count
