"""Where the pieces of a run are computed: processes of this machine, or those of a dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Protocol
from uuid import uuid4

from threadpoolctl import threadpool_limits

from mri_design.errors import MriDesignError, UsageError, optional_package

__all__ = ["LOCAL", "Executor", "LostPieceError", "executor_for", "require_executor"]

LOCAL, DASK = "local", "dask"
PATIENCE = 30.0
"""Seconds that a scheduler may take to answer, and to have a worker."""

Piece = Callable[[Any, Any], Any]
"""A function of the material, which every piece shares, and of an item."""


class LostPieceError(MriDesignError):
    """A piece whose process was killed before it was done, several times."""


class Executor(Protocol):
    """Computes ``function(material, item)`` elsewhere."""

    def submit(self, function: Piece, item: Any) -> Future[Any]:
        """The result to come."""
        ...

    def outcome(self, future: Future[Any]) -> Any:
        """Wait for a result.

        Raises
        ------
        LostPieceError
            Where those who computed it died, as often as that is put up with.
        BrokenExecutor
            Where nothing more is computed, this piece or another being the reason: a new executor may do it.
        Exception
            What the function raised.
        """
        ...

    def close(self) -> None:
        """End all work."""
        ...


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
        raise UsageError(f"--executor {text}: wanted local, dask, or dask:ADDRESS as dask:tcp://host:8786")
    if kind == DASK:
        optional_package("distributed", "dask")


def executor_for(text: str, material: Any, jobs: int) -> Executor | None:
    """The executor called ``text``, ready, which every piece gets ``material`` from; None computes here.

    Parameters
    ----------
    text : str
        ``local``; ``dask``, for a cluster of this machine; or ``dask:ADDRESS`` of a scheduler.
    material : object
        Sent once to every process.
    jobs : int
        Processes of this machine; a cluster that is there already has its own.

    Raises
    ------
    UsageError, MissingPackageError
        As `require_executor`, and where no scheduler answers at the address, or it has no worker.
    """
    require_executor(text)
    if text == LOCAL:
        return Processes(material, jobs) if jobs > 1 else None
    return DaskCluster(material, jobs, text.partition(":")[2])


_held: Any = None  # in a process of this machine: the material, sent once


def _hold(material: Any) -> None:
    global _held
    _held = material
    threadpool_limits(1)  # several processes with several threads each would only wait for one another


def _call(function: Piece, item: Any) -> Any:
    return function(_held, item)


class Processes:
    """Processes of this machine. One that dies breaks all of them."""

    def __init__(self, material: Any, jobs: int) -> None:
        # spawn: a forked child would inherit the progress display's thread half-way through a line.
        self._pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_hold, initargs=(material,))

    def submit(self, function: Piece, item: Any) -> Future[Any]:
        """See `Executor`."""
        return self._pool.submit(_call, function, item)

    def outcome(self, future: Future[Any]) -> Any:
        """See `Executor`."""
        return future.result()

    def close(self) -> None:
        """See `Executor`."""
        self._pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Material:
    """What a dask worker knows the material by."""

    name: str

    def call(self, function: Piece, item: Any) -> Any:
        """The function of the material and the item, on a worker, with one thread."""
        worker = optional_package("distributed", "dask").get_worker()
        with threadpool_limits(1):
            return function(getattr(worker, self.name), item)


def _handing_out(distributed: Any, known: _Material, material: Any) -> Any:
    """A plugin that puts the material on every worker, also on one that takes the place of another.

    Data that are scattered live on workers only: when these die they are lost, and fetched from each other in vain.
    """

    class HandingOut(distributed.WorkerPlugin):
        name = known.name

        def setup(self, worker: Any) -> None:
            setattr(worker, known.name, material)

        def teardown(self, worker: Any) -> None:
            delattr(worker, known.name)

    return HandingOut()


def _without_trimming() -> AbstractContextManager[Any]:
    """Within this, workers that begin keep memory that was freed, as other programs do.

    Dask has them give it back at once, which costs the system's time where every iteration makes its arrays anew.
    """
    config, key = optional_package("dask", "dask").config, "distributed.nanny.pre-spawn-environ"
    usual = {name: value for name, value in config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"}
    settings: AbstractContextManager[Any] = config.set({key: usual})
    return settings


class DaskCluster:
    """Workers of a dask cluster. The scheduler gives the piece of a worker that died to another one, a few times."""

    def __init__(self, material: Any, jobs: int, address: str) -> None:
        self._distributed = distributed = optional_package("distributed", "dask")
        self._cluster = None
        if address:
            try:
                self._client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise UsageError(f"--executor dask:{address}: no scheduler answers ({error})") from error
            self._wait_for_a_worker(address)
        else:
            with _without_trimming():
                self._cluster = distributed.LocalCluster(
                    n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
                )
            self._client = distributed.Client(self._cluster, set_as_default=False)
        self._executor = self._client.get_executor(pure=False)
        self._material = _Material(f"mri-design-{uuid4()}")
        self._client.register_plugin(_handing_out(distributed, self._material, material))

    def _wait_for_a_worker(self, address: str) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            self._client.close()
            raise UsageError(
                f"--executor dask:{address}: the scheduler has no workers; start some, then give the same command"
            ) from error

    def submit(self, function: Piece, item: Any) -> Future[Any]:
        """See `Executor`."""
        future: Future[Any] = self._executor.submit(self._material.call, function, item)
        return future

    def outcome(self, future: Future[Any]) -> Any:
        """See `Executor`."""
        try:
            return future.result()
        except self._distributed.KilledWorker as error:
            raise LostPieceError(str(error)) from error
        except CancelledError as error:
            # the scheduler went away, or all workers at once, and what was sent to them with them
            raise BrokenExecutor("the dask cluster lost its workers or its scheduler") from error

    def close(self) -> None:
        """See `Executor`."""
        with suppress(OSError, TimeoutError):  # the scheduler is gone
            self._client.unregister_worker_plugin(self._material.name)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
