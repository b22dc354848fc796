"""NumPy arrays (.npy) and archives of them (.npz), with an optional JSON card beside the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.image_outline import ImageOutline
from mri_design.scan.io.along_trajectory import TRAJECTORY_MEMBERS
from mri_design.scan.io.npy import MAGIC, NpySlices, opened_npz, read_npy_stream, read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.io.stored_arrays import (
    COMPANIONS,
    ArrayCard,
    axes_of_slices,
    holds_images,
    outline_of_images,
    outline_of_slices,
    outline_of_whole,
    read_card,
    scan_of_arrays,
)
from mri_design.scan.outline import ScanOutline
from mri_design.scan.trajectory_data import TrajectoryData

Arrays = dict[str, NDArray[Any]]
_WHOLE = ("measured", "noise_variance", "noise_covariance")
"""Of `COMPANIONS`, those without slices."""


def read(
    path: str | os.PathLike[str], *, limits: ReadLimits = DEFAULT_LIMITS, matrix: tuple[int, int] | None = None
) -> KSpaceData | TrajectoryData | ImageStack:
    """Read k-space or images from a .npy or .npz file.

    Without a card a complex array is k-space with axes (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx), and
    a real one is a stack of images (row, column) or (slice, row, column). A card beside the file (same stem,
    ``.json``) may say otherwise: ``dims`` (rep, slice, coil, and k0 k1 or ky kx in any order; k1 is the phase
    encode; a volume has coil and k0 k1 k2 or kx ky kz, one of images x y z), ``phase_encode_axis``,
    ``zero_filled_k1_columns``, ``noise_variance`` (per real component), ``kind`` ("image domain ..."), ``dtype``
    ("... pairs (real, imag)": a last axis of two), ``shape`` (of the array, or a table with those of members), ``key``
    and, along a trajectory, ``matrix``, ``trajectory_unit`` and ``trajectory_axes``. Only the first repetition is read;
    the card of the result says how many there were.

    An archive holds ``kspace`` or ``image``, or the member that the card's ``key`` names; beside k-space also
    ``measured`` (ky), ``coil_maps`` (as k-space), ``reference`` (as k-space without the coil axis), and
    ``noise_variance`` or ``noise_covariance`` (coil, coil). Lines without any sample are known to be not measured. A
    volume's readout (k0, or x of images) is transformed to positions, which take the place of slices: every one is a
    plane (ky, kz) of its own. An archive with a ``trajectory`` holds samples along it, perhaps with the weights
    ``density``, see `along_trajectory`.

    Parameters
    ----------
    path : path
        The array file.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image along a trajectory, in the place of what the file says.

    Raises
    ------
    InputError
        On anything else than such a file, naming the file and the field. Pickles are never loaded.
    """
    path = Path(path)
    size = check_file(path)
    card = read_card(path, limits, matrix)
    with errors_named(path):
        key, arrays, left = _load(path, size, card, limits)
        if left:
            card = replace(card, text={**(card.text or {}), "members_not_read": ", ".join(left)})
        return scan_of_arrays(path, key, arrays, card, limits)


def outline(
    path: str | os.PathLike[str], *, limits: ReadLimits = DEFAULT_LIMITS, matrix: tuple[int, int] | None = None
) -> ScanOutline | TrajectoryData | ImageOutline:
    """What `read` would read; of slices and of images with two in memory at most, and the middle slice kept.

    Parameters
    ----------
    path, limits, matrix
        As for `read`.

    Raises
    ------
    InputError
        As `read`, but for lines of other slices that should have been empty.
    """
    path = Path(path)
    size = check_file(path)
    card = read_card(path, limits, matrix)
    with errors_named(path):
        with path.open("rb") as stream:
            alone = stream.read(len(MAGIC)) == MAGIC
            stream.seek(0)
            told = _of_array(path, NpySlices.of(stream, size, str(path), limits), card, limits) if alone else None
        told = told if alone else _of_archive(path, card, limits)
    if told is not None:
        return told
    return outline_of_whole(read(path, limits=limits, matrix=matrix))


def _of_array(
    path: Path, slices: NpySlices | None, card: ArrayCard, limits: ReadLimits
) -> ScanOutline | ImageOutline | None:
    """Of one array; None where it is no stack that is told slice by slice."""
    if slices is None or card.shape not in (None, slices.shape):
        return None
    return _of_stacks(path, {"array": slices}, {}, card, limits)


def _of_archive(path: Path, card: ArrayCard, limits: ReadLimits) -> ScanOutline | ImageOutline | None:
    """The same of an archive, with what stands beside its data."""
    with opened_npz(path, limits) as archive, ExitStack() as opened:
        keys = ("kspace", "image") if card.key is None else (card.key,)
        key = next((key for key in keys if key in archive.names), None)
        if key is None or "trajectory" in archive.names:
            return None
        names = [key, *(name for name in COMPANIONS if name in archive.names)]
        stacks = {name: opened.enter_context(archive.slices(name)) for name in names if name not in _WHOLE}
        held = {name: slices for name, slices in stacks.items() if slices is not None}
        declared = {**card.member_shapes, **({} if card.shape is None else {key: card.shape})}
        if len(held) < len(stacks) or any(held[name].shape != declared.get(name, held[name].shape) for name in held):
            return None
        whole = {name: archive.array(name) for name in names if name in _WHOLE}
        left = [name for name in archive.names if name not in {*keys, *COMPANIONS}]
        if left:
            card = replace(card, text={**(card.text or {}), "members_not_read": ", ".join(left)})
        return _of_stacks(path, held, whole, card, limits)


def _of_stacks(
    path: Path, stacks: Mapping[str, NpySlices], whole: Arrays, card: ArrayCard, limits: ReadLimits
) -> ScanOutline | ImageOutline | None:
    """Of the first of some arrays, with the others beside it; None where they are no stacks of as many slices."""
    key, data = next(iter(stacks.items()))
    count = data.shape[0] if len(data.shape) > 2 else 0
    if not 1 < count <= limits.max_slices:
        return None
    if holds_images(key, data.dtype, card):
        parts = (data.part(number) for number in range(count))
        return outline_of_images(path, key, parts, data.shape, card, limits)
    axes = axes_of_slices(len(data.shape), data.dtype, card)
    if axes is None or any(stack.shape[0] != count for stack in stacks.values()):
        return None
    arrays = ({name: stack.part(number) for name, stack in stacks.items()} | whole for number in range(count))
    return outline_of_slices(path, arrays, count, axes, card, limits)


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
            field="members", got=", ".join(present[:8]) or "no arrays", wanted=f"an array named {' or '.join(keys)}"
        )
    unread = set() if "trajectory" in arrays else set(TRAJECTORY_MEMBERS)
    return key, arrays, [name for name in present if name not in arrays or name in unread]
