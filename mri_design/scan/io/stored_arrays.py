"""Arrays by name, with the card that says what their axes mean, become a scan or a stack of images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.image_outline import ImageOutline
from mri_design.scan.io.along_trajectory import along_trajectory
from mri_design.scan.io.axes import KSpaceAxes, kspace_axes
from mri_design.scan.io.card import ArrayCard
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.io.samples import measured_lines, readout_positions, to_complex64, to_float32, volume_note
from mri_design.scan.left_out import OTHERS_UNREAD
from mri_design.scan.outline import ScanOutline, middle_slice
from mri_design.scan.sampling import Sampling, measured_samples
from mri_design.scan.trajectory_data import TrajectoryData

COMPANIONS = ("measured", "coil_maps", "noise_variance", "noise_covariance", "reference")
"""Arrays that may stand beside k-space."""

Arrays = Mapping[str, NDArray[Any]]
_STACK = ("slice", "row", "col")
_STACKS = {_STACK, ("echo", "row", "col")}
"""Names of the axes of several images; those of several echoes are taken like slices, one after the other."""
_NOTHING = Sampling(np.zeros((1, 1), dtype=bool))
"""Of slices that have not come yet."""


def scan_of_arrays(
    path: Path, key: str, arrays: Arrays, card: ArrayCard, limits: ReadLimits
) -> KSpaceData | TrajectoryData | ImageStack:
    """What the arrays of a file hold.

    Parameters
    ----------
    path : Path
        The file, for names and messages.
    key : str
        Which of the arrays is the data: complex k-space, or images.
    arrays : mapping of str to array
        The data, `COMPANIONS`, and for samples along a trajectory what `along_trajectory` takes.
    card : ArrayCard
        Names of axes, and what else is known.
    limits : ReadLimits
        Bounds on slices, coils and the sides of the grid.

    Raises
    ------
    InputError
        For arrays that contradict the card or each other, or hold no such data.
    """
    for name, declared in card.member_shapes.items():
        if name in arrays and arrays[name].shape != declared:
            raise InputError(
                field=f"{name}: shape", got=f"{arrays[name].shape}", wanted=f"{declared}, as its card says"
            )
    if card.matrix is not None:
        arrays = {**arrays, "matrix": np.array(card.matrix)}
    if "trajectory" in arrays and key == "kspace":
        noise_variance = _noise_variance(arrays.get("noise_variance"), card)
        covariance = _noise_covariance(arrays.get("noise_covariance"))
        scan = along_trajectory(
            arrays, limits, name=path.stem, noise_variance=noise_variance, card=_provenance(path, card)
        )
        return scan if covariance is None else replace(scan, noise_covariance=covariance)
    stored = arrays[key]
    if card.shape is not None and card.shape != stored.shape:
        raise InputError(field=f"{key}: shape", got=f"{stored.shape}", wanted=f"{card.shape}, as its card says")
    if card.float_pairs:
        stored = _joined_pairs(key, stored)
    if holds_images(key, stored.dtype, card):
        return _images(path, key, stored, card, limits)
    return _kspace(path, key, stored, arrays, card, limits)


def holds_images(key: str, dtype: np.dtype[Any], card: ArrayCard) -> bool:
    """Whether an array of that name is one of images, not of k-space."""
    real_without_card = dtype.kind != "c" and not card.float_pairs and card.dims is None and key != "kspace"
    return card.image_domain or key == "image" or "row" in (card.dims or ()) or real_without_card


def outline_of_whole(scan: ImageStack | KSpaceData | TrajectoryData) -> ScanOutline | TrajectoryData | ImageOutline:
    """What a file holds that had to be read as a whole; samples along a trajectory are told by themselves."""
    if isinstance(scan, ImageStack):
        return ImageOutline.of(scan)
    return ScanOutline.of(scan) if isinstance(scan, KSpaceData) else scan


def outline_of_images(
    path: Path, key: str, parts: Iterable[NDArray[Any]], shape: tuple[int, ...], card: ArrayCard, limits: ReadLimits
) -> ImageOutline | None:
    """What a stack of images holds, with one in memory at a time; None where it is no stack along its first axis.

    Parameters
    ----------
    path, key, card, limits
        As for `scan_of_arrays`.
    parts : iterable of arrays, shape (1, row, column)
        The images.
    shape : tuple of int
        Of all of them.

    Raises
    ------
    InputError
        As `scan_of_arrays`.
    """
    if len(shape) != 3 or card.float_pairs or card.dims not in {None, *_STACKS}:
        return None
    _check_sides(key, _STACK, shape, limits)
    images = (_pixels(key, part)[0] for part in parts)
    count, rows, columns = shape
    return ImageOutline.of_images(images, (count, rows, columns), name=path.stem, card=_provenance(path, card))


def axes_of_slices(n_axes: int, dtype: np.dtype[Any], card: ArrayCard) -> KSpaceAxes | None:
    """Axes of a stored array that is a stack of slices of k-space, one after the other; None where it is not.

    Parameters
    ----------
    n_axes : int
        Of the array.
    dtype : numpy dtype
        As stored.
    card : ArrayCard
        Names of axes, and what else is known.

    Raises
    ------
    InputError
        For axes that cannot be.
    """
    if dtype.kind != "c" or card.image_domain or card.float_pairs or "row" in (card.dims or ()):
        return None
    axes = kspace_axes(n_axes, card.dims, card.phase_encode_axis)
    return None if axes.volume or axes.roles[0] != "slice" else axes


def outline_of_slices(
    path: Path,
    parts: Iterable[Arrays],
    count: int,
    axes: KSpaceAxes,
    card: ArrayCard,
    limits: ReadLimits,
) -> ScanOutline:
    """What a stack of slices of k-space holds, of which two are in memory at most.

    Parameters
    ----------
    path : Path
        The file, for names and messages.
    parts : iterable of mapping of str to array
        Slice by slice what `scan_of_arrays` takes: first the part (1, ...) of the data, then that of `COMPANIONS`.
    count : int
        Slices.
    axes : KSpaceAxes
        Of the data, from `axes_of_slices`.
    card : ArrayCard
        Names of axes, and what else is known; its shapes are of whole arrays, and not looked at.
    limits : ReadLimits
        As for `scan_of_arrays`.

    Returns
    -------
    ScanOutline
        Its part is the slice nearest to the middle that holds lines.

    Raises
    ------
    InputError
        As `scan_of_arrays`, but for lines of other slices that should have been empty.
    """
    samplings, index, kept = list[Sampling](), 0, dict[str, NDArray[Any]]()
    for number, arrays in enumerate(parts):
        samplings.append(_sampling_of_slice(next(iter(arrays.values())), axes, card))
        if not kept or middle_slice([*samplings, *[_NOTHING] * (count - number - 1)]) == number:
            index, kept = number, dict(arrays)
    part = scan_of_arrays(path, next(iter(kept)), kept, replace(card, shape=None, member_shapes={}), limits)
    assert isinstance(part, KSpaceData)
    return ScanOutline(
        (*samplings[:index], *part.samplings, *samplings[index + 1 :]),
        part.n_coils,
        name=part.name,
        index=index,
        part=part,
        card=part.card,
    )


def _sampling_of_slice(stored: NDArray[Any], axes: KSpaceAxes, card: ArrayCard) -> Sampling:
    """Which samples one slice holds.

    Parameters
    ----------
    stored : complex array, shape (1, ...)
        Part of the array along its first axis.
    axes : KSpaceAxes
        Of the array, from `axes_of_slices`.
    card : ArrayCard
        Whose lines filled with zeros hold nothing.

    Raises
    ------
    InputError
        For samples that are not finite.
    """
    (coils,) = to_complex64("array", axes.arrange("array", stored))
    held = measured_samples(coils)
    held[[line for line in card.zero_filled if 0 <= line < len(held)]] = False
    return Sampling(held)


def _joined_pairs(key: str, stored: NDArray[Any]) -> NDArray[Any]:
    if stored.ndim < 2 or stored.shape[-1] != 2:
        raise InputError(field=key, got=f"shape {stored.shape}", wanted="real and imaginary parts on the last axis")
    parts = to_float32(key, stored)
    return parts.view(np.complex64)[..., 0]


def _images(path: Path, key: str, stored: NDArray[Any], card: ArrayCard, limits: ReadLimits) -> ImageStack:
    names = None if card.dims is None else tuple(name for name in card.dims if name != "real/imag")
    known = {_STACK[-2:]} if stored.ndim == 2 else {*_STACKS, ("x", "y", "z")}
    if stored.ndim not in (2, 3) or (names is not None and names not in known):
        raise InputError(
            field=key,
            got=f"shape {stored.shape}" + ("" if names is None else f" named {list(names)}"),
            wanted="images (row, col), (slice, row, col) or (echo, row, col), or a volume (x, y, z) whose readout is x",
        )
    _check_sides(key, _STACK[-stored.ndim :], stored.shape, limits)
    pixels = _pixels(key, stored)
    return ImageStack(pixels.reshape((-1, *pixels.shape[-2:])), name=path.stem, card=_provenance(path, card))


def _pixels(key: str, stored: NDArray[Any]) -> NDArray[np.float32] | NDArray[np.complex64]:
    return to_complex64(key, stored) if stored.dtype.kind == "c" else to_float32(key, stored)


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
        provenance["volume"] = volume_note(len(kspace), kspace.shape[2:])
    if "rep" in axes.roles:
        provenance["repetition"] = f"first of {stored.shape[axes.roles.index('rep')]}; {OTHERS_UNREAD}"
    declared = _declared_lines(path, card, arrays.get("measured"), n_lines)
    if "noise_covariance" in arrays:
        provenance["noise_covariance"] = "given with the data"
    return KSpaceData(
        kspace=kspace,
        measured=measured_lines("measured lines", kspace, declared),
        name=path.stem,
        noise_variance=_noise_variance(arrays.get("noise_variance"), card),
        noise_covariance=_noise_covariance(arrays.get("noise_covariance")),
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


def _noise_covariance(stored: NDArray[Any] | None) -> NDArray[np.complex128] | None:
    if stored is None:
        return None
    if stored.ndim != 2 or stored.dtype.kind not in "fc":
        got = f"{stored.dtype} {stored.shape}"
        raise InputError(field="noise_covariance", got=got, wanted="numbers (coil, coil), E[n n^H] / 2")
    return stored.astype(np.complex128)


def _companion(name: str, arrays: Arrays, axes: KSpaceAxes, *, without: str) -> NDArray[np.complex64] | None:
    if name not in arrays:
        return None
    stored = arrays[name]
    arranged = axes.arrange(name, stored, without=without)
    return to_complex64(name, arranged.astype(np.complex128) if stored.dtype.kind in "iuf" else arranged)


def _provenance(path: Path, card: ArrayCard) -> dict[str, str]:
    return {**(card.text or {}), "file": path.name}
