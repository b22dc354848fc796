"""Where each Cartesian readout of a raw-data file is placed, and which calibration readouts are data."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.mrd.header import MrdEncoding, MrdHeader
from mri_design.scan.io.mrd.purposes import COUNTERS, Places, Purposes, common_channels, has_flag
from mri_design.scan.io.safe import ReadLimits

_REVERSED = 22  # number of the MRD acquisition flag
# Calibration that was scanned on its own, perhaps with another contrast: for coil maps, never data.
_OWN_SCAN = ("separate", "external")
_UNSAID = ("", "other")
_ALIKE = ("encoding_space_ref", "number_of_samples", "discard_pre", "discard_post")
_SAME_FIELD_OF_VIEW = 0.01
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
        What was left out, for the card.
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
    field: str,
    heads: NDArray[Any],
    header: MrdHeader,
    purposes: Purposes,
    limits: ReadLimits,
    *,
    repeats_allowed: bool,
) -> ReadoutPlan:
    """Place the readouts of slices, or of one volume.

    A line is placed at ``counter - centre + N // 2``, and so is a partition of a volume. Calibration lines that were
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
    grid = _Grid(field, heads, encoding, slices, channels)
    readouts = [grid.placed(int(at), encoding) for at in chosen]
    within, apart = grid.calibration(purposes.calibration, header, readouts, notes)
    data = sorted([*readouts, *within], key=lambda readout: readout.index)
    if not repeats_allowed:
        _refuse_repeats(field, data)
    nx, ny, nz = encoding.encoded.matrix
    return ReadoutPlan(tuple(data), tuple(apart), (int(slices.size), channels, nz, ny, nx), notes)


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
    """What calibration has to have in common with a readout of the image to be data beside it.

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
        """What places the readouts, as plain numbers: one by one they are had much faster than from the headers."""
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
        backwards = head["reversed"]
        start = 0
        if kept < self.nx:
            # A partial echo: the sample at the centre of k-space goes to the centre of the grid.
            echo = head["center_sample"] - before
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
                cure="Say what to do with repeated lines: duplicates='average' or 'last', in a recipe under [input].",
            )
