"""Lists of lines as people write them: ``0-9,250-255``."""

from __future__ import annotations

from mri_design.errors import InputError
from mri_design.whole_numbers import number_ranges

_MOST = 1 << 16


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
        if last - first > _MOST:
            raise InputError(field=field, got=repr(f"{first}-{last}"), wanted=f"at most {_MOST} lines")
        lines.update(range(first, last + 1))
    return tuple(sorted(lines))
