"""When a design estimates coil maps anew that are not known: from its first lines on, as more of them come in."""

from __future__ import annotations

STEP, MOST = 2, 16
"""Maps are renewed when a part of 1 / ``STEP`` more lines has come in than they rest on, or ``MOST`` more."""


def map_lines(start: int, count: int) -> int:
    """How many of the first lines of a design its coil maps rest on.

    It depends on the numbers of lines alone, so that a design that was interrupted, one whose slices are in other
    processes and one whose means are made again all look at the same lines.

    Parameters
    ----------
    start : int
        Lines that the design began with.
    count : int
        Lines that are measured.
    """
    known = start
    while (later := known + min(MOST, -(-known // STEP))) <= count and later > known:
        known = later
    return known
