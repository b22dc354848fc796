"""Workers: slices and pieces of a study computed in this process, in others of this machine, or on a dask cluster."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from multiprocessing import current_process, parent_process
from threading import Thread, current_thread, main_thread
from typing import Any, Generic, TypeVar
from uuid import uuid4

from threadpoolctl import threadpool_limits

from mri_design.design.engine import Cost, DesignEngine, DesignState, InferredSlices, SliceInference
from mri_design.design.greedy import KeptElsewhere
from mri_design.errors import InputError, MriDesignError, UnknownNameError, UsageError, optional_package
from mri_design.experiment.design import DesignOptions, design_lines
from mri_design.model.slice import SliceModel
from mri_design.runs.beginnings import LOCAL, way_to_begin

DASK = "dask"
PATIENCE = 30.0
"""Seconds in which a scheduler has to answer and to have a worker."""
POLL = 1.0
"""Seconds between two looks whether a worker of dask, or the parent of a process, is still there."""
MOST_LOSSES = 3
"""Processes that may die of one piece of work."""
UNREACHABLE = (OSError, TimeoutError, AttributeError)
"""Errors of a dask client whose scheduler is gone."""
_SHOWN = 3
"""Failures that a message spells out."""

Piece = Callable[[Any, Any], Any]
"""A function of the material, which all pieces of work share, and of an item."""
Material = TypeVar("Material")
Item = TypeVar("Item")
Result = TypeVar("Result")
Answer = TypeVar("Answer")

os.environ.setdefault("LOKY_MAX_MEMORY_LEAK_SIZE", "1e18")  # else loky ends processes whose slices grow


class LostPieceError(MriDesignError):
    """A process or a scanner was lost before its work was done; work goes on from the last state that was kept."""


def require_executor(text: str) -> None:
    """Refuse an unknown executor.

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


_material: Any = None  # in a process of this machine: the material, which travels there once


def _call(function: Piece, item: Any) -> Any:
    return function(_material, item)


def _nothing(*_: object) -> None:
    """What a process does to show that it has begun."""


def _begin_process(material: Any) -> None:
    global _material
    _material = material
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command itself answers Ctrl-C, and ends its processes
    threadpool_limits(1)  # several processes with several threads each would only wait for one another
    Thread(target=_end_with_command, daemon=True).start()


def _end_with_command() -> None:
    """Exit when the process of the command was killed; this one would wait for work forever."""
    command, parent = parent_process(), os.getppid()
    if command is not None and sys.platform == "linux":
        command.join()
    while sys.platform != "linux" and os.getppid() == parent:  # loky's own way gives no handle of it
        time.sleep(POLL)
    os._exit(1)


class Processes:
    """Processes of this machine, by loky: any free one takes a piece, and each numbered one keeps slices.

    Where one of the former dies, the pieces of all of them are lost; new ones begin with the next piece.
    """

    losses: tuple[type[Exception], ...] = (BrokenExecutor,)
    """Errors of a future whose process died."""

    def __init__(self, material: Any, jobs: int) -> None:
        if getattr(current_process(), "_inheriting", False):
            os._exit(1)  # it only loads the script that asked for it; the process that began it says what is wrong
        self._material, self._jobs = material, jobs
        self._executors = dict[int | None, Any]()

    def submit(self, function: Piece, item: Any, place: int | None = None) -> Future[Any]:
        """``function(material, item)`` in the numbered process ``place``, or in any free one."""
        if place not in self._executors:
            from loky import ProcessPoolExecutor

            jobs = self._jobs if place is None else 1
            self._executors[place] = ProcessPoolExecutor(
                jobs, context=way_to_begin(), initializer=_begin_process, initargs=(self._material,)
            )
        try:
            future: Future[Any] = self._executors[place].submit(_call, function, item)
        except BrokenExecutor:
            if place is not None:  # it kept slices
                raise
            self._executors.pop(None).shutdown()
            return self.submit(function, item)
        return future

    def places(self, most: int) -> list[Any]:
        """Single processes, at most ``most``: what stays in one is there until it dies, and is replaced here."""
        places, begun = list(range(min(self._jobs, most))), dict[int, Future[Any]]()
        for place in places:  # all begin at once
            with suppress(BrokenExecutor):
                begun[place] = self.submit(_nothing, None, place)
        for place in places:
            with suppress(BrokenExecutor, KeyError):
                begun[place].result()
                continue
            self._executors.pop(place).shutdown()
            self.require_beginning(place)
        return places

    def require_beginning(self, place: int | None = None) -> None:
        """Begin a process, where none is there, and have it do nothing.

        Raises
        ------
        UsageError
            Where it ends before its first piece of work, as one of a script that asks for processes while it is loaded.
        """
        try:
            self.submit(_nothing, None, place).result()
        except BrokenExecutor:
            raise UsageError(
                "the other processes ended before they got any work. Each of them loads the script that asks for "
                'them: put what the script does, other than definitions, under `if __name__ == "__main__":`, or '
                "compute in one process (jobs=1)"
            ) from None

    def alive(self, place: int | None = None) -> bool:
        """True: the future of a process that dies ends by itself."""
        return True

    def renew(self, cancelled: bool) -> None:
        """Begin new processes; raises as `require_beginning`."""
        self.require_beginning()

    def close(self, *, unfinished: bool) -> None:
        """End all processes, also those that are at work where there is ``unfinished`` work."""
        while self._executors:
            self._executors.popitem()[1].shutdown(kill_workers=unfinished)


