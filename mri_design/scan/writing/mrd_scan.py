"""Cartesian k-space as an ISMRMRD (MRD) file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing.mrd_file import MrdLayout, mrd_file_bytes, readout_heads


def mrd_scan_bytes(scan: KSpaceData, places: Sequence[SliceGeometry] | None) -> bytes:
    """An MRD file with one readout for every measured line, slice by slice and line by line.

    Columns that are empty at one end of all readouts are left out, as a scanner leaves them out of a partial echo:
    ``center_sample`` says where DC lies. The order in which lines were measured is not known, nor are the resonance
    frequency and the dwell time, which are zero. Without a place, directions are the identity, marked as unknown.

    Parameters
    ----------
    scan : KSpaceData
        Slices may hold lines of their own. Its coil maps, noise, calibration scan and reference have no place in such a
        file.
    places : sequence of SliceGeometry, optional
        Of every slice. None where nobody says how large pixels are: the file then has 1 mm, marked as not known.

    Raises
    ------
    InputError
        For pixels of different sizes, and what the labels cannot hold.
    """
    held = np.stack([sampling.samples for sampling in scan.samplings])
    lines = [(int(number), int(line)) for number, line in np.argwhere(held.any(axis=2))]
    layout = MrdLayout(scan.grid_shape, (None,) * scan.n_slices if places is None else places)
    heads = readout_heads(layout, lines, scan.n_coils)
    window = _window(np.asarray(held.any(axis=(0, 1))))
    heads["number_of_samples"] = window.stop - window.start
    heads["center_sample"] = scan.grid_shape[1] // 2 - window.start
    return mrd_file_bytes(layout, heads, [scan.kspace[number, :, line, window] for number, line in lines])


def _window(columns: NDArray[np.bool_]) -> slice:
    """From the first to the last column that holds a sample, DC included."""
    at = np.flatnonzero(columns)
    centre = len(columns) // 2
    return slice(min(int(at[0]), centre), max(int(at[-1]), centre) + 1)
