"""Whole numbers and lists of them, as people type them: digits, and nothing that a library may read as a number too.

``int`` takes ``1_0``, `` 3 `` and digits of every script, and what stands behind command lines takes ``0-3`` for -3.
"""

from __future__ import annotations

import re

from mri_design.errors import InputError

_NUMBER = re.compile(r"-?[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def whole_number(text: str) -> int | None:
    """The number that a text is: up to 18 digits, with a minus sign or none; None for every other text."""
    return int(text) if _NUMBER.fullmatch(text) else None


def number_ranges(text: str) -> list[tuple[int, int]] | None:
    """First and last number of every part of a list as ``0,3-5``, in order.

    Blanks may stand around the parts. Nobody looks here whether a range ascends.

    Returns
    -------
    list of (int, int), or None
        None for every other text.
    """
    matches = [_RANGE.fullmatch(part.strip(" ")) for part in text.split(",")]
    return [(int(match[1]), int(match[2] or match[1])) for match in matches if match] if all(matches) else None


MOST_LINES = 1 << 16
"""Lines of one range."""


def line_numbers(text: str, field: str = "lines") -> tuple[int, ...]:
    """Numbers of a list, ascending, each once; an empty text holds none.

    Raises
    ------
    InputError
        Where the text is no such list, a range runs backwards, or it holds absurdly many lines.
    """
    lines: set[int] = set()
    ranges = number_ranges(text) if text.strip() else []
    if ranges is None:
        raise InputError(field=field, got=repr(text), wanted="numbers and ranges from 0, as 0-9,250-255")
    for first, last in ranges:
        if last < first:
            got = repr(f"{first}-{last}")
            raise InputError(field=field, got=got, wanted="a range that ascends", cure="Turn it round.")
        if last - first > MOST_LINES:
            raise InputError(field=field, got=repr(f"{first}-{last}"), wanted=f"at most {MOST_LINES} lines")
        lines.update(range(first, last + 1))
    return tuple(sorted(lines))
