"""ISMRMRD files, written byte by byte: scans, and the headers and empty readouts of a design."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib import resources
from typing import Any

import h5py
import numpy as np
from ismrmrd.hdf5 import acquisition_dtype, acquisition_header_dtype
from jinja2 import StrictUndefined, Template
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.acquisitions import sort_by_purpose
from mri_design.scan.io.mrd_cartesian import plan_readouts
from mri_design.scan.io.mrd_header import FOURIER_SIGN, UNKNOWN_PLACE, UNKNOWN_SIZES, parse_mrd_header
from mri_design.scan.io.safe import DEFAULT_LIMITS

_FIRST_IN_SLICE, _LAST_IN_SLICE, _LAST_IN_MEASUREMENT = 7, 8, 25
_NOISE, _NOISE_SAMPLES = 19, 8
"""The flag of a noise readout, and its samples for every coil."""
_GROUP = "dataset"
_MOST = 65535  # the labels have 16 bits
_MASK_BITS, _MOST_COILS = 64, 1024
_NOWHERE = SliceGeometry((1.0, 1.0), None)


@dataclass(frozen=True)
class MrdLayout:
    """Contents of a file's header.

    Parameters
    ----------
    shape : tuple of int
        Grid (ky, kx).
    places : sequence of (SliceGeometry or None)
        Size of pixels, the same for all, and place of every slice; None where nobody says them. What is not known is
        written as 1 mm, because the schema asks for a number, and marked as unknown (`UNKNOWN_SIZES`). Without a place
        of every slice, all have the directions of the identity and lie at the origin, because readers ask for
        directions, and the header says that these mean nothing (`UNKNOWN_PLACE`).
    shots, echoes : int
        Echo trains, and lines of the longest one.
    partitions : int
        Of a volume, along kz; 1 for slices.

    Raises
    ------
    InputError
        For a grid or numbers that the labels cannot hold, and for slices with pixels of different sizes.
    """

    shape: tuple[int, int]
    places: Sequence[SliceGeometry | None]
    _: KW_ONLY
    shots: int = 1
    echoes: int = 1
    partitions: int = 1

    def __post_init__(self) -> None:
        if max(*self.shape, self.shots, self.partitions, len(self.places)) > _MOST:
            got = f"{self.shape}, {self.shots} trains, {len(self.places)} slices, {self.partitions} partitions"
            raise InputError(field="grid", got=got, wanted=f"at most {_MOST} along each")
        if len({None if place is None else (place.pixel, place.thickness) for place in self.places}) != 1:
            raise InputError(field="geometry", got="slices with pixels of different sizes", wanted="one size")

    @property
    def placed(self) -> bool:
        """Whether the place of every slice is known."""
        return all(place is not None and place.placed for place in self.places)

    @property
    def header(self) -> str:
        """The XML text."""
        (n_y, n_x), place = self.shape, self.places[0]
        pixel, thickness = ((1.0, 1.0), None) if place is None else (place.pixel, place.thickness)
        extents = (n_x * pixel[1], n_y * pixel[0], self.partitions * (thickness or 1.0))
        unknown = {
            UNKNOWN_SIZES: "x y z" if place is None else "z" if thickness is None else "",
            UNKNOWN_PLACE: "" if self.placed else "directions",
        }
        sizes = {"n_x": n_x, "n_y": n_y, "n_z": self.partitions, "extents": extents, "slices": len(self.places)}
        trains = {"shots": self.shots, "echoes": self.echoes}
        return _header_template().render(**sizes, **trains, sign=FOURIER_SIGN, unknown=unknown)


@cache
def _header_template() -> Template:
    text = resources.files("mri_design.scan.writing").joinpath("mrd_header.xml.j2").read_text("utf-8")
    options: dict[str, Any] = dict.fromkeys(("trim_blocks", "lstrip_blocks", "keep_trailing_newline"), True)
    return Template(text, undefined=StrictUndefined, **options)


def readout_heads(layout: MrdLayout, lines: Sequence[tuple[int, int]], coils: int = 1) -> NDArray[Any]:
    """Headers of readouts of full length.

    What is not known is zero: the dwell time and, without a place, the position; directions are then the identity.

    Parameters
    ----------
    layout : MrdLayout
        Of the file.
    lines : sequence of (slice, line)
        In the order of measurement, all of a slice in one run.
    coils : int
        Receive channels.

    Returns
    -------
    structured array, shape (readout,)

    Raises
    ------
    InputError
        For more coils than a header can name.
    """
    if coils > _MOST_COILS:
        raise InputError(field="coils", got=str(coils), wanted=f"at most {_MOST_COILS}")
    slices = np.array([number for number, _ in lines])
    heads = np.zeros(len(lines), dtype=acquisition_header_dtype)
    heads["version"], heads["scan_counter"] = 1, np.arange(len(lines))
    heads["number_of_samples"], heads["center_sample"] = layout.shape[1], layout.shape[1] // 2
    heads["available_channels"] = heads["active_channels"] = coils
    for coil in range(coils):
        heads["channel_mask"][:, coil // _MASK_BITS] |= np.uint64(1 << coil % _MASK_BITS)
    heads["idx"]["kspace_encode_step_1"] = [line for _, line in lines]
    heads["idx"]["slice"] = slices
    ends = np.flatnonzero(np.diff(slices))
    heads["flags"][[0, *(ends + 1)]] |= _flag(_FIRST_IN_SLICE)
    heads["flags"][[*ends, -1]] |= _flag(_LAST_IN_SLICE)
    heads["flags"][-1] |= _flag(_LAST_IN_MEASUREMENT)
    for number, place in enumerate(layout.places):
        vectors = (place if place is not None and layout.placed else _NOWHERE).vectors
        for name, vector in zip(("position", "phase_dir", "read_dir", "slice_dir"), vectors, strict=True):
            heads[name][slices == number] = vector
    return heads


def mrd_file_bytes(layout: MrdLayout, heads: NDArray[Any], samples: Sequence[NDArray[np.complexfloating]]) -> bytes:
    """The file. Its labels are read by the reader of this package before it is given.

    Parameters
    ----------
    layout : MrdLayout
        What the header says.
    heads : structured array, shape (readout,)
        Of `readout_heads`.
    samples : sequence of complex arrays, shape (coil, sample)
        Of every readout.

    Raises
    ------
    InputError
        Where the reader would place a readout elsewhere than its labels say, or refuses it.
    """
    header = layout.header
    parsed = parse_mrd_header("MRD header", header, DEFAULT_LIMITS)
    purposes = sort_by_purpose("MRD readouts", heads, parsed)
    plan = plan_readouts("MRD readouts", heads, parsed, purposes, DEFAULT_LIMITS, repeats_allowed=False)
    labels = heads["idx"][purposes.imaging]
    for name, label in (("slice", "slice"), ("partition", "kspace_encode_step_2"), ("line", "kspace_encode_step_1")):
        for at in np.flatnonzero(plan.readouts[name] != labels[label])[:1]:
            got, wanted = (f"{name} {number}" for number in (plan.readouts[name][at], labels[label][at]))
            raise InputError(field=f"MRD readouts[{at}]", got=got, wanted=wanted)
    readouts = np.empty(len(heads), dtype=acquisition_dtype)
    readouts["head"] = heads
    for readout, measured in zip(readouts, samples, strict=True):
        readout["traj"] = np.zeros(0, np.float32)
        readout["data"] = np.ascontiguousarray(measured, dtype=np.complex64).reshape(-1).view(np.float32)
    written, text = io.BytesIO(), h5py.special_dtype(vlen=bytes)
    with h5py.File(written, "w") as file:
        file.create_dataset(f"{_GROUP}/data", data=readouts, maxshape=(None,), chunks=(min(len(heads), 64),))
        file.create_dataset(f"{_GROUP}/xml", data=np.array([header.encode()], dtype=text))
    return written.getvalue()


def _flag(number: int) -> np.uint64:
    return np.uint64(1 << (number - 1))


def mrd_scan_bytes(scan: KSpaceData, places: Sequence[SliceGeometry] | None) -> bytes:
    """An MRD file with one readout for every measured line, slice by slice and line by line.

    Columns that are empty at one end of all readouts are left out, as a scanner leaves them out of a partial echo:
    ``center_sample`` says where DC lies. The order in which lines were measured is not known, nor are the resonance
    frequency and the dwell time, which are zero. Without a place, directions are the identity, marked as unknown.

    Parameters
    ----------
    scan : KSpaceData
        Slices may hold lines of their own. A covariance of the noise becomes a noise readout that has exactly it. Coil
        maps, noise variance, calibration scan and reference have no place in such a file.
    places : sequence of SliceGeometry, optional
        Of every slice. None where nobody says how large pixels are: the file then has 1 mm, marked as not known.

    Raises
    ------
    InputError
        For pixels of different sizes, and what the labels cannot hold.
    """
    held = np.stack([sampling.samples for sampling in scan.samplings])
    lines = [(int(number), int(line)) for number, line in np.argwhere(held.any(axis=2))]
    layout = MrdLayout(scan.grid_shape, (None,) * scan.n_slices if places is None else places)
    heads = readout_heads(layout, lines, scan.n_coils)
    columns, centre = np.flatnonzero(held.any(axis=(0, 1))), scan.grid_shape[1] // 2
    window = slice(min(int(columns[0]), centre), max(int(columns[-1]), centre) + 1)
    heads["number_of_samples"], heads["center_sample"] = window.stop - window.start, centre - window.start
    readouts = [scan.kspace[number, :, line, window] for number, line in lines]
    if scan.noise_covariance is not None:
        noise = _noise_of(scan.noise_covariance)
        head = readout_heads(layout, lines[:1], scan.n_coils)
        head["flags"], head["number_of_samples"], head["center_sample"] = _flag(_NOISE), noise.shape[1], 0
        heads, readouts = np.concatenate([head, heads]), [noise, *readouts]
        heads["scan_counter"] = np.arange(len(heads))
    return mrd_file_bytes(layout, heads, readouts)


def _noise_of(covariance: NDArray[np.complex128]) -> NDArray[np.complex64]:
    """Samples (coil, sample) whose covariance E[n n^H] / 2 is exactly this one."""
    coils, count = len(covariance), _NOISE_SAMPLES * len(covariance)
    power, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(power, 0))
    waves = np.exp(2j * np.pi * np.outer(np.arange(1, coils + 1), np.arange(count)) / count)  # orthogonal rows
    return np.asarray(np.sqrt(2) * (root @ waves), dtype=np.complex64)


def mrd_skeleton_bytes(
    trains: Sequence[Sequence[int]], shape: tuple[int, int], geometry: SliceGeometry | None, partitions: int = 1
) -> bytes:
    """An MRD file with one readout of zeros for every line, or sample of a plane, in the order of measurement.

    ``kspace_encode_step_1`` is the line, ``segment`` the echo train, and the header has the matrix, the field of view
    and the centre of k-space. Of a plane ``kspace_encode_step_1`` is the row ky and ``kspace_encode_step_2`` the column
    kz, and there are no segments. What a design does not know is zero: the resonance frequency and the dwell time.
    Without a place, directions are the identity, marked as unknown. The labels are read back by the reader of this
    package before the file is given.

    Parameters
    ----------
    trains : sequence of sequences of int
        Lines of every echo train, numbered from 0; of a plane samples, numbered row by row.
    shape : tuple of int
        Grid (ky, kx).
    geometry : SliceGeometry or None
        Pixel size, and place where it is known. None writes 1 mm, marked as not known.
    partitions : int
        Columns kz of a plane; 1 for lines.

    Raises
    ------
    InputError
        For a grid or a number of trains that the labels cannot hold, and where the labels are not those of the design.
    """
    lines, columns = np.divmod([number for train in trains for number in train], partitions)
    of_trains = {"shots": len(trains), "echoes": max(map(len, trains))} if partitions == 1 else {}
    layout = MrdLayout(shape, (geometry,), partitions=partitions, **of_trains)
    heads = readout_heads(layout, [(0, line) for line in lines])
    heads["idx"]["kspace_encode_step_2"] = columns
    if of_trains:
        heads["idx"]["segment"] = [shot for shot, train in enumerate(trains) for _ in train]
    return mrd_file_bytes(layout, heads, [np.zeros((1, shape[1]), np.complex64)] * len(heads))
