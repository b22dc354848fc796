"""D^H diag(weights) D for periodic differences along both axes, in one pass and without temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, load, store
from mri_design.operators.kernels.rows import doubled

__all__ = ["add_weighted_differences"]

Array = NDArray[Any]


def add_weighted_differences(along_y: Array, along_x: Array, u: Array, out: Array) -> None:
    """``out += D^H diag(along_y, along_x) D u`` with D u = (u[y + 1] - u[y], u[x + 1] - u[x]), indices modulo the size.

    Parameters
    ----------
    along_y, along_x : contiguous real arrays, shape (ky, kx)
        Weights, of the precision of ``u``.
    u, out : contiguous arrays, shape (..., ky, kx)
        Real or complex, of one precision.
    """
    real = u.real.dtype
    parts, (n_rows, n_columns) = u.dtype.itemsize // real.itemsize, u.shape[-2:]
    _add_weighted_differences(
        along_y.reshape(-1),
        along_x.reshape(-1),
        u.reshape(-1).view(real),
        out.reshape(-1).view(real),
        n_rows,
        n_columns,
        parts,
        np.empty(3 * parts * n_columns, dtype=real),
        COUNT[real.itemsize],
    )


@compiled
def _add_weighted_differences(along_y, along_x, u, out, n_rows, n_columns, parts, weights, count):
    """One row of every image at a time; ``weights`` holds those from above, to below and to the right."""
    width = parts * n_columns
    below, right = width, 2 * width
    doubled(along_y, (n_rows - 1) * n_columns, n_columns, parts, weights, below, count)
    for y in range(n_rows):
        weights[:width] = weights[below : below + width]
        doubled(along_y, y * n_columns, n_columns, parts, weights, below, count)
        doubled(along_x, y * n_columns, n_columns, parts, weights, right, count)
        for image in range(0, u.size, n_rows * width):
            here = image + y * width
            up = image + (y - 1 if y > 0 else n_rows - 1) * width
            down = image + (y + 1 if y < n_rows - 1 else 0) * width
            last = width - parts  # columns between the first and the last
            whole = parts + max(last - parts, 0) // count * count
            for x in range(parts, whole, count):
                centre = load(u, here + x)
                total = load(out, here + x) + load(weights, x) * (centre - load(u, up + x))
                total = total + load(weights, below + x) * (centre - load(u, down + x))
                total = total + load(weights, right + x - parts) * (centre - load(u, here + x - parts))
                total = total + load(weights, right + x) * (centre - load(u, here + x + parts))
                store(out, here + x, total)
            for k in range(whole, width + parts):
                x = k if k < width else k - width
                before = x - parts if x >= parts else x + last
                after = x + parts if x < last else x - last
                centre = u[here + x]
                total = out[here + x] + weights[x] * (centre - u[up + x])
                total += weights[below + x] * (centre - u[down + x])
                total += weights[right + before] * (centre - u[here + before])
                total += weights[right + x] * (centre - u[here + after])
                out[here + x] = total
