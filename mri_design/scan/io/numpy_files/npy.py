"""NumPy arrays (.npy) and archives of them (.npz), with an optional JSON card beside the file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.io.along_trajectory import TRAJECTORY_MEMBERS
from mri_design.scan.io.axes import KSpaceAxes
from mri_design.scan.io.card import ArrayCard, read_card
from mri_design.scan.io.numpy_files.npy_stream import MAGIC, NpySlices, read_npy_stream
from mri_design.scan.io.numpy_files.npz_archive import read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.io.stored_arrays import COMPANIONS, axes_of_slices, sampling_of_slice, scan_of_arrays
from mri_design.scan.outline import ScanOutline, middle_slice
from mri_design.scan.trajectory_data import TrajectoryData

__all__ = ["outline", "read"]

Arrays = dict[str, NDArray[Any]]


def read(
    path: str | os.PathLike[str], *, limits: ReadLimits = DEFAULT_LIMITS
) -> KSpaceData | TrajectoryData | ImageStack:
    """Read k-space or images from a .npy or .npz file.

    Without a card a complex array is k-space with axes (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx), and
    a real one is a stack of images (row, column) or (slice, row, column). A card beside the file (same stem,
    ``.json``) may say otherwise: ``dims`` (rep, slice, coil, and k0 k1 or ky kx in any order; k1 is the phase
    encode; a volume has coil and k0 k1 k2 or kx ky kz, one of images x y z), ``phase_encode_axis``,
    ``zero_filled_k1_columns``, ``noise_variance`` (per real component), ``kind`` ("image domain ..."), ``dtype``
    ("... pairs (real, imag)": a last axis of two), ``shape`` (of the array, or a table with those of members), ``key``
    and, along a trajectory, ``matrix`` and ``trajectory_unit``. Only the first repetition is read; the card
    of the result says how many there were.

    An archive holds ``kspace`` or ``image``, or the member that the card's ``key`` names; beside k-space also
    ``measured`` (ky), ``coil_maps`` (as k-space), ``reference`` (as k-space without the coil axis) and
    ``noise_variance``. Lines without any sample are known to be not measured. A volume's readout (k0, or x of images)
    is transformed to positions, which take the place of slices: every one is a plane (ky, kz) of its own. An archive
    with a ``trajectory`` holds samples along it, see `along_trajectory`.

    Parameters
    ----------
    path : path
        The array file.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.

    Raises
    ------
    InputError
        On anything else than such a file, naming the file and the field. Pickles are never loaded.
    """
    path = Path(path)
    size = check_file(path)
    card = read_card(path, limits)
    with errors_named(path):
        key, arrays, left = _load(path, size, card, limits)
        if left:
            card = replace(card, text={**(card.text or {}), "members_not_read": ", ".join(left)})
        return scan_of_arrays(path, key, arrays, card, limits)


def outline(
    path: str | os.PathLike[str], *, limits: ReadLimits = DEFAULT_LIMITS
) -> ScanOutline | TrajectoryData | ImageStack:
    """What `read` would read; of an array of slices with one in memory at a time, and the middle one kept.

    Parameters
    ----------
    path, limits
        As for `read`.

    Raises
    ------
    InputError
        As `read`, but for lines of other slices that should have been empty.
    """
    path = Path(path)
    size = check_file(path)
    card = read_card(path, limits)
    with errors_named(path), path.open("rb") as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            stream.seek(0)
            slices = NpySlices.of(stream, size, str(path), limits)
            if slices is not None and card.shape in (None, slices.shape) and 1 < slices.shape[0] <= limits.max_slices:
                axes = axes_of_slices(len(slices.shape), slices.dtype, card)
                if axes is not None:
                    return _told(path, slices, axes, card, limits)
    scan = read(path, limits=limits)
    return ScanOutline.of(scan) if isinstance(scan, KSpaceData) else scan


def _told(path: Path, slices: NpySlices, axes: KSpaceAxes, card: ArrayCard, limits: ReadLimits) -> ScanOutline:
    samplings = [sampling_of_slice(slices.part(number), axes, card) for number in range(slices.shape[0])]
    index = middle_slice(samplings)
    part = scan_of_arrays(path, "array", {"array": slices.part(index)}, replace(card, shape=None), limits)
    assert isinstance(part, KSpaceData)
    return ScanOutline(
        (*samplings[:index], *part.samplings, *samplings[index + 1 :]),
        part.n_coils,
        name=part.name,
        index=index,
        part=part,
        card=part.card,
    )


def _load(path: Path, size: int, card: ArrayCard, limits: ReadLimits) -> tuple[str, Arrays, list[str]]:
    """The name of the data, the arrays by name, and names of members that nothing here reads."""
    with path.open("rb") as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            stream.seek(0)
            return "array", {"array": read_npy_stream(stream, size, str(path), limits)}, []
    keys = ("kspace", "image") if card.key is None else (card.key,)
    arrays, present = read_npz_members(path, (*keys, *COMPANIONS, *TRAJECTORY_MEMBERS), limits)
    key = next((key for key in keys if key in arrays), None)
    if key is None:
        raise InputError(
            field="members",
            got=", ".join(present[:8]) or "no arrays",
            wanted=f"an array named {' or '.join(keys)}",
        )
    return key, arrays, [name for name in present if name not in arrays]
