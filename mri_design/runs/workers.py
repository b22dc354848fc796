"""One function over many items, in this process or in several, with results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Generic, TypeVar

from threadpoolctl import threadpool_limits

from mri_design.errors import MriDesignError

__all__ = ["Workers"]

Material = TypeVar("Material")
Item = TypeVar("Item")
Result = TypeVar("Result")

_held: Any = None  # in a worker process: the material, sent once


def _hold(material: Any) -> None:
    global _held
    _held = material
    threadpool_limits(1)  # several processes with several threads each would only wait for one another


def _call(function: Callable[[Any, Any], Any], item: Any) -> Any:
    return function(_held, item)


class Workers(Generic[Material]):
    """A pool that calls ``function(material, item)``; the material travels to each process once.

    Parameters
    ----------
    material : object
        What every call needs; it must survive pickling where ``jobs`` is above 1.
    jobs : int
        Processes; 1 computes here. Results do not depend on it.
    """

    def __init__(self, material: Material, jobs: int) -> None:
        self.material = material
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            # spawn: a forked child would inherit the progress display's thread half-way through a line.
            self._pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_hold, initargs=(material,))

    def __enter__(self) -> Workers[Material]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Material, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results in the order of the items, each as soon as it and those before it are done.

        Raises
        ------
        MriDesignError
            Where a process was killed before its work was done.
        """
        if self._pool is None:
            return (function(self.material, item) for item in items)
        listed = list(items)
        return _as_they_come(self._pool.map(_call, [function] * len(listed), listed))


def _as_they_come(results: Iterator[Result]) -> Iterator[Result]:
    try:
        yield from results
    except BrokenProcessPool as error:
        raise MriDesignError(
            "a worker process was killed before its work was done, perhaps for want of memory; what is finished is "
            "kept: go on with the same command (a protocol with --resume), perhaps with fewer --jobs"
        ) from error
