"""Siemens raw data (twix, ``.dat``) of the software lines VB, VD and VE: Cartesian slices and volumes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.mrd.cartesian import outline_cartesian, read_cartesian
from mri_design.scan.io.mrd.header import MrdHeader
from mri_design.scan.io.mrd.ismrmrd import DuplicatePolicy, checked_policy
from mri_design.scan.io.mrd.purposes import Purposes, checked_counters, sort_by_purpose
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.io.twix.acquisitions import TwixAcquisitions, heads_of, noise_of
from mri_design.scan.io.twix.measurements import Measurement, find_measurements, find_readouts
from mri_design.scan.io.twix.protocol import Protocol, read_protocol
from mri_design.scan.outline import ScanOutline

_FIRST: Mapping[str, int] = MappingProxyType({})


def read(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: DuplicatePolicy = "error",
    counters: Mapping[str, int] = _FIRST,
) -> KSpaceData:
    """Read one image series of the last measurement in a file.

    Earlier measurements of the file are the scanner's adjustments; their noise readouts are taken where the last one
    has none and they have the same number of channels. Everything else is as for ISMRMRD files (`ismrmrd.read`): lines
    are placed by their counter relative to the centre of k-space, reversed readouts are turned, what a partial echo
    leaves out stays empty, the oversampling of readouts is removed, noise readouts give the noise covariance, and a
    volume becomes one plane (ky, kz) for every readout position.

    Parameters
    ----------
    path : path
        The file. It is opened read-only.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.
    duplicates : {"error", "average", "last"}
        What to do with a line that comes twice: an average, for example.
    counters : mapping of str to int
        Which "contrast" (echo), "phase", "repetition" and "set" to read, by the file's own numbers; the first of those
        that are not named.

    Raises
    ------
    MissingPackageError
        Without the package twixtools, from which the layouts of the headers are.
    InputError
        On anything that does not fit, with the index of the readout, and where the file is cut short.

    Notes
    -----
    NOT done: EPI, other trajectories than lines, several slices measured at once, and the scanner's own corrections of
    single channels. The relative noise bandwidth of the receiver and the dwell time of noise readouts are not in such
    files; they are those that the ISMRMRD converter takes (github.com/ismrmrd/siemens_to_ismrmrd).
    """
    policy = checked_policy(duplicates)
    with _opened(Path(path), limits, counters) as (acquisitions, header, purposes):
        return read_cartesian(acquisitions, header, purposes, limits, policy)


def outline(
    path: str | os.PathLike[str],
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
    duplicates: DuplicatePolicy = "error",
    counters: Mapping[str, int] = _FIRST,
) -> ScanOutline:
    """What `read` would read, told by the headers of all readouts and the samples of one slice.

    Parameters
    ----------
    path, limits, duplicates, counters
        As for `read`.

    Raises
    ------
    MissingPackageError
        As `read`.
    InputError
        As `read`, but for samples that were not looked at.
    """
    policy = checked_policy(duplicates)
    with _opened(Path(path), limits, counters) as (acquisitions, header, purposes):
        return outline_cartesian(acquisitions, header, purposes, limits, policy)


@contextmanager
def _opened(
    path: Path, limits: ReadLimits, counters: Mapping[str, int]
) -> Iterator[tuple[TwixAcquisitions, MrdHeader, Purposes]]:
    """An open file: the readouts of its last measurement, their header, and which readouts are read as what."""
    check_file(path)
    counters = checked_counters(counters)
    with errors_named(path), path.open("rb") as stream:
        *earlier, last = find_measurements(path, stream, limits)
        protocol = read_protocol(last.field, last.text, limits)
        acquisitions = _acquisitions(path, stream, (earlier, last), protocol, limits)
        purposes = sort_by_purpose(acquisitions.field, acquisitions.heads, protocol.header, counters)
        _require_echoes(acquisitions, purposes.imaging, protocol)
        yield acquisitions, protocol.header, purposes


def _acquisitions(
    path: Path,
    stream: IO[bytes],
    measurements: tuple[list[Measurement], Measurement],
    protocol: Protocol,
    limits: ReadLimits,
) -> TwixAcquisitions:
    """The readouts of the last measurement, and where it has no noise readouts, those of the nearest earlier one."""
    earlier, last = measurements
    readouts = find_readouts(stream, last, limits)
    heads, places = heads_of(readouts, protocol), readouts.places
    channels = np.unique(heads["active_channels"])
    for adjustment in reversed(earlier):
        if noise_of(heads).size:
            break
        others = find_readouts(stream, adjustment, limits)
        their_protocol = read_protocol(adjustment.field, adjustment.text, limits)
        their_heads = heads_of(others, their_protocol)
        noise = noise_of(their_heads)
        noise = noise[np.isin(their_heads["active_channels"][noise], channels)]
        heads = np.concatenate([heads, their_heads[noise]])
        places = np.concatenate([places, others.places[noise]])
    return TwixAcquisitions(
        path, f"{path}: readouts", heads, stream, places, first=readouts.first, between=readouts.between
    )


def _require_echoes(acquisitions: TwixAcquisitions, imaging: NDArray[np.intp], protocol: Protocol) -> None:
    """Refuse readouts that are shorter than the grid and do not say where their echo is."""
    heads, columns = acquisitions.heads[imaging], protocol.header.encodings[0].encoded.matrix[0]
    kept = heads["number_of_samples"] - heads["discard_pre"] - heads["discard_post"]
    unsaid: NDArray[Any] = (heads["center_sample"] == 0) & (kept < columns)
    if unsaid.any():
        raise InputError(
            field=f"{acquisitions.field}[{int(imaging[int(np.argmax(unsaid))])}]: CenterCol",
            got=f"0 for {int(kept[int(np.argmax(unsaid))])} of {columns} samples",
            wanted="the sample at the centre of k-space",
            cure="Convert the file to ISMRMRD, with the centre of every readout (center_sample).",
        )
