"""ISMRMRD (MRD) raw data: Cartesian multi-slice 2-D scans, read-only."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import scipy.fft
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.io.hdf5 import open_read_only, read_text, require_dataset
from mri_design.io.mrd_header import MrdHeader, parse_mrd_header
from mri_design.io.mrd_readouts import Readout, ReadoutPlan, plan_readouts
from mri_design.io.safe import DEFAULT_LIMITS, ReadLimits, check_declared_shape, check_file, errors_named
from mri_design.io.samples import measured_lines
from mri_design.kspace.data import KSpaceData

__all__ = ["DuplicatePolicy", "read"]

DuplicatePolicy = Literal["error", "average", "last"]
"""What to do with a line that was acquired more than once (averages, or a counter that repeats)."""

_COUNTERS = (
    "kspace_encode_step_1",
    "kspace_encode_step_2",
    "slice",
    "contrast",
    "phase",
    "repetition",
    "set",
)
_NUMBERS = (
    *("flags", "number_of_samples", "active_channels", "encoding_space_ref"),
    *("discard_pre", "discard_post", "center_sample"),
)


def read(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: DuplicatePolicy = "error",
    group: str = "dataset",
) -> KSpaceData:
    """Read the first image series of an MRD file.

    All slices of the first contrast, repetition, set and phase are read. Lines are placed by their counter
    relative to the centre of k-space, reversed readouts are turned, partial echoes are zero-filled, and
    readout oversampling is removed where the header's fields of view say so (an exact crop in the image
    domain, which leaves the noise variance per sample as it was).

    Parameters
    ----------
    path : path
        The HDF5 file. It is opened read-only and its bytes do not change.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    duplicates : {"error", "average", "last"}
        Refuse a line that comes twice, average its readouts, or keep the last one. Averaging makes the noise
        variance of that line smaller; a line count per average goes to the card.
    group : str
        Group that holds ``xml`` and ``data``.

    Raises
    ------
    InputError
        On anything that does not fit, with the index of the acquisition.

    Notes
    -----
    NOT done: 3-D encoding, non-Cartesian trajectories, noise calibration from noise readouts, EPI phase
    correction, and a shift of full-length readouts whose echo is off the centre.
    """
    path = Path(path)
    check_file(path)
    if duplicates not in ("error", "average", "last"):
        raise InputError(field="duplicates", got=repr(duplicates), wanted="'error', 'average' or 'last'")
    with errors_named(path), open_read_only(path) as file:
        header = parse_mrd_header(f"{path}: {group}/xml", read_text(file, f"{group}/xml", limits), limits)
        _check_encoding(f"{path}: {group}/xml", header)
        field = f"{path}: {group}/data"
        dataset = require_dataset(file, f"{group}/data", limits)
        heads = _heads(field, dataset, limits)
        plan = plan_readouts(field, heads, header, limits, repeats_allowed=duplicates != "error")
        check_declared_shape(f"{path}: encodedSpace.matrixSize", plan.shape, 8, limits)
        kspace, card = _fill(field, dataset, plan, duplicates, _batch(path, limits))
    with errors_named(path):
        kspace = _without_oversampling(kspace, header)
        return KSpaceData(
            kspace=kspace,
            measured=measured_lines("data", kspace),
            name=path.stem,
            card={"file": path.name, "format": "ISMRMRD", **plan.notes, **card},
        )


def _check_encoding(field: str, header: MrdHeader) -> None:
    if header.trajectory not in ("cartesian", ""):
        raise InputError(field=f"{field}: trajectory", got=header.trajectory[:40], wanted="cartesian")
    if header.encoded.matrix[2] != 1:
        raise InputError(
            field=f"{field}: encodedSpace.matrixSize.z",
            got=str(header.encoded.matrix[2]),
            wanted="1: 2-D slices",
        )


def _heads(field: str, dataset: h5py.Dataset, limits: ReadLimits) -> NDArray[Any]:
    if len(dataset.shape) != 1 or not 1 <= dataset.shape[0] <= limits.max_readouts:
        raise InputError(field=field, got=f"shape {dataset.shape}", wanted=f"1 to {limits.max_readouts} acquisitions")
    dtype = dataset.dtype
    head = dtype["head"] if dtype.names and {"head", "data"} <= set(dtype.names) else None
    if head is None or not _has_integers(head, _NUMBERS) or "idx" not in (head.names or ()):
        raise InputError(field=field, got="elements of another type", wanted="ISMRMRD acquisitions")
    if not _has_integers(head["idx"], _COUNTERS):
        raise InputError(field=f"{field}: head.idx", got="counters of another type", wanted="ISMRMRD counters")
    if h5py.check_vlen_dtype(dtype["data"]) != np.dtype("float32"):
        raise InputError(field=f"{field}: data", got=f"{dtype['data']}", wanted="variable-length float32")
    # Only this field: the samples behind it are read later, a bounded number at a time.
    heads: NDArray[Any] = dataset.fields("head")[()]
    return heads


def _has_integers(dtype: np.dtype[Any], names: tuple[str, ...]) -> bool:
    return set(names) <= set(dtype.names or ()) and all(dtype[name].kind in "iu" for name in names)


def _batch(path: Path, limits: ReadLimits) -> int:
    """Readouts to load at once: each may be as long as the file, whatever its header says."""
    return max(1, min(64, limits.max_bytes // max(path.stat().st_size, 1)))


def _fill(
    field: str, dataset: h5py.Dataset, plan: ReadoutPlan, duplicates: DuplicatePolicy, batch: int
) -> tuple[NDArray[np.complex64], dict[str, str]]:
    kspace = np.zeros(plan.shape, np.complex64)
    n_coils = plan.shape[1]
    times = np.zeros((plan.shape[0], plan.shape[2]), dtype=int)
    for readout, samples in _samples(field, dataset, plan, batch):
        row = kspace[readout.slice, :, readout.line]
        place = (readout.slice, readout.line)
        if times[place] and duplicates == "last":
            row[:] = 0
        new = samples.reshape(n_coils, plan.stored_samples)
        new = new[:, readout.first_sample : readout.first_sample + readout.n_samples]
        row[:, readout.start : readout.start + readout.n_samples] += new[:, ::-1] if readout.reversed else new
        times[place] += 1
    card = {}
    if times.max() > 1:
        if duplicates == "average":
            kspace /= np.maximum(times, 1)[:, np.newaxis, :, np.newaxis]
        counts = f"up to {times.max()} readouts a line, at least {times[times > 0].min()}"
        card["duplicates"] = f"{duplicates} of {counts}"
    return kspace, card


def _samples(
    field: str, dataset: h5py.Dataset, plan: ReadoutPlan, batch: int
) -> Iterator[tuple[Readout, NDArray[np.complex64]]]:
    data = dataset.fields("data")
    expected = 2 * plan.shape[1] * plan.stored_samples
    by_index = {readout.index: readout for readout in plan.readouts}
    for start in range(plan.readouts[0].index, plan.readouts[-1].index + 1, batch):
        wanted = [index for index in range(start, start + batch) if index in by_index]
        if not wanted:
            continue
        loaded = data[wanted[0] : wanted[-1] + 1]
        for index in wanted:
            floats = loaded[index - wanted[0]]
            if floats.size != expected:
                raise InputError(
                    field=f"{field}[{index}]: data",
                    got=f"{floats.size} numbers",
                    wanted=f"{expected}: 2 x {plan.shape[1]} channels x {plan.stored_samples} samples",
                )
            bad = ~np.isfinite(floats)
            if bad.any():
                raise InputError(
                    field=f"{field}[{index}]: data",
                    got=f"{int(bad.sum())} NaN or infinite values, the first at index {int(np.argmax(bad))}",
                    wanted="finite samples",
                    cure="Repair or remove the samples before loading.",
                )
            yield by_index[index], np.ascontiguousarray(floats, np.float32).view(np.complex64)


def _without_oversampling(kspace: NDArray[np.complex64], header: MrdHeader) -> NDArray[np.complex64]:
    nx = kspace.shape[-1]
    encoded, reconstructed = header.encoded.field_of_view[0], header.reconstructed.field_of_view[0]
    if math.isnan(encoded) or math.isnan(reconstructed) or reconstructed >= encoded:
        return kspace
    keep = max(4, round(nx * reconstructed / encoded))
    if keep >= nx:
        return kspace
    cropped = np.empty((*kspace.shape[:-1], keep), np.complex64)
    for index, stored in enumerate(kspace):  # slice by slice: the transform needs several copies
        lines = scipy.fft.ifft(np.fft.ifftshift(stored, axes=-1), axis=-1, norm="ortho")
        lines = np.fft.fftshift(lines, axes=-1)[..., nx // 2 - keep // 2 :][..., :keep]
        lines = scipy.fft.fft(np.fft.ifftshift(lines, axes=-1), axis=-1, norm="ortho")
        cropped[index] = np.fft.fftshift(lines, axes=-1)
    return cropped
