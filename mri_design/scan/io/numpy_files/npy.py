"""NumPy arrays (.npy) and archives of them (.npz), with an optional JSON card beside the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.io.axes import KSpaceAxes, kspace_axes
from mri_design.scan.io.card import ArrayCard, read_card
from mri_design.scan.io.numpy_files.along_trajectory import TRAJECTORY_MEMBERS, along_trajectory
from mri_design.scan.io.numpy_files.npy_stream import MAGIC, read_npy_stream
from mri_design.scan.io.numpy_files.npz_archive import read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.io.samples import measured_lines, readout_positions, to_complex64, to_float32
from mri_design.scan.trajectory_data import TrajectoryData

__all__ = ["read"]

_COMPANIONS = ("measured", "coil_maps", "noise_variance", "reference")
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
    ("... pairs (real, imag)": a last axis of two), ``shape`` and ``key``. Only the first repetition is read; the card
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
        key, arrays = _load(path, size, card, limits)
        if "trajectory" in arrays and key == "kspace":
            noise_variance = _noise_variance(arrays.get("noise_variance"), card)
            return along_trajectory(
                arrays, limits, name=path.stem, noise_variance=noise_variance, card=_provenance(path, card)
            )
        stored = arrays.pop(key)
        if card.shape is not None and card.shape != stored.shape:
            raise InputError(field=f"{key}: shape", got=f"{stored.shape}", wanted=f"{card.shape}, as its card says")
        if card.float_pairs:
            stored = _joined_pairs(key, stored)
        real_without_card = stored.dtype.kind != "c" and card.dims is None and key != "kspace"
        if card.image_domain or key == "image" or "row" in (card.dims or ()) or real_without_card:
            return _images(path, key, stored, card, limits)
        return _kspace(path, key, stored, arrays, card, limits)


def _load(path: Path, size: int, card: ArrayCard, limits: ReadLimits) -> tuple[str, Arrays]:
    with path.open("rb") as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            stream.seek(0)
            return "array", {"array": read_npy_stream(stream, size, str(path), limits)}
    keys = ("kspace", "image") if card.key is None else (card.key,)
    arrays, present = read_npz_members(path, (*keys, *_COMPANIONS, *TRAJECTORY_MEMBERS), limits)
    key = next((key for key in keys if key in arrays), None)
    if key is None:
        raise InputError(
            field="members",
            got=", ".join(present[:8]) or "no arrays",
            wanted=f"an array named {' or '.join(keys)}",
        )
    return key, arrays


def _joined_pairs(key: str, stored: NDArray[Any]) -> NDArray[Any]:
    if stored.ndim < 2 or stored.shape[-1] != 2:
        raise InputError(field=key, got=f"shape {stored.shape}", wanted="real and imaginary parts on the last axis")
    parts = to_float32(key, stored)
    return parts.view(np.complex64)[..., 0]


def _images(path: Path, key: str, stored: NDArray[Any], card: ArrayCard, limits: ReadLimits) -> ImageStack:
    names = None if card.dims is None else tuple(name for name in card.dims if name != "real/imag")
    known = {("slice", "row", "col")[-stored.ndim :], ("x", "y", "z")}
    if stored.ndim not in (2, 3) or (names is not None and names not in known):
        raise InputError(
            field=key,
            got=f"shape {stored.shape}" + ("" if names is None else f" named {list(names)}"),
            wanted="images (row, col) or (slice, row, col), or a volume (x, y, z) whose readout is x",
        )
    _check_sides(key, ("slice", "row", "col")[-stored.ndim :], stored.shape, limits)
    pixels = to_complex64(key, stored) if stored.dtype.kind == "c" else to_float32(key, stored)
    return ImageStack(pixels.reshape((-1, *pixels.shape[-2:])), name=path.stem, card=_provenance(path, card))


def _kspace(
    path: Path, key: str, stored: NDArray[Any], arrays: Arrays, card: ArrayCard, limits: ReadLimits
) -> KSpaceData:
    axes = kspace_axes(stored.ndim, card.dims, card.phase_encode_axis)
    _check_sides(key, axes.roles, stored.shape, limits)
    kspace = to_complex64(key, axes.arrange(key, stored)).copy()
    if axes.volume:
        kspace = readout_positions(kspace)
    n_lines = kspace.shape[2]
    provenance = _provenance(path, card)
    if axes.volume:
        provenance["volume"] = f"{len(kspace)} readout positions, each a plane (ky, kz) of {kspace.shape[2:]}"
    if "rep" in axes.roles:
        provenance["repetition"] = f"first of {stored.shape[axes.roles.index('rep')]}; the others were not read"
    declared = _declared_lines(path, card, arrays.get("measured"), n_lines)
    return KSpaceData(
        kspace=kspace,
        measured=measured_lines("measured lines", kspace, declared),
        name=path.stem,
        noise_variance=_noise_variance(arrays.get("noise_variance"), card),
        coil_maps=_companion("coil_maps", arrays, axes, without=""),
        reference=_companion("reference", arrays, axes, without="coil"),
        orientation=axes.orientation,
        card=provenance,
    )


def _check_sides(key: str, roles: tuple[str, ...], shape: tuple[int, ...], limits: ReadLimits) -> None:
    bounds = {"rep": limits.max_slices, "slice": limits.max_slices, "coil": limits.max_coils}
    for role, side in zip(roles, shape, strict=True):
        bound = bounds.get(role, limits.max_side)
        if not 1 <= side <= bound:
            raise InputError(field=f"{key}: {role}", got=str(side), wanted=f"1 to {bound}")


def _declared_lines(path: Path, card: ArrayCard, measured: NDArray[Any] | None, n_lines: int) -> NDArray[np.bool_]:
    declared = np.ones(n_lines, dtype=bool)
    if measured is not None:
        flags = measured.shape == (n_lines,) and measured.dtype.kind in "biu"
        if not flags or not np.isin(measured, (0, 1)).all():
            raise InputError(
                field="measured",
                got=f"{measured.dtype} {measured.shape}",
                wanted=f"{n_lines} flags, one per line",
            )
        declared &= measured.astype(bool)
    for line in card.zero_filled:
        if not 0 <= line < n_lines:
            raise InputError(
                field=f"{path.with_suffix('.json').name}: zero_filled_k1_columns",
                got=str(line),
                wanted=f"lines 0 to {n_lines - 1}",
            )
        declared[line] = False
    return declared


def _noise_variance(stored: NDArray[Any] | None, card: ArrayCard) -> float | None:
    if stored is None:
        return card.noise_variance
    if stored.size != 1 or stored.dtype.kind not in "iuf":
        raise InputError(field="noise_variance", got=f"{stored.dtype} {stored.shape}", wanted="one real number")
    return float(stored.reshape(-1)[0])


def _companion(name: str, arrays: Arrays, axes: KSpaceAxes, *, without: str) -> NDArray[np.complex64] | None:
    if name not in arrays:
        return None
    stored = arrays[name]
    arranged = axes.arrange(name, stored, without=without)
    return to_complex64(name, arranged.astype(np.complex128) if stored.dtype.kind in "iuf" else arranged)


def _provenance(path: Path, card: ArrayCard) -> dict[str, str]:
    return {**(card.text or {}), "file": path.name}
