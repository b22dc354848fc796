"""Constraints of a pulse sequence on the candidates: forbidden and required ones, partial Fourier, short jumps.

Lines, the samples of a plane and shots at equispaced angles each have their own; partial Fourier stands once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, described, require_choice, require_counts, require_numbers
from mri_design.readouts import PlaneReadouts

Half = Literal["positive", "negative"]


class Constraints(ABC):
    """Constraints of a sequence on the candidates of a grid, of whatever kind: see `LineConstraints`."""

    max_jump: int | None = None
    centre: int = 0

    @abstractmethod
    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Candidates that may be measured at all."""

    @abstractmethod
    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Candidates to measure before the first decision."""

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Candidates that no design may lack."""
        return ()

    def most_lines(self, measurable: NDArray[np.bool_], start: Sequence[int]) -> int:
        """Candidates that a design can have which begins with ``start``, those included."""
        free = measurable & self.allowed(len(measurable))
        free[list(start)] = False
        return len(start) + int(free.sum())


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
            path = [run[0], current, *looped]
            loop = _first_longer([abs(b - a) for a, b in zip(path, path[2:], strict=False)], jump)
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


def _first_longer(distances: Sequence[int], jump: int) -> int:
    return next((i for i, distance in enumerate(distances) if distance > jump), len(distances))