def _on_one_thread(name: str, function: Piece, item: Any) -> Any:
    """On a worker of dask, with one thread: the function of the material of that name and of the item."""
    with threadpool_limits(1):
        return function(getattr(optional_package("distributed", "dask").get_worker(), name), item)


def _plugin_with(distributed: Any, material_name: str, material: Any, local: bool) -> Any:
    """A plugin that puts the material on every worker, also on one that replaces another.

    Scattered data live on workers only, and are lost with these. Workers of this machine ignore Ctrl-C, which the
    command itself answers: they would end, and the slices that they keep would be lost.
    """

    class WithMaterial(distributed.WorkerPlugin):
        name = material_name

        def setup(self, worker: Any) -> None:
            setattr(worker, material_name, material)
            if local and current_thread() is main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

        def teardown(self, worker: Any) -> None:
            delattr(worker, material_name)

    return WithMaterial()


class DaskCluster:
    """Workers of a dask cluster. The scheduler gives the piece of a lost worker to another one, a few times.

    After the loss of the scheduler, or of all workers at once, the next piece begins with a new connection or cluster.
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
            # By default memory that was freed goes back to the system at once, and every iteration allocates it again.
            trim = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**30}
            with optional_package("dask", "dask").config.set(trim):
                self._cluster = distributed.LocalCluster(
                    n_workers=self._jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
                )
            self._client = distributed.Client(self._cluster, set_as_default=False)
        self._client.register_plugin(_plugin_with(distributed, self._name, self._material, local=not address))

    def submit(self, function: Piece, item: Any, place: str | None = None) -> Future[Any]:
        """``function(material, item)`` on the worker with the address ``place``, or on any."""
        where = {} if place is None else {"workers": [place]}
        future: Future[Any] = self._client.get_executor(pure=False, **where).submit(
            _on_one_thread, self._name, function, item
        )
        return future

    def places(self, most: int) -> list[Any]:
        """Addresses of single workers, at most ``most``: what stays in one is there until it dies."""
        self.renew(False)
        return self.addresses()[:most]

    def alive(self, place: str | None = None) -> bool:
        """Whether that worker, or any, is there; the futures of one that is gone never end."""
        found = self.addresses()
        return bool(found) if place is None else place in found

    def renew(self, cancelled: bool) -> None:
        """Begin again where the scheduler or all workers are gone, or where the scheduler cancelled a piece."""
        if cancelled or not self.alive():
            self.close(unfinished=True)
            self._begin()

    def addresses(self) -> list[str]:
        """Of the workers that are there."""
        with suppress(*UNREACHABLE):
            return sorted(self._client.nthreads())
        return []

    def close(self, *, unfinished: bool) -> None:
        """Leave the cluster; one of this machine ends."""
        with suppress(*UNREACHABLE):
            self._client.unregister_worker_plugin(self._name)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def is_lost(executor: Processes | DaskCluster, future: Future[Any], place: Any = None) -> bool:
    """Wait for a future; whether the process at ``place``, or where it was, was lost before it was done."""
    while wait([future], POLL).not_done:
        if not executor.alive(place):
            return True
    return future.cancelled() or isinstance(future.exception(), executor.losses)


class Workers(Generic[Material]):
    """Processes that call ``function(material, item)``; the material travels to each once.

    Parameters
    ----------
    material : object
        Argument of every call; it must survive pickling where other processes compute.
    jobs : int
        Processes of this machine; 1 computes in this one. Results do not depend on it.
    executor : str
        ``local``; ``dask``, for a cluster of this machine; or ``dask:ADDRESS`` of a scheduler, all of whose workers
        compute, whatever ``jobs`` is. Results do not depend on it.

    Raises
    ------
    UsageError, MissingPackageError
        As `require_executor`, and where no scheduler answers at the address, or it has no worker.

    Attributes
    ----------
    executor : Processes or DaskCluster, optional
        The other processes; None computes in this one.

    Notes
    -----
    A process that is killed does not end the work: its piece is computed again, in the end alone, so that a piece that
    kills its process is found.
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.executor is not None:
            self.executor.close(unfinished=kind is not None)

    def map(
        self, function: Callable[[Material, Item], Result], items: Iterable[Item], ahead: int | None = None
    ) -> Iterator[Result]:
        """Results in the order of the items, each as soon as it and those before it are done.

        Parameters
        ----------
        function : callable
            Of the material and an item.
        items : iterable
            Each is requested when its piece begins.
        ahead : int, optional
            Pieces at work, or done and not yet taken, at most; all by default.

        Raises
        ------
        MriDesignError
            Where one piece's process was killed again and again.
        Exception
            Of the function, for the first item where it raised one.
        """
        for _, made in self._pieces(function, items, ahead):
            yield made.result()

    def finished(
        self, function: Callable[[Material, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Results with the places of their items, see `map`; pieces that fail are reported when the others are done.

        Raises
        ------
        InputError, UsageError
            At once: they concern the request.
        MriDesignError
            At the end: which pieces failed, and why.
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
            shown = "; ".join(f"{item}: {type(error).__name__}: {error}" for item, error in failed[:_SHOWN])
            more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
            raise MriDesignError(
                f"{len(failed)} of {pieces} pieces failed, and the others are kept ({shown}{more}); the same command "
                "with --resume tries them again"
            ) from failed[0][1]

    def _pieces(
        self, function: Piece, items: Iterable[Item], ahead: int | None = None
    ) -> Iterator[tuple[Item, Future[Any]]]:
        """All pieces, done; a lost one is computed again alone, since another one may have killed its process."""
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
                if losses == MOST_LOSSES:
                    future = Future()
                    future.set_exception(killed_again())
                    break
                if losses == 1:  # wait for the others, so that this piece begins alone
                    gone = [is_lost(executor, other) for _, other in begun]
                executor.renew(future.cancelled())
                future = executor.submit(function, item)
            if executor is not None and losses:
                others = zip(begun, gone, strict=True)
                begun = deque((one, executor.submit(function, one) if lost else old) for (one, old), lost in others)
            yield item, future

    def _submit(self, function: Piece, item: Any) -> Future[Any]:
        """The future of a piece; in this process it is done at once."""
        if self.executor is not None:
            return self.executor.submit(function, item)
        done = Future[Any]()
        try:
            done.set_result(function(self.material, item))
        except Exception as error:
            done.set_exception(error)
        return done


def killed_again() -> MriDesignError:
    """The error for a piece of work whose process was killed again and again."""
    return MriDesignError(
        "a worker process was killed before its work was done, perhaps for lack of memory; finished work is kept: go "
        "on with the same command and --resume, perhaps with fewer --jobs"
    )


def design_among(
    workers: Workers[Any],
    engine: DesignEngine,
    slices: Sequence[SliceModel],
    start: Sequence[int],
    target: int,
    options: DesignOptions,
) -> DesignState:
    """`design_lines` with its slices distributed over the workers; a single slice stays in this process.

    Each slice is sent to its process once and stays there with its warm start and its posterior. For every line a
    request of a few hundred bytes goes there, and the image and the answers to the strategy come back. After the loss
    of a process the design goes on from its checkpoint with others, and stays the same to the last bit.

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
        there = None if executor is None else ResidentSlices(executor, len(slices))
        try:
            return design_lines(engine, slices, start, target, replace(options, where=there, callback=after_line))
        except LostPieceError as error:
            lost += 1
            if lost == MOST_LOSSES:
                raise killed_again() from error
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


def _call_on_slice(_: object, item: tuple[str, int, bool, Callable[..., Any], tuple[Any, ...]]) -> Any:
    """Call a function on a slice that this process keeps, updated first if its lines were measured meanwhile."""
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
    executor : Processes or DaskCluster
        The processes.
    count : int
        Slices, and so processes at most.

    Attributes
    ----------
    inferences, measurements : int
        Number of times that the slices were inferred and measured.
    """

    def __init__(self, executor: Processes | DaskCluster, count: int) -> None:
        self._executor, self._places, self._design = executor, executor.places(count), uuid4().hex
        self._numbers = range(0)
        self._behind: set[int] = set()  # slices that do not know of the last measurement yet
        self.inferences = self.measurements = 0

    def begin(self, slices: Sequence[SliceInference]) -> None:
        self._numbers = range(len(slices))
        self._all(_take, {number: (self._design, number, one) for number, one in enumerate(slices)})

    def _all(self, function: Callable[[None, Any], Any], items: Mapping[int, Any]) -> list[Any]:
        """The function of an item in the process of each number."""
        executor, found = self._executor, list[Any]()
        try:
            places = [self._places[number % len(self._places)] for number in items]
            futures = [executor.submit(function, item, at) for item, at in zip(items.values(), places, strict=True)]
        except (BrokenExecutor, ZeroDivisionError, *UNREACHABLE) as error:
            raise LostPieceError(f"no worker: {error}") from error
        for place, future in zip(places, futures, strict=True):
            if is_lost(executor, future, place):
                raise LostPieceError("the worker is gone")
            found.append(future.result())
        return found

    def ask(self, function: Callable[..., Answer], each: Mapping[int, tuple[Any, ...]], gone: int = 0) -> list[Answer]:
        """``function(slice, *arguments)`` of the slices with these numbers, as they stood ``gone`` measurements ago.

        Raises
        ------
        MriDesignError
            Where they have gone on since.
        """
        if gone > 1 or (gone and not self._behind >= each.keys()):
            raise MriDesignError("the design has gone on, and this state of its slices is no longer kept")
        behind = set[int]() if gone else self._behind
        self._behind = self._behind if gone else self._behind - each.keys()
        return self._all(_call_on_slice, {n: (self._design, n, n in behind, function, own) for n, own in each.items()})

    def each(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        return self.ask(function, dict.fromkeys(self._numbers, arguments))

    def picture(self) -> tuple[Any, Any]:
        return self.ask(SliceInference.picture, {0: ()})[0]

    def coil_maps(self) -> Any:
        return self.ask(SliceInference.coil_maps, {0: ()})[0]

    def update(self, lines: tuple[int, ...], map_count: int) -> list[Cost]:
        self.inferences += 1
        return super().update(lines, map_count)

    def posteriors(self, which: str = "posterior") -> KeptElsewhere:
        made = self.inferences

        def ask(function: Callable[..., Any], each: Mapping[int, tuple[Any, ...]]) -> list[Any]:
            return self.ask(function, each, gone=2 * (self.inferences - made))

        return KeptElsewhere(which, len(self.means), ask, self.means)

    def measured(self) -> None:
        """The slices learn of it with the next request."""
        self.measurements += 1
        self._behind = set(self._numbers)

    @property
    def warm_starts(self) -> Sequence[Any]:
        """They must be updated before more lines are measured."""
        made = self.measurements

        def ask(function: Callable[..., Any], each: Mapping[int, tuple[Any, ...]]) -> list[Any]:
            return self.ask(function, each, gone=self.measurements - made)

        return KeptElsewhere("warm", len(self._numbers), ask)

    def close(self) -> None:
        """Let the processes forget the slices."""
        for place in self._places:
            with suppress(BrokenExecutor, *UNREACHABLE):
                self._executor.submit(_drop, self._design, place)
