"""Slices that live in other processes for as long as a design lasts.

Each is sent to its process once and stays there with its warm start and its posterior. For every line a request of a
few hundred bytes goes there, and the image and what the strategy asks for come back. Where a process is lost, the
design goes on from its checkpoint with others: it stays the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from uuid import uuid4

from mri_design.design.engine import Cost, DesignEngine, DesignState, InferredSlices, SliceInference
from mri_design.design.greedy import KeptElsewhere
from mri_design.errors import MriDesignError
from mri_design.experiment.design import DesignOptions, design_lines
from mri_design.model.slice import SliceModel
from mri_design.runs.workers import (
    GONE,
    PUT_UP_WITH,
    DaskWorker,
    LostPieceError,
    Processes,
    Workers,
    lost_worker,
    outcome,
)

Answer = TypeVar("Answer")


def design_among(
    workers: Workers[Any],
    engine: DesignEngine,
    slices: Sequence[SliceModel],
    start: Sequence[int],
    target: int,
    options: DesignOptions,
) -> DesignState:
    """`design_lines` with its slices shared out among workers; a single one stays here.

    Raises
    ------
    MriDesignError
        Where processes are lost again and again before the next line.
    """
    executor = workers.executor if len(slices) > 1 else None
    reached = lost = 0

    def after_line(state: DesignState) -> None:
        nonlocal reached, lost
        if len(state.trace.lines) > reached:
            reached, lost = len(state.trace.lines), 0
        if options.callback is not None:
            options.callback(state)

    while True:
        there = None if executor is None else ResidentSlices(executor.each(len(slices)))
        try:
            return design_lines(engine, slices, start, target, replace(options, where=there, callback=after_line))
        except LostPieceError as error:
            lost += 1
            if lost == PUT_UP_WITH:
                raise lost_worker(error) from error
        finally:
            if there is not None:
                there.close()


_kept: dict[tuple[str, int], SliceInference] = {}
"""In a process that keeps slices, by design and number."""


def _take(_: object, item: tuple[str, int, SliceInference]) -> None:
    design, number, one = item
    _kept[design, number] = one


def _drop(_: object, design: str) -> None:
    for key in [key for key in _kept if key[0] == design]:
        del _kept[key]


def _asked(_: object, item: tuple[str, int, bool, Callable[..., Any], tuple[Any, ...]]) -> Any:
    """A function of a slice, of which the item says whether its lines have been measured before."""
    design, number, measured, function, arguments = item
    one = _kept.get((design, number))
    if one is None:
        raise LostPieceError("the slice is no longer there")
    if measured:
        one.measured()
    return function(one, *arguments)


class ResidentSlices(InferredSlices):
    """The slices of one design in other processes, slice ``i`` always in the same one; see `InferredSlices`.

    Parameters
    ----------
    processes : sequence of Processes or DaskWorker
        Each is one process.

    Attributes
    ----------
    inferences, measurements : int
        How often the slices were inferred and measured.
    """

    def __init__(self, processes: Sequence[Processes] | Sequence[DaskWorker]) -> None:
        self._processes, self._design = processes, uuid4().hex
        self._numbers = range(0)
        self._behind: set[int] = set()  # slices that have not heard of the last measurement
        self.inferences = self.measurements = 0

    def begin(self, slices: Sequence[SliceInference]) -> None:
        self._numbers = range(len(slices))
        self._all(_take, {number: (self._design, number, one) for number, one in enumerate(slices)})

    def _all(self, function: Callable[[None, Any], Any], items: Mapping[int, Any]) -> list[Any]:
        """The function of an item in the process of each number."""
        places = [self._processes[number % len(self._processes)] for number in items]
        try:
            futures = [place.submit(function, item) for place, item in zip(places, items.values(), strict=True)]
        except (BrokenExecutor, *GONE) as error:
            raise LostPieceError(str(error)) from error
        return [outcome(place, future) for place, future in zip(places, futures, strict=True)]

    def ask(self, function: Callable[..., Answer], each: Mapping[int, tuple[Any, ...]], gone: int = 0) -> list[Answer]:
        """``function(slice, *arguments)`` of the slices with these numbers, as they stood ``gone`` measurements ago.

        Raises
        ------
        MriDesignError
            Where they have gone on since.
        """
        if gone > 1 or (gone and not self._behind >= each.keys()):
            raise MriDesignError("the design has gone on: its slices stand elsewhere, and this is no longer kept")
        behind = set[int]() if gone else self._behind
        self._behind = self._behind if gone else self._behind - each.keys()
        return self._all(_asked, {n: (self._design, n, n in behind, function, own) for n, own in each.items()})

    def each(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        return self.ask(function, dict.fromkeys(self._numbers, arguments))

    def update(self, lines: tuple[int, ...], map_count: int) -> list[Cost]:
        self.inferences += 1
        return super().update(lines, map_count)

    def posteriors(self, which: str = "posterior") -> KeptElsewhere:
        made = self.inferences

        def ask(function: Callable[..., Any], each: Mapping[int, tuple[Any, ...]]) -> list[Any]:
            return self.ask(function, each, gone=2 * (self.inferences - made))

        return KeptElsewhere(which, len(self.means), ask, self.means)

    def measured(self) -> None:
        """The slices hear of it with the next request."""
        self.measurements += 1
        self._behind = set(self._numbers)

    @property
    def warm_starts(self) -> Sequence[Any]:
        """Whoever looks at them has to do so before more lines are measured."""
        made = self.measurements

        def ask(function: Callable[..., Any], each: Mapping[int, tuple[Any, ...]]) -> list[Any]:
            return self.ask(function, each, gone=self.measurements - made)

        return KeptElsewhere("warm", len(self._numbers), ask)

    def close(self) -> None:
        """Let the processes forget the slices."""
        for place in self._processes:
            with suppress(BrokenExecutor, *GONE):
                place.submit(_drop, self._design)
            place.close()
