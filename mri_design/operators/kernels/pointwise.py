"""out += weights * u, without a temporary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, load, store
from mri_design.operators.kernels.rows import doubled

__all__ = ["add_product"]

Array = NDArray[Any]

CHUNK = 2048
"""Numbers of every image that are treated together, so that their weights are read once a batch."""


def add_product(weights: Array, u: Array, out: Array) -> None:
    """``out += weights * u``.

    Parameters
    ----------
    weights : real array, shape (size,)
        One for every number of an image.
    u, out : contiguous arrays, of a multiple of that size
        Real or complex, of one precision, which the weights share.
    """
    real = u.real.dtype
    parts = u.dtype.itemsize // real.itemsize
    row = np.empty(CHUNK * parts, dtype=real)
    _add_product(
        weights, u.reshape(-1).view(real), out.reshape(-1).view(real), len(weights), parts, row, COUNT[real.itemsize]
    )


@compiled
def _add_product(weights, u, out, size, parts, row, count):
    for first in range(0, size, CHUNK):
        length = min(CHUNK, size - first)
        doubled(weights, first, length, parts, row, 0, count)
        for start in range(first * parts, u.size, size * parts):
            whole = length * parts // count * count
            for x in range(0, whole, count):
                store(out, start + x, load(out, start + x) + load(row, x) * load(u, start + x))
            for x in range(whole, length * parts):
                out[start + x] += row[x] * u[start + x]
