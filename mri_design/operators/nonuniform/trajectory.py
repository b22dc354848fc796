"""Trajectories: points of k-space in cycles per field of view, checked before anything is computed with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array, require_grid
from mri_design.operators.base import Array

__all__ = ["ROUNDING", "checked_trajectory"]

_WANTED = "real numbers (sample, 2): ky and kx in cycles per field of view"
ROUNDING = 1e-4
"""Cycles by which a sample may lie beyond the edge, and is put back: what single precision leaves of an exact N / 2."""


def checked_trajectory(trajectory: Array, grid: tuple[int, int]) -> NDArray[np.float64]:
    """The trajectory in double precision, every sample within the grid.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Columns ky and kx in cycles per field of view; DC is 0, and the grid's samples are the whole numbers from
        ``-(N // 2)`` on.
    grid : tuple of int
        Pixels (ky, kx) of the image, which holds frequencies up to N / 2 along each axis.

    Returns
    -------
    float64 array, shape (sample, 2)

    Raises
    ------
    InputError
        For another shape, no sample, values that are not finite, units that cannot be cycles per field of view (all
        within 0.5), or samples beyond the grid.
    """
    grid_y, grid_x = require_grid("grid", grid, axes=2)
    points = number_array("trajectory", trajectory, wanted=_WANTED)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiu":
        complex_cure = "Give real and imaginary part as two columns, ky first." if points.dtype.kind == "c" else ""
        raise InputError(field="trajectory", got=f"{points.dtype} {points.shape}", wanted=_WANTED, cure=complex_cure)
    if not len(points):
        raise InputError(field="trajectory", got="no sample", wanted="at least one")
    points = points.astype(np.float64)
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise InputError(
            field="trajectory",
            got=f"{int(bad.sum())} samples that are not finite, the first at index {int(np.argmax(bad))}",
            wanted="finite numbers",
        )
    reach = np.abs(points).max(axis=0)
    if 0 < reach.max() <= 0.5:
        raise InputError(
            field="trajectory",
            got=f"coordinates within {reach.max():.3g}, which look like cycles per pixel (as in mri-nufft)",
            wanted=f"cycles per field of view, up to {grid_y / 2:g} and {grid_x / 2:g}",
            cure=f"Multiply the coordinates by the grid: ({grid_y}, {grid_x}).",
        )
    for name, reached, pixels in zip(("ky", "kx"), reach, (grid_y, grid_x), strict=True):
        if reached > pixels / 2 + ROUNDING:
            raise InputError(
                field="trajectory",
                got=f"{name} of up to {reached:.6g} cycles per field of view",
                wanted=f"at most {pixels / 2:g}, half of the grid's {pixels} pixels",
                cure="Give a finer grid, leave those samples out, or multiply coordinates in 1/m by the field of view.",
            )
    edge = np.array((grid_y, grid_x)) / 2
    return np.clip(points, -edge, edge)
