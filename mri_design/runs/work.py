"""Seed, processes and progress of a computation, and the intermediate results that it keeps to be resumed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from mri_design.experiment.stored_designs import Checkpoint, fingerprint

if TYPE_CHECKING:  # most runs have no page
    from mri_design.experiment.effort import Effort
    from mri_design.runs.live import Live

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]


def _ignored(*anything: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Progress:
    """Callbacks to which a run reports its progress.

    Parameters
    ----------
    watch : callable
        Takes what is being done, how much of it is done, and of how many.
    say : callable
        Takes a line of text that people should see.
    warn : callable
        Takes a line of text about something that people may not expect.
    expect : callable
        Takes the `Effort` of what comes, before the long part of it begins.
    about : callable
        Takes what of its input the run is about, for those who ask how far it is; empty where it is about all.
    """

    watch: Callable[[str, int, int], None] = _ignored
    say: Callable[[str], None] = _ignored
    warn: Callable[[str], None] = _ignored
    expect: Callable[[Effort], None] = _ignored
    about: Callable[[str], None] = _ignored

    def show(self, label: str, done: int, total: int) -> None:
        """Show how much is done; nothing where there is nothing to do."""
        if total:
            self.watch(label, done, total)

    def also(self, watch: Callable[[str, int, int], None]) -> Progress:
        """These callbacks, with a second one for what is done."""

        def both(label: str, done: int, total: int) -> None:
            self.watch(label, done, total)
            watch(label, done, total)

        return replace(self, watch=both)


@dataclass(frozen=True, kw_only=True)
class Work:
    """Seed, processes and progress of a computation, wherever its results go.

    Parameters
    ----------
    seed : int
        Of everything random.
    jobs : int
        Processes; no result depends on it.
    progress : Progress
        Callbacks.
    executor : str
        Where pieces are computed: ``local``, ``dask`` or ``dask:ADDRESS``; no result depends on it.
    live : Live, optional
        A page that shows a design while it runs.
    """

    seed: int = 0
    jobs: int = 1
    progress: Progress = Progress()
    executor: str = "local"
    live: Live | None = None

    def identity(self, kind: str, choices: Mapping[str, object]) -> str:
        """Checksum of a run of this kind with these choices and this seed."""
        return fingerprint({"run": kind, "seed": self.seed, **choices})


class Keep:
    """What a computation keeps by name while it lasts, so that an interrupted one goes on; this one is memory alone.

    `mri_design.runs.store.FolderKeep` keeps in the folder of a run. A computation calls `begin` as soon as its input
    is known to be good, and loads what is there before it computes.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Arrays] = {}

    def begin(self) -> None:
        """Say that the input is good: what earlier computations left, and is not gone on from, may go."""

    def checkpoint(self, depends_on: Mapping[str, object], most: int, unit: str) -> Checkpoint | None:
        """Where a design keeps its state; None where nothing is kept.

        Parameters
        ----------
        depends_on : mapping
            Values that have to be equal, as well as input and settings, for a design to be resumed.
        most : int
            Lines, samples or shots that the design can have.
        unit : str
            What is counted.
        """
        return None

    def table(self, name: str, what: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """What is kept under ``name`` as ``parse`` makes it of the table; None where there is nothing.

        Parameters
        ----------
        name : str
            As for `keep_table`.
        what : str
            What it is, for errors ("a comparison's progress").
        parse : callable
            Takes the table; its KeyError, TypeError and ValueError mean that the table is damaged.
        """
        return None

    def keep_table(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep a table of what JSON knows, in place of an earlier one of this name."""

    def arrays(self, name: str, members: Collection[str]) -> Arrays:
        """Arrays that `keep_arrays` has kept under ``name``, those of ``members`` that are there."""
        return self._arrays[name]

    def keep_arrays(self, name: str, arrays: Arrays) -> None:
        """Keep arrays, in place of earlier ones of this name."""
        self._arrays[name] = dict(arrays)
