"""out += weights * u, without a temporary, and |u|^2 in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, load, load_pairs, store, weights_of

Array = NDArray[Any]


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
    _add_product(weights, u.reshape(-1).view(real), out.reshape(-1).view(real), parts, COUNT[real.itemsize])


def squares_of_moduli(u: Array) -> Array:
    """|u|^2 of a contiguous complex array, in its precision."""
    real = u.real.dtype
    out = np.empty(u.shape, dtype=real)
    _squares_of_moduli(u.reshape(-1).view(real), out.reshape(-1), COUNT[real.itemsize])
    return out


@compiled
def _squares_of_moduli(u, out, count):
    whole = out.size // count * count
    for x in range(0, whole, count):
        re, im = load_pairs(u, 2 * x)
        store(out, x, re * re + im * im)
    for x in range(whole, out.size):
        out[x] = u[2 * x] * u[2 * x] + u[2 * x + 1] * u[2 * x + 1]


@compiled
def _add_product(weights, u, out, parts, count):
    size = weights.size * parts  # x >> parts - 1 is x // parts, without a division
    whole = size // (2 * count) * 2 * count
    for image in range(0, u.size, size):
        for x in range(0, whole, 2 * count):
            at = image + x
            w0, w1 = weights_of(weights, x >> parts - 1, parts, count)
            store(out, at, load(out, at) + w0 * load(u, at))
            store(out, at + count, load(out, at + count) + w1 * load(u, at + count))
        for x in range(whole, size):
            out[image + x] += weights[x // parts] * u[image + x]
