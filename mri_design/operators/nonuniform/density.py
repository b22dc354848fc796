"""Density compensation: weights that make up for samples lying closer in some places than in others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import require_counts
from mri_design.operators.base import Array
from mri_design.operators.nonuniform.convention import checked_samples
from mri_design.operators.nonuniform.transform import sums_at_pixels, sums_at_samples


def density_weights(
    trajectory: Array, grid: tuple[int, int], *, iterations: int = 10, given: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Weights w of the samples for which X^H diag(w) y is close to the image, where the trajectory is dense enough.

    For images to start from, and to look at; models weight all samples alike, as their noise is alike.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Cycles per field of view.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    iterations : int
        Each costs two transforms on twice the grid. More of them make weights at the edge of the trajectory uneven.
    given : float array, shape (sample,), optional
        Weights of any scale that somebody else has computed. They are returned with the sum that the weights computed
        here have; computed ones where all of them are zero.

    Returns
    -------
    float64 array, shape (sample,)
        Positive, dimensionless: the area of k-space that a sample stands for, 1 at every sample of a full grid.

    Raises
    ------
    InputError
        As `checked_samples`; for no iteration; where FINUFFT is not installed.

    Notes
    -----
    Pipe & Menon, Magn. Reson. Med. 41 (1999): w is divided by its own convolution with a kernel until that is 1. The
    kernel is |x_i^H x_j|^2 of the rows of X, scaled to 1 at i = j. It is that of the field of view: positive, zero
    between different samples of the grid, and its transform is a triangle over differences of pixels.
    """
    points = checked_samples(trajectory, grid)
    require_counts(least=1, iterations=iterations)
    angles = 2 * np.pi * points / grid
    triangles = (1 - np.abs(np.arange(-n, n)) / n for n in grid)
    triangle = np.multiply.outer(*triangles) / np.prod(grid)
    weights = np.ones(len(points))
    for _ in range(iterations):
        around = sums_at_samples(triangle * sums_at_pixels(weights, angles, triangle.shape), angles).real
        weights /= np.maximum(around, np.finfo(np.float32).eps)
    if given is None or not given.sum() > 0:
        return weights
    return np.asarray(given * (weights.sum() / given.sum()))
