"""What a trajectory does to a point, and how densely it samples each distance from the centre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, require_counts, require_grid
from mri_design.operators.trajectory import checked_trajectory

_AT_ONCE = 4096
"""Samples whose waves are held in memory."""


@dataclass(frozen=True)
class RadialDensity:
    """Samples per area of k-space, by distance from DC.

    Parameters
    ----------
    edges : float64 array, shape (ring + 1,)
        Radii of the rings in cycles per field of view.
    density : float64 array, shape (ring,)
        Samples per square cycle per field of view; 1 is the Cartesian grid's.
    """

    edges: NDArray[np.float64]
    density: NDArray[np.float64]


def point_spread(
    trajectory: ArrayLike, shape: tuple[int, int], *, weights: ArrayLike | None = None
) -> NDArray[np.complex128]:
    """Image of a point in the middle: sum of w exp(2 pi i k.r) over the samples, divided by the sum of the weights.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Samples, (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx); the pixels' positions are (n - N // 2) / N fields of view.
    weights : float array, shape (...), optional
        Density compensation; all equal without.

    Returns
    -------
    complex128 array, shape (ky, kx)
        1 at the middle. Real where every k has its -k.

    Raises
    ------
    InputError
        For what is no trajectory, samples beyond the grid, or weights of another shape or without a sum.

    Notes
    -----
    A direct sum, as products of two matrices of waves: samples times pixels operations, and memory for the waves of
    some thousand samples at a time.
    """
    rows, columns = require_grid("shape", shape, axes=2)
    k = checked_trajectory(trajectory, (rows, columns))
    if weights is None:
        w = np.ones(k.shape[:-1])
    else:
        w = number_array("weights", weights, wanted=f"finite numbers {k.shape[:-1]}")
        if w.shape != k.shape[:-1] or not np.isfinite(w).all() or not np.sum(w):
            got = f"shape {w.shape}, sum {np.sum(w):g}"
            raise InputError(field="weights", got=got, wanted=f"finite numbers {k.shape[:-1]} that have a sum")
    flat = k.reshape(-1, 2)
    y, x = (np.arange(rows) - rows // 2) / rows, (np.arange(columns) - columns // 2) / columns
    scaled = w.ravel() / np.sum(w)
    spread = np.zeros((rows, columns), dtype=np.complex128)
    for first in range(0, len(flat), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        waves_y = np.exp(2j * np.pi * np.outer(y, flat[some, 0]))
        waves_x = np.exp(2j * np.pi * np.outer(flat[some, 1], x))
        spread += (waves_y * scaled[some]) @ waves_x
    return spread


def radial_density(trajectory: ArrayLike, *, rings: int = 16) -> RadialDensity:
    """Count samples in rings of equal width between DC and the farthest sample.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Samples in cycles per field of view.
    rings : int
        How many.

    Raises
    ------
    InputError
        For what is no trajectory, one that stays at DC, or no ring.
    """
    k = checked_trajectory(trajectory)
    require_counts(least=1, rings=rings)
    radii = np.linalg.norm(k.reshape(-1, 2), axis=1)
    if not radii.any():
        raise InputError(field="trajectory", got="only samples at DC", wanted="samples at some distance from it")
    counts, edges = np.histogram(radii, bins=rings, range=(0.0, float(radii.max())))
    return RadialDensity(edges, counts / (np.pi * np.diff(edges**2)))
