"""Cartesian acquisitions become k-space on a grid: slices, or a volume as one plane for every readout position."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.mrd_acquisitions import (
    Acquisitions,
    Places,
    Purposes,
    common_channels,
    has_flag,
    noise_of_data,
    numbers_of,
    sort_by_purpose,
)
from mri_design.scan.io.mrd_header import MrdEncoding, MrdHeader
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.io.samples import (
    measured_lines,
    only_coils,
    readout_positions,
    volume_note,
    within_single_precision,
    working_coils,
)
from mri_design.scan.io.source import COUNTERS, ENCODING, ReadOptions, SlicedSource, duplicates_cure
from mri_design.scan.sampling import ROUND_OFF, Sampling, index_runs, strongest_component
from mri_design.scan.summary import ScanSummary, middle_slice

_REVERSED = 22  # number of the MRD acquisition flag
# Calibration that was scanned on its own, perhaps with another contrast: for coil maps, never data.
_OWN_SCAN = ("separate", "external")
_UNSAID = ("", "other")
_ALIKE = ("encoding_space_ref", "number_of_samples", "discard_pre", "discard_post")
_SAME_FIELD_OF_VIEW = 0.01
_MOST_TURNED, _MUCH_BETTER = 4, 1.3
"""By how many samples reversed readouts are rotated otherwise than headers say, and how much better that has to fit."""
_MANY = 4
"""Counters from 1 to N count from 1 where more than one of so many occurs; of a few, one may be wrong."""
Place = TypeVar("Place")


@dataclass(frozen=True, kw_only=True)
class Readout:
    """One readout and its place.

    Parameters
    ----------
    index : int
        Position in the file's list of acquisitions.
    slice, line, partition : int
        Slice (counted over the slices that occur), row ky of the grid and, in volumes, kz; 0 in slices.
    stored : int
        Samples per channel in the file, those to be discarded included.
    first_sample, n_samples : int
        Samples of the readout to keep: those between the discarded ones.
    start : int
        Column kx of the first kept sample.
    reversed : bool
        True where the readout ran from high to low kx.
    turn : int
        By how many samples a whole readout that is reversed has to be rotated after it was turned, so that its own
        centre comes to lie where the others have theirs.
    """

    index: int
    slice: int
    line: int
    partition: int
    stored: int
    first_sample: int
    n_samples: int
    start: int
    reversed: bool
    turn: int = 0

    @property
    def place(self) -> tuple[int, int, int]:
        """Slice, partition and line."""
        return self.slice, self.partition, self.line


@dataclass(frozen=True)
class ReadoutPlan:
    """Everything needed to fill the grid.

    Parameters
    ----------
    readouts : tuple of Readout
        Data, in the file's order.
    calibration : tuple of Readout
        For coil maps only, in the file's order.
    shape : tuple of int
        Grid (slice, coil, kz, ky, kx) to be allocated; in slices there is one kz.
    notes : dict of str to str
        What was left out, for the header.
    """

    readouts: tuple[Readout, ...]
    calibration: tuple[Readout, ...]
    shape: tuple[int, int, int, int, int]
    notes: dict[str, str]

    @property
    def times(self) -> NDArray[np.intp]:
        """How many readouts of data each line is from, shape (slice, kz, ky)."""
        times = np.zeros((self.shape[0], *self.shape[2:4]), dtype=np.intp)
        for readout in self.readouts:
            times[readout.place] += 1
        return times

    def of_slice(self, number: int) -> ReadoutPlan:
        """The readouts of one slice, which becomes slice 0 of a grid of its own."""

        def alone(readouts: tuple[Readout, ...]) -> tuple[Readout, ...]:
            return tuple(replace(readout, slice=0) for readout in readouts if readout.slice == number)

        return ReadoutPlan(alone(self.readouts), alone(self.calibration), (1, *self.shape[1:]), self.notes)


def plan_readouts(
    field: str, heads: NDArray[Any], header: MrdHeader, purposes: Purposes, limits: ReadLimits, *, repeats_allowed: bool
) -> ReadoutPlan:
    """Place the readouts of slices, or of one volume.

    A line is placed at ``counter - centre + N // 2``, and so is a partition of a volume; by the counter alone where the
    header's centre leads out of the grid and the counter, from 0 or from 1, does not. Calibration lines that were
    acquired within the scan are data too, where they fill a row of the grid that no other readout does; those of a scan
    of their own, or that repeat a row, serve the coil maps alone.

    Parameters
    ----------
    field : str
        File and dataset, for messages.
    heads : structured array, shape (acquisition,)
        Acquisition headers.
    header : MrdHeader
        The file's header.
    purposes : Purposes
        Which of the acquisitions are the image's, and which calibration.
    limits : ReadLimits
        Bounds on slices and coils.
    repeats_allowed : bool
        Whether a line may come more than once.

    Raises
    ------
    InputError
        Naming the acquisition where headers disagree with each other or with the file's header, a counter leads out of
        the grid, a line comes again, or a volume has several slabs.
    """
    notes: dict[str, str] = {}
    chosen, encoding = purposes.imaging, purposes.encoding
    channels = common_channels(field, heads, chosen, limits)
    slices = np.unique(heads["idx"]["slice"][chosen])
    if encoding.encoded.matrix[2] == 1:
        require_one_partition(field, heads, chosen)
    elif slices.size > 1:
        _refuse_slabs(field, heads, chosen)
    if slices.size > limits.max_slices:
        raise InputError(field=f"{field}: slices", got=str(slices.size), wanted=f"at most {limits.max_slices}")
    if int(slices[-1]) != slices.size - 1:
        notes["slices"] = "present: " + ", ".join(str(int(number)) for number in slices)
    stored, echo = (heads[name][chosen] for name in ("number_of_samples", "center_sample"))
    if (echo >= stored).any():
        at = int(np.argmax(echo >= stored))
        notes["centre_beyond_samples"] = (
            f"center_sample {int(echo[at])} of acquisition {int(chosen[at])} lies beyond its {int(stored[at])} "
            "samples; the middle of whole readouts counts as the centre"
        )
    possible = _with_possible_centres(encoding, heads["idx"][chosen], notes)
    header = replace(header, encodings=tuple(possible if one is encoding else one for one in header.encodings))
    encoding = possible
    grid = _Grid(field, heads, encoding, slices, channels)
    readouts = [grid.placed(int(at), encoding) for at in chosen]
    within, apart = grid.calibration(purposes.calibration, header, readouts, notes)
    data = sorted([*readouts, *within], key=lambda readout: readout.index)
    if not repeats_allowed:
        _refuse_repeats(field, data)
    nx, ny, nz = encoding.encoded.matrix
    return ReadoutPlan(tuple(data), tuple(apart), (int(slices.size), channels, nz, ny, nx), notes)


def _with_possible_centres(encoding: MrdEncoding, counters: NDArray[Any], notes: dict[str, str]) -> MrdEncoding:
    """The encoding with other centres in the place of those that lead readouts out of a grid which their counters fit.

    The samples show where the centre is; what the counters were taken for is added to the notes.
    """
    centres = [encoding.centre_line, encoding.centre_partition]
    for step in (1, 2):
        counter, rows = f"kspace_encode_step_{step}", encoding.encoded.matrix[step]
        numbers = np.unique(counters[counter])
        first, last = int(numbers[0]), int(numbers[-1])
        said = centres[step - 1]
        centre = rows // 2 if said is None else said
        starts = (0, 1) if len(numbers) > rows // _MANY else (0,)
        start = next((number for number in starts if number <= first and last < number + rows), None)
        if rows == 1 or start is None or (centre - rows // 2 <= first and last < centre - rows // 2 + rows):
            continue
        centres[step - 1] = rows // 2 + start
        note = f"{counter} {first} to {last} of {rows}, counted from {start}, as {centre} cannot be its centre"
        notes["centre_beyond_grid"] = "; ".join([note, *filter(None, [notes.get("centre_beyond_grid")])])
    return replace(encoding, centre_line=centres[0], centre_partition=centres[1])


def calibration_data(mode: str, imaging: Collection[Place], calibration: Collection[Place]) -> set[Place]:
    """Places on the grid where calibration readouts are data of the image, of a file or of a stream.

    Calibration that was acquired within the scan is data where no readout of the image is. Where the header does not
    say how it was acquired, calibration that repeats a place of the image is from a scan of its own, all of it.

    Parameters
    ----------
    mode : str
        ``calibrationMode`` of the header; empty where there is none.
    imaging, calibration : collection
        Places of the readouts of the image, and of those calibration readouts that are of their kind (`kind_of`).
    """
    others = set(calibration).difference(imaging)
    return set() if mode in _OWN_SCAN or (mode in _UNSAID and len(others) < len(set(calibration))) else others


def is_unsaid(mode: str) -> bool:
    """Whether a ``calibrationMode`` leaves open if calibration is from a scan of its own."""
    return mode in _UNSAID


def kind_of(heads: NDArray[Any], at: int) -> tuple[int, ...]:
    """Traits that calibration shares with readouts of the image where it is data beside them.

    Encoding, samples, those to be discarded, contrast, phase, repetition and set.
    """
    counters = (int(heads["idx"][name][at]) for name in COUNTERS)
    return (*(int(heads[name][at]) for name in _ALIKE), *counters)


def require_one_partition(field: str, heads: NDArray[Any], chosen: Places) -> None:
    """Refuse a second phase encode where the header declares none.

    Raises
    ------
    InputError
        Naming the acquisition of another partition.
    """
    partition = heads["idx"]["kspace_encode_step_2"][chosen]
    if (partition != partition[0]).any():
        at = int(chosen[int(np.argmax(partition != partition[0]))])
        raise InputError(field=f"{field}[{at}]: kspace_encode_step_2", got="a second partition", wanted="2-D encoding")


def _refuse_slabs(field: str, heads: NDArray[Any], chosen: Places) -> None:
    numbers = heads["idx"]["slice"][chosen]
    at = int(chosen[int(np.argmax(numbers != numbers[0]))])
    raise InputError(
        field=f"{field}[{at}]: slice",
        got=f"slab {int(heads['idx']['slice'][at])} beside slab {int(numbers[0])}, of a volume each",
        wanted="one volume",
        cure="Export each slab to a file of its own; slices without a second phase encode have matrixSize.z 1.",
    )


@dataclass(frozen=True)
class _Grid:
    """The image's grid, slices and channels, and where readouts lie on it."""

    field: str
    heads: NDArray[Any]
    encoding: MrdEncoding
    slices: NDArray[Any]
    channels: int

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        """Numbers that place readouts: taken one by one from the headers they would be much slower."""
        counters = self.heads["idx"]
        names = ("number_of_samples", "discard_pre", "discard_post", "center_sample")
        steps = ("kspace_encode_step_1", "kspace_encode_step_2")
        return {
            **{name: self.heads[name].tolist() for name in names},
            **{name: counters[name].tolist() for name in steps},
            "slice": np.searchsorted(self.slices, counters["slice"]).tolist(),
            "reversed": has_flag(self.heads["flags"].astype(np.uint64), _REVERSED).tolist(),
        }

    @property
    def ny(self) -> int:
        return self.encoding.encoded.matrix[1]

    @property
    def nx(self) -> int:
        return self.encoding.encoded.matrix[0]

    @cached_property
    def echo(self) -> int:
        """Sample at the centre of most whole readouts that run forwards; the middle without any that say one."""
        heads = self.heads
        kept = heads["number_of_samples"].astype(int) - heads["discard_pre"] - heads["discard_post"]
        echo = heads["center_sample"].astype(int) - heads["discard_pre"]
        forwards = ~has_flag(heads["flags"].astype(np.uint64), _REVERSED)
        said = echo[forwards & (kept == self.nx) & (echo > 0) & (echo < self.nx)]
        return int(np.bincount(said).argmax()) if len(said) else self.nx // 2

    def placed(self, at: int, encoding: MrdEncoding) -> Readout:
        """The place of the readout at ``at``, whose own encoding is ``encoding``."""
        head = {name: column[at] for name, column in self._columns.items()}
        line = self._row(at, 1, encoding.centre_line, encoding)
        partition = 0 if encoding.encoded.matrix[2] == 1 else self._row(at, 2, encoding.centre_partition, encoding)
        stored, before, after = head["number_of_samples"], head["discard_pre"], head["discard_post"]
        kept = stored - before - after
        if not 1 <= kept <= self.nx:
            raise InputError(
                field=f"{self.field}[{at}]: number_of_samples",
                got=f"{stored}, of which {before} and {after} are discarded",
                wanted=f"1 to {self.nx} samples, the encoded matrix",
            )
        backwards, echo = head["reversed"], head["center_sample"] - before
        start = turn = 0
        if backwards and kept == self.nx and 0 < echo < kept:
            turn = self.echo - (kept - 1 - echo)
        if kept < self.nx:
            # A partial echo: the sample at the centre of k-space goes to the centre of the grid.
            start = self.nx // 2 - (kept - 1 - echo if backwards else echo)
            if not 0 <= start <= self.nx - kept:
                beyond = "" if 0 <= echo < kept else ", which lies beyond them"
                raise InputError(
                    field=f"{self.field}[{at}]: center_sample",
                    got=f"{head['center_sample']} for {kept} samples{beyond}",
                    wanted=f"a centre that keeps them within {self.nx} columns",
                )
        return Readout(
            index=at,
            slice=head["slice"],
            line=line,
            partition=partition,
            stored=stored,
            first_sample=before,
            n_samples=kept,
            start=start,
            reversed=backwards,
            turn=turn,
        )

    def _row(self, at: int, step: int, centre: int | None, encoding: MrdEncoding) -> int:
        """Row along phase encode ``step`` (1 or 2) of the readout at ``at``."""
        counter = self._columns[f"kspace_encode_step_{step}"][at]
        centre = encoding.encoded.matrix[step] // 2 if centre is None else centre
        rows = self.encoding.encoded.matrix[step]
        row = counter - centre + rows // 2
        if not 0 <= row < rows:
            beyond = f", which lies beyond the matrix of {rows}" if centre >= rows else ""
            raise InputError(
                field=f"{self.field}[{at}]: kspace_encode_step_{step}",
                got=f"{counter} with the centre of k-space at {centre}{beyond}: row {row}",
                wanted=f"rows 0 to {rows - 1}",
                cure=f"Compare encodedSpace.matrixSize.{'xyz'[step]} and the encoding limits with the scan.",
            )
        return row

    def calibration(
        self, places: Places, header: MrdHeader, readouts: Sequence[Readout], notes: dict[str, str]
    ) -> tuple[list[Readout], list[Readout]]:
        """Calibration readouts that are data of the image as well, and those that serve the coil maps alone."""
        numbered = [(int(at), self._calibration(int(at), header)) for at in places]
        placed = [(at, readout) for at, readout in numbered if readout is not None]
        kind = kind_of(self.heads, readouts[0].index)
        alike = {at for at, _ in placed if kind_of(self.heads, at) == kind}
        imaged = {readout.place for readout in readouts}
        calibrated = {readout.place for at, readout in placed if at in alike}
        data = calibration_data(self.encoding.calibration_mode, imaged, calibrated)
        within, apart = list[Readout](), list[Readout]()
        for at, readout in placed:
            (within if at in alike and readout.place in data else apart).append(readout)
        skipped = len(numbered) - len(placed)
        for name, count, text in (
            ("calibration_lines", len(within), "readouts within the scan, used as data and for coil maps"),
            ("calibration_scan", len(apart), "readouts, used for coil maps only"),
            ("calibration_skipped", skipped, "readouts that do not fit the image's grid, slices or coils"),
        ):
            if count:
                notes[name] = f"{count} {text}"
        return within, apart

    def _calibration(self, at: int, header: MrdHeader) -> Readout | None:
        """The place of a calibration readout; None where it has none on the image's grid."""
        head, number = self.heads[at], int(self.heads["encoding_space_ref"][at])
        if not (number < len(header.encodings) and int(head["active_channels"]) == self.channels):
            return None
        own = header.encodings[number]
        as_planar = (own.encoded.matrix[2] == 1) == (self.encoding.encoded.matrix[2] == 1)
        if not (as_planar and np.isin(head["idx"]["slice"], self.slices) and _same_field_of_view(own, self.encoding)):
            return None
        try:
            return self.placed(at, own)
        except InputError:
            return None


