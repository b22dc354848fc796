"""Workers: one function over many items, in this process, in others of this machine, or in those of a dask cluster."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import islice
from multiprocessing import forkserver, get_context, parent_process
from multiprocessing.context import BaseContext
from threading import Thread, current_thread, main_thread
from types import TracebackType
from typing import Any, Generic, TypeVar
from uuid import uuid4

from threadpoolctl import threadpool_limits

from mri_design.errors import InputError, MriDesignError, UnknownNameError, UsageError, optional_package

LOCAL, DASK = "local", "dask"
PATIENCE = 30.0
"""Seconds that a scheduler may take to answer, and to have a worker."""
GONE = (OSError, TimeoutError, AttributeError)
"""What a client of dask raises whose scheduler is gone."""
LOOK = 1.0
"""Seconds after which somebody who waits for a worker of dask looks whether it is still there."""
PUT_UP_WITH = 3
"""Processes that may die of one piece."""
PRELOADED = "mri_design.runs.warm_process"
"""The module that the process loads which others are copied from."""

Piece = Callable[[Any, Any], Any]
"""A function of the material, which every piece shares, and of an item."""


Material = TypeVar("Material")
Item = TypeVar("Item")
Result = TypeVar("Result")

_SHOWN = 3
"""Failures that a message spells out."""


class LostPieceError(MriDesignError):
    """What a process kept or was doing, or a scanner was to measure, is lost: work goes on from what is kept."""


def is_lost(process: Processes | DaskCluster | DaskWorker, future: Future[Any]) -> bool:
    """Wait for what a process was sent, and say whether the process was lost before that was done."""
    while wait([future], LOOK).not_done:
        if not process.alive():
            return True
    return future.cancelled() or isinstance(future.exception(), process.losses)


def outcome(process: Processes | DaskCluster | DaskWorker, future: Future[Any]) -> Any:
    """The result of what one process was sent.

    Raises
    ------
    LostPieceError
        Where the process is lost.
    Exception
        What the function raised.
    """
    if is_lost(process, future):
        raise LostPieceError("the worker is gone")
    return future.result()


def require_executor(text: str) -> None:
    """Refuse an executor that there is not.

    Raises
    ------
    UsageError
        For another word than ``local``, ``dask`` and ``dask:ADDRESS``.
    MissingPackageError
        For dask where it is not installed.
    """
    kind, mark, address = text.partition(":")
    if text != LOCAL and (kind != DASK or bool(mark) != bool(address)):
        raise UnknownNameError("executor", text, (LOCAL, DASK, f"{DASK}:ADDRESS"))
    if kind == DASK:
        optional_package("distributed", "dask")


_material: Any = None  # in a process of this machine: what every piece gets, sent once
_ended: Any = None  # an event that is set when no further piece is wanted


def _call(function: Piece, item: Any) -> Any:
    """The piece, which an interruption of the command ends; between two of them the process ignores it."""
    if _ended.is_set():
        raise CancelledError
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return function(_material, item)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _begin_process(material: Any, ended: Any) -> None:
    global _material, _ended
    _material, _ended = material, ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)  # several processes with several threads each would only wait for one another
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent is killed: the process would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _context(*further: str) -> BaseContext:
    """How processes begin: as copies of one that has loaded the program, where the system can do that.

    Not as copies of this one: they would inherit the progress display's thread half-way through a line.
    """
    if sys.platform != "linux":  # elsewhere libraries of linear algebra do not survive being copied, or nothing is
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED, *further])
    return context


def load_ahead(jobs: int, executor: str = LOCAL) -> None:
    """Begin to load the program for processes of this machine while this one is still loading it.

    Nothing happens where there will be no such processes, or where they are not begun as copies.
    """
    further = ("distributed",) if executor == DASK else ()
    if executor in (LOCAL, DASK) and jobs > 1 and _context(*further).get_start_method() == "forkserver":
        forkserver.ensure_running()


class Processes:
    """Processes of this machine, which begin with their first pieces. Where one dies, the pieces of all are lost."""

    losses: tuple[type[Exception], ...] = (BrokenExecutor,)
    """What a future raises whose process died."""

    def __init__(self, material: Any, jobs: int) -> None:
        context, self._jobs = _context(), jobs
        self._ended = context.Event()
        self._begin = partial(
            ProcessPoolExecutor, jobs, context, initializer=_begin_process, initargs=(material, self._ended)
        )
        self._pool = self._begin()

    def submit(self, function: Piece, item: Any) -> Future[Any]:
        """``function(material, item)``, to come, in the next free process; where one died, in new ones."""
        try:
            return self._pool.submit(_call, function, item)
        except BrokenExecutor:
            self._pool.shutdown()
            self._pool = self._begin()
            return self._pool.submit(_call, function, item)

    def renew(self, cancelled: bool) -> None:
        """Nothing: the next piece begins new processes."""

    def each(self, most: int) -> list[Processes]:
        """Single processes, ``most`` at most, in which things can stay between calls, as long as they are `alive`."""
        return [Processes(None, 1) for _ in range(min(self._jobs, most))]

    def alive(self) -> bool:
        """Whether to go on waiting for a result: futures tell themselves of a process that dies."""
        return True

    def close(self) -> None:
        """End all work, and wait: a pool's thread that ends while the interpreter exits sometimes fails."""
        self._ended.set()
        self._pool.shutdown(cancel_futures=True)


