"""In which order, and in which echo trains, chosen lines or samples are measured: apart from how they were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option, require_counts
from mri_design.readouts import Readouts

ORDERS = ("as-chosen", "ascending", "centre-out", "interleaved")
"""Names of the orders."""


@dataclass(frozen=True)
class Acquisition:
    """Lines, or samples of a plane, as the scanner measures them.

    Parameters
    ----------
    trains : tuple of tuple of int
        Lines of every echo train, echo after echo.
    readouts : Readouts
        The grid, and what of it is measured one by one. Where this class speaks of lines, it means these candidates.
    """

    trains: tuple[tuple[int, ...], ...]
    readouts: Readouts

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines, train after train."""
        return tuple(line for train in self.trains for line in train)

    @property
    def dc_echo(self) -> int:
        """Echo, counted from 1, that measures the line nearest to DC: its time is the effective echo time."""
        nearest = self.readouts.nearest_to_centre(sorted(self.lines), 1)[0]
        return 1 + next(train.index(nearest) for train in self.trains if nearest in train)

    @property
    def largest_jump(self) -> float:
        """Largest distance between consecutive lines, 0 for a single line; in a plane between samples, as |k|."""
        return max((_distance(self.readouts, a, b) for a, b in pairwise(self.lines)), default=0.0)

    @property
    def typical_jump(self) -> float:
        """Median distance between consecutive lines of a train, 0 where trains have one echo."""
        jumps = [_distance(self.readouts, a, b) for train in self.trains for a, b in pairwise(train)]
        return float(np.median(jumps)) if jumps else 0.0


def acquisition_order(
    lines: Sequence[int],
    readouts: Readouts,
    order: str = "as-chosen",
    train: int = 1,
    effective_echo: int | None = None,
) -> Acquisition:
    """Sort chosen lines, or samples of a plane, into echo trains.

    Parameters
    ----------
    lines : sequence of int
        As they were chosen.
    readouts : Readouts
        The candidates that the lines or samples belong to.
    order : str
        ``as-chosen``; ``ascending`` in ky, samples of a plane then in kz; ``centre-out``: every train from DC outwards,
        so that an echo measures one ring around DC, and without trains all by their distance from DC, in a plane those
        at one distance by their angle; ``interleaved``: every train ascends over all of k-space, the
        trains one line apart, so that an echo measures one band of k-space along ky. In a plane the samples of a ring
        are shared among the trains by their angle, and those of a band by their kz, which keeps a train's samples
        together.
    train : int
        Echoes of a train; the last trains may have fewer, in a plane any.
    effective_echo : int, optional
        Echo, counted from 1, that measures DC in the train that holds it; ``interleaved`` trains are turned so that it
        does. Where the lines do not fill the trains it is their last echo at most.

    Raises
    ------
    InputError
        For an unknown order, or an effective echo that the order or the trains do not have.
    """
    check_order(order, train, effective_echo)
    count = -(-len(lines) // train)
    ascending = sorted(lines)
    if order in ("as-chosen", "ascending"):
        listed = ascending if order == "ascending" else list(lines)
        return Acquisition(tuple(tuple(listed[i : i + train]) for i in range(0, len(listed), train)), readouts)
    within = readouts.order_within_echo(order)
    if order == "centre-out":
        if train == 1:
            return Acquisition(tuple((line,) for line in readouts.centre_out(ascending)), readouts)
        by_radius = readouts.nearest_to_centre(ascending, len(ascending))
        return Acquisition(_echo_by_echo(by_radius, count, within), readouts)
    made = Acquisition(_echo_by_echo(ascending, count, within), readouts)
    if effective_echo is None:
        return made
    shift = made.dc_echo - min(effective_echo, min(len(each) for each in made.trains))
    turned = (np.roll(each, -shift).tolist() for each in made.trains)
    return Acquisition(tuple(tuple(each) for each in turned), readouts)


def _distance(readouts: Readouts, one: int, other: int) -> float:
    frequencies = readouts.frequencies
    return float(np.linalg.norm(frequencies[one] - frequencies[other]))


def _echo_by_echo(lines: Sequence[int], count: int, within: NDArray[np.float64] | None) -> tuple[tuple[int, ...], ...]:
    """``count`` trains, whose first echoes share the first ``count`` lines, and so on."""
    trains: list[list[int]] = [[] for _ in range(count)]
    for first in range(0, len(lines), count):
        echo = lines[first : first + count]
        if within is None:
            places = list(range(len(echo)))
        else:  # spread evenly where there are fewer than trains
            echo = sorted(echo, key=lambda line: (within[line], line))
            places = [place * count // len(echo) for place in range(len(echo))]
        for place, line in zip(places, echo, strict=True):
            trains[place].append(line)
    return tuple(tuple(train) for train in trains)


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
            cure="Give [design] train in a recipe, "
            f"or {option('block')} where lines are chosen; or take another order.",
        )
    if effective_echo is not None and order != "interleaved":
        wanted, cure = "order interleaved", "Take that order, or leave the effective echo out."
        raise InputError("effective echo", f"order {order}", wanted, cure)
    if effective_echo is not None and not 1 <= effective_echo <= train:
        raise InputError(field="effective echo", got=str(effective_echo), wanted=f"1 to {train}, echoes of a train")
    if max_jump is not None and order not in ("as-chosen", "ascending"):
        wanted = "as-chosen or ascending, which keep jumps short"
        cure = "Take one of these, or leave the maximum jump out."
        raise InputError("order", f"{order} with jumps of {max_jump} at most", wanted, cure)
