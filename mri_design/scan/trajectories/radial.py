"""Radial sampling: straight readouts through, or from, the centre of k-space."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, require_allocatable, require_counts
from mri_design.scan.trajectories.angles import turned


def radial_spokes(
    matrix: int, angles: ArrayLike, *, oversampling: int = 1, centre_out: bool = False
) -> NDArray[np.float64]:
    """Spokes at the given angles, their samples 1 / oversampling cycles per field of view apart.

    Parameters
    ----------
    matrix : int
        Side of the square grid; spokes reach to matrix / 2 cycles per field of view.
    angles : float array, shape (spoke,)
        Radians, 0 along +kx, pi / 2 along +ky: see `angles.equispaced_angles` and `angles.golden_angles`. Diameters
        fill half a turn, spokes from the centre a full one.
    oversampling : int
        Samples per cycle along the readout; scanners take 2.
    centre_out : bool
        Begin every spoke at DC, with half as many samples.

    Returns
    -------
    float64 array, shape (spoke, sample, 2)
        Columns (ky, kx) in cycles per field of view. A diameter has ``matrix * oversampling`` samples with DC at half
        of them, as the grid has: it measures -matrix / 2 and not + matrix / 2.

    Raises
    ------
    InputError
        For a matrix below 4, more samples than an array may hold, no oversampling of 1 or more, or angles that are not
        finite numbers.
    """
    require_counts(least=4, matrix=matrix)
    require_counts(least=1, oversampling=oversampling)
    if not isinstance(centre_out, bool):
        raise InputError(field="centre_out", got=repr(centre_out), wanted="true or false")
    require_allocatable("matrix", matrix, oversampling)
    count = matrix * oversampling
    along = np.arange((count + 1) // 2) if centre_out else np.arange(count) - count // 2
    return turned(np.stack([np.zeros(len(along)), along / oversampling], axis=1), angles)
