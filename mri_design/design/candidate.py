"""What could be measured next: the phase-encode lines that are left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

__all__ = ["LineCandidates", "centre_lines"]


@dataclass(frozen=True)
class LineCandidates:
    """The state of a line design: what may be measured, what has been, and how many lines there will be.

    Parameters
    ----------
    measurable : bool array, shape (ky,)
        Lines that can be acquired at all (zero-filled ones cannot).
    acquired : tuple of int
        Lines so far, in acquisition order.
    target : int
        Lines the finished design will have, those at the start included.
    n_start : int
        How many of ``acquired`` were there before the first decision.

    Raises
    ------
    InputError
        Where an acquired line is outside the grid, repeated or not measurable, or the target cannot be reached.
    """

    measurable: NDArray[np.bool_]
    acquired: tuple[int, ...]
    target: int
    n_start: int = 0
    remaining: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.measurable)
        if len(set(self.acquired)) < len(self.acquired) or any(not 0 <= line < n for line in self.acquired):
            raise InputError(field="lines", got=str(self.acquired), wanted=f"different line numbers from 0 to {n - 1}")
        if not all(self.measurable[line] for line in self.acquired):
            raise InputError(field="lines", got=str(self.acquired), wanted="lines that hold data")
        available = int(self.measurable.sum())
        if not len(self.acquired) <= self.target <= available:
            raise InputError(
                field="number of lines",
                got=str(self.target),
                wanted=f"{len(self.acquired)} (start lines) to {available} (lines with data)",
                cure="Ask for fewer lines, or start with fewer.",
            )
        left = self.measurable.copy()
        left[list(self.acquired)] = False
        object.__setattr__(self, "remaining", left)

    @property
    def n_lines(self) -> int:
        """Lines of the grid."""
        return len(self.measurable)

    @property
    def frequencies(self) -> NDArray[np.int_]:
        """k of every line, DC = 0."""
        return np.arange(self.n_lines) - self.n_lines // 2

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Acquired lines, (ky,)."""
        flags = np.zeros(self.n_lines, dtype=bool)
        flags[list(self.acquired)] = True
        return flags

    def after(self, line: int) -> LineCandidates:
        """The same once ``line`` has been measured."""
        return replace(self, acquired=(*self.acquired, line))


def centre_lines(measurable: NDArray[np.bool_], count: int) -> tuple[int, ...]:
    """The ``count`` measurable lines nearest to DC, DC first, then outwards (-1, +1, -2, ...).

    Raises
    ------
    InputError
        Where there are not that many.
    """
    available = np.flatnonzero(measurable)
    if not 1 <= count <= len(available):
        raise InputError(field="start lines", got=str(count), wanted=f"1 to {len(available)}")
    k = available - len(measurable) // 2
    nearest = np.lexsort((k, np.abs(k)))[:count]
    return tuple(int(line) for line in available[nearest])
