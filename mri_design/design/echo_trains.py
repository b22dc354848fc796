"""In which order, and in which echo trains, chosen lines are measured: apart from how they were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mri_design.errors import InputError, require_counts

__all__ = ["ORDERS", "Acquisition", "acquisition_order", "check_order"]

ORDERS = ("as-chosen", "ascending", "centre-out", "interleaved")
"""Names of the orders."""


@dataclass(frozen=True)
class Acquisition:
    """Lines as the scanner measures them.

    Parameters
    ----------
    trains : tuple of tuple of int
        Lines of every echo train, echo after echo.
    n_lines : int
        Lines of the grid.
    """

    trains: tuple[tuple[int, ...], ...]
    n_lines: int

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines, train after train."""
        return tuple(line for train in self.trains for line in train)

    @property
    def dc_echo(self) -> int:
        """Echo, counted from 1, that measures the line nearest to DC: its time is the effective echo time."""
        return 1 + next(train.index(self._nearest) for train in self.trains if self._nearest in train)

    @property
    def largest_jump(self) -> int:
        """Largest distance between consecutive lines, 0 for a single line."""
        return max((abs(b - a) for a, b in pairwise(self.lines)), default=0)

    @property
    def _nearest(self) -> int:
        return min(self.lines, key=lambda line: (abs(line - self.n_lines // 2), line))


def acquisition_order(
    lines: Sequence[int], n_lines: int, order: str = "as-chosen", train: int = 1, effective_echo: int | None = None
) -> Acquisition:
    """Sort chosen lines into echo trains.

    Parameters
    ----------
    lines : sequence of int
        As they were chosen.
    n_lines : int
        Lines of the grid.
    order : str
        ``as-chosen``; ``ascending`` in ky; ``centre-out``: every train from DC outwards; ``interleaved``: every train
        ascends over all of k-space, the trains one line apart, so that an echo measures one band of k-space.
    train : int
        Echoes of a train; the last trains may have fewer.
    effective_echo : int, optional
        Echo, counted from 1, that measures DC in the train that holds it; ``interleaved`` trains are turned so that it
        does. Where the lines do not fill the trains it is their last echo at most.

    Raises
    ------
    InputError
        For an unknown order, no line, or an effective echo that the order or the trains do not have.
    """
    check_order(order, train, effective_echo)
    if not lines or len(set(lines)) < len(lines) or not all(0 <= line < n_lines for line in lines):
        raise InputError(field="lines", got=str(tuple(lines)), wanted=f"different line numbers from 0 to {n_lines - 1}")
    middle, count = n_lines // 2, -(-len(lines) // train)
    if order in ("as-chosen", "ascending"):
        listed = sorted(lines) if order == "ascending" else list(lines)
        return Acquisition(tuple(tuple(listed[i : i + train]) for i in range(0, len(listed), train)), n_lines)
    by_radius = sorted(lines, key=lambda line: (abs(line - middle), line))
    if order == "centre-out":
        return Acquisition(tuple(tuple(by_radius[i::count]) for i in range(count)), n_lines)
    ascending = sorted(lines)
    made = Acquisition(tuple(tuple(ascending[i::count]) for i in range(count)), n_lines)
    return made if effective_echo is None else _turned(made, effective_echo)


def check_order(order: str, train: int, effective_echo: int | None = None, max_jump: int | None = None) -> None:
    """Refuse an order that does not exist or that its trains or the largest jump contradict.

    Lines that were chosen within jumps of ``max_jump`` keep to it as they were chosen, and in ascending order.

    Raises
    ------
    InputError
        As `acquisition_order`, and for an order that breaks jumps.
    """
    require_counts(least=1, **{"echo train": train})
    if order not in ORDERS:
        raise InputError(field="order", got=repr(order), wanted=f"one of: {', '.join(ORDERS)}")
    if order == "interleaved" and train == 1:
        raise InputError(
            field="order",
            got="interleaved without echo trains",
            wanted="trains of two echoes or more",
            cure="Give --block, or [design] train in a recipe; or take another order.",
        )
    if effective_echo is not None and order != "interleaved":
        raise InputError(
            field="effective echo",
            got=f"order {order}",
            wanted="order interleaved",
            cure="Take that order, or leave the effective echo out.",
        )
    if effective_echo is not None and not 1 <= effective_echo <= train:
        raise InputError(field="effective echo", got=str(effective_echo), wanted=f"1 to {train}, echoes of a train")
    if max_jump is not None and order not in ("as-chosen", "ascending"):
        raise InputError(
            field="order",
            got=f"{order} with jumps of {max_jump} at most",
            wanted="as-chosen or ascending, which keep jumps short",
            cure="Take one of these, or leave the maximum jump out.",
        )


def _turned(made: Acquisition, effective_echo: int) -> Acquisition:
    shift = made.dc_echo - min(effective_echo, min(len(train) for train in made.trains))
    trains = []
    for train in made.trains:
        first = shift % len(train)
        trains.append((*train[first:], *train[:first]))
    return Acquisition(tuple(trains), made.n_lines)
