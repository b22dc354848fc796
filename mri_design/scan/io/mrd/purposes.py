"""What the acquisitions of a raw-data file are for, and which series of images of the file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, described
from mri_design.scan.io.mrd.header import MrdEncoding, MrdHeader
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.left_out import OTHERS_UNREAD

COUNTERS = ("contrast", "phase", "repetition", "set")
"""Counters of which one value is read. Averages are repeats of one line, so they are duplicates."""

# Numbers of the MRD acquisition flags; flag n is bit n - 1.
_NOISE, _CALIBRATION, _CALIBRATION_AND_IMAGING = 19, 20, 21
# Navigation, phase correction, feedback, dummy, surface-coil correction, phase stabilisation.
_NEITHER = (23, 24, 26, 27, 28, 29, 30, 31)
_MOST_NAMED = 12

Places = NDArray[np.intp]
"""Positions in the file's list of acquisitions."""


@dataclass(frozen=True)
class Purposes:
    """The acquisitions of one series, by purpose; navigation, phase correction and the like are in none.

    Parameters
    ----------
    imaging, calibration, noise : int array, shape (acquisition,)
        Positions in the file's list. Calibration is that which does not serve the image as well.
    encoding : MrdEncoding
        Of the image.
    notes : mapping of str to str
        What was left out, for the card.
    """

    imaging: Places
    calibration: Places
    noise: Places
    encoding: MrdEncoding
    notes: Mapping[str, str]


def checked_counters(counters: Mapping[str, int]) -> dict[str, int]:
    """Which contrast, phase, repetition and set to read, by name.

    Raises
    ------
    InputError
        For other names, and anything but whole numbers from 0.
    """
    for name, number in counters.items():
        if name not in COUNTERS:
            raise InputError(field="counters", got=described(name), wanted=f"one of {', '.join(COUNTERS)}")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 65535:
            raise InputError(field=name, got=described(number), wanted="a whole number from 0 to 65535")
    return dict(counters)


def sort_by_purpose(
    field: str, heads: NDArray[Any], header: MrdHeader, counters: Mapping[str, int] | None = None
) -> Purposes:
    """The acquisitions of one series of images, and the noise and calibration that the file holds beside it.

    Parameters
    ----------
    field : str
        File and dataset, for messages.
    heads : structured array, shape (acquisition,)
        Acquisition headers.
    header : MrdHeader
        The file's header.
    counters : mapping of str to int, optional
        Which contrast, phase, repetition and set to read; the first of those that are not named.

    Raises
    ------
    InputError
        Where there is no imaging readout, none with a number that was asked for, or no such encoding.
    """
    chosen, notes = checked_counters(counters or {}), dict[str, str]()
    noise, calibration, imaging = by_flags(heads)
    skipped = int((~(noise | calibration | imaging)).sum())
    if skipped:
        notes["readouts_skipped"] = f"{skipped} of {len(heads)}: navigation, correction or dummies"
    if not imaging.any():
        raise InputError(field=field, got=f"no imaging readout among {len(heads)}", wanted="at least one")
    # Calibration was perhaps scanned on its own, with counters of its own: what is missing there is no error.
    there = {name: number for name, number in chosen.items() if (heads["idx"][name][calibration] == number).any()}
    calibration = _of_one_series(field, heads, calibration, there, COUNTERS, {})
    imaging = _of_one_series(field, heads, imaging, chosen, ("encoding_space_ref", *COUNTERS), notes)
    imaging = _of_most_channels(heads, imaging, notes)
    first = int(np.argmax(imaging))
    encoding = header.encoding(f"{field}[{first}]", int(heads["encoding_space_ref"][first]))
    return Purposes(np.flatnonzero(imaging), np.flatnonzero(calibration), np.flatnonzero(noise), encoding, notes)


def _of_one_series(
    field: str,
    heads: NDArray[Any],
    keep: NDArray[np.bool_],
    chosen: Mapping[str, int],
    names: Sequence[str],
    notes: dict[str, str],
) -> NDArray[np.bool_]:
    """Those of ``keep`` with the chosen numbers, and of the other counters with the first number that is left."""
    for name in (*chosen, *(name for name in names if name not in chosen)):
        counter = heads[name] if name == "encoding_space_ref" else heads["idx"][name]
        present = np.unique(counter[keep])
        if not present.size:
            return keep
        number = chosen.get(name, int(present[0]))
        if number not in present:
            raise InputError(
                field=f"{field}: {name}",
                got=f"no image with number {number}",
                wanted=f"a number that the file holds: {_listed(present)}",
                cure=f"Change --{name}, or {name} under [input] in the recipe; without it the first is read.",
            )
        if present.size > 1:
            which = "the first" if number == present[0] else "one"
            notes[name] = f"{number}, {which} of {present.size} ({_listed(present)}); {OTHERS_UNREAD}"
        keep = keep & (counter == number)
    return keep


def _of_most_channels(heads: NDArray[Any], imaging: NDArray[np.bool_], notes: dict[str, str]) -> NDArray[np.bool_]:
    """Those of ``imaging`` without readouts of fewer channels than most have, as of a body coil.

    Readouts of more channels stay, and are refused by number.
    """
    there, counts = np.unique(heads["active_channels"][imaging], return_counts=True)
    wanted = int(there[counts == counts.max()].max())
    fewer = imaging & (heads["active_channels"] < wanted)
    if not fewer.any():
        return imaging
    listed = _listed(there[there < wanted])
    notes["readouts_of_fewer_channels"] = (
        f"{int(fewer.sum())} of {int(imaging.sum())} dropped: they have {listed} where the others have {wanted}"
    )
    return imaging & ~fewer


def _listed(numbers: NDArray[Any]) -> str:
    return ", ".join(map(str, numbers[:_MOST_NAMED].tolist())) + (", ..." if numbers.size > _MOST_NAMED else "")


def has_flag(flags: NDArray[np.uint64], number: int) -> NDArray[np.bool_]:
    """Which acquisition flags, as integers, have flag ``number`` (from 1) set."""
    has: NDArray[np.bool_] = (flags >> np.uint64(number - 1)) & np.uint64(1) != 0
    return has


def by_flags(heads: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Which readouts are noise, calibration alone, and the image's; navigation, correction and dummies are none."""
    flags = heads["flags"].astype(np.uint64)
    noise = has_flag(flags, _NOISE)
    left = ~noise & ~np.logical_or.reduce([has_flag(flags, flag) for flag in _NEITHER])
    calibration = left & has_flag(flags, _CALIBRATION) & ~has_flag(flags, _CALIBRATION_AND_IMAGING)
    return noise, calibration, left & ~calibration


def common_channels(field: str, heads: NDArray[Any], chosen: Places, limits: ReadLimits) -> int:
    """Channels of the readouts at some places, which must agree in channels and in samples, stored or kept.

    Raises
    ------
    InputError
        Naming the first acquisition that has other numbers than the first, none, or too many channels.
    """
    first = int(chosen[0])
    stored, before, after = (
        heads[name][chosen].astype(np.int64) for name in ("number_of_samples", "discard_pre", "discard_post")
    )
    kept = stored - before - after
    for name in ("number_of_samples", "active_channels"):
        got = int(heads[name][first])
        if got < 1:
            raise InputError(field=f"{field}[{first}]: {name}", got=str(got), wanted="at least 1")
        unlike = heads[name][chosen] != got
        different = np.flatnonzero(unlike & (kept != kept[0]) if name == "number_of_samples" else unlike)
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
