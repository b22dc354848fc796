"""ISMRMRD (MRD) raw data: Cartesian multi-slice 2-D scans, read-only."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.hdf5 import open_read_only, read_text, require_dataset
from mri_design.scan.io.mrd.header import MrdEncoding, MrdHeader, parse_mrd_header
from mri_design.scan.io.mrd.noise import noise_covariance, noise_scale
from mri_design.scan.io.mrd.readouts import Readout, ReadoutPlan, plan_readouts
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_declared_shape, check_file, errors_named
from mri_design.scan.io.samples import measured_lines

__all__ = ["DuplicatePolicy", "check_encoding", "kept_columns", "read", "slice_geometries", "without_oversampling"]

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
_REALS = ("sample_time_us",)
_VECTORS = ("position", "phase_dir", "read_dir", "slice_dir")


def read(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: DuplicatePolicy = "error",
    group: str = "dataset",
) -> KSpaceData:
    """Read the first image series of an MRD file.

    All slices of the first contrast, repetition, set and phase are read. Lines are placed by their counter
    relative to the centre of k-space, reversed readouts are turned, what a partial echo leaves out stays empty, and
    readout oversampling is removed where the header's fields of view say so (an exact crop in the image
    domain, which leaves the noise variance per sample as it was).

    Calibration lines acquired within the scan are data; those of a calibration scan of their own go to ``calibration``.
    Noise readouts give the noise covariance, scaled to the dwell time and the averages of the data.

    Parameters
    ----------
    path : path
        The HDF5 file. It is opened read-only and its bytes do not change.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    duplicates : {"error", "average", "last"}
        Refuse a line that comes twice, average its readouts, or keep the last one. Averaging makes the noise
        variance of that line smaller; the covariance given is that of the line with the fewest readouts.
    group : str
        Group that holds ``xml`` and ``data``.

    Raises
    ------
    InputError
        On anything that does not fit, with the index of the acquisition.

    Notes
    -----
    NOT done: 3-D encoding, non-Cartesian trajectories, EPI phase correction, and a shift of full-length readouts
    whose echo is off the centre.
    """
    path = Path(path)
    check_file(path)
    if duplicates not in ("error", "average", "last"):
        raise InputError(field="duplicates", got=repr(duplicates), wanted="'error', 'average' or 'last'")
    with errors_named(path), open_read_only(path) as file:
        header = parse_mrd_header(f"{path}: {group}/xml", read_text(file, f"{group}/xml", limits), limits)
        field = f"{path}: {group}/data"
        dataset = require_dataset(file, f"{group}/data", limits)
        heads = _heads(field, dataset, limits)
        plan = plan_readouts(field, heads, header, limits, repeats_allowed=duplicates != "error")
        check_encoding(f"{path}: {group}/xml", plan.encoding)
        check_declared_shape(f"{path}: encodedSpace.matrixSize", plan.shape, 8, limits)
        source = _Samples(field, dataset, heads, plan.shape[1], _batch(path, limits))
        kspace, times = _fill(source, plan.shape, plan.readouts, duplicates)
        calibration = _fill(source, plan.shape, plan.calibration, "average")[0] if plan.calibration else None
        repeats = int(times[times > 0].min()) if duplicates == "average" else 1
        covariance, notes = _noise(source, plan, header, heads, repeats)
    if times.max() > 1:
        counts = f"up to {times.max()} readouts a line, at least {times[times > 0].min()}"
        notes["duplicates"] = f"{duplicates} of {counts}"
    with errors_named(path):
        kspace = without_oversampling(kspace, plan.readouts, plan.encoding)
        return KSpaceData(
            kspace=kspace,
            measured=measured_lines("data", kspace),
            name=path.stem,
            card={"file": path.name, "format": "ISMRMRD", **plan.notes, **notes},
            noise_covariance=covariance,
            calibration=None
            if calibration is None
            else without_oversampling(calibration, plan.calibration, plan.encoding),
            geometry=slice_geometries(heads, plan),
        )


def slice_geometries(heads: NDArray[Any], plan: ReadoutPlan) -> tuple[SliceGeometry, ...] | None:
    """Size and place of every slice, by the header's field of view and the slice's first readout."""
    encoded = plan.encoding.encoded
    sizes = [length / count for length, count in zip(encoded.field_of_view, encoded.matrix, strict=True)]
    vectors = [name for name in _VECTORS if name in (heads.dtype.names or ()) and heads.dtype[name].shape == (3,)]
    first = {readout.slice: readout.index for readout in reversed(plan.readouts)}
    places = []
    for number in range(plan.shape[0]):
        place = [heads[name][first[number]] for name in vectors] if len(vectors) == len(_VECTORS) else []
        places.append(SliceGeometry.of_header((sizes[1], sizes[0]), sizes[2], place))
    known = tuple(place for place in places if place is not None)
    return known if len(known) == len(places) else None


def check_encoding(field: str, encoding: MrdEncoding) -> None:
    """Refuse anything but Cartesian lines of a plane.

    Raises
    ------
    InputError
        Naming the part of the header.
    """
    if encoding.trajectory not in ("cartesian", ""):
        raise InputError(field=f"{field}: trajectory", got=encoding.trajectory[:40], wanted="cartesian")
    if encoding.encoded.matrix[2] != 1:
        raise InputError(
            field=f"{field}: encodedSpace.matrixSize.z",
            got=str(encoding.encoded.matrix[2]),
            wanted="1: 2-D slices",
        )


def _heads(field: str, dataset: h5py.Dataset, limits: ReadLimits) -> NDArray[Any]:
    if len(dataset.shape) != 1 or not 1 <= dataset.shape[0] <= limits.max_readouts:
        raise InputError(field=field, got=f"shape {dataset.shape}", wanted=f"1 to {limits.max_readouts} acquisitions")
    dtype = dataset.dtype
    head = dtype["head"] if dtype.names and {"head", "data"} <= set(dtype.names) else None
    if head is None or not (_has(head, _NUMBERS, "iu") and _has(head, _REALS, "f")) or "idx" not in (head.names or ()):
        raise InputError(field=field, got="elements of another type", wanted="ISMRMRD acquisitions")
    if not _has(head["idx"], _COUNTERS, "iu"):
        raise InputError(field=f"{field}: head.idx", got="counters of another type", wanted="ISMRMRD counters")
    if h5py.check_vlen_dtype(dtype["data"]) != np.dtype("float32"):
        raise InputError(field=f"{field}: data", got=f"{dtype['data']}", wanted="variable-length float32")
    # Only this field: the samples behind it are read later, a bounded number at a time.
    heads: NDArray[Any] = dataset.fields("head")[()]
    return heads


def _has(dtype: np.dtype[Any], names: tuple[str, ...], kinds: str) -> bool:
    return set(names) <= set(dtype.names or ()) and all(dtype[name].kind in kinds for name in names)


def _batch(path: Path, limits: ReadLimits) -> int:
    """Readouts to load at once: each may be as long as the file, whatever its header says."""
    return max(1, min(64, limits.max_bytes // max(path.stat().st_size, 1)))


@dataclass(frozen=True)
class _Samples:
    """The samples of readouts, loaded a bounded number of readouts at a time."""

    field: str
    dataset: h5py.Dataset
    heads: NDArray[Any]
    channels: int
    batch: int

    def of(self, wanted: Sequence[int]) -> Iterator[tuple[int, NDArray[np.complex64]]]:
        """(position, samples (channel, sample)) of the readouts at some positions, in the file's order.

        Raises
        ------
        InputError
            For a readout with more or fewer samples than its header says, or samples that are not finite.
        """
        data = self.dataset.fields("data")
        positions = sorted(wanted)
        while positions:
            part = [at for at in positions if at < positions[0] + self.batch]
            positions = positions[len(part) :]
            loaded = data[part[0] : part[-1] + 1]
            for at in part:
                yield at, self._checked(at, loaded[at - part[0]])

    def _checked(self, at: int, floats: NDArray[Any]) -> NDArray[np.complex64]:
        samples = int(self.heads["number_of_samples"][at])
        if floats.size != 2 * self.channels * samples:
            raise InputError(
                field=f"{self.field}[{at}]: data",
                got=f"{floats.size} numbers",
                wanted=f"{2 * self.channels * samples}: 2 x {self.channels} channels x {samples} samples",
            )
        bad = ~np.isfinite(floats)
        if bad.any():
            raise InputError(
                field=f"{self.field}[{at}]: data",
                got=f"{int(bad.sum())} NaN or infinite values, the first at index {int(np.argmax(bad))}",
                wanted="finite samples",
                cure="Repair or remove the samples before loading.",
            )
        joined = np.ascontiguousarray(floats, np.float32).view(np.complex64)
        return joined.reshape(self.channels, samples)


def _fill(
    source: _Samples, shape: tuple[int, int, int, int], readouts: Sequence[Readout], duplicates: DuplicatePolicy
) -> tuple[NDArray[np.complex64], NDArray[np.intp]]:
    """K-space (slice, coil, ky, kx), and how many readouts each line (slice, ky) is from."""
    kspace = np.zeros(shape, np.complex64)
    times = np.zeros((shape[0], shape[2]), dtype=np.intp)
    by_index = {readout.index: readout for readout in readouts}
    for at, samples in source.of(list(by_index)):
        readout = by_index[at]
        row = kspace[readout.slice, :, readout.line]
        if times[readout.slice, readout.line] and duplicates == "last":
            row[:] = 0
        new = samples[:, readout.first_sample : readout.first_sample + readout.n_samples]
        row[:, readout.start : readout.start + readout.n_samples] += new[:, ::-1] if readout.reversed else new
        times[readout.slice, readout.line] += 1
    if duplicates == "average":
        kspace /= np.maximum(times, 1)[:, np.newaxis, :, np.newaxis]
    return kspace, times


def _noise(
    source: _Samples, plan: ReadoutPlan, header: MrdHeader, heads: NDArray[Any], repeats: int
) -> tuple[NDArray[np.complex128] | None, dict[str, str]]:
    """Noise covariance of the data from the noise readouts, where there are any, and notes for the card."""
    if not len(plan.noise):
        return None, {}
    alike = plan.noise[heads["active_channels"][plan.noise] == source.channels]
    covariance, samples = noise_covariance(samples for _, samples in source.of(alike.tolist()))
    if covariance is None:
        why = "too few samples" if len(alike) else "other channels than the data"
        return None, {"noise_readouts": f"{len(plan.noise)}, not used: {why}"}
    dwell = heads["sample_time_us"]
    scale, reason = noise_scale(dwell[alike], dwell[[r.index for r in plan.readouts]], header.noise_bandwidth)
    if repeats > 1:
        reason += f", {repeats} averages"
    return covariance * scale / repeats, {"noise_readouts": f"{len(alike)}, {samples} samples a channel; {reason}"}


def kept_columns(encoding: MrdEncoding, nx: int) -> int:
    """Columns of the image's field of view, of ``nx`` that were measured; all where the header names no larger one."""
    encoded, reconstructed = encoding.encoded.field_of_view[0], encoding.reconstructed.field_of_view[0]
    if math.isnan(encoded) or math.isnan(reconstructed) or reconstructed >= encoded:
        return nx
    return min(nx, max(4, round(nx * reconstructed / encoded)))


