"""Entries of a scan's header about parts of its file that the reader left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

OTHERS_UNREAD = "the others were not read"
"""How a reader ends the entry about a number (of contrasts, repetitions, volumes) of which it took one."""
_SLICE = "slice_taken"
_ENTRIES = (
    "coils_dropped",
    "readouts_skipped",
    "readouts_of_fewer_channels",
    "calibration_skipped",
    "coordinates_skipped",
    "members_not_read",
    "identifiers_left_out",
)
"""Other entries that readers write where they leave something out."""


def left_out(header: Mapping[str, str]) -> dict[str, str]:
    """The entries of a header that say what the reader left out of the scan: coils, readouts, series, identifiers.

    What was cut or filled by rule without a loss (the oversampling of readouts, the lines of a partial Fourier scan) is
    not among them.
    """
    return {name: text for name, text in header.items() if name in _ENTRIES or str(text).endswith(OTHERS_UNREAD)}


def with_part(header: Mapping[str, str], number: int, count: int) -> Mapping[str, str]:
    """The header of a scan of which slice ``number`` was taken, the only one or one of ``count``."""
    return {**header, _SLICE: f"{number} of {count}, numbered from 0"} if count > 1 else header


def part_of_scan(header: Mapping[str, str]) -> str:
    """Which slice, and of several contrasts, repetitions or volumes which one, a scan is: "slice 0 of 4, ...".

    Empty for a scan that is all that its file holds.
    """
    series = {
        name: text.removesuffix(f"; {OTHERS_UNREAD}") for name, text in header.items() if text.endswith(OTHERS_UNREAD)
    }
    return "; ".join([*_slice_text(header), *(f"{name} {text}" for name, text in series.items())])


def _slice_text(header: Mapping[str, str]) -> list[str]:
    return [f"slice {header[_SLICE]}"] if _SLICE in header else []


def left_out_text(header: Mapping[str, str], asked: Collection[str] = ()) -> str:
    """`left_out` as one line, behind which slice was taken where there are several; empty where nothing was left out.

    Parameters
    ----------
    header : mapping of str to str
        Of a scan or a stack of images.
    asked : collection of str
        Names of entries about what somebody chose, which is no news: "contrast", "repetition".
    """
    told = [f"{name.replace('_', ' ')}: {text}" for name, text in left_out(header).items() if name not in asked]
    return ". ".join([*_slice_text(header), *told])
