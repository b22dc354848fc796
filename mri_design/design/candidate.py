"""Candidates of the next measurement: the phase-encode lines, or samples of a plane, that are left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.constraints import Constraints, LineConstraints, open_moves
from mri_design.errors import InputError
from mri_design.readouts import LineReadouts, Readouts


@briefly
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
    constraints : LineConstraints
        What the sequence asks for; whoever chooses from ``remaining`` obeys them.
    readouts : Readouts, optional
        What the candidates are; lines by default. Where this class speaks of lines, it means these candidates.

    Attributes
    ----------
    allowed : bool array, shape (ky,)
        Lines that hold data and may be measured.
    remaining : bool array, shape (ky,)
        Lines that may come next. Where jumps are limited, those from which the target stays within reach: choosing
        among them never ends before it.

    Raises
    ------
    InputError
        Where an acquired line is outside the grid, repeated, not measurable or not allowed, a required one is missing,
        the lines break the maximum jump, or the target cannot be reached.
    """

    measurable: NDArray[np.bool_]
    acquired: tuple[int, ...]
    target: int
    n_start: int = 0
    constraints: Constraints = field(default_factory=LineConstraints)
    readouts: Readouts = None  # type: ignore[assignment]  # lines, once made
    allowed: NDArray[np.bool_] = field(init=False)
    remaining: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        if self.readouts is None:
            object.__setattr__(self, "readouts", LineReadouts((self.n_lines, self.n_lines)))
        n = len(self.measurable)
        whole = all(isinstance(line, Integral) and not isinstance(line, bool) for line in self.acquired)
        if not whole or len(set(self.acquired)) < len(self.acquired) or not set(self.acquired) <= set(range(n)):
            raise InputError(field="lines", got=str(self.acquired), wanted=f"different line numbers from 0 to {n - 1}")
        if not all(self.measurable[line] for line in self.acquired):
            raise InputError(field="lines", got=str(self.acquired), wanted="lines that hold data")
        allowed = self.measurable & self.constraints.allowed(n)
        broken = [line for line in self.acquired if not allowed[line]]
        needed = set(self.constraints.needed(self.measurable))
        missing = sorted(needed - set(self.acquired)) if self.acquired else []
        jump = self.constraints.max_jump
        far = [f"{a} to {b}" for a, b in pairwise(self.acquired) if jump is not None and abs(b - a) > jump]
        for name, found, wanted in (
            ("lines", broken, "lines that the constraints allow"),
            ("required lines", missing, "all of them among the first lines"),
            ("max_jump", far, f"at most {jump} between consecutive lines"),
        ):
            if found:
                cure = "Begin with the lines of `LineConstraints.start`, or ask less of the lines."
                raise InputError(name, ", ".join(map(str, found)), wanted, cure)
        available = self.constraints.most_lines(self.measurable, self.acquired)
        if not len(self.acquired) <= self.target <= available:
            kind, cure = "with data", "Ask for fewer lines, or start with fewer."
            if (allowed != self.measurable).any():
                kind = "with data that the constraints allow"
            if self.constraints.max_jump is not None:
                kind = f"within jumps of {self.constraints.max_jump}"
                cure = (
                    "Ask for fewer lines, allow larger jumps, or start with fewer centre lines than a jump spans: a "
                    "wider block closes the way to its other side."
                )
            raise InputError(
                field="number of lines",
                got=str(self.target),
                wanted=f"{len(self.acquired)} (start lines) to {available} (lines {kind})",
                cure=cure,
            )
        left = allowed.copy()
        left[list(self.acquired)] = False
        if self.constraints.max_jump is not None:
            here = self.acquired[-1] if self.acquired else None
            left = open_moves(here, left, self.constraints.max_jump, self.target - len(self.acquired))
        object.__setattr__(self, "allowed", allowed)
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

    @property
    def chosen(self) -> tuple[int, ...]:
        """Acquired lines without those of the start."""
        return self.acquired[self.n_start :]

    @property
    def wanted(self) -> int:
        """How many lines the finished design will have beside those of the start."""
        return self.target - self.n_start

    @property
    def outside_start(self) -> NDArray[np.intp]:
        """Numbers of the allowed lines that are not at the start, ascending."""
        outside = self.allowed.copy()
        outside[list(self.acquired[: self.n_start])] = False
        return np.flatnonzero(outside)

    def after(self, *lines: int) -> LineCandidates:
        """The candidates once ``lines`` have been measured."""
        return replace(self, acquired=(*self.acquired, *lines))
