"""out += weights * u, without a temporary."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, load, store, weights_of

__all__ = ["add_product"]

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
