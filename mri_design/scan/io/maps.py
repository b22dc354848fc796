"""Coil maps from a file of their own (.npy, .npz, BART's .cfl), for scans of any format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.bart import AXES, is_bart, read_pair
from mri_design.scan.io.numpy_files.npy_stream import MAGIC, read_npy_stream
from mri_design.scan.io.numpy_files.npz_archive import read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file
from mri_design.scan.io.samples import to_complex64
from mri_design.scan.trajectories.exchange import maps_from_bart, planes_from_bart
from mri_design.scan.trajectory_data import TrajectoryData

_MEMBERS = ("coil_maps", "maps", "sensitivities")
_UNIT = 1e-3
Scan = TypeVar("Scan", KSpaceData, TrajectoryData)


def with_maps(data: Scan, path: Path, *, limits: ReadLimits = DEFAULT_LIMITS) -> Scan:
    """The same scan with the coil maps of a file.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Several coils; maps that it brings along are replaced.
    path : Path
        A ``.npy`` array, or a ``.npz`` archive with a member ``coil_maps``, ``maps`` or ``sensitivities``: (coil, row,
        column), the same for all slices, or (slice, coil, row, column). Rows and columns lie as in the scan's own
        file. Or BART's pair of files: (x, y, 1, coil), with the phase encode along y and slices along the 14th axis, or
        of planes (x, ky, kz, coil). They are scaled to a root-sum-of-squares of 1 at every pixel; pixels without any
        stay 0.
    limits : ReadLimits
        Bounds of untrusted files.

    Raises
    ------
    InputError
        For a damaged file, other sizes than the scan's, values that are not finite, or maps without a signal.
    """
    from_bart = is_bart(path)
    stored = _of_bart(read_pair(path, limits)) if from_bart else _stored(path, limits)
    turned = isinstance(data, KSpaceData) and data.orientation == "ky-columns" and not from_bart
    if turned and stored.ndim >= 2:
        stored = stored.swapaxes(-1, -2)
    maps = to_complex64(path.name, stored.astype(np.complex128) if stored.dtype.kind == "f" else stored)
    wanted = (data.n_slices, data.n_coils, *data.grid_shape)
    if maps.shape == wanted[1:]:
        maps = np.broadcast_to(maps, wanted)
    if maps.shape != wanted:
        raise InputError(
            field=path.name,
            got=f"coil maps of shape {maps.shape}",
            wanted=f"{wanted[1:]} or {wanted}: (slice,) coil, ky, kx, the "
            f"{'columns and rows' if turned else 'rows and columns'} of the scan's file",
            cure="Compute the maps on the scan's own matrix.",
        )
    strength = np.linalg.norm(maps.astype(np.complex128), axis=1, keepdims=True)
    if not strength.any():
        raise InputError(field=path.name, got="zeros only", wanted="coil maps")
    held = strength[strength > 0]
    spread = f"{held.min():.3g} to {held.max():.3g}"
    note = (
        path.name if np.allclose(held, 1, atol=_UNIT) else f"{path.name}, scaled from a root-sum-of-squares of {spread}"
    )
    unit = (maps / np.where(strength > 0, strength, 1)).astype(np.complex64)
    return replace(data, coil_maps=unit, card={**data.card, "coil_maps_file": note})


def _of_bart(pair: NDArray[np.complex64]) -> NDArray[Any]:
    """Maps (coil, ky, kx) or (slice, coil, ky, kx); of planes (x, coil, ky, kz)."""
    if pair.shape[AXES.index("phs2")] > 1:
        return planes_from_bart(pair)
    slices = np.moveaxis(pair, AXES.index("slice"), 0)
    return np.stack([maps_from_bart(one) for one in slices]) if len(slices) > 1 else maps_from_bart(pair)


def _stored(path: Path, limits: ReadLimits) -> NDArray[Any]:
    size = check_file(path)
    with path.open("rb") as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            stream.seek(0)
            return read_npy_stream(stream, size, path.name, limits)
    arrays, present = read_npz_members(path, _MEMBERS, limits)
    for name in _MEMBERS:
        if name in arrays:
            return arrays[name]
    raise InputError(
        field=path.name, got=", ".join(present[:8]) or "no arrays", wanted=f"an array named {', '.join(_MEMBERS)}"
    )
