"""The K nearest patches of every pixel within a window, by running sums over one step of the window after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

__all__ = ["nearest_patches"]

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
    total = 0.0
    for dy, dx in steps.tolist():
        _distances(padded, dy, dx, margin, half, power, patch)
        total += float(patch.sum())
        _keep(neighbours, distances, patch, dy, dx)
    return neighbours, distances, total / (len(steps) * ny * nx)


@compiled
def _distances(padded, dy, dx, margin, half, power, patch):
    """Squared differences between the image and itself a step away, summed over the patch around every pixel."""
    tall, wide = power.shape
    first = margin - half
    for y in range(tall):
        for x in range(wide):
            power[y, x] = 0.0
        for part in range(padded.shape[0]):
            for x in range(wide):
                d = padded[part, first + y, first + x] - padded[part, first + y + dy, first + x + dx]
                power[y, x] += d * d
    side = 2 * half + 1
    columns = np.zeros(wide)
    for y in range(side - 1):
        for x in range(wide):
            columns[x] += power[y, x]
    for y in range(patch.shape[0]):
        for x in range(wide):
            columns[x] += power[y + side - 1, x]
        running = 0.0
        for x in range(side - 1):
            running += columns[x]
        for x in range(patch.shape[1]):
            running += columns[x + side - 1]
            patch[y, x] = max(running, 0.0)
            running -= columns[x]
        for x in range(wide):
            columns[x] -= power[y, x]


@compiled
def _keep(neighbours, distances, patch, dy, dx):
    """Enter the pixels a step away, and those whence a step leads here, among the nearest."""
    ny, nx = patch.shape
    worst = distances.shape[0] - 1
    for y in range(ny):
        other_y = (y + dy) % ny
        for x in range(nx):
            other_x = x + dx
            if other_x < 0:
                other_x += nx
            elif other_x >= nx:
                other_x -= nx
            value = patch[y, x]
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
