"""One call of a verb: where its results go, whom its progress is told, and how every run begins and ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mri_design.errors import UsageError
from mri_design.evaluation.manifest import InputFile, Manifest
from mri_design.evaluation.metrics import RelativeError
from mri_design.evaluation.page import FirstScreen, Section, save_report
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.stored_designs import fingerprint


def _ignored(*told: object) -> None:
    """Take what is told and do nothing."""


@dataclass(frozen=True)
class Progress:
    """Callbacks that a run tells of its progress.

    Parameters
    ----------
    watch : callable
        Takes what is being done, how much of it is done, and of how many.
    say : callable
        Takes a line of text that people should see.
    warn : callable
        Takes a line of text about something that people may not expect.
    about : callable
        Takes what of its input the run is about, for those who ask how far it is; empty where it is about all.
    """

    watch: Callable[[str, int, int], None] = _ignored
    say: Callable[[str], None] = _ignored
    warn: Callable[[str], None] = _ignored
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


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Parameters
    ----------
    status : str
        "converged", or what did not converge or was out of reach, in words.
    lines : tuple of int
        Chosen phase-encode lines in acquisition order; none where the run is not about one mask.
    error : RelativeError, optional
        Of the run's image; None of a run that has none.
    verdict : str
        Which mask is best, of a comparison that was made just now.
    """

    status: str
    lines: tuple[int, ...] = ()
    error: RelativeError | None = None
    verdict: str = ""


def require_resume(name: str, what: str, resume: bool) -> None:
    """Refuse to go on from what an interrupted run left under ``name`` where nobody asked for that.

    Raises
    ------
    UsageError
        Naming the options that do.
    """
    if not resume:
        raise UsageError(f"{name} holds {what}; add --resume to go on with it, --overwrite, or give another --out")


@dataclass(frozen=True)
class Record:
    """Inputs and settings of a computation for its manifest, beside command, seed and time.

    Parameters
    ----------
    identity : str
        Checksum of everything that makes the run this very run, see `Work.identity`.
    inputs : sequence of InputFile
        The files read.
    settings : mapping
        Every setting in force, and what was found out before the first result.
    beginning : str
        The same checksum without the number of lines, of a run that can be extended; else empty.
    """

    identity: str
    inputs: Sequence[InputFile]
    settings: Mapping[str, object]
    beginning: str = ""


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
    """

    seed: int = 0
    jobs: int = 1
    progress: Progress = Progress()
    executor: str = "local"

    def identity(self, kind: str, choices: Mapping[str, object]) -> str:
        """Checksum of a run of this kind with these choices and this seed."""
        return fingerprint({"run": kind, "seed": self.seed, **choices})


@dataclass(frozen=True, kw_only=True)
class Run(Work):
    """One call of a verb that leaves a folder.

    Every verb asks `finished` once its arguments and inputs are known to be good, then calls `begin`, computes, and
    leaves it to its report to call `finish`.

    Parameters
    ----------
    folder : RunFolder
        Where the results go.
    command : sequence of str
        The arguments as typed, for the manifest.
    resume : bool
        Whether to go on from what an interrupted run left in the folder.
    began : float
        When the run began, on the clock of `time.perf_counter`.
    """

    folder: RunFolder
    command: Sequence[str] = ()
    resume: bool = False
    began: float = field(default_factory=time.perf_counter)

    def within(self, folder: RunFolder) -> Run:
        """A part of this run that begins now and leaves a folder of its own."""
        return replace(self, folder=folder, began=time.perf_counter())

    def finished(
        self, identity: str, *, checkpoint: str = "", resumed: str = "", pieces: bool = False, beginning: str = ""
    ) -> Ending | None:
        """How this very run ended before, where nothing is left to do; None where it is to be computed.

        Parameters
        ----------
        identity : str
            See `Work.identity`.
        checkpoint : str
            Name of the file, if any, that an unfinished run of this kind leaves.
        resumed : str
            What such a run is called in messages ("design"), where only ``resume`` goes on from it. Empty where the
            same command goes on by itself, and makes a finished run's report again.
        pieces : bool
            Whether ``checkpoint`` stays when the run is finished, whose report is made again from it.
        beginning : str
            `Record.beginning`, where ``resume`` goes on from a finished run with another number of lines.

        Raises
        ------
        UsageError
            Where the folder holds another run, or an unfinished one and ``resume`` is not set.
        """
        before = self.folder.ended(identity, own=checkpoint, beginning=beginning, resume=self.resume)
        if not resumed:
            return None
        unfinished = self.folder.existing(checkpoint)
        report = self.folder.existing("report.html")
        anew = self.folder.overwrite or (report is None and self.folder.reported)  # it was made without a report
        complete = before is not None and (pieces or unfinished is None)
        if before is not None and complete and (self.resume or not anew):
            where = f"; its report is {report}" if report is not None else ""
            self.progress.say(f"nothing to do: this {resumed} is finished{where} (--overwrite makes it again)")
            status, lines, settings = before
            return Ending(status, lines, RelativeError.from_settings(settings))
        if unfinished is not None and not complete and not self.folder.overwrite:
            require_resume(self.folder.path.name, f"an unfinished {resumed}", self.resume)
        return None

    def begin(self) -> None:
        """Say that the run begins now: where it may overwrite, what earlier runs left in the folder is removed."""
        self.folder.begin()

    def finish(
        self,
        ending: Ending,
        record: Record,
        title: str,
        first: Callable[[], FirstScreen],
        summary: Mapping[str, object],
        sections: Sequence[Section],
        checkpoints: Sequence[str] = (),
    ) -> Ending:
        """Write manifest.json and report.html, and remove the checkpoints, which nobody needs any more.

        Parameters
        ----------
        ending : Ending
            How the computation ended; it is returned.
        record : Record
            For the manifest.
        title : str
            Of the page.
        first : callable
            Makes what the page begins with; not called where nobody wants a page.
        summary : mapping of str to object
            Key numbers of how it was computed; seconds and status are added.
        sections : sequence of Section
            The page.
        checkpoints : sequence of str
            Names of files.
        """
        manifest = Manifest(
            command=self.command,
            seed=self.seed,
            inputs=record.inputs,
            settings={
                **record.settings,
                "identity": record.identity,
                **({"beginning": record.beginning} if record.beginning else {}),
            },
            wall_seconds=time.perf_counter() - self.began,
            status=ending.status,
            lines=ending.lines,
        )
        numbers = {**summary, "seconds": round(manifest.wall_seconds, 1), "status": manifest.status}
        save_report(self.folder, title, first, numbers, sections, manifest)
        for name in checkpoints:
            self.folder.remove(name)
        return ending