def without_oversampling(
    kspace: NDArray[np.complex64], readouts: Sequence[Readout], encoding: MrdEncoding
) -> NDArray[np.complex64]:
    """The same lines over the field of view of the image, cut out in the image domain.

    What a partial echo leaves out stays empty, however far the transform spreads its neighbours.
    """
    nx = kspace.shape[-1]
    keep = kept_columns(encoding, nx)
    if keep == nx:
        return kspace
    nearest = np.clip(np.rint((np.arange(keep) - keep // 2) * nx / keep).astype(int) + nx // 2, 0, nx - 1)
    held = np.zeros((kspace.shape[0], *kspace.shape[2:]), dtype=bool)
    for readout in readouts:
        held[readout.slice, readout.line, readout.start : readout.start + readout.n_samples] = True
    import scipy.fft  # here, because a process that reads one file would spend half of its time on the import

    cropped = np.empty((*kspace.shape[:-1], keep), np.complex64)
    for index, stored in enumerate(kspace):  # slice by slice: the transform needs several copies
        lines = scipy.fft.ifft(np.fft.ifftshift(stored, axes=-1), axis=-1, norm="ortho")
        lines = np.fft.fftshift(lines, axes=-1)[..., nx // 2 - keep // 2 :][..., :keep]
        lines = scipy.fft.fft(np.fft.ifftshift(lines, axes=-1), axis=-1, norm="ortho")
        cropped[index] = np.fft.fftshift(lines, axes=-1)
        cropped[index] *= held[index][:, nearest]
    return cropped
