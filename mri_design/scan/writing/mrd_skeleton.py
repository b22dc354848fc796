"""A design as an ISMRMRD (MRD) file without measured samples: the header, and every readout with its labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing.mrd_file import MrdLayout, mrd_file_bytes, readout_heads


def mrd_skeleton_bytes(
    trains: Sequence[Sequence[int]], shape: tuple[int, int], geometry: SliceGeometry | None
) -> bytes:
    """An MRD file with one readout of zeros for every line, in the order of measurement.

    ``kspace_encode_step_1`` is the line, ``segment`` the echo train, and the header has the matrix, the field of view
    and the centre of k-space. What a design does not know is zero: the resonance frequency and the dwell time. Without
    a place, directions are the identity, marked as unknown. The labels are read back by the reader of this package
    before the file is given.

    Parameters
    ----------
    trains : sequence of sequences of int
        Lines of every echo train, numbered from 0.
    shape : tuple of int
        Grid (ky, kx).
    geometry : SliceGeometry or None
        Pixel size, and place where it is known. None writes 1 mm, marked as not known.

    Raises
    ------
    InputError
        For a grid or a number of trains that the labels cannot hold, and where the labels are not those of the design.
    """
    layout = MrdLayout(shape, (geometry,), shots=len(trains), echoes=max(map(len, trains)))
    heads = readout_heads(layout, [(0, line) for train in trains for line in train])
    heads["idx"]["segment"] = [shot for shot, train in enumerate(trains) for _ in train]
    return mrd_file_bytes(layout, heads, [np.zeros((1, shape[1]), np.complex64)] * len(heads))
