"""The K nearest patches of every pixel within a window, one step of the window after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

Array = NDArray[Any]


def nearest_patches(image: Array, steps: Array, half: int, count: int) -> tuple[Array, Array, float]:
    """Neighbours of every pixel, the nearest patch first; of equal ones the earlier step first.

    Parameters
    ----------
    image : contiguous float64 array, shape (parts, ky, kx)
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
    distances : float64 array, shape (K, ky, kx)
        Sums of squared differences over the patch.
    mean : float
        Distance of all pairs of patches compared, on average.
    """
    ny, nx = image.shape[1:]
    margin = half + int(np.abs(steps).max())
    padded = np.pad(image, ((0, 0), (margin, margin), (margin, margin)), mode="wrap")
    neighbours = np.zeros((count, ny, nx), dtype=np.int32)
    distances = np.full((count, ny, nx), np.inf)
    power, patch = np.empty((ny + 2 * half, nx + 2 * half)), np.empty((ny, nx))
    nearer = np.empty(nx, dtype=np.bool_)
    total = 0.0
    for dy, dx in steps.tolist():
        _distances(padded, dy, dx, margin, half, power, patch)
        total += float(patch.sum())
        _keep(neighbours, distances, patch, dy, dx, nearer)
    return neighbours, distances, total / (len(steps) * ny * nx)


@compiled
def _distances(padded, dy, dx, margin, half, power, patch):
    """Squared differences between the image and itself a step away, summed over the patch around every pixel.

    Sums are made anew for every pixel, in the same order: equal patches have equal sums.
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
