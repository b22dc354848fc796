"""``INPUT#SLICES`` on the command line: a file or phantom, and which of its slices."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mri_design.errors import InputError, UsageError

__all__ = ["SliceChoice", "split_source"]

MIDDLE, EVERY = "middle", "all"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class SliceChoice:
    """Slices by number, or one of the words ``middle`` and ``all``.

    Parameters
    ----------
    text : str
        ``0,3,6-9``, ``middle`` or ``all``.

    Raises
    ------
    UsageError
        For anything else.
    """

    text: str

    def __post_init__(self) -> None:
        if self.text in (MIDDLE, EVERY):
            return
        parts = self.text.split(",")
        if not all(_RANGE.fullmatch(part.strip()) for part in parts):
            raise UsageError(f"slices {self.text!r}: give numbers as 0,3,6-9, or 'middle', or 'all'")
        for first, last in self._ranges():
            if last < first:
                raise UsageError(f"slices {self.text!r}: {first}-{last} holds no slice; write {last}-{first}")

    def indices(self, n_slices: int) -> list[int]:
        """The chosen slices of a scan, in order, each once.

        Raises
        ------
        InputError
            Where the scan has no such slice.
        """
        if self.text == EVERY:
            return list(range(n_slices))
        if self.text == MIDDLE:
            return [n_slices // 2]
        chosen: list[int] = []
        for first, last in self._ranges():
            if last >= n_slices:
                raise InputError(field="slices", got=self.text, wanted=f"0 to {n_slices - 1}")
            chosen += range(first, last + 1)
        return list(dict.fromkeys(chosen))

    def _ranges(self) -> list[tuple[int, int]]:
        matches = (_RANGE.fullmatch(part.strip()) for part in self.text.split(","))
        return [(int(match[1]), int(match[2] or match[1])) for match in matches if match]


def split_source(source: str, default: str) -> tuple[str, SliceChoice]:
    """``scan.h5#0,3-5`` into the file and its slices; without ``#`` the slices are ``default``."""
    name, mark, slices = source.rpartition("#")
    return (name, SliceChoice(slices)) if mark else (source, SliceChoice(default))
