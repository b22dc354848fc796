"""Which readouts of a raw-data file are data, coil calibration or noise, and where each is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.mrd.header import MrdEncoding, MrdHeader
from mri_design.scan.io.safe import ReadLimits

__all__ = ["Readout", "ReadoutPlan", "is_noise", "plan_readouts"]

# Numbers of the MRD acquisition flags; flag n is bit n - 1.
_NOISE, _CALIBRATION, _CALIBRATION_AND_IMAGING, _REVERSED = 19, 20, 21, 22
# Navigation, phase correction, feedback, dummy, surface-coil correction, phase stabilisation.
_NEITHER = (23, 24, 26, 27, 28, 29, 30, 31)
# Counters of which only the first value is read. Averages are repeats of one line, so they are duplicates.
_FIRST_ONLY = ("contrast", "phase", "repetition", "set")
# Calibration that was scanned on its own, perhaps with another contrast: for coil maps, never data.
_OWN_SCAN = ("separate", "external")
_UNSAID = ("", "other")
_ALIKE = ("encoding_space_ref", "number_of_samples", "discard_pre", "discard_post")
_SAME_FIELD_OF_VIEW = 0.01


@dataclass(frozen=True, kw_only=True)
class Readout:
    """One readout and its place.

    Parameters
    ----------
    index : int
        Position in the file's list of acquisitions.
    slice, line : int
        Slice (counted over the slices that occur) and row ky of the grid.
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
    stored: int
    first_sample: int
    n_samples: int
    start: int
    reversed: bool


@dataclass(frozen=True)
class ReadoutPlan:
    """Everything needed to fill the grid.

    Parameters
    ----------
    encoding : MrdEncoding
        Of the image.
    readouts : tuple of Readout
        Data, in the file's order.
    calibration : tuple of Readout
        For coil maps only, in the file's order.
    noise : int array
        Positions of the noise readouts.
    shape : tuple of int
        Grid (slice, coil, ky, kx) to be allocated.
    notes : mapping of str to str
        What was left out, for the card.
    """

    encoding: MrdEncoding
    readouts: tuple[Readout, ...]
    calibration: tuple[Readout, ...]
    noise: NDArray[np.intp]
    shape: tuple[int, int, int, int]
    notes: Mapping[str, str]


def plan_readouts(
    field: str, heads: NDArray[Any], header: MrdHeader, limits: ReadLimits, *, repeats_allowed: bool
) -> ReadoutPlan:
    """Sort the readouts of the first contrast, repetition, set and phase, and place them.

    A line is placed at ``counter - centre + N // 2``. Calibration lines that were acquired within the scan are data
    too, where they fill a row of the grid that no other readout does; those of a scan of their own, or that repeat a
    row, serve the coil maps alone. Navigation, phase correction and the like are left out.

    Parameters
    ----------
    field : str
        File and dataset, for messages.
    heads : structured array, shape (acquisition,)
        Acquisition headers.
    header : MrdHeader
        The file's header.
    limits : ReadLimits
        Bounds on slices and coils.
    repeats_allowed : bool
        Whether a line may come more than once.

    Raises
    ------
    InputError
        Naming the acquisition where headers disagree with each other or with the file's header, a counter
        leads out of the grid, a line comes again, or slices hold different lines.
    """
    notes: dict[str, str] = {}
    chosen, calibration, noise = _sorted_by_purpose(field, heads, notes)
    first = int(chosen[0])
    encoding = header.encoding(f"{field}[{first}]", int(heads["encoding_space_ref"][first]))
    channels = _channels(field, heads, chosen, limits)
    _require_2d(field, heads, chosen)
    slices = np.unique(heads["idx"]["slice"][chosen])
    if slices.size > limits.max_slices:
        raise InputError(field=f"{field}: slices", got=str(slices.size), wanted=f"at most {limits.max_slices}")
    if int(slices[-1]) != slices.size - 1:
        notes["slices"] = "present: " + ", ".join(str(int(number)) for number in slices)
    grid = _Grid(field, heads, encoding, slices, channels)
    readouts = [grid.placed(int(at), encoding) for at in chosen]
    within, apart = grid.calibration(calibration, header, readouts, notes)
    data = sorted([*readouts, *within], key=lambda readout: readout.index)
    if not repeats_allowed:
        _refuse_repeats(field, data)
    _check_same_lines(field, data, slices.size, grid.ny)
    return ReadoutPlan(
        encoding,
        tuple(data),
        tuple(apart),
        noise,
        (int(slices.size), channels, grid.ny, grid.nx),
        notes,
    )


