"""How a verb is carried out: computed, kept in the folder of a run while it lasts, shown, and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mri_design.errors import UsageError
from mri_design.evaluation.page import Page, save_report
from mri_design.evaluation.run_folder import CHECKPOINT, STATE, InputFile, RunFolder, installed_versions, read_kept
from mri_design.experiment.stored_designs import Checkpoint, fingerprint, has_identity, load_state
from mri_design.kinds import count_text
from mri_design.runs.stored_run import RESULT, Stored, read_ending, write_result
from mri_design.runs.work import Arrays, Keep, Work
from mri_design.scan.io.atomic import write_json
from mri_design.scan.io.numpy_files import read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS

T = TypeVar("T")


def require_resume(name: str, what: str, resume: bool) -> None:
    """Refuse to resume what an interrupted run left under ``name`` without ``resume``.

    Raises
    ------
    UsageError
        Naming the options that do.
    """
    if not resume:
        raise UsageError(f"{name} holds {what}; add --resume to go on with it, --overwrite, or give another --out")


@dataclass(frozen=True)
class Record:
    """Inputs and settings of a computation, for its manifest.

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
class Run(Work):
    """One call of a verb that leaves a folder; see `carry_out`.

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
    ) -> Stored | None:
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
            Whether ``checkpoint`` stays when the run is finished, so that its report can be written again.
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
        complete = before and self.folder.existing(RESULT) is not None and (pieces or unfinished is None)
        if complete and (self.resume or not anew):
            where = f"; its report is {report}" if report is not None else ""
            self.progress.say(f"nothing to do: this {resumed} is finished{where} (--overwrite makes it again)")
            return read_ending(self.folder.path)
        if unfinished is not None and not complete and not self.folder.overwrite:
            require_resume(self.folder.path.name, f"an unfinished {resumed}", self.resume)
        return None

    def save(self, record: Record, report: Report) -> Stored:
        """Write result.npz, manifest.json and report.html, and remove what an unfinished run goes on from."""
        result = replace(report.result, identity=record.identity, seed=self.seed)
        begun = {"beginning": record.beginning} if record.beginning else {}
        manifest: dict[str, Any] = dict(
            command=self.command,
            seed=self.seed,
            inputs=[*report.inputs, *record.inputs],
            settings={**record.settings, **report.found, "identity": record.identity, **begun},
            wall_seconds=time.perf_counter() - self.began,
            status=result.status,
            lines=result.chosen,
            versions=installed_versions(),
        )
        write_result(self.folder, result)
        save_report(self.folder, report.page, manifest)
        for name in report.done:
            self.folder.remove(name)
        if self.live is not None and self.folder.reported:
            self.live.reported(self.folder.path / "report.html")
        return result


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is shown of a result once its arrays and tables lie in the folder, and what is read again.

    Parameters
    ----------
    result : StoredRun or StoredComparison
        What is read again (`read_result`).
    page : Page
        Not drawn for a run without a report.
    found : mapping of str to object
        What was found out on the way, for the settings of the manifest.
    inputs : sequence of InputFile
        Files that were written on the way and that the result is computed from.
    done : sequence of str
        Names of files from which an unfinished run goes on: they are removed.
    """

    result: Stored
    page: Page
    found: Mapping[str, object] = field(default_factory=dict)
    inputs: Sequence[InputFile] = ()
    done: Sequence[str] = ()


def carry_out(
    run: Run,
    record: Record,
    compute: Callable[[FolderKeep], T],
    report: Callable[[RunFolder, T], Report],
    *,
    checkpoint: str = "",
    resumed: str = "",
    pieces: bool = False,
) -> Stored:
    """Compute a run, or load what its folder has of it; write the report; record the run in the manifest.

    Parameters
    ----------
    run : Run
        The folder, and how to compute.
    record : Record
        Inputs and settings, which identify the run.
    compute : callable
        Takes the place for checkpoints and returns the result.
    report : callable
        Writes arrays, tables and figures of the result into the folder.
    checkpoint, resumed, pieces
        See `Run.finished`.

    Raises
    ------
    UsageError
        Where the folder holds another run, or an unfinished one and ``run.resume`` is not set.
    """
    before = run.finished(
        record.identity, checkpoint=checkpoint, resumed=resumed, pieces=pieces, beginning=record.beginning
    )
    return run.save(record, report(run.folder, compute(FolderKeep(run, record)))) if before is None else before


class FolderKeep(Keep):
    """A `Keep` in the folder of a run: checkpoints and pieces that a killed run goes on from.

    Parameters
    ----------
    run : Run
        The folder; its progress reports that a design cannot be resumed.
    record : Record
        Its identity stands in every table and checkpoint, and those of another run are refused.
    """

    def __init__(self, run: Run, record: Record) -> None:
        super().__init__()
        self._run, self.folder, self._record = run, run.folder, record

    def require_resume(self, name: str, what: str) -> None:
        """Refuse to resume from a file of an interrupted run, which is ``what``, without ``resume``.

        Raises
        ------
        UsageError
            Naming the options that do.
        """
        if self.folder.existing(name) and not self.folder.overwrite:
            require_resume(self.folder.path.name, what, self._run.resume)

    def begin(self) -> None:
        """Remove what earlier runs left in the folder, where it may be overwritten."""
        self.folder.begin()

    def checkpoint(self, depends_on: Mapping[str, object], most: int, unit: str) -> Checkpoint:
        """The design's file, made of what a finished design with the same beginning left, if any.

        Raises
        ------
        UsageError
            Where what is there has more lines already.
        """
        identity = self._record.identity
        if self._record.beginning:
            identity = fingerprint({"beginning": self._record.beginning, **depends_on})
        checkpoint = Checkpoint(self.folder.output_path(CHECKPOINT), identity)
        state = None if checkpoint.path.exists() else self.folder.existing(STATE)
        alike = state is not None and has_identity(replace(checkpoint, path=state))
        if state is not None and not alike:
            count = count_text(most, unit)
            self._run.progress.say(f"begins anew: as one of {count} the design does not begin as it did")
        begun = state if state is not None and alike else checkpoint.path
        if begun.exists() and (held := len(load_state(replace(checkpoint, path=begun)).trace.lines)) > most:
            raise UsageError(
                f"{self.folder.path.name} holds a design of {count_text(held, unit)}, more than {most}: give "
                f"{held} or more, another --out, or --overwrite"
            )
        if alike:
            self.folder.rename(STATE, CHECKPOINT)
        return checkpoint

    def table(self, name: str, what: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """See `Keep.table`.

        Raises
        ------
        InputError
            Where the file is damaged.
        UsageError
            Where it is another run's.
        """
        path = self.folder.existing(name)
        return None if path is None else read_kept(path, self._record.identity, what, "that of another run", parse)

    def keep_table(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, in one step."""
        write_json(self.folder.output_path(name), {"identity": self._record.identity, **content})

    def arrays(self, name: str, members: Collection[str]) -> Arrays:
        """Read an .npz archive of the folder."""
        return read_npz_members(self.folder.path / name, members, DEFAULT_LIMITS)[0]

    def keep_arrays(self, name: str, arrays: Arrays) -> None:
        """Write an .npz archive, in one step."""
        self.folder.write_archive(name, arrays)
