"""Which readouts of a raw-data file belong to one Cartesian image, and where each is placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.io.mrd_header import MrdHeader
from mri_design.io.safe import ReadLimits

__all__ = ["Readout", "ReadoutPlan", "plan_readouts"]

# Numbers of the MRD acquisition flags; flag n is bit n - 1.
_CALIBRATION, _CALIBRATION_AND_IMAGING, _REVERSED = 20, 21, 22
# Noise, navigation, phase correction, feedback, dummy, surface-coil correction, phase stabilisation.
_NOT_IMAGING = (19, 23, 24, 26, 27, 28, 29, 30, 31)
# Counters of which only the first value is read. Averages are repeats of one line, so they are duplicates.
_FIRST_ONLY = ("contrast", "phase", "repetition", "set")


@dataclass(frozen=True)
class Readout:
    """One readout and its place.

    Parameters
    ----------
    index : int
        Position in the file's list of acquisitions.
    slice, line : int
        Slice (counted over the slices that occur) and row ky of the grid.
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
    first_sample: int
    n_samples: int
    start: int
    reversed: bool


@dataclass(frozen=True)
class ReadoutPlan:
    """Everything needed to fill the grid.

    Parameters
    ----------
    readouts : tuple of Readout
        In the file's order.
    shape : tuple of int
        Grid (slice, coil, ky, kx) to be allocated.
    stored_samples : int
        Samples per channel in every readout used, discarded ones included.
    notes : mapping of str to str
        What was left out, for the card.
    """

    readouts: tuple[Readout, ...]
    shape: tuple[int, int, int, int]
    stored_samples: int
    notes: Mapping[str, str]


def plan_readouts(
    field: str, heads: NDArray[Any], header: MrdHeader, limits: ReadLimits, *, repeats_allowed: bool
) -> ReadoutPlan:
    """Choose and place the imaging readouts of the first contrast, repetition, set and phase.

    A line is placed at ``counter - centre + N // 2``. Noise, navigation and pure calibration readouts are
    skipped; calibration readouts that also serve imaging are kept.

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
    ny, nx = header.encoded.matrix[1], header.encoded.matrix[0]
    chosen, notes = _imaging(field, heads)
    first = chosen[0]
    idx = heads["idx"]
    samples, channels = int(heads["number_of_samples"][first]), int(heads["active_channels"][first])
    for name, got in (("number_of_samples", samples), ("active_channels", channels)):
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
    if channels > limits.max_coils:
        raise InputError(
            field=f"{field}[{first}]: active_channels",
            got=str(channels),
            wanted=f"at most {limits.max_coils}",
        )
    partition = idx["kspace_encode_step_2"][chosen]
    if (partition != partition[0]).any():
        at = int(chosen[int(np.argmax(partition != partition[0]))])
        raise InputError(field=f"{field}[{at}]: kspace_encode_step_2", got="a second partition", wanted="2-D encoding")
    slices, ranks = np.unique(idx["slice"][chosen], return_inverse=True)
    if slices.size > limits.max_slices:
        raise InputError(field=f"{field}: slices", got=str(slices.size), wanted=f"at most {limits.max_slices}")
    if int(slices[-1]) != slices.size - 1:
        notes["slices"] = "present: " + ", ".join(str(int(number)) for number in slices)
    centre = ny // 2 if header.centre_line is None else header.centre_line
    readouts = []
    for at, rank in zip(chosen.tolist(), ranks.tolist(), strict=True):
        counter = int(idx["kspace_encode_step_1"][at])
        line = counter - centre + ny // 2
        if not 0 <= line < ny:
            raise InputError(
                field=f"{field}[{at}]: kspace_encode_step_1",
                got=f"{counter} with centre {centre}, row {line}",
                wanted=f"rows 0 to {ny - 1}",
                cure="Compare encodedSpace.matrixSize.y and the encoding limits with the scan.",
            )
        readouts.append(_placed(f"{field}[{at}]", heads[at], at, rank, line, nx))
    if not repeats_allowed:
        _refuse_repeats(field, readouts)
    _check_same_lines(field, readouts, slices.size, ny)
    return ReadoutPlan(tuple(readouts), (int(slices.size), channels, ny, nx), samples, notes)


def _imaging(field: str, heads: NDArray[Any]) -> tuple[NDArray[np.intp], dict[str, str]]:
    flags = heads["flags"].astype(np.uint64)
    keep = np.ones(len(heads), dtype=bool)
    for flag in _NOT_IMAGING:
        keep &= ~_has_flag(flags, flag)
    keep &= ~_has_flag(flags, _CALIBRATION) | _has_flag(flags, _CALIBRATION_AND_IMAGING)
    notes: dict[str, str] = {}
    if not keep.all():
        notes["readouts_skipped"] = f"{int((~keep).sum())} of {len(heads)}: noise, navigation or calibration"
    counters = [("encoding_space_ref", heads["encoding_space_ref"])]
    counters += [(name, heads["idx"][name]) for name in _FIRST_ONLY]
    for name, counter in counters:
        if keep.any():
            first = int(counter[keep].min())
            others = keep & (counter != first)
            if others.any():
                notes[name] = f"{first}, the first of {len(np.unique(counter[keep]))}; the others were not read"
            keep &= ~others
    chosen = np.flatnonzero(keep)
    if not chosen.size:
        raise InputError(field=field, got=f"no imaging readout among {len(heads)}", wanted="at least one")
    return chosen, notes


def _has_flag(flags: NDArray[np.uint64], number: int) -> NDArray[np.bool_]:
    has: NDArray[np.bool_] = (flags >> np.uint64(number - 1)) & np.uint64(1) != 0
    return has


def _placed(field: str, head: np.void, index: int, slice_rank: int, line: int, nx: int) -> Readout:
    stored = int(head["number_of_samples"])
    before, after = int(head["discard_pre"]), int(head["discard_post"])
    kept = stored - before - after
    if not 1 <= kept <= nx:
        raise InputError(
            field=f"{field}: number_of_samples",
            got=f"{stored}, of which {before} and {after} are discarded",
            wanted=f"1 to {nx} samples, the encoded matrix",
        )
    backwards = bool(_has_flag(head["flags"].astype(np.uint64), _REVERSED))
    start = 0
    if kept < nx:
        # A partial echo: the sample at the centre of k-space goes to the centre of the grid.
        centre = int(head["center_sample"]) - before
        start = nx // 2 - (kept - 1 - centre if backwards else centre)
        if not 0 <= start <= nx - kept:
            raise InputError(
                field=f"{field}: center_sample",
                got=f"{int(head['center_sample'])} for {kept} samples",
                wanted=f"a centre that keeps them within {nx} columns",
            )
    return Readout(index, slice_rank, line, before, kept, start, backwards)


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