def is_noise(heads: NDArray[Any]) -> bool:
    """Whether the first of some readouts holds noise alone."""
    return bool(_has_flag(heads["flags"].astype(np.uint64), _NOISE)[0])


Places = NDArray[np.intp]


def _sorted_by_purpose(field: str, heads: NDArray[Any], notes: dict[str, str]) -> tuple[Places, Places, Places]:
    """Positions of imaging, calibration and noise readouts, the first two of the first of every counter."""
    flags = heads["flags"].astype(np.uint64)
    noise = _has_flag(flags, _NOISE)
    neither = np.logical_or.reduce([_has_flag(flags, flag) for flag in _NEITHER])
    left = ~noise & ~neither
    calibration = left & _has_flag(flags, _CALIBRATION) & ~_has_flag(flags, _CALIBRATION_AND_IMAGING)
    imaging = left & ~calibration
    if (neither & ~noise).any():
        notes["readouts_skipped"] = (
            f"{int((neither & ~noise).sum())} of {len(heads)}: navigation, correction or dummies"
        )
    calibration = _first_of_counters(heads, calibration, _FIRST_ONLY, {})
    imaging = _first_of_counters(heads, imaging, ("encoding_space_ref", *_FIRST_ONLY), notes)
    if not imaging.any():
        raise InputError(field=field, got=f"no imaging readout among {len(heads)}", wanted="at least one")
    return np.flatnonzero(imaging), np.flatnonzero(calibration), np.flatnonzero(noise)


def _first_of_counters(
    heads: NDArray[Any], keep: NDArray[np.bool_], names: Sequence[str], notes: dict[str, str]
) -> NDArray[np.bool_]:
    keep = keep.copy()
    for name in names:
        counter = heads[name] if name == "encoding_space_ref" else heads["idx"][name]
        if keep.any():
            first = int(counter[keep].min())
            others = keep & (counter != first)
            if others.any():
                notes[name] = f"{first}, the first of {len(np.unique(counter[keep]))}; the others were not read"
            keep &= ~others
    return keep


def _has_flag(flags: NDArray[np.uint64], number: int) -> NDArray[np.bool_]:
    has: NDArray[np.bool_] = (flags >> np.uint64(number - 1)) & np.uint64(1) != 0
    return has


def _channels(field: str, heads: NDArray[Any], chosen: Places, limits: ReadLimits) -> int:
    """Channels of the data, which must be as many in every readout, as must be the samples."""
    first = int(chosen[0])
    for name in ("number_of_samples", "active_channels"):
        got = int(heads[name][first])
        if got < 1:
            raise InputError(field=f"{field}[{first}]: {name}", got=str(got), wanted="at least 1")
        different = np.flatnonzero(heads[name][chosen] != got)
        if different.size:
            at = int(chosen[different[0]])
            raise InputError(
                field=f"{field}[{at}]: {name}",
                got=str(int(heads[name][at])),
                wanted=f"{got}, as acquisition {first}",
            )
    channels = int(heads["active_channels"][first])
    if channels > limits.max_coils:
        raise InputError(
            field=f"{field}[{first}]: active_channels",
            got=str(channels),
            wanted=f"at most {limits.max_coils}",
        )
    return channels


def _require_2d(field: str, heads: NDArray[Any], chosen: Places) -> None:
    partition = heads["idx"]["kspace_encode_step_2"][chosen]
    if (partition != partition[0]).any():
        at = int(chosen[int(np.argmax(partition != partition[0]))])
        raise InputError(field=f"{field}[{at}]: kspace_encode_step_2", got="a second partition", wanted="2-D encoding")


