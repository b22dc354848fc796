"""One function over many items, in this process or in several, with results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from mri_design.errors import InputError, MriDesignError, UsageError
from mri_design.runs.executors import LOCAL, Executor, LostPieceError, executor_for

Material = TypeVar("Material")
Item = TypeVar("Item")
Result = TypeVar("Result")

_SHOWN = 3
"""Failures that a message spells out."""


class Workers(Generic[Material]):
    """Those who call ``function(material, item)``; the material travels to each process once.

    Parameters
    ----------
    material : object
        What every call needs; it must survive pickling where it is not computed here.
    jobs : int
        Processes of this machine; 1 computes here. Results do not depend on it.
    executor : str
        ``local``, ``dask`` or ``dask:ADDRESS``, see `executor_for`. Results do not depend on it.

    Notes
    -----
    A process that is killed does not end the work: what was being computed is computed again, and at last one piece at
    a time, so that the one that kills its process is found.
    """

    def __init__(self, material: Material, jobs: int, executor: str = LOCAL) -> None:
        self.material = material
        self._jobs, self._kind = jobs, executor
        self._executor = executor_for(executor, material, jobs)

    def __enter__(self) -> Workers[Material]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.close()

    def map(self, function: Callable[[Material, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results in the order of the items, each as soon as it and those before it are done.

        Raises
        ------
        MriDesignError
            Where one piece's process was killed again and again.
        Exception
            What the function raised, for the first item where it did.
        """
        for piece in self._pieces(function, items):
            if piece.error is not None:
                raise piece.error
            yield piece.result

    def finished(
        self, function: Callable[[Material, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """As `map`, with the places of the items beside; a piece that fails is left out, and told of at the end.

        Raises
        ------
        InputError, UsageError
            At once: they are about what was asked for.
        MriDesignError
            At the end, which pieces failed, and why.
        """
        failed: list[tuple[Item, BaseException]] = []
        count = 0
        for place, piece in enumerate(self._pieces(function, items)):
            count = place + 1
            if isinstance(piece.error, InputError | UsageError):
                raise piece.error
            if piece.error is None:
                yield place, piece.result
            else:
                failed.append((piece.item, piece.error))
        if failed:
            said = "; ".join(f"{item}: {type(error).__name__}: {error}" for item, error in failed[:_SHOWN])
            more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
            raise MriDesignError(
                f"{len(failed)} of {count} pieces failed, and the others are kept ({said}{more}); the same command "
                "(a protocol with --resume) tries them again"
            ) from failed[0][1]

    @property
    def places(self) -> int:
        """How many other processes keep what they are given, see `Executor.submit_at`; 0 where there are none."""
        return 0 if self._executor is None else self._executor.places

    def submit_at(self, place: int, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """See `Executor`; there must be other processes."""
        return self._working.submit_at(place, function, *arguments)

    def outcome(self, future: Future[Result]) -> Result:
        """See `Executor`."""
        found: Result = self._working.outcome(future)
        return found

    def renew(self) -> None:
        """Begin new processes in place of the present ones, after a `BrokenExecutor`."""
        self._working.close()
        self._executor = executor_for(self._kind, self.material, self._jobs)

    def _pieces(self, function: Callable[[Any, Any], Any], items: Iterable[Any]) -> Iterator[_Piece]:
        if self._executor is not None:
            yield from self._computed_elsewhere(function, list(items))
            return
        for item in items:
            try:
                piece = _Piece(item, function(self.material, item))
            except Exception as error:
                piece = _Piece(item, error=error)
            yield piece

    def _computed_elsewhere(self, function: Callable[[Any, Any], Any], items: list[Any]) -> Iterator[_Piece]:
        """As `_pieces`; where processes died, what was not done is begun again, and at last one by one."""
        futures = self._submitted(function, items, range(len(items)))
        breaks = 0
        for place, item in enumerate(items):
            piece: _Piece | None = None
            alone = False
            while piece is None:
                try:
                    if place not in futures:
                        futures[place] = self._working.submit(function, item)
                    piece = _Piece(item, self._working.outcome(futures.pop(place)))
                except BrokenExecutor as error:
                    if breaks > 1:  # it was alone
                        piece = _Piece(item, error=lost_worker(error))
                    breaks += 1
                    self.renew()
                    futures = {n: future for n, future in futures.items() if _is_done(future)}
                    if breaks == 1:
                        left = [n for n in range(place, len(items)) if n not in futures]
                        futures |= self._submitted(function, items, left)
                except LostPieceError as error:
                    if alone:
                        piece = _Piece(item, error=lost_worker(error))
                    else:  # perhaps another piece killed the processes that this one was given to as well
                        wait(futures.values())
                        alone = True
                except Exception as error:
                    piece = _Piece(item, error=error)
            yield piece

    @property
    def _working(self) -> Executor:
        assert self._executor is not None
        return self._executor

    def _submitted(
        self, function: Callable[[Any, Any], Any], items: list[Any], places: Iterable[int]
    ) -> dict[int, Future[Any]]:
        """The results to come, by place; those that could not be begun are missing."""
        futures: dict[int, Future[Any]] = {}
        with suppress(BrokenExecutor):
            for place in places:
                futures[place] = self._working.submit(function, items[place])
        return futures


@dataclass(frozen=True)
class _Piece:
    """An item with its result, or with the reason why there is none."""

    item: Any
    result: Any = None
    error: BaseException | None = None


def _is_done(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and not isinstance(future.exception(), BrokenExecutor)


def lost_worker(error: BaseException) -> MriDesignError:
    """What is told of a process that was killed again and again."""
    lost = MriDesignError(
        "a worker process was killed before its work was done, perhaps for want of memory; what is finished is "
        "kept: go on with the same command (a protocol with --resume), perhaps with fewer --jobs"
    )
    lost.__cause__ = error
    return lost