@dataclass(frozen=True)
class LineConstraints(Constraints):
    """Which phase-encode lines a sequence can and must measure. Nothing is asked by default.

    Parameters
    ----------
    forbidden, required : tuple of int
        Lines that must not, and that must be in the design. Those required are measured at the start.
    centre : int
        That many lines nearest to DC are required too.
    partial_fourier : float, optional
        Share p of the grid that is kept, 0.5 to 1: lines with k >= -m, m = ceil(p n) - ceil(n / 2).
    whole_half : {"positive", "negative"}
        Half of k-space that partial Fourier keeps whole; "negative" keeps k <= m.
    max_jump : int, optional
        Largest distance between consecutive lines, in lines.

    Raises
    ------
    InputError
        For values out of range, or lines that are both forbidden and required. What contradicts a grid is refused where
        the grid is known (`allowed`, `start`, `LineCandidates`).
    """

    forbidden: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    centre: int = 0
    partial_fourier: float | None = None
    whole_half: Half = "positive"
    max_jump: int | None = None

    def __post_init__(self) -> None:
        for name, lines in (("forbidden lines", self.forbidden), ("required lines", self.required)):
            wanted = "a tuple of line numbers, as (0, 1, 250)"
            if isinstance(lines, str) or not isinstance(lines, Iterable):
                raise InputError(field=name, got=described(lines), wanted=wanted)
            for line in lines:
                if isinstance(line, bool) or not isinstance(line, Integral):
                    raise InputError(field=name, got=described(line), wanted=wanted)
        require_counts(least=0, **{"forced centre": self.centre})
        if self.partial_fourier is not None:
            require_numbers(least=0.5, most=1.0, **{"partial Fourier": self.partial_fourier})
        require_choice(get_args(Half), **{"whole half": self.whole_half})
        if self.max_jump is not None:
            require_counts(least=1, **{"max_jump": self.max_jump})
        both = sorted(set(self.forbidden) & set(self.required))
        if both:
            raise InputError(
                field="constraints",
                got=f"{_listed(both)} forbidden and required",
                wanted="every line one of the two at most",
                cure="Take them out of one of the lists.",
            )

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Lines that may be measured at all, bool (ky,).

        Raises
        ------
        InputError
            Where a line is outside the grid, DC is forbidden, a required line is not kept by partial Fourier, or none
            is left.
        """
        for name, lines in (("forbidden lines", self.forbidden), ("required lines", self.required)):
            outside = [line for line in lines if not 0 <= line < n_lines]
            if outside:
                raise InputError(field=name, got=_listed(outside), wanted=f"lines from 0 to {n_lines - 1}")
        flags = _kept(np.arange(n_lines) - n_lines // 2, n_lines, self.partial_fourier, self.whole_half)
        lost = [line for line in self.required if not flags[line]]
        if lost:
            raise InputError(
                field="required lines",
                got=f"{_listed(lost)}, not kept by partial Fourier {self.partial_fourier}",
                wanted=f"lines from {np.flatnonzero(flags)[0]} to {np.flatnonzero(flags)[-1]}",
                cure="Keep more of the grid, the other half, or require other lines.",
            )
        flags[list(self.forbidden)] = False
        if not flags.any():
            raise InputError(
                field="constraints",
                got=f"no line of {n_lines} left",
                wanted="at least one line that may be measured",
                cure="Forbid fewer lines, or keep more with partial Fourier.",
            )
        if n_lines // 2 in self.forbidden:
            raise InputError(
                field="forbidden lines",
                got=f"line {n_lines // 2}, the centre of k-space",
                wanted="lines that an image can do without",
                cure="Let it be measured: the image's brightness and the prior's scale come from it.",
            )
        return flags

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Lines to measure before the first decision: ``count`` at the centre, and all that are required.

        Where jumps are limited they come in ascending or descending order, whichever leaves the longer walk open, with
        lines between them where a jump would be too long.

        Parameters
        ----------
        measurable : bool array, shape (ky,)
            Lines that hold data.
        count : int
            Lines nearest to DC among those allowed; at least the forced centre.
        forced : int
            That many of them are forced, like ``centre``.

        Raises
        ------
        InputError
            Where a forced centre line is not allowed, a required line holds no data, or jumps cannot reach them.
        """
        allowed = measurable & self.allowed(len(measurable))
        needed = self.needed(measurable, forced)
        lines = centre_lines(allowed, max(count, forced, self.centre))
        return self._walked((*lines, *(line for line in needed if line not in lines)), allowed)

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Lines that no design may lack, from DC outwards: the forced centre and those required.

        Raises
        ------
        InputError
            Where such a line is not allowed or holds no data.
        """
        forced = max(self.centre, forced)
        centre = centre_lines(measurable, forced) if forced else ()
        allowed = self.allowed(len(measurable))
        lost = [line for line in centre if not allowed[line]]
        if lost:
            raise InputError(
                field="forced centre",
                got=f"{forced} lines, of which {_listed(sorted(lost))} may not be measured",
                wanted="centre lines that are neither forbidden nor left out by partial Fourier",
                cure="Begin with fewer centre lines, or allow these.",
            )
        empty = [line for line in self.required if not measurable[line]]
        if empty:
            raise InputError(
                field="required lines",
                got=f"{_listed(empty)} without data",
                wanted="lines that hold data",
                cure="Require other lines.",
            )
        middle = len(measurable) // 2
        return tuple(sorted({*centre, *self.required}, key=lambda line: (abs(line - middle), line)))

    def most_lines(self, measurable: NDArray[np.bool_], start: Sequence[int]) -> int:
        """Lines that a design can have which begins with ``start``, those included."""
        if self.max_jump is None:
            return super().most_lines(measurable, start)
        free = measurable & self.allowed(len(measurable))
        free[list(start)] = False
        left = np.flatnonzero(free).tolist()
        if not start:
            return max(1 + longest_walk(line, [o for o in left if o != line], self.max_jump) for line in left)
        return len(start) + longest_walk(start[-1], left, self.max_jump)

    def _walked(self, lines: tuple[int, ...], allowed: NDArray[np.bool_]) -> tuple[int, ...]:
        if self.max_jump is None:
            return lines
        path = sorted(lines)
        for a, b in pairwise(tuple(path)):
            while b - a > self.max_jump:
                between = np.flatnonzero(allowed[a + 1 : a + self.max_jump + 1])
                if not len(between):
                    raise InputError(
                        field="max_jump",
                        got=f"{self.max_jump}, with no line that may be measured from {a + 1} to {a + self.max_jump}",
                        wanted="a way between the lines of the start",
                        cure="Allow larger jumps, or forbid and require fewer lines.",
                    )
                a += 1 + int(between[-1])
                path.append(a)
        path.sort()
        return max(tuple(path), tuple(reversed(path)), key=lambda order: self.most_lines(allowed, order))


def centre_lines(measurable: NDArray[np.bool_], count: int) -> tuple[int, ...]:
    """The ``count`` measurable lines nearest to DC, DC first, then outwards (-1, +1, -2, ...).

    Raises
    ------
    InputError
        Where there are not that many, or they are no flags.
    """
    flags = np.asarray(measurable)
    if flags.ndim != 1 or flags.dtype != np.bool_:
        raise InputError(field="measurable", got=described(measurable), wanted="bool (ky,)")
    available = np.flatnonzero(flags)
    require_counts(least=1, most=len(available), **{"start lines": count})
    k = available - len(measurable) // 2
    nearest = np.lexsort((k, np.abs(k)))[:count]
    return tuple(int(line) for line in available[nearest])


def _listed(lines: Sequence[int]) -> str:
    shown = ", ".join(str(line) for line in lines[:8])
    return f"line{'s' if len(lines) > 1 else ''} {shown}{', ...' if len(lines) > 8 else ''}"


def _kept(k: NDArray[np.int_], n: int, share: float | None, half: Half) -> NDArray[np.bool_]:
    """Where partial Fourier leaves rows ``k`` of a grid of ``n``: at k >= -m, m = ceil(share n) - ceil(n / 2)."""
    if share is None:
        return np.ones(len(k), dtype=bool)
    beyond = int(np.ceil(share * n - 1e-9)) - (n + 1) // 2
    return k >= -beyond if half == "positive" else k <= beyond


@dataclass(frozen=True)
class PlaneConstraints(Constraints):
    """Which samples of a plane a sequence can and must measure. Nothing is asked by default.

    Parameters
    ----------
    plane : PlaneReadouts
        The samples.
    shutter : bool
        Whether samples outside of the ellipse that touches the plane's edges are left out (elliptical scanning).
    partial_fourier : float, optional
        Share p of the plane that is kept along ky, 0.5 to 1: rows with ky >= -m, m = ceil(p n) - ceil(n / 2).
    whole_half : {"positive", "negative"}
        Half of ky that partial Fourier keeps whole.
    calibration : int
        Side of the square around DC that every design measures at the start; 0 is none.
    centre : int
        That many samples nearest to DC are required too.

    What contradicts a scan is refused where its samples are known (`needed`).
    """

    plane: PlaneReadouts
    _: KW_ONLY
    shutter: bool = False
    partial_fourier: float | None = None
    whole_half: Half = "positive"
    calibration: int = 0
    centre: int = 0

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Samples that shutter and partial Fourier leave, (size,)."""
        plane = self.plane
        kept = _kept(plane.frequencies[:, 0], plane.grid[0], self.partial_fourier, self.whole_half)
        return kept & (plane.radius <= 1) if self.shutter else kept

    @cached_property
    def calibration_region(self) -> NDArray[np.bool_]:
        """The square around DC, (size,); on a smaller plane all of its side."""
        inside = np.ones(self.plane.size, dtype=bool)
        for axis, n in enumerate(self.plane.grid):
            side = min(self.calibration, n)
            k = self.plane.frequencies[:, axis]
            inside &= (k >= -(side // 2)) & (k < side - side // 2)
        return inside

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """Samples that may be measured at all, (size,)."""
        return self.kept.copy()

    def needed(self, measurable: NDArray[np.bool_], forced: int = 0) -> tuple[int, ...]:
        """Samples that no design may lack, from DC outwards.

        Raises
        ------
        InputError
            Where one of them may not be measured, or holds no data.
        """
        free = measurable & self.kept
        flags = self.calibration_region.copy()
        flags[self.plane.outwards[: max(self.centre, forced)]] = True
        lost = int((flags & ~free).sum())
        if lost:
            raise InputError(
                field="calibration region",
                got=f"{int(flags.sum())} samples, of which {lost} hold no data or may not be measured",
                wanted="samples inside the shutter and the kept part of k-space",
                cure="Take a smaller region, or keep more of k-space.",
            )
        outwards = self.plane.outwards
        return tuple(outwards[flags[outwards]].tolist())

    def start(self, measurable: NDArray[np.bool_], count: int, forced: int = 0) -> tuple[int, ...]:
        """Samples to measure before the first decision: those required, and the nearest to DC up to ``count`` in all.

        Raises
        ------
        InputError
            Where a required sample cannot be measured, or there are not that many.
        """
        needed = self.needed(measurable, forced)
        free = measurable & self.kept
        if not 1 <= count <= int(free.sum()):
            raise InputError(field="start samples", got=str(count), wanted=f"1 to {int(free.sum())}")
        flags = np.zeros(self.plane.size, dtype=bool)
        flags[list(needed)] = True
        outwards = self.plane.outwards
        others = outwards[free[outwards] & ~flags[outwards]]
        flags[others[: max(count - len(needed), 0)]] = True
        return tuple(outwards[flags[outwards]].tolist())


@dataclass(frozen=True)
class AngleConstraints(Constraints):
    """Candidates at equispaced angles, in their order.

    Parameters
    ----------
    size : int
        Candidates.
    half_turn : int
        How many of them fill half a turn: all spokes, every second arm. A start is spread over these.
    """

    size: int
    half_turn: int

    def allowed(self, n_lines: int) -> NDArray[np.bool_]:
        """True for every angle, (size,)."""
        return np.ones(self.size, dtype=bool)

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
