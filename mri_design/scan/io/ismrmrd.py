"""ISMRMRD (MRD) raw data, read-only: Cartesian slices and volumes, and samples along trajectories."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.operators.trajectory import look_of_trajectory
from mri_design.scan.data import TrajectoryData
from mri_design.scan.io.hdf5 import arrays_in, names_in, open_read_only, read_text, require_dataset
from mri_design.scan.io.mrd_cartesian import CartesianSource
from mri_design.scan.io.raw_data import (
    ACQUISITION_COUNTERS,
    Acquisitions,
    MrdEncoding,
    MrdHeader,
    RawSource,
    channels_and_slices,
    parse_mrd_header,
    sort_by_purpose,
)
from mri_design.scan.io.safe import ReadLimits, check_declared_shape, is_hdf5
from mri_design.scan.io.source import CORRECT_ECHOES, Loaded, ReadOptions, Source, duplicates_cure
from mri_design.scan.sampling import only_coils, working_coils

_WITH_COORDINATES = ("radial", "goldenangle", "spiral", "other")
_SAME = 1e-4
"""Relative to the largest coordinate: largest difference between slices, and largest kz that counts as 0."""
_SAME_PIXEL = 0.01


@dataclass(frozen=True)
class ShotSource(RawSource):
    """One series of samples along a trajectory, which are read together.

    Shots are ordered by their counter, ``kspace_encode_step_1``, and those with equal counters as in the file. The
    image has the header's reconstructed matrix. Coordinates are (kx, ky) or (kx, ky, 0), in cycles per field of view of
    the image or in cycles per pixel; their range shows which.

    Raises
    ------
    InputError
        When it is read, naming the acquisition: without coordinates, or with others than these, if shots differ in
        length or between slices, and if a shot comes again.
    """

    def load(self) -> TrajectoryData:
        """All shots of all slices."""
        raw, purposes, duplicates = self.raw, self.purposes, self.options.duplicates
        field = raw.field
        # First, the readouts by slice and counter, and which of their samples are kept.
        places, ranks, channels, kept = self._ordered()
        length = kept.stop - kept.start
        for declared in ((len(places), channels, length), (len(places), length, 3)):
            check_declared_shape("number_of_samples", declared, 8, self.options.limits)
        # Second, readouts of the same shot of a slice, which have the same coordinates (readout, sample, dimension).
        by_place = {at: coordinates[kept] for at, coordinates in raw.coordinates(places.tolist())}
        stored, shot, slices = np.stack([by_place[at] for at in places.tolist()]), np.empty_like(places), []
        for rank in range(int(ranks[-1]) + 1):
            (here,) = np.nonzero(ranks == rank)
            rows = stored[here].reshape(len(here), -1).view(f"V{stored[0].nbytes}").ravel()  # compared byte by byte
            _, first, same = np.unique(rows, return_index=True, return_inverse=True)
            shot[here] = np.argsort(np.argsort(first))[same]
            again = np.flatnonzero(first[same] != np.arange(len(here)))
            if again.size and duplicates == "refuse":
                got = f"the same coordinates as acquisition {places[here[first[same[again[0]]]]]} of the slice"
                raise InputError(f"{field}[{places[here[again[0]]]}]: traj", got, "each shot once", duplicates_cure())
            slices.append(stored[here[np.sort(first)]])
            if slices[-1].shape != slices[0].shape or np.abs(slices[-1] - slices[0]).max() > _same(slices[0]):
                got, cure = f"another one in slice {rank}", "Export slices of one trajectory to a file of their own."
                raise InputError(f"{field}[{places[here[0]]}]: traj", got, "the same trajectory in every slice", cure)
        trajectory, unit = _in_cycles(field, slices[0], purposes.encoding)
        # Third, the samples (slice, coil, shot, sample), and the number of readouts of each shot.
        kspace = np.zeros((len(slices), channels, len(trajectory), length), np.complex64)
        times = np.zeros((len(slices), len(trajectory)), dtype=np.intp)
        where = dict(zip(places.tolist(), zip(ranks.tolist(), shot.tolist(), strict=True), strict=True))
        for at, samples in raw.samples(places.tolist()):
            rank, number = where[at]
            if duplicates == "average":
                kspace[rank, :, number] += samples[:, kept]
            elif duplicates != "first" or not times[rank, number]:
                kspace[rank, :, number] = samples[:, kept]
            times[rank, number] += 1
        if duplicates == "average":
            kspace /= times[:, np.newaxis, :, np.newaxis]
        # Finally, the coils that work, and their noise.
        coils, dropped = working_coils(kspace)
        repeats = int(times.min()) if duplicates == "average" else 1
        left_out = {**dropped, **({"calibration_skipped": (n, True)} if (n := len(purposes.calibration)) else {})}
        read_as: dict[str, tuple[Any, ...]] = {"trajectory_unit": unit}
        if times.max() > 1:
            read_as["duplicates"] = duplicates, int(times.max()), "shot", int(times.min())
        covariance, provenance = self.noise(places, coils, repeats, read_as, left_out)
        width, height, _ = purposes.encoding.reconstructed.matrix
        return TrajectoryData(
            only_coils(kspace, coils).reshape(len(kspace), len(coils), -1),
            trajectory.reshape(-1, 2),
            (height, width),
            n_readouts=kspace.shape[2],
            name=raw.path.stem,
            noise_covariance=covariance,
            header={"file": raw.path.name, "format": raw.format},
            provenance=provenance,
        )

    def _ordered(self) -> tuple[NDArray[np.intp], NDArray[np.intp], int, slice]:
        """The image's acquisitions in order, their slices (counted over those that occur), channels, and kept samples.

        Raises
        ------
        InputError
            For partitions, readouts without coordinates, and readouts of different lengths.
        """
        raw, heads, chosen, encoding = self.raw, self.raw.heads, self.purposes.imaging, self.purposes.encoding
        channels, _, ranks = channels_and_slices(raw, chosen, encoding, self.options.limits)
        if encoding.volume:
            got, cure = str(encoding.encoded.matrix[2]), "Transform along the partitions, and write each as a slice."
            raise InputError("encodedSpace.matrixSize.z", got, "1: trajectories are read in two dimensions", cure)
        axes, cure = raw.dimensions[chosen], "Write the samples' coordinates into the acquisitions (traj)."
        good, wanted = (axes == axes[0]) & (axes >= 2) & (axes <= 3), "2 or 3, the same in all: kx and ky, and kz = 0"
        raw.require(chosen, good, "trajectory_dimensions", axes, wanted, cure)
        before, after = (heads[name][chosen].astype(np.intp) for name in ("discard_pre", "discard_post"))
        ends = heads["number_of_samples"][chosen].astype(np.intp) - after
        good = (ends > before) & (before == before[0]) & (ends == ends[0])
        wanted = "one or more samples that are kept, the same in every readout"
        raw.require(chosen, good, "number_of_samples", ends - before, wanted)
        order = np.lexsort((chosen, heads["idx"]["kspace_encode_step_1"][chosen], ranks))
        return chosen[order], ranks[order], channels, slice(int(before[0]), int(ends[0]))


def _same(stored: NDArray[np.float32]) -> float:
    """Largest difference of coordinates that count as equal."""
    return _SAME * float(np.abs(stored).max())


def _in_cycles(
    field: str, coordinates: NDArray[np.float32], encoding: MrdEncoding
) -> tuple[NDArray[np.float64], tuple[str, float, tuple[int, ...]]]:
    """Columns (ky, kx) in cycles per field of view of the image, and the unit in the file with its largest number.

    Behind these is the matrix by which cycles per pixel were multiplied.
    """
    stored = coordinates.astype(np.float64)
    if stored.shape[-1] == 3 and np.abs(stored[..., 2]).max() > _same(coordinates):
        cure = "If the third coordinates are weights of the samples and not kz, write the first two alone."
        raise InputError(f"{field}: traj", f"kz up to {np.abs(stored[..., 2]).max():.4g}", "kz = 0", cure)
    width, height, _ = encoding.reconstructed.matrix
    k = stored[..., 1::-1]
    convention, largest, cure = look_of_trajectory(k, (height, width))
    if convention == "cycles per field of view":
        return k, (convention, largest, ())
    if convention == "cycles per pixel":
        for axis in range(2):  # encoded and reconstructed space must have the same pixels
            spaces = encoding.encoded, encoding.reconstructed
            sides, lengths = [one.matrix[axis] for one in spaces], [one.field_of_view[axis] for one in spaces]
            known = np.isfinite(lengths).all()
            ratio = (lengths[0] / sides[0]) / (lengths[1] / sides[1]) if known else sides[1] / sides[0]
            if abs(ratio - 1) > _SAME_PIXEL:
                got = f"cycles per pixel of a matrix {sides[0]} or {sides[1]}, whose pixels differ"
                raise InputError(f"{field}: traj", got, "one size of pixels", "Write cycles per field of view.")
        return k * (height, width), (convention, largest, (height, width))
    got = f"coordinates (kx, ky) up to {largest:.4g}, which look like {convention}"
    wanted = f"cycles per field of view, up to {width / 2:g} and {height / 2:g}, or cycles per pixel, up to 0.5"
    raise InputError(f"{field}: traj", got, wanted, cure)


_NUMBERS = (
    *("flags", "number_of_samples", "active_channels", "encoding_space_ref"),
    *("discard_pre", "discard_post", "center_sample"),
)
_REALS = ("sample_time_us",)
_AT_ONCE = 64


def open_acquisitions(file: h5py.File, name: str, header: MrdHeader, limits: ReadLimits) -> Acquisitions:
    """The acquisitions of an open file; only their headers are loaded.

    Parameters
    ----------
    file : h5py File
        Open for reading.
    name : str
        Of the dataset.
    header : MrdHeader
        The file's header.
    limits : ReadLimits
        Bounds on the number of acquisitions and on memory.

    Raises
    ------
    InputError
        If it is no list of ISMRMRD acquisitions.
    """
    field = f"{file.filename}: {name}"
    dataset = require_dataset(file, name, limits)
    if len(dataset.shape) != 1 or not 1 <= dataset.shape[0] <= limits.max_readouts:
        raise InputError(field, f"shape {dataset.shape}", f"1 to {limits.max_readouts} acquisitions")
    dtype = dataset.dtype
    head = dtype["head"] if dtype.names and {"head", "data"} <= set(dtype.names) else None
    if head is None or not (_has(head, _NUMBERS, "iu") and _has(head, _REALS, "f")) or "idx" not in (head.names or ()):
        raise InputError(field, "elements of another type", "ISMRMRD acquisitions")
    if not _has(head["idx"], ACQUISITION_COUNTERS, "iu"):
        raise InputError(f"{field}: head.idx", "counters of another type", "ISMRMRD counters")
    for part in {"data", "traj"} & set(dtype.names):
        if h5py.check_vlen_dtype(dtype[part]) != np.dtype("float32"):
            raise InputError(f"{field}: {part}", f"{dtype[part]}", "variable-length float32")
    size = max(file.id.get_filesize(), 1)
    # Few are loaded at once: each may be as long as the file, whatever its header says.
    batch = max(1, min(_AT_ONCE, limits.max_bytes // size))
    heads = np.empty(dataset.shape, head)
    if not _heads_alone(dataset, heads):
        for start in range(0, len(heads), batch):
            heads[start : start + batch] = _rows(dataset, start, start + batch)["head"]

    def numbers(name: str, positions: list[int]) -> Iterator[tuple[int, NDArray[Any]]]:
        while positions:
            count = bisect_left(positions, positions[0] + batch)
            part, positions = positions[:count], positions[count:]
            loaded = _rows(dataset, part[0], part[-1] + 1)[name]
            yield from ((at, loaded[at - part[0]]) for at in part)

    known = "trajectory_dimensions" in head.names and "traj" in dtype.names
    axes = heads["trajectory_dimensions"].astype(np.intp) if known else np.zeros(len(heads), np.intp)
    return Acquisitions(Path(file.filename), field, header, heads, "ISMRMRD", numbers, axes)


def _heads_alone(dataset: h5py.Dataset, heads: NDArray[Any]) -> bool:
    """Fill in the headers from the chunks of the file; False if chunks hold them in another form.

    An unfiltered chunk of acquisitions holds the headers, and of the samples only their place in the file. h5py would
    load the samples too.
    """
    element, count = dataset.id.get_type(), (dataset.chunks or (0,))[0]
    member = element.get_member_index(b"head")
    kind, offset = element.get_member_type(member).dtype, element.get_member_offset(member)
    if not count or dataset.id.get_create_plist().get_nfilters() or kind != heads.dtype:
        return False
    if dataset.id.get_num_chunks() * count < len(heads):
        return False
    stored = np.dtype({"names": ["head"], "formats": [kind], "offsets": [offset], "itemsize": element.get_size()})
    for start in range(0, len(heads), count):
        _, raw = dataset.id.read_direct_chunk((start,))
        heads[start : start + count] = np.frombuffer(raw, stored)["head"][: len(heads) - start]
    return True


def _rows(dataset: h5py.Dataset, start: int, stop: int) -> NDArray[Any]:
    """Some acquisitions, with all their fields: for one field alone, h5py 3.16 loads samples and never frees them."""
    return np.asarray(dataset[start:stop])


def _has(dtype: np.dtype[Any], names: tuple[str, ...], kinds: str) -> bool:
    return set(names) <= set(dtype.names or ()) and all(dtype[name].kind in kinds for name in names)


_GROUP = "dataset"
"""The usual name of the group that holds ``xml`` and ``data``."""


def recognises(path: Path) -> bool:
    """Whether a file is HDF5 with the usual group of raw data, or with other groups of raw data."""
    if not is_hdf5(path):
        return False
    with open_read_only(path) as file:
        return bool(_groups(file))


def _groups(file: h5py.File) -> list[str]:
    """The usual group of raw data, or all groups with a header and readouts."""
    if _GROUP in names_in(file):
        return [_GROUP]
    held = arrays_in(file)
    return [group for name in held if (group := name.removesuffix("/xml")) != name and f"{group}/data" in held]


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """One image series of an open MRD file.

    All slices of one contrast, repetition, set and phase are read. Lines are placed by their counter relative to the
    centre of k-space, reversed readouts are turned, samples that a partial echo leaves out stay empty, and readout
    oversampling is removed if the header's fields of view say so (an exact crop in the image domain, which leaves the
    noise variance per sample as it was). A volume, with a second phase encode, becomes one plane (ky, kz) for every
    readout position. Scans with another trajectory bring the coordinates of their samples along and become a
    `TrajectoryData`.

    Calibration lines acquired within the scan are data; those of a separate scan go to ``calibration``. Noise readouts
    give the noise covariance, scaled to the dwell time and the averages of the data. Coils that hold only zeros, or the
    samples of another coil, are left out. If lines are averaged, the covariance is that of the line with the fewest
    readouts.

    Raises
    ------
    InputError
        With the index of the acquisition that does not fit.

    Notes
    -----
    NOT done: EPI phase correction, trajectories in three dimensions, and a shift of full-length readouts whose echo is
    off the centre.
    """
    limits = options.limits
    with open_read_only(path) as file:
        group, *others = _groups(file)
        if others:
            got = f"raw data in the groups {', '.join(map(repr, (group, *others[:7])))}"
            cure = f"Copy one: h5copy -i {path.name} -o one.h5 -s {group!r} -d {_GROUP}."
            raise InputError(str(path), got, f"one group of raw data, or one with the name {_GROUP!r}", cure)
        field = f"{path}: {group}/xml"
        header = parse_mrd_header(field, read_text(file, f"{group}/xml", limits), limits)
        raw = open_acquisitions(file, f"{group}/data", header, limits)
        yield series_of(raw, field, options)


def series_of(raw: Acquisitions, field: str, options: ReadOptions) -> Source:
    """The series that ``options`` choose of raw data: on lines, or with coordinates; ``field`` is the header's.

    Raises
    ------
    InputError
        For other trajectories, and as `sort_by_purpose`.
    """
    if options.only_noise:
        return Loaded(raw.noise())
    purposes = sort_by_purpose(raw, options.counters)
    kind = purposes.encoding.trajectory
    if kind not in ("", "cartesian", *_WITH_COORDINATES):
        wanted = f"cartesian, or with the coordinates of every sample {', '.join(_WITH_COORDINATES)}"
        raise InputError(f"{field}: trajectory", kind[:40], wanted, CORRECT_ECHOES if kind == "epi" else "")
    along = kind in _WITH_COORDINATES or (not kind and raw.dimensions[purposes.imaging].any())
    return (ShotSource if along else CartesianSource)(raw, purposes, options, series=purposes.series)
