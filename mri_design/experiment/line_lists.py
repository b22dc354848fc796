"""Lists of lines as people write them: ``0-9,250-255``."""

from __future__ import annotations

import re

from mri_design.errors import InputError

__all__ = ["checked_line_list", "line_numbers"]

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_MOST = 1 << 16


def line_numbers(text: str, field: str = "lines") -> tuple[int, ...]:
    """Numbers of a list, ascending, each once; an empty text holds none.

    Raises
    ------
    InputError
        Where the text is no such list, a range runs backwards, or it holds absurdly many lines.
    """
    lines: set[int] = set()
    for part in text.split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise InputError(field=field, got=repr(text), wanted="numbers and ranges from 0, as 0-9,250-255")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(field=field, got=repr(part.strip()), wanted="a range that ascends", cure="Turn it round.")
        if last - first > _MOST:
            raise InputError(field=field, got=repr(part.strip()), wanted=f"at most {_MOST} lines")
        lines.update(range(first, last + 1))
    return tuple(sorted(lines))


def checked_line_list(text: str) -> str:
    """The text, once it is known to be a list of lines."""
    line_numbers(text)
    return text
