"""Differences along both axes or along the edges of a graph, their adjoints and D^H diag(weights) D; similar patches.

Complex arrays are seen as flat real ones, (real, imaginary) interleaved. Every loop runs in one thread and in one
order, so that scattered sums have the same bits in each run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import COUNT, compiled, fill, load, store
from mri_design.operators.kernels.pixels import add_row_product

Array = NDArray[Any]


def differences(u: Array) -> Array:
    """D u with D u = (u[y + 1] - u[y], u[x + 1] - u[x]), indices modulo the size.

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
    shape = n_rows, parts * n_columns
    _differences(u.view(real).reshape(-1, *shape), out.view(real).reshape(-1, 2, *shape), parts)
    return out


def differences_adjoint(v: Array) -> Array:
    """D^H v with D as in `differences`.

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
    shape = n_rows, parts * n_columns
    _differences_adjoint(v.view(real).reshape(-1, 2, *shape), out.view(real).reshape(-1, *shape), parts)
    return out


def add_weighted_differences(along_y: Array, along_x: Array, u: Array, out: Array, pixels: Array | None = None) -> None:
    """``out += D^H diag(along_y, along_x) D u`` with D as in `differences`.

    Parameters
    ----------
    along_y, along_x : contiguous real arrays, shape (ky, kx)
        Weights, of the precision of ``u``; (ky, kx, 2) where the parts of complex ``u`` have their own.
    u, out : contiguous arrays, shape (..., ky, kx)
        Real or complex, of one precision.
    pixels : contiguous real array, shaped as those, optional
        Weights of u itself: ``out += pixels * u`` in the same pass.
    """
    real, n_rows = u.real.dtype, u.shape[-2]
    parts = u.dtype.itemsize // real.itemsize
    width = parts * u.shape[-1]
    _add_weighted_differences(
        along_y.reshape(n_rows, -1),
        along_x.reshape(n_rows, -1),
        np.empty((0, 0), dtype=real) if pixels is None else pixels.reshape(n_rows, -1),
        u.view(real).reshape(-1, n_rows, width),
        out.view(real).reshape(-1, n_rows, width),
        parts,
    )


@compiled
def _differences(u, out, parts):
    n_rows, width = u.shape[1:]
    for image in range(u.shape[0]):
        for y in range(n_rows):
            here, below = u[image, y], u[image, (y + 1) % n_rows]
            along_y, along_x = out[image, 0, y], out[image, 1, y]
            for x in range(width):
                along_y[x] = below[x] - here[x]
            for x in range(width - parts):
                along_x[x] = here[x + parts] - here[x]
            for part in range(parts):
                along_x[width - parts + part] = here[part] - here[width - parts + part]


@compiled
def _differences_adjoint(v, out, parts):
    n_rows, width = out.shape[1:]
    for image in range(out.shape[0]):
        for y in range(n_rows):
            above, here, right, to = v[image, 0, y - 1], v[image, 0, y], v[image, 1, y], out[image, y]
            for part in range(parts):
                to[part] = (above[part] - here[part]) + (right[width - parts + part] - right[part])
            above, here, left, right, to = (
                above[parts:],
                here[parts:],
                right[: width - parts],
                right[parts:],
                to[parts:],
            )
            for x in range(to.size):
                to[x] = (above[x] - here[x]) + (left[x] - right[x])


@compiled
def _of_four(centre, above, below, left, right, w_above, w_below, w_left, w_right):
    return (w_above * (centre - above) - w_below * (below - centre)) + (
        w_left * (centre - left) - w_right * (right - centre)
    )


@compiled
def _add_weighted_differences(along_y, along_x, pixels, u, out, parts):
    """Row by row; neighbours of both ends of a row are at its other end."""
    n_rows, width = u.shape[1:]
    share = width // along_x.shape[1]  # how many parts a weight is for
    for image in range(u.shape[0]):
        for y in range(n_rows):
            c, to, a, b = u[image, y], out[image, y], u[image, y - 1], u[image, (y + 1) % n_rows]
            wa, wb, wx = along_y[y - 1], along_y[y], along_x[y]
            if parts == 1:
                for x in range(width - 2):
                    y0, y1, y2 = c[x], c[x + 1], c[x + 2]
                    to[x + 1] += _of_four(y1, a[x + 1], b[x + 1], y0, y2, wa[x + 1], wb[x + 1], wx[x], wx[x + 1])
            elif share == 1:
                for x in range(width - 4):
                    y0, y1, y2 = c[x], c[x + 2], c[x + 4]
                    to[x + 2] += _of_four(y1, a[x + 2], b[x + 2], y0, y2, wa[x + 2], wb[x + 2], wx[x], wx[x + 2])
            else:
                for i in range(width // 2 - 2):
                    x, z, w_above, w_below, w_left, w_right = 2 * i, 2 * i + 1, wa[i + 1], wb[i + 1], wx[i], wx[i + 1]
                    to[x + 2] += _of_four(
                        c[x + 2], a[x + 2], b[x + 2], c[x], c[x + 4], w_above, w_below, w_left, w_right
                    )
                    to[z + 2] += _of_four(
                        c[z + 2], a[z + 2], b[z + 2], c[z], c[z + 4], w_above, w_below, w_left, w_right
                    )
            for end in range(parts if width == parts else 2 * parts):
                x = end if end < parts else width - 2 * parts + end
                left, right = (x - parts) % width, (x + parts) % width
                w = x // share
                to[x] += _of_four(c[x], a[x], b[x], c[left], c[right], wa[w], wb[w], wx[left // share], wx[w])
            if pixels.size > 0:
                add_row_product(pixels[y], c, to)


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
        _pack(images[chunk], packed, of_image, of_part)  # lanes that hold no image are not unpacked
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


def nearest_patches(image: Array, steps: Array, half: int, count: int) -> tuple[Array, Array, float]:
    """Neighbours of every pixel, the nearest patch first; of equal ones the earlier step first.

    Parameters
    ----------
    image : contiguous float array, shape (parts, ky, kx)
        Parts are features of one pixel; the grid is periodic.
    steps : int array, shape (number, 2)
        Half of the window: every step stands for its opposite too. No two may be equal on the grid.
    half : int
        Patches have 2 half + 1 pixels a side.
    count : int
        K, at most twice the number of steps.

    Returns
    -------
    neighbours : int32 array, shape (K, ky, kx)
        Flat numbers of pixels.
    distances : float array, shape (K, ky, kx)
        Sums of squared differences over the patch, in the precision of the image.
    mean : float
        Distance of all pairs of patches compared, on average.
    """
    ny, nx = image.shape[1:]
    margin = half + int(np.abs(steps).max())
    padded = np.pad(image, ((0, 0), (margin, margin), (margin, margin)), mode="wrap")
    neighbours = np.zeros((count, ny, nx), dtype=np.int32)
    distances = np.full((count, ny, nx), np.inf, dtype=image.dtype)
    power, patch = np.empty((ny + 2 * half, nx + 2 * half), dtype=image.dtype), np.empty((ny, nx), dtype=image.dtype)
    nearer = np.empty(nx, dtype=np.bool_)
    total = 0.0
    for dy, dx in steps.tolist():
        _distances(padded, dy, dx, margin, half, power, patch)
        total += float(patch.sum(dtype=np.float64))
        _keep(neighbours, distances, patch, dy, dx, nearer)
    return neighbours, distances, total / (len(steps) * ny * nx)


@compiled
def _distances(padded, dy, dx, margin, half, power, patch):
    """Squared differences between the image and itself a step away, summed over the patch around every pixel.

    Every pixel's sum is computed from its terms in the same order: equal patches have equal sums.
    """
    tall, wide = power.shape
    first = margin - half
    for y in range(tall):
        line = power[y]
        line[:] = 0
        for part in range(padded.shape[0]):
            here = padded[part, first + y, first : first + wide]
            there = padded[part, first + y + dy, first + dx : first + dx + wide]
            for x in range(wide):
                d = here[x] - there[x]
                line[x] += d * d
    side = 2 * half + 1
    columns = np.empty(wide, dtype=power.dtype)
    for y in range(patch.shape[0]):
        columns[:] = power[y]
        for k in range(1, side):
            line = power[y + k]
            for x in range(wide):
                columns[x] += line[x]
        sums = patch[y]
        sums[:] = 0
        for k in range(side):
            shifted = columns[k : k + sums.size]
            for x in range(sums.size):
                sums[x] += shifted[x]


@compiled
def _keep(neighbours, distances, patch, dy, dx, nearer):
    """Enter the pixels a step away, and those whence a step leads here, among the nearest."""
    ny, nx = patch.shape
    worst = distances.shape[0] - 1
    for y in range(ny):
        other_y = (y + dy) % ny
        here, there, values = distances[worst, y], distances[worst, other_y], patch[y]
        first, last = max(0, -dx), nx - max(0, dx)  # without going around the edge
        nearer[:] = True
        inner, near = nearer[first:last], there[first + dx : last + dx]
        own, value_of = here[first:last], values[first:last]
        for x in range(last - first):
            inner[x] = (value_of[x] < own[x]) | (value_of[x] < near[x])
        for x in range(nx):
            if not nearer[x]:
                continue
            other_x = (x + dx) % nx
            value = values[x]
            if value < distances[worst, y, x]:
                _insert(neighbours, distances, y, x, other_y * nx + other_x, value)
            if value < distances[worst, other_y, other_x]:
                _insert(neighbours, distances, other_y, other_x, y * nx + x, value)


@compiled
def _insert(neighbours, distances, y, x, other, value):
    k = distances.shape[0] - 1
    while k > 0 and value < distances[k - 1, y, x]:
        distances[k, y, x] = distances[k - 1, y, x]
        neighbours[k, y, x] = neighbours[k - 1, y, x]
        k -= 1
    distances[k, y, x] = value
    neighbours[k, y, x] = other