def _on_one_thread(name: str, function: Piece, item: Any) -> Any:
    """On a worker of dask, with one thread: the function of the material of that name, and of the item."""
    with threadpool_limits(1):
        return function(getattr(optional_package("distributed", "dask").get_worker(), name), item)


def _prepared(distributed: Any, material_name: str, material: Any, deaf: bool) -> Any:
    """A plugin that puts the material on every worker, also on one that takes the place of another.

    Data that are scattered live on workers only: when these die they are lost, and fetched from each other in vain.
    Workers of this machine are deaf to an interruption of the command, which reaches the command alone: they would end
    of it, and what they keep would be lost before the command has asked for it.
    """

    class Prepared(distributed.WorkerPlugin):
        name = material_name

        def setup(self, worker: Any) -> None:
            setattr(worker, material_name, material)
            if deaf and current_thread() is main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

        def teardown(self, worker: Any) -> None:
            delattr(worker, material_name)

    return Prepared()


def _as_other_processes() -> AbstractContextManager[Any]:
    """Within this, workers of dask begin as other processes do, and keep memory that was freed as other programs do.

    Dask has them give it back at once, which costs the system's time where every iteration makes its arrays anew.
    """
    config, key = optional_package("dask", "dask").config, "distributed.nanny.pre-spawn-environ"
    usual = {name: value for name, value in config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"}
    method = _context().get_start_method()
    settings: AbstractContextManager[Any] = config.set(
        {key: usual, "distributed.worker.multiprocessing-method": method}
    )
    return settings


class DaskCluster:
    """Workers of a dask cluster. The scheduler gives the piece of a worker that died to another one, a few times.

    Where the scheduler goes away, or all workers at once, the next piece begins with a new connection or cluster.
    """

    def __init__(self, material: Any, jobs: int, address: str) -> None:
        self._distributed = optional_package("distributed", "dask")
        self.losses: tuple[type[Exception], ...] = (self._distributed.KilledWorker, CancelledError)
        self._material, self._jobs, self._address = material, jobs, address
        self._begin()

    def _begin(self) -> None:
        distributed, address = self._distributed, self._address
        self._cluster, self._name = None, f"mri-design-{uuid4()}"
        if address:
            try:
                self._client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise UsageError(f"--executor dask:{address}: no scheduler answers ({error})") from error
            try:
                self._client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError as error:
                self._client.close()
                raise UsageError(
                    f"--executor dask:{address}: the scheduler has no workers; start some, then give the same command"
                ) from error
        else:
            with _as_other_processes():
                load_ahead(self._jobs, DASK)
                self._cluster = distributed.LocalCluster(
                    n_workers=self._jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
                )
            self._client = distributed.Client(self._cluster, set_as_default=False)
        self._client.register_plugin(_prepared(distributed, self._name, self._material, deaf=not address))
        self._executor = self._client.get_executor(pure=False)

    def submit(self, function: Piece, item: Any, workers: Sequence[str] | None = None) -> Future[Any]:
        """See `Processes`; on ``workers`` by their addresses, or on any."""
        executor = self._executor if workers is None else self._client.get_executor(pure=False, workers=workers)
        future: Future[Any] = executor.submit(_on_one_thread, self._name, function, item)
        return future

    def renew(self, cancelled: bool) -> None:
        """Begin anew where the scheduler is gone, or all workers, or where it cancelled what it was sent."""
        if cancelled or not self.alive():
            self.close()
            self._begin()

    def each(self, most: int) -> list[DaskWorker]:
        """See `Processes`."""
        self.renew(False)
        return [DaskWorker(self, address) for address in self.addresses()[:most]]

    def alive(self) -> bool:
        """Whether there are workers."""
        return bool(self.addresses())

    def addresses(self) -> list[str]:
        """Of the workers that are there."""
        with suppress(*GONE):
            return sorted(self._client.nthreads())
        return []

    def close(self) -> None:
        """See `Processes`."""
        with suppress(*GONE):
            self._client.unregister_worker_plugin(self._name)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


class DaskWorker:
    """One worker of a cluster: what is sent to it waits for ever where it is gone, see `alive`."""

    def __init__(self, cluster: DaskCluster, address: str) -> None:
        self._cluster, self._address, self.losses = cluster, address, cluster.losses

    def submit(self, function: Piece, item: Any) -> Future[Any]:
        """See `Processes`."""
        return self._cluster.submit(function, item, [self._address])

    def alive(self) -> bool:
        """Whether it is there."""
        return self._address in self._cluster.addresses()

    def close(self) -> None:
        """Nothing: it works for others."""


class Workers(Generic[Material]):
    """Processes that call ``function(material, item)``; the material travels to each once.

    Parameters
    ----------
    material : object
        Argument of every call; it must survive pickling where it is not computed here.
    jobs : int
        Processes of this machine; 1 computes here. Results do not depend on it.
    executor : str
        ``local``; ``dask``, for a cluster of this machine; or ``dask:ADDRESS`` of a scheduler, whose workers compute
        whatever ``jobs`` is. Results do not depend on it.

    Raises
    ------
    UsageError, MissingPackageError
        As `require_executor`, and where no scheduler answers at the address, or it has no worker.

    Attributes
    ----------
    executor : Processes or DaskCluster, optional
        Other processes: any free one computes ``function(material, item)``, and `each` something of its own. None
        computes here.

    Notes
    -----
    A process that is killed does not end the work: what was being computed is computed again, and at last one piece at
    a time, so that the one that kills its process is found.
    """

    def __init__(self, material: Material, jobs: int, executor: str = LOCAL) -> None:
        self.material = material
        require_executor(executor)
        self.executor: Processes | DaskCluster | None = None
        if executor != LOCAL:
            self.executor = DaskCluster(material, jobs, executor.partition(":")[2])
        elif jobs > 1:
            self.executor = Processes(material, jobs)

    def __enter__(self) -> Workers[Material]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.executor is not None:
            self.executor.close()

    def map(
        self, function: Callable[[Material, Item], Result], items: Iterable[Item], ahead: int | None = None
    ) -> Iterator[Result]:
        """Results in the order of the items, each as soon as it and those before it are done.

        Parameters
        ----------
        function : callable
            Of the material and an item.
        items : iterable
            They are asked for as they are begun.
        ahead : int, optional
            Items that are begun or kept at once, at most; all by default.

        Raises
        ------
        MriDesignError
            Where one piece's process was killed again and again.
        Exception
            What the function raised, for the first item where it did.
        """
        for _, made in self._pieces(function, items, ahead):
            yield made.result()

    def finished(
        self, function: Callable[[Material, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Results with the places of their items, see `map`; a piece that fails is left out, and told of at the end.

        Raises
        ------
        InputError, UsageError
            At once: they are about what was asked for.
        MriDesignError
            At the end, which pieces failed, and why.
        """
        failed: list[tuple[Item, BaseException]] = []
        pieces = 0
        for item, made in self._pieces(function, items):
            pieces += 1
            error = made.exception()
            if error is None:
                yield pieces - 1, made.result()
            elif not isinstance(error, Exception) or isinstance(error, InputError | UsageError):
                raise error
            else:
                failed.append((item, error))
        if failed:
            said = "; ".join(f"{item}: {type(error).__name__}: {error}" for item, error in failed[:_SHOWN])
            more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
            raise MriDesignError(
                f"{len(failed)} of {pieces} pieces failed, and the others are kept ({said}{more}); the same command "
                "with --resume tries them again"
            ) from failed[0][1]

    def _pieces(
        self, function: Piece, items: Iterable[Item], ahead: int | None = None
    ) -> Iterator[tuple[Item, Future[Any]]]:
        """All pieces, done; one whose process died is begun again alone, since another may have been the reason."""
        executor, items, begun = self.executor, iter(items), deque[tuple[Item, Future[Any]]]()
        ahead = 1 if executor is None else ahead
        while True:
            for item in islice(items, None if ahead is None else ahead - len(begun)):
                begun.append((item, self._submit(function, item)))
            if not begun:
                return
            item, future = begun.popleft()
            losses, gone = 0, [False] * len(begun)
            while executor is not None and is_lost(executor, future):
                losses += 1
                if losses == PUT_UP_WITH:
                    future = Future()
                    future.set_exception(lost_worker())
                    break
                if losses == 1:  # waits for the others: this piece begins alone
                    gone = [is_lost(executor, other) for _, other in begun]
                executor.renew(future.cancelled())
                future = executor.submit(function, item)
            if executor is not None and losses:
                others = zip(begun, gone, strict=True)
                begun = deque((one, executor.submit(function, one) if lost else old) for (one, old), lost in others)
            yield item, future

    def _submit(self, function: Piece, item: Any) -> Future[Any]:
        """The piece, to come; in this process it is done at once."""
        if self.executor is not None:
            return self.executor.submit(function, item)
        done = Future[Any]()
        try:
            done.set_result(function(self.material, item))
        except Exception as error:
            done.set_exception(error)
        return done


def lost_worker(error: BaseException | None = None) -> MriDesignError:
    """The error for a piece whose process was killed again and again."""
    lost = MriDesignError(
        "a worker process was killed before its work was done, perhaps for want of memory; what is finished is "
        "kept: go on with the same command and --resume, perhaps with fewer --jobs"
    )
    lost.__cause__ = error
    return lost
