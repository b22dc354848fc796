"""The parts of a reconstruction, announced together and done one after the other."""

from __future__ import annotations

from collections.abc import Callable

_BEFORE = ("reading", "calibrating")
_OF_MEAN = "choosing the model"
LOOPS, REPORT = "outer loops", "report"
"""Stages with names that others need: the iterations of a posterior mean, and what is written in the end."""


class Stages:
    """Show which part of a reconstruction is being done, and which are left.

    Parameters
    ----------
    show : callable
        Takes the name of a part, how many of its pieces are done, and of how many.
    method : str
        Of the recipe: only the posterior mean has outer loops and error bars.
    """

    def __init__(self, show: Callable[[str, int, int], None], method: str) -> None:
        middle = (_OF_MEAN, LOOPS, "error bars") if method == "mean" else ("reconstructing",)
        self._show = show
        self._totals = dict.fromkeys((*_BEFORE, *middle, REPORT), 1)
        self._open = list(self._totals)
        for name in self._open:
            show(name, 0, 1)

    def begin(self, name: str) -> None:
        """Say that a part begins: those before it are done. A name that the method does not have says nothing."""
        if name in self._open:
            for earlier in self._open[: self._open.index(name)]:
                self._open.remove(earlier)
                self._show(earlier, self._totals[earlier], self._totals[earlier])
            self._show(name, 0, self._totals[name])

    def loop(self, done: int, most: int) -> None:
        """Say that ``done`` outer loops are done, of ``most``."""
        if LOOPS in self._open:
            self._totals[LOOPS] = most
            self._show(LOOPS, done, most)