@dataclass(frozen=True)
class _Grid:
    """The image's grid, slices and channels, and where readouts lie on it."""

    field: str
    heads: NDArray[Any]
    encoding: MrdEncoding
    slices: NDArray[Any]
    channels: int

    @property
    def ny(self) -> int:
        return self.encoding.encoded.matrix[1]

    @property
    def nx(self) -> int:
        return self.encoding.encoded.matrix[0]

    def placed(self, at: int, encoding: MrdEncoding) -> Readout:
        """The place of the readout at ``at``, whose own encoding is ``encoding``."""
        head = self.heads[at]
        counter = int(head["idx"]["kspace_encode_step_1"])
        centre = encoding.encoded.matrix[1] // 2 if encoding.centre_line is None else encoding.centre_line
        line = counter - centre + self.ny // 2
        if not 0 <= line < self.ny:
            raise InputError(
                field=f"{self.field}[{at}]: kspace_encode_step_1",
                got=f"{counter} with centre {centre}, row {line}",
                wanted=f"rows 0 to {self.ny - 1}",
                cure="Compare encodedSpace.matrixSize.y and the encoding limits with the scan.",
            )
        stored = int(head["number_of_samples"])
        before, after = int(head["discard_pre"]), int(head["discard_post"])
        kept = stored - before - after
        if not 1 <= kept <= self.nx:
            raise InputError(
                field=f"{self.field}[{at}]: number_of_samples",
                got=f"{stored}, of which {before} and {after} are discarded",
                wanted=f"1 to {self.nx} samples, the encoded matrix",
            )
        backwards = bool(_has_flag(head["flags"].astype(np.uint64), _REVERSED))
        start = 0
        if kept < self.nx:
            # A partial echo: the sample at the centre of k-space goes to the centre of the grid.
            echo = int(head["center_sample"]) - before
            start = self.nx // 2 - (kept - 1 - echo if backwards else echo)
            if not 0 <= start <= self.nx - kept:
                raise InputError(
                    field=f"{self.field}[{at}]: center_sample",
                    got=f"{int(head['center_sample'])} for {kept} samples",
                    wanted=f"a centre that keeps them within {self.nx} columns",
                )
        rank = int(np.searchsorted(self.slices, head["idx"]["slice"]))
        return Readout(
            index=at,
            slice=rank,
            line=line,
            stored=stored,
            first_sample=before,
            n_samples=kept,
            start=start,
            reversed=backwards,
        )

    def calibration(
        self, places: Places, header: MrdHeader, readouts: Sequence[Readout], notes: dict[str, str]
    ) -> tuple[list[Readout], list[Readout]]:
        """Calibration readouts that are data of the image as well, and those that serve the coil maps alone.

        Where the header does not say how calibration was acquired, lines that repeat rows of the image come from a scan
        of its own.
        """
        numbered = [(int(at), self._calibration(int(at), header)) for at in places]
        placed = [(at, readout) for at, readout in numbered if readout is not None]
        rows = {(readout.slice, readout.line) for readout in readouts}
        mode = self.encoding.calibration_mode
        repeats = any((readout.slice, readout.line) in rows for _, readout in placed)
        own_scan = mode in _OWN_SCAN or (repeats and mode in _UNSAID)
        within, apart = list[Readout](), list[Readout]()
        for at, readout in placed:
            alike = all(self.heads[name][at] == self.heads[name][readouts[0].index] for name in _ALIKE)
            data = alike and not own_scan and (readout.slice, readout.line) not in rows
            (within if data else apart).append(readout)
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
        planar = own.encoded.matrix[2] == self.encoding.encoded.matrix[2]
        if not (planar and np.isin(head["idx"]["slice"], self.slices) and _same_field_of_view(own, self.encoding)):
            return None
        try:
            return self.placed(at, own)
        except InputError:
            return None


def _same_field_of_view(first: MrdEncoding, second: MrdEncoding) -> bool:
    lengths = zip(first.encoded.field_of_view[:2], second.encoded.field_of_view[:2], strict=True)
    return first is second or all(abs(a - b) <= _SAME_FIELD_OF_VIEW * b for a, b in lengths)


def _refuse_repeats(field: str, readouts: list[Readout]) -> None:
    first_at: dict[tuple[int, int], int] = {}
    for readout in readouts:
        first = first_at.setdefault((readout.slice, readout.line), readout.index)
        if first != readout.index:
            raise InputError(
                field=f"{field}[{readout.index}]: kspace_encode_step_1",
                got=f"row {readout.line} of slice {readout.slice}, as acquisition {first}",
                wanted="each line once",
                cure="Say what to do with repeated lines: duplicates='average' or 'last', in a recipe under [input].",
            )


def _check_same_lines(field: str, readouts: list[Readout], n_slices: int, ny: int) -> None:
    lines = np.zeros((n_slices, ny), dtype=bool)
    for readout in readouts:
        lines[readout.slice, readout.line] = True
    different = np.argwhere(lines != lines[0])
    if different.size:
        rank, line = (int(number) for number in different[0])
        at = next(r.index for r in readouts if r.line == line and r.slice in (0, rank))
        raise InputError(
            field=f"{field}[{at}]: kspace_encode_step_1",
            got=f"row {line} in only one of slices 0 and {rank}",
            wanted="the same lines in every slice",
            cure="Export the slices whose lines agree to a file of their own.",
        )