def _same_field_of_view(first: MrdEncoding, second: MrdEncoding) -> bool:
    axes = 2 if second.encoded.matrix[2] == 1 else 3  # the thickness of slices may differ
    lengths = zip(first.encoded.field_of_view[:axes], second.encoded.field_of_view[:axes], strict=True)
    return first is second or all(abs(a - b) <= _SAME_FIELD_OF_VIEW * b for a, b in lengths)


def _refuse_repeats(field: str, readouts: list[Readout]) -> None:
    first_at: dict[tuple[int, int, int], int] = {}
    for readout in readouts:
        first = first_at.setdefault(readout.place, readout.index)
        if first != readout.index:
            partition = f" and partition {readout.partition}" if readout.partition else ""
            raise InputError(
                field=f"{field}[{readout.index}]: kspace_encode_step_1",
                got=f"row {readout.line}{partition} of slice {readout.slice}, as acquisition {first}",
                wanted="each line once",
                cure=duplicates_cure(),
            )


Vector = tuple[float, ...]
_VECTORS = ("position", "phase_dir", "read_dir", "slice_dir")


@dataclass(frozen=True)
class CartesianSource(SlicedSource):
    """One series of lines on a grid: of raw data, whose headers are read before any samples.

    Parameters
    ----------
    acquisitions : Acquisitions
        Of the open file.
    header : MrdHeader
        The file's header.
    purposes : Purposes
        Which acquisitions are read, and as what.
    options : ReadOptions
        Bounds on the grid, and what to do with a line that comes again.

    Raises
    ------
    InputError
        When it is read: as `plan_readouts`, for samples that do not fit their header, and as `KSpaceData`.
    """

    acquisitions: Acquisitions
    header: MrdHeader
    purposes: Purposes
    options: ReadOptions
    by_headers: ClassVar[bool] = True

    @property
    def series(self) -> Mapping[str, tuple[int, ...]]:
        """See `Source`."""
        return self.purposes.series

    @cached_property
    def plan(self) -> ReadoutPlan:
        """Where every readout belongs."""
        once, limits = self.options.duplicates == "refuse", self.options.limits
        field, heads = self.acquisitions.field, self.acquisitions.heads
        plan = plan_readouts(field, heads, self.header, self.purposes, limits, repeats_allowed=not once)
        check_declared_shape("encodedSpace.matrixSize", plan.shape, 8, limits)
        return self._turned_by_samples(plan)

    def _turned_by_samples(self, plan: ReadoutPlan) -> ReadoutPlan:
        """The plan with whole readouts that are reversed rotated as the samples show.

        That is as their headers say; or not at all, because many files give the middle as the centre of readouts that
        run backwards as well; or by a few other samples, where the energies of the forward readouts beside them agree
        much better with that.
        """
        whole = [readout for readout in plan.readouts if readout.n_samples == plan.shape[-1]]
        middle = (plan.shape[0] // 2, plan.shape[2] // 2)
        planes = {(one.slice, one.partition) for one in whole if one.reversed}
        if not planes:
            return plan
        plane = min(planes, key=lambda at: abs(at[0] - middle[0]) + abs(at[1] - middle[1]))
        here = [one for one in whole if (one.slice, one.partition) == plane]
        energies = {
            at: np.sum(np.abs(samples).astype(np.float64) ** 2, axis=0)
            for at, samples in self.acquisitions.samples(sorted(one.index for one in here))
        }

        def kept(one: Readout) -> NDArray[np.float64]:
            return energies[one.index][one.first_sample : one.first_sample + one.n_samples]

        forwards, lags = [one for one in here if not one.reversed], range(-_MOST_TURNED, _MOST_TURNED + 1)
        said, agreement = 0.0, np.zeros(len(lags))
        for one in (one for one in here if one.reversed):
            back = kept(one)[::-1]
            for other in sorted(forwards, key=lambda other: abs(other.line - one.line))[:2]:
                said += float(np.vdot(kept(other), np.roll(back, one.turn)))
                agreement += [np.vdot(kept(other), np.roll(back, lag)) for lag in lags]
        plain, best = agreement[lags.index(0)], int(agreement.argmax())
        if agreement[best] > _MUCH_BETTER * max(said, plain):
            turn = lags[best]
        elif plain > said:
            turn = 0
        else:
            return plan

        def rotated(ones: Sequence[Readout]) -> tuple[Readout, ...]:
            return tuple(
                replace(one, turn=turn) if one.reversed and one.n_samples == plan.shape[-1] else one for one in ones
            )

        return replace(plan, readouts=rotated(plan.readouts), calibration=rotated(plan.calibration))

    @cached_property
    def images(self) -> GridImages:
        """How the grid becomes images' k-space."""
        return GridImages(self.purposes.encoding)

    @property
    def geometry(self) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice, or of every plane of a volume."""
        return self.images.geometry(self.acquisitions.heads, self.plan, self.header)

    @property
    def one_by_one(self) -> bool:
        """Whether these are slices: every readout of a volume brings a sample to each plane."""
        return not self.images.volume

    def load(self) -> KSpaceData:
        """All slices, or planes."""
        read = self._read(self.plan, self.images)
        if not read["kspace"].any():
            raise InputError(
                field=self.acquisitions.field,
                got=f"zeros in all {len(self.plan.readouts)} readouts",
                wanted="measured samples",
                cure="Labels without samples, as of a design that was exported, say what to measure: mri-design info "
                "lists their lines.",
            )
        return KSpaceData(**read)

    def slice(self, index: int) -> KSpaceData:
        """One slice, or one plane of a volume."""
        return KSpaceData(**self._part(index))

    def samplings(self) -> tuple[Sampling, ...]:
        """Which samples were measured, by the headers alone."""
        return self.images.samplings(self.plan)

    def summary(self) -> ScanSummary:
        """The samples of one slice, or of a volume those of one plane, and the rest from headers."""
        samplings = self.samplings()
        index = middle_slice(samplings)
        read = self._part(index)
        if self.images.volume:
            read["header"]["volume"] = volume_note(len(samplings), read["kspace"].shape[2:])
        part = KSpaceData(**read) if read["kspace"].any() else None
        return ScanSummary(
            samplings if part is None else self._looked_at(samplings, index, part),
            read["kspace"].shape[1],
            name=read["name"],
            index=index,
            part=part,
            geometry=self.geometry,
            by_headers=len(samplings) > 1,
            header=read["header"],
        )

    def _looked_at(self, samplings: Sequence[Sampling], index: int, part: KSpaceData) -> tuple[Sampling, ...]:
        """Samplings by the headers, less the readouts of zeros that the samples of one slice or plane lead to.

        A readout of a volume brings a sample to every plane, so that what is empty in one plane is empty in all. Lines
        that are empty in the slice that was read, although a readout is there, are looked at in the other slices too:
        zeros fill the edges of k-space in all slices alike.
        """
        (held,) = part.samplings
        if self.images.volume:
            return (held,) * len(samplings)
        empty = samplings[index].lines & ~held.lines
        suspects = {at.index: at for at in self.plan.readouts if empty[at.line] and at.slice != index}
        full = {(at.slice, at.line) for at in self.plan.readouts if at.index not in suspects}
        limit = ROUND_OFF * strongest_component(part.kspace)
        for number, samples in self.acquisitions.samples(list(suspects)):
            if strongest_component(samples) > limit:
                full.add((suspects[number].slice, suspects[number].line))
        lines = np.zeros((len(samplings), len(empty)), dtype=bool)
        lines[tuple(np.transpose(sorted(full)))] = True
        looked = (Sampling(one.samples & there[:, np.newaxis]) for one, there in zip(samplings, lines, strict=True))
        return tuple(held if number == index else one for number, one in enumerate(looked))

    def _part(self, index: int) -> dict[str, Any]:
        """Fields of a `KSpaceData` of one slice or plane."""
        if self.images.volume:
            return self._read(self.plan, GridImages(self.purposes.encoding, self.images.columns.start + index))
        return self._read(self.plan.of_slice(index), self.images)

    def _read(self, plan: ReadoutPlan, images: GridImages) -> dict[str, Any]:
        """Fields of a `KSpaceData` of a part of the plan."""
        acquisitions, purposes, duplicates = self.acquisitions, self.purposes, self.options.duplicates
        with within_single_precision(acquisitions.field) as sums:
            stored = _filled(acquisitions, plan, plan.readouts, duplicates, images)
            coils, coil_notes = working_coils(stored)
            kspace = images.kspace(only_coils(stored, coils), plan.readouts)
            sums.append(kspace)
            calibration = None
            if plan.calibration:
                stored = _filled(acquisitions, plan, plan.calibration, "average", images)
                calibration = images.kspace(only_coils(stored, coils), plan.calibration)
                sums.append(calibration)
            times = self.plan.times
            least, most = int(times[times > 0].min()), int(times.max())
            places = [readout.index for readout in plan.readouts]
            covariance, noise_notes = noise_of_data(
                acquisitions, purposes.noise, places, coils,
                bandwidth=self.header.noise_bandwidth, repeats=least if duplicates == "average" else 1,
            )  # fmt: skip
            repeat = None
            if covariance is None and not images.volume:
                repeat = self._repeat(plan, kspace, coils, least)
                sums += [] if repeat is None else [repeat]
        notes = {**purposes.notes, **plan.notes, **coil_notes, **noise_notes, **images.notes(plan, kspace)}
        notes |= self.header.notes
        if acquisitions.dimensions[purposes.imaging].any():
            notes["coordinates_skipped"] = "those of the samples: by the header the scan is cartesian"
        if most > 1:
            notes["duplicates"] = f"{duplicates} of up to {most} readouts a line, at least {least}"
        return {
            "kspace": kspace,
            "measured": measured_lines("data", kspace),
            "name": acquisitions.path.stem,
            "header": {**acquisitions.provenance, **notes},
            "noise_covariance": covariance,
            "calibration": calibration,
            "repeat": repeat,
            "geometry": images.geometry(acquisitions.heads, plan, self.header),
            "source": self.header.source_of(int(acquisitions.heads["idx"]["contrast"][purposes.imaging[0]])),
        }

    def _repeat(
        self, plan: ReadoutPlan, kspace: NDArray[np.complex64], coils: NDArray[np.intp], least: int
    ) -> NDArray[np.complex64] | None:
        """The same slices once more, whose difference from ``kspace`` shows their noise; None where nothing came twice.

        Of lines that came several times in this series: where the first or last one counts it is the one next to it;
        of an average the difference of two halves of its readouts, scaled to what two such averages of ``least``
        readouts would differ by. Else it is the next repetition of the series, where that has the same readouts.

        Parameters
        ----------
        plan : ReadoutPlan
            Of the slices.
        kspace : complex64 array, shape (slice, coil, ky, kx)
            Of the coils that are read.
        coils : int array, shape (coil,)
            Their channels.
        least : int
            How many readouts a line is from, at least.
        """
        again = _again(plan, self.options.duplicates)
        if again.readouts:
            once_more = self._of_channels(again, coils)
            if self.options.duplicates != "average":
                return once_more
            n, half = (part.times[:, 0][:, np.newaxis, :, np.newaxis] for part in (plan, again))
            scale = np.sqrt(2 * half * n / (np.maximum(n - half, 1) * least)).astype(np.float32)
            return np.where(half > 0, kspace + scale * (once_more - kspace), 0).astype(np.complex64)
        numbers = self.series.get("repetition", ())
        if len(numbers) < 2:
            return None
        heads, field = self.acquisitions.heads, self.acquisitions.field
        first = heads[plan.readouts[0].index]
        at = numbers.index(int(first["idx"]["repetition"]))
        chosen = {name: int(numbers_of(first, name)) for name in (*COUNTERS, ENCODING)} | {
            "repetition": (*numbers[at + 1 :], numbers[at - 1])[0]
        }
        try:
            purposes = sort_by_purpose(field, heads, self.header, chosen)
            other = replace(self, purposes=replace(purposes, calibration=purposes.calibration[:0])).plan
        except InputError:  # a repetition with other sizes, or lines of its own that come again
            return None
        if other.shape != self.plan.shape:
            return None
        if plan.shape != other.shape:  # one slice of several
            other = other.of_slice(next(one.slice for one in self.plan.readouts if one.index == plan.readouts[0].index))
        return self._of_channels(other, coils)

    def _of_channels(self, plan: ReadoutPlan, coils: NDArray[np.intp]) -> NDArray[np.complex64]:
        """The slices of a plan, of some channels."""
        stored = _filled(self.acquisitions, plan, plan.readouts, self.options.duplicates, self.images)
        return self.images.kspace(only_coils(stored, coils), plan.readouts)


def _again(plan: ReadoutPlan, duplicates: str) -> ReadoutPlan:
    """Readouts of lines that came several times: those that do not count, or every second one of an average."""
    seen = dict[tuple[int, int, int], list[Readout]]()
    for readout in plan.readouts:
        seen.setdefault(readout.place, []).append(readout)
    others = {"last": slice(-1), "first": slice(1, None)}.get(duplicates, slice(1, None, 2))
    kept = {id(one) for found in seen.values() for one in found[others]}
    return replace(plan, readouts=tuple(one for one in plan.readouts if id(one) in kept), calibration=())


@dataclass(frozen=True)
class GridImages:
    """How the grid that was filled becomes images' k-space.

    Parameters
    ----------
    encoding : MrdEncoding
        Of the image.
    only : int, optional
        Of a volume, the one readout position (encoded column) that is made; all within the field of view by default.
    """

    encoding: MrdEncoding
    only: int | None = None

    @property
    def volume(self) -> bool:
        """Whether there are two phase encodes."""
        return self.encoding.encoded.matrix[2] > 1

    @property
    def columns(self) -> slice:
        """Readout positions within the field of view of the image; all where the header does not say otherwise."""
        nx = self.encoding.encoded.matrix[0]
        if self.only is not None:
            return slice(self.only, self.only + 1)
        encoded, wanted = self.encoding.encoded.field_of_view[0], self.encoding.reconstructed.field_of_view[0]
        if math.isnan(encoded) or math.isnan(wanted) or wanted >= encoded:
            return slice(0, nx)
        keep = min(nx, max(4, round(nx * wanted / encoded)))
        first = nx // 2 - keep // 2
        return slice(first, first + keep)

    @property
    def weights(self) -> NDArray[np.complex64] | None:
        """By what the samples of a readout are multiplied and summed to give the one position; None where all are made.

        Row ``only`` of the centred orthonormal inverse Fourier transform.
        """
        if self.only is None:
            return None
        nx = self.encoding.encoded.matrix[0]
        turns = (np.arange(nx) - nx // 2) * (self.only - nx // 2) / nx
        return np.asarray(np.exp(2j * np.pi * turns) / math.sqrt(nx), dtype=np.complex64)

    def kspace(self, filled: NDArray[np.complex64], readouts: Sequence[Readout]) -> NDArray[np.complex64]:
        """(slice, coil, kz, ky, kx) as (slice, coil, ky, kx), of a volume as (x, coil, ky, kz); no oversampling."""
        if self.volume:
            planes = filled[0].transpose(3, 0, 2, 1)
            return np.ascontiguousarray(planes if self.only is not None else readout_positions(planes)[self.columns])
        return _cropped(filled[:, :, 0], readouts, self.columns)

    def samplings(self, plan: ReadoutPlan) -> tuple[Sampling, ...]:
        """Which samples were measured, by the headers alone, of every slice or every plane of a volume."""
        keep = self.columns.stop - self.columns.start
        if not self.volume:
            return tuple(Sampling(held) for held in _held(plan.readouts, plan.shape, keep))
        plane = np.zeros((plan.shape[3], plan.shape[2]), dtype=bool)
        for readout in plan.readouts:
            plane[readout.line, readout.partition] = True
        return (Sampling(plane),) * keep

    def notes(self, plan: ReadoutPlan, kspace: NDArray[np.complex64]) -> dict[str, str]:
        """Where the file's counters have the centre, what was cut off the readouts, and what became of a volume."""
        notes = self._centre_and_cut
        if not self.volume:
            return notes
        held = np.zeros(plan.shape[-1], dtype=bool)
        for readout in plan.readouts:
            held[readout.start : readout.start + readout.n_samples] = True
        notes["volume"] = volume_note(len(kspace), kspace.shape[2:])
        if not held.all():
            notes["partial_echo"] = (
                f"columns {index_runs(~held)} of the readouts count as zeros: images are blurred along the readout"
            )
        return notes

    @property
    def _centre_and_cut(self) -> dict[str, str]:
        encoded, wanted = self.encoding.encoded, self.encoding.reconstructed
        counters = [("kspace_encode_step_1", self.encoding.centre_line)]
        counters += [("kspace_encode_step_2", self.encoding.centre_partition)] if self.volume else []
        said = ", ".join(f"{name} = {centre}" for name, centre in counters if centre is not None)
        notes = {"centre_in_file": said} if said else {}
        keep = GridImages(self.encoding).columns
        if keep.stop - keep.start < encoded.matrix[0]:
            notes["oversampling_removed"] = (
                f"readouts of {encoded.matrix[0]} samples over {encoded.field_of_view[0]:g} mm were cut to the "
                f"{keep.stop - keep.start} of {wanted.field_of_view[0]:g} mm"
            )
        return notes

    def geometry(self, heads: NDArray[Any], plan: ReadoutPlan, header: MrdHeader) -> tuple[SliceGeometry, ...] | None:
        """Size and place of every slice or plane, by the header's field of view and the slice's first readout.

        Images are made by the inverse Fourier transform: from samples that go with exp(-2πi k·r) along the directions
        of a readout they grow along these, and from samples that go with the conjugate along the opposite ones, through
        the same pixel in the middle. That holds for all axes that are encoded, the slice's own only in a volume.
        """
        encoded = self.encoding.encoded
        sizes = [length / count for length, count in zip(encoded.field_of_view, encoded.matrix, strict=True)]
        vectors = [name for name in _VECTORS if name in (heads.dtype.names or ()) and heads.dtype[name].shape == (3,)]
        first = {readout.slice: readout.index for readout in reversed(plan.readouts)}
        places = []
        for number in range(plan.shape[0]):
            place = list[Vector]()
            if len(vectors) == len(_VECTORS) and not header.unknown_place:
                place = self._along_image([tuple(heads[name][first[number]]) for name in vectors], header.fourier_sign)
            places += self._planes(sizes, place, header) if self.volume else [_slice(sizes, place, header)]
        known = tuple(place for place in places if place is not None)
        return known if len(known) == len(places) else None

    def _along_image(self, place: Sequence[Vector], fourier_sign: int | None) -> list[Vector]:
        """Centre, and directions of the image's ky, kx and slice, from those of a readout."""
        turned = (False, True, True, self.volume)
        return [
            tuple(0.0 - x for x in vector) if against and fourier_sign == 1 else vector
            for vector, against in zip(place, turned, strict=True)
        ]

    def _planes(self, sizes: Sequence[float], place: Sequence[Vector], header: MrdHeader) -> list[SliceGeometry | None]:
        """Planes (ky, kz) at the readout positions of a volume whose centre and directions are ``place``."""
        pixel, middle = (sizes[1], sizes[2]), self.encoding.encoded.matrix[0] // 2
        planes = []
        for column in range(self.columns.start, self.columns.stop):
            vectors = list[Vector]()
            if place:
                centre, phase, read, across = place
                offset = (column - middle) * sizes[0]
                at = tuple(x + offset * step for x, step in zip(centre, read, strict=True))
                vectors = [at, phase, across, read]
            planes.append(SliceGeometry.of_header(pixel, sizes[0], vectors, header.unsettled))
        return planes


def _slice(sizes: Sequence[float], place: Sequence[Vector], header: MrdHeader) -> SliceGeometry | None:
    return SliceGeometry.of_header((sizes[1], sizes[0]), sizes[2], place, header.unsettled)


def _filled(
    acquisitions: Acquisitions, plan: ReadoutPlan, readouts: Sequence[Readout], duplicates: str, images: GridImages
) -> NDArray[np.complex64]:
    """K-space (slice, coil, kz, ky, kx); of the images' one readout position (slice, coil, kz, ky, 1)."""
    weights = images.weights
    kspace = np.zeros(plan.shape if weights is None else (*plan.shape[:-1], 1), np.complex64)
    times = np.zeros((plan.shape[0], *plan.shape[2:4]), dtype=np.intp)
    by_index = {readout.index: readout for readout in readouts}
    for at, samples in acquisitions.samples(list(by_index)):
        readout = by_index[at]
        row = kspace[readout.slice, :, readout.partition, readout.line]
        times[readout.place] += 1
        if times[readout.place] > 1 and duplicates == "first":
            continue
        if duplicates == "last":
            row[:] = 0
        columns = slice(readout.start, readout.start + readout.n_samples)
        new = samples[:, readout.first_sample : readout.first_sample + readout.n_samples]
        new = np.roll(new[:, ::-1], readout.turn, -1) if readout.reversed else new
        if weights is None:
            row[:, columns] += new
        else:
            row[:, 0] += new @ weights[columns]
    if duplicates == "average":
        kspace /= np.maximum(times, 1)[:, np.newaxis, ..., np.newaxis]
    return kspace


def _cropped(kspace: NDArray[np.complex64], readouts: Sequence[Readout], columns: slice) -> NDArray[np.complex64]:
    """Lines (slice, coil, ky, kx) of the image's part between ``columns``, cut out in the image domain.

    What a partial echo leaves out stays empty, however far the transform spreads its neighbours.
    """
    nx, keep = kspace.shape[-1], columns.stop - columns.start
    if keep == nx:
        return kspace
    held = _held(readouts, (*kspace.shape[:2], 1, *kspace.shape[2:]), keep)
    cropped = np.empty((*kspace.shape[:-1], keep), np.complex64)
    for index in np.ndindex(kspace.shape[:2]):  # one coil of one slice at a time: the transform needs several copies
        lines = np.fft.ifft(np.fft.ifftshift(kspace[index], axes=-1), axis=-1, norm="ortho")
        lines = np.fft.fftshift(lines, axes=-1)[..., columns]
        lines = np.fft.fft(np.fft.ifftshift(lines, axes=-1), axis=-1, norm="ortho")
        cropped[index] = np.fft.fftshift(lines, axes=-1) * held[index[0]]
    return cropped


def _held(readouts: Sequence[Readout], shape: Sequence[int], keep: int) -> NDArray[np.bool_]:
    """Which samples (slice, ky, kx) readouts of slices hold, on ``keep`` columns: those nearest to the encoded ones."""
    n_slices, nx = shape[0], shape[-1]
    nearest = np.clip(np.rint((np.arange(keep) - keep // 2) * nx / keep).astype(int) + nx // 2, 0, nx - 1)
    held = np.zeros((n_slices, shape[-2], keep), dtype=bool)
    for readout in readouts:
        within = (nearest >= readout.start) & (nearest < readout.start + readout.n_samples)
        held[readout.slice, readout.line] |= within
    return held
