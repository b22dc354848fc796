"""Differences u[i] - u[j] along the edges of a graph: gathered, scattered back, and the weighted Gram in one pass.

Every loop runs in one thread and in one order, so that scattered sums have the same bits in each run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, fill, load, store

Array = NDArray[Any]


def along_edges(neighbours: Array, u: Array) -> Array:
    """s[k, i] = u[i] - u[neighbours[k, i]].

    Parameters
    ----------
    neighbours : int32 array, shape (K, size)
        Flat numbers of pixels.
    u : contiguous array, shape (batch, size)
        Real or complex, in single or double precision.

    Returns
    -------
    array, shape (batch, K, size)
    """
    out = np.empty((len(u), *neighbours.shape), dtype=u.dtype)
    _along_edges(neighbours, u, out)
    return out


def back_from_edges(neighbours: Array, v: Array) -> Array:
    """The adjoint of `along_edges`: (batch, K, size) -> (batch, size)."""
    out = np.zeros((len(v), v.shape[-1]), dtype=v.dtype)
    _back_from_edges(neighbours, v, out)
    return out


def add_weighted_edges(neighbours: Array, weights: Array, u: Array, out: Array) -> None:
    """``out += B^H diag(weights) B u`` with B of `along_edges`.

    Parameters
    ----------
    neighbours : int32 array, shape (K, size)
        As there.
    weights : contiguous real array, shape (K, size, parts) or (1, size, parts)
        Of the precision of ``u``. With one row all edges of a pixel share a weight; with two parts the real and the
        imaginary parts of complex ``u`` have their own.
    u, out : contiguous arrays, shape (batch, size)
        Real or complex, of one precision.
    """
    real = u.real.dtype
    size, channels = u.shape[1], u.dtype.itemsize // real.itemsize
    width = 2 * COUNT[real.itemsize]
    images, sums = u.view(real).reshape(-1, size, channels), out.view(real).reshape(-1, size, channels)
    if len(images) == 1 and channels == 2:
        _add_pairs(neighbours, weights, images[0], sums[0])
        return
    # Where parts have weights of their own, the first half of the lanes are real parts, the second imaginary ones.
    apart = weights.shape[2] == 2
    together = COUNT[real.itemsize] if apart else width // channels
    of_image, of_part = (1, together) if apart else (channels, 1)
    packed = np.zeros((size, width), dtype=real)
    for first in range(0, len(images), together):
        chunk = slice(first, first + together)
        _pack(images[chunk], packed, of_image, of_part)  # what is left in other lanes is not taken out again
        gathered = np.zeros_like(packed)
        _add_lanes(neighbours, weights, packed.reshape(-1), gathered.reshape(-1), COUNT[real.itemsize])
        _unpack(gathered, sums[chunk], of_image, of_part)


@compiled
def _along_edges(neighbours, u, out):
    for image in range(u.shape[0]):
        for k in range(neighbours.shape[0]):
            for i in range(neighbours.shape[1]):
                out[image, k, i] = u[image, i] - u[image, neighbours[k, i]]


@compiled
def _back_from_edges(neighbours, v, out):
    for image in range(v.shape[0]):
        for k in range(neighbours.shape[0]):
            for i in range(neighbours.shape[1]):
                out[image, i] += v[image, k, i]
                out[image, neighbours[k, i]] -= v[image, k, i]


@compiled
def _pack(images, packed, of_image, of_part):
    """Numbers of all images side by side, pixel by pixel."""
    count, size, parts = images.shape
    for image in range(count):
        for part in range(parts):
            lane = image * of_image + part * of_part
            for i in range(size):
                packed[i, lane] = images[image, i, part]


@compiled
def _unpack(packed, images, of_image, of_part):
    count, size, parts = images.shape
    for image in range(count):
        for part in range(parts):
            lane = image * of_image + part * of_part
            for i in range(size):
                images[image, i, part] += packed[i, lane]


@compiled
def _add_pairs(neighbours, weights, u, out):
    last = weights.shape[2] - 1
    several = weights.shape[0] > 1
    for k in range(neighbours.shape[0]):
        row = k if several else 0
        for i in range(neighbours.shape[1]):
            j = neighbours[k, i]
            first = weights[row, i, 0] * (u[i, 0] - u[j, 0])
            second = weights[row, i, last] * (u[i, 1] - u[j, 1])
            out[i, 0] += first
            out[i, 1] += second
            out[j, 0] -= first
            out[j, 1] -= second


@compiled
def _add_lanes(neighbours, weights, u, out, count):
    several, last = weights.shape[0] > 1, weights.shape[2] - 1
    width = 2 * count
    for k in range(neighbours.shape[0]):
        row = k if several else 0
        for i in range(neighbours.shape[1]):
            here, there = width * i, width * neighbours[k, i]
            d0 = fill(weights[row, i, 0]) * (load(u, here) - load(u, there))
            d1 = fill(weights[row, i, last]) * (load(u, here + count) - load(u, there + count))
            store(out, here, load(out, here) + d0)
            store(out, here + count, load(out, here + count) + d1)
            store(out, there, load(out, there) - d0)
            store(out, there + count, load(out, there + count) - d1)
