"""What a design over angles begins with; a sequence asks nothing else of shots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_counts


@dataclass(frozen=True)
class AngleConstraints:
    """Candidates at equispaced angles, in their order.

    Parameters
    ----------
    size : int
        Candidates.
    half_turn : int
        How many of them fill half a turn: all spokes, every second arm. A start is spread over these.

    Raises
    ------
    InputError
        For numbers below 1, or a half turn of more than all.
    """

    size: int
    half_turn: int
    max_jump: None = None
    centre: int = 0

    def __post_init__(self) -> None:
        require_counts(least=1, size=self.size, **{"half turn": self.half_turn})
        if self.half_turn > self.size:
            raise InputError(field="half turn", got=str(self.half_turn), wanted=f"at most {self.size}")

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """All of them, (size,).

        Raises
        ------
        InputError
            Where there are others.
        """
        if n_lines != self.size:
            raise InputError(field="constraints", got=f"{self.size} angles", wanted=f"{n_lines}")
        return np.ones(self.size, dtype=bool)

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """None."""
        return ()

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """The candidates nearest to ``count`` equispaced angles over half a turn; beyond its candidates, over them all.

        Raises
        ------
        InputError
            Where there are not that many, or one holds no data.
        """
        if not 1 <= count <= self.size:
            raise InputError(field="start lines", got=str(count), wanted=f"1 to {self.size}")
        over = self.half_turn if count <= self.half_turn else self.size
        first = tuple(place * over // count for place in range(count))
        if not all(measurable[place] for place in first):
            raise InputError(field="start lines", got=f"{first}, some without data", wanted="shots with data")
        return first

    def most_lines(self, measurable: NDArray[np.bool_], start: Sequence[int]) -> int:
        """All that hold data."""
        return int(measurable.sum())
