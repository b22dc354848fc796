"""Differences along both axes or along the edges of a graph, their adjoints and D^H diag(weights) D, each in one pass.

Every loop runs in one thread and in one order, so that scattered sums have the same bits in each run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import COUNT, compiled, fill, load, moved_one, moved_two, store, weights_of

Array = NDArray[Any]


def differences(u: Array) -> Array:
    """D u with D as in `add_weighted_differences`.

    Parameters
    ----------
    u : contiguous array, shape (..., ky, kx)
        Real or complex.

    Returns
    -------
    array, shape (..., 2, ky, kx)
    """
    real, (n_rows, n_columns) = u.real.dtype, u.shape[-2:]
    out = np.empty((*u.shape[:-2], 2, n_rows, n_columns), dtype=u.dtype)
    parts = u.dtype.itemsize // real.itemsize
    flat, written = u.reshape(-1).view(real), out.reshape(-1).view(real)
    _differences(flat, written, n_rows, parts * n_columns, parts, COUNT[real.itemsize])
    return out


def differences_adjoint(v: Array) -> Array:
    """D^H v with D as in `add_weighted_differences`.

    Parameters
    ----------
    v : contiguous array, shape (..., 2, ky, kx)
        Real or complex.

    Returns
    -------
    array, shape (..., ky, kx)
    """
    real, (n_rows, n_columns) = v.real.dtype, v.shape[-2:]
    out = np.empty((*v.shape[:-3], n_rows, n_columns), dtype=v.dtype)
    parts = v.dtype.itemsize // real.itemsize
    flat, written = v.reshape(-1).view(real), out.reshape(-1).view(real)
    _differences_adjoint(flat, written, n_rows, parts * n_columns, parts, COUNT[real.itemsize])
    return out


def add_weighted_differences(along_y: Array, along_x: Array, u: Array, out: Array, pixels: Array | None = None) -> None:
    """``out += D^H diag(along_y, along_x) D u`` with D u = (u[y + 1] - u[y], u[x + 1] - u[x]), indices modulo the size.

    Parameters
    ----------
    along_y, along_x : contiguous real arrays, shape (ky, kx)
        Weights, of the precision of ``u``; (ky, kx, 2) where the parts of complex ``u`` have their own.
    u, out : contiguous arrays, shape (..., ky, kx)
        Real or complex, of one precision.
    pixels : contiguous real array, shaped as those, optional
        Weights of u itself: ``out += pixels * u`` in the same pass.
    """
    real = u.real.dtype
    parts, (n_rows, n_columns) = u.dtype.itemsize // real.itemsize, u.shape[-2:]
    _add_weighted_differences(
        along_y.reshape(-1),
        along_x.reshape(-1),
        np.empty(0, dtype=real) if pixels is None else pixels.reshape(-1),
        u.reshape(-1).view(real),
        out.reshape(-1).view(real),
        n_rows,
        n_columns,
        parts,
        parts if along_x.ndim == 2 else 1,
        np.empty(parts * n_columns, dtype=real),
        np.zeros(4 * COUNT[real.itemsize], dtype=real),
        COUNT[real.itemsize],
    )


@compiled
def _differences(u, out, n_rows, width, parts, count):
    """Whole registers, then the rest of a row by single numbers: neighbours of the last ones are at its beginning."""
    size = n_rows * width
    whole = (width - parts) // count * count
    for first in range(0, u.size, size):
        for y in range(n_rows):
            here, down = first + y * width, first + (y + 1) % n_rows * width
            along_y = first + here
            along_x = along_y + size
            for x in range(0, whole, count):
                centre = load(u, here + x)
                store(out, along_y + x, load(u, down + x) - centre)
                store(out, along_x + x, load(u, here + x + parts) - centre)
            for x in range(whole, width):
                after = x + parts if x < width - parts else x + parts - width
                out[along_y + x] = u[down + x] - u[here + x]
                out[along_x + x] = u[here + after] - u[here + x]


@compiled
def _differences_adjoint(v, out, n_rows, width, parts, count):
    """Two ends of a row go number by number, ``first`` and ``last`` of them.

    What is to the left of the first ones lies at the other end, and the last ones fill no register.
    """
    size = n_rows * width
    first = min(count, width)
    last = (width - first) % count
    for image in range(out.size // size):
        for y in range(n_rows):
            to, here = image * size + y * width, 2 * image * size + y * width
            above, right = 2 * image * size + (y - 1) % n_rows * width, here + size
            for x in range(first, width - last, count):
                along_y = load(v, above + x) - load(v, here + x)
                store(out, to + x, along_y + (load(v, right + x - parts) - load(v, right + x)))
            for at in range(-last, first):
                x = at if at >= 0 else at + width
                before = right + (x - parts if x >= parts else x + width - parts)
                out[to + x] = (v[above + x] - v[here + x]) + (v[before] - v[right + x])


@compiled
def _add_weighted_differences(along_y, along_x, pixels, u, out, n_rows, n_columns, parts, share, above, edge, count):
    """Weighted differences to the row above and to the left are kept for their second use.

    ``above`` holds those of a row; ``edge`` has room for what lies beyond a row's ends; ``share`` numbers side by side
    have one weight.
    """
    width, block = parts * n_columns, 2 * count
    weights = width // share
    whole = width // block * block
    left = edge.size - count
    for image in range(0, u.size, n_rows * width):
        last = image + (n_rows - 1) * width
        for x in range(width):
            above[x] = along_y[(n_rows - 1) * weights + x // share] * (u[image + x] - u[last + x])
        for y in range(n_rows):
            here, w = image + y * width, y * weights
            down = here + width if y < n_rows - 1 else image
            for part in range(parts):
                edge[left + count - parts + part] = along_x[w + (width - parts + part) // share] * (
                    u[here + part] - u[here + width - parts + part]
                )
                edge[block - parts + part] = u[here + part]
            before = load(edge, left)
            for k in range(block - parts if whole == width else 0):
                edge[k] = u[here + width - block + parts + k]
            for x in range(0, whole, block):
                c0, c1 = load(u, here + x), load(u, here + x + count)
                if x + block == width:
                    r0, r1 = load(edge, 0), load(edge, count)
                else:
                    r0, r1 = load(u, here + x + parts), load(u, here + x + parts + count)
                w0, w1 = weights_of(along_x, w + (x >> share - 1), share, count)
                r0, r1 = w0 * (r0 - c0), w1 * (r1 - c1)
                if parts == 2:
                    l0, l1 = moved_two(before, r0), moved_two(r0, r1)
                else:
                    l0, l1 = moved_one(before, r0), moved_one(r0, r1)
                before = r1
                w0, w1 = weights_of(along_y, w + (x >> share - 1), share, count)
                d0, d1 = w0 * (load(u, down + x) - c0), w1 * (load(u, down + x + count) - c1)
                s0 = load(out, here + x) + (load(above, x) - d0) + (l0 - r0)
                s1 = load(out, here + x + count) + (load(above, x + count) - d1) + (l1 - r1)
                if pixels.size > 0:
                    w0, w1 = weights_of(pixels, w + (x >> share - 1), share, count)
                    s0, s1 = s0 + w0 * c0, s1 + w1 * c1
                store(above, x, d0)
                store(above, x + count, d1)
                store(out, here + x, s0)
                store(out, here + x + count, s1)
            for x in range(whole, width):
                before_x = x - parts if x >= parts else x + width - parts
                after_x = x + parts if x < width - parts else x + parts - width
                centre = u[here + x]
                to_left = along_x[w + before_x // share] * (centre - u[here + before_x])
                to_right = along_x[w + x // share] * (u[here + after_x] - centre)
                below = along_y[w + x // share] * (u[down + x] - centre)
                out[here + x] += (above[x] - below) + (to_left - to_right)
                if pixels.size > 0:
                    out[here + x] += pixels[w + x // share] * centre
                above[x] = below


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
