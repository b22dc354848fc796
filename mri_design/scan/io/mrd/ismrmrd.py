"""ISMRMRD (MRD) raw data, read-only: Cartesian slices and volumes, and samples along trajectories."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast, get_args

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.hdf5 import open_read_only, read_text
from mri_design.scan.io.mrd.acquisitions import StoredAcquisitions, open_acquisitions
from mri_design.scan.io.mrd.cartesian import outline_cartesian, read_cartesian
from mri_design.scan.io.mrd.header import MrdHeader, parse_mrd_header
from mri_design.scan.io.mrd.purposes import Purposes, checked_counters, sort_by_purpose
from mri_design.scan.io.mrd.shots import holds_trajectories, read_shots
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.outline import ScanOutline
from mri_design.scan.trajectory_data import TrajectoryData

DuplicatePolicy = Literal["error", "average", "last"]
"""What to do with a line that was acquired more than once (averages, or a counter that repeats)."""


def checked_policy(duplicates: str) -> DuplicatePolicy:
    """What to do with lines that come twice, by name.

    Raises
    ------
    InputError
        For another name.
    """
    if duplicates not in get_args(DuplicatePolicy):
        raise InputError(field="duplicates", got=repr(duplicates), wanted="'error', 'average' or 'last'")
    return cast(DuplicatePolicy, duplicates)


_FIRST: Mapping[str, int] = MappingProxyType({})


def read(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: DuplicatePolicy = "error",
    counters: Mapping[str, int] = _FIRST,
    group: str = "dataset",
) -> KSpaceData | TrajectoryData:
    """Read one image series of an MRD file.

    All slices of one contrast, repetition, set and phase are read. Lines are placed by their counter
    relative to the centre of k-space, reversed readouts are turned, what a partial echo leaves out stays empty, and
    readout oversampling is removed where the header's fields of view say so (an exact crop in the image
    domain, which leaves the noise variance per sample as it was). A volume, with a second phase encode, becomes one
    plane (ky, kz) for every readout position. Scans whose header names another trajectory bring the coordinates of
    their samples along; they become a `TrajectoryData`.

    Calibration lines acquired within the scan are data; those of a calibration scan of their own go to ``calibration``.
    Noise readouts give the noise covariance, scaled to the dwell time and the averages of the data. Coils that hold
    only zeros, or the samples of another coil, are left out.

    Parameters
    ----------
    path : path
        The HDF5 file. It is opened read-only and its bytes do not change.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    duplicates : {"error", "average", "last"}
        Refuse a line or shot that comes twice, average its readouts, or keep the last one. Averaging makes the noise
        variance of that line smaller; the covariance given is that of the line with the fewest readouts.
    counters : mapping of str to int
        Which "contrast", "phase", "repetition" and "set" to read, by the file's own numbers; the first of those that
        are not named.
    group : str
        Group that holds ``xml`` and ``data``.

    Raises
    ------
    InputError
        On anything that does not fit, with the index of the acquisition.

    Notes
    -----
    NOT done: EPI phase correction, trajectories in three dimensions, and a shift of full-length readouts whose echo is
    off the centre.
    """
    path, duplicates = Path(path), checked_policy(duplicates)
    with _opened(path, limits, counters, group) as (acquisitions, header, purposes):
        if holds_trajectories(f"{path}: {group}/xml", acquisitions, purposes):
            return read_shots(acquisitions, header, purposes, limits, duplicates)
        return read_cartesian(acquisitions, header, purposes, limits, duplicates)


def outline(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: DuplicatePolicy = "error",
    counters: Mapping[str, int] = _FIRST,
    group: str = "dataset",
) -> ScanOutline | TrajectoryData:
    """What `read` would read, told by the headers of all readouts and the samples of one slice.

    Samples along trajectories are read as a whole. A file of labels without data has an outline without samples.

    Parameters
    ----------
    path, limits, duplicates, counters, group
        As for `read`.

    Raises
    ------
    InputError
        As `read`, but for samples that were not looked at.
    """
    path, duplicates = Path(path), checked_policy(duplicates)
    with _opened(path, limits, counters, group) as (acquisitions, header, purposes):
        if holds_trajectories(f"{path}: {group}/xml", acquisitions, purposes):
            return read_shots(acquisitions, header, purposes, limits, duplicates)
        return outline_cartesian(acquisitions, header, purposes, limits, duplicates)


@contextmanager
def _opened(
    path: Path, limits: ReadLimits, counters: Mapping[str, int], group: str
) -> Iterator[tuple[StoredAcquisitions, MrdHeader, Purposes]]:
    """An open file: its readouts, its header, and which readouts are read as what."""
    check_file(path)
    counters = checked_counters(counters)
    with errors_named(path), open_read_only(path) as file:
        header = parse_mrd_header(f"{path}: {group}/xml", read_text(file, f"{group}/xml", limits), limits)
        acquisitions = open_acquisitions(file, f"{group}/data", limits)
        yield acquisitions, header, sort_by_purpose(acquisitions.field, acquisitions.heads, header, counters)
