"""How far a walk over k-space lines can still go when every jump is short."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["longest_walk", "open_moves"]


def longest_walk(current: int, free: Sequence[int], jump: int) -> int:
    """Most lines that a walk from ``current`` can visit, each once, with jumps of at most ``jump``.

    Parameters
    ----------
    current : int
        Line where the walk stands.
    free : sequence of int
        Lines that may be visited, ascending.
    jump : int
        Largest distance between consecutive lines.

    Returns
    -------
    int
        Lines visited, ``current`` not counted.

    Notes
    -----
    Lines that see each other within a distance are a unit interval graph. A longest walk either runs to one side, or
    makes a loop on one side (out and back over alternate lines) and then runs to the other. The loop can hold its next
    line where that is within a jump of the line two before it. The tests compare with exhaustive search.
    """
    left = [line for line in reversed(free) if line < current]
    right = [line for line in free if line > current]
    best = 0
    for looped, run in ((left, right), (right, left)):
        best = max(best, _steps(current, looped, jump))
        if run:
            loop = _steps_of_two([run[0], current, *looped], jump)
            if loop or abs(run[0] - current) <= jump:
                best = max(best, loop + 1 + _steps(run[0], run[1:], jump))
    return best


def open_moves(current: int | None, free: NDArray[np.bool_], jump: int, wanted: int) -> NDArray[np.bool_]:
    """Next lines, bool (ky,), from which a walk can still visit ``wanted`` lines in all, the next one counted.

    Without a ``current`` line the walk may begin anywhere.
    """
    lines = [int(line) for line in np.flatnonzero(free)]
    moves = np.zeros(len(free), dtype=bool)
    for line in lines:
        if current is None or abs(line - current) <= jump:
            rest = [other for other in lines if other != line]
            moves[line] = 1 + longest_walk(line, rest, jump) >= wanted
    return moves


def _steps(current: int, lines: Sequence[int], jump: int) -> int:
    return _first_longer([abs(b - a) for a, b in pairwise([current, *lines])], jump)


def _steps_of_two(lines: Sequence[int], jump: int) -> int:
    return _first_longer([abs(b - a) for a, b in zip(lines, lines[2:], strict=False)], jump)


def _first_longer(distances: Sequence[int], jump: int) -> int:
    return next((i for i, distance in enumerate(distances) if distance > jump), len(distances))
