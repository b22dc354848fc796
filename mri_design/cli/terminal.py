"""Parts of every verb: exit codes, errors in words, progress on stderr."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from io import BufferedWriter, FileIO, TextIOWrapper, UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from mri_design.cli.flags import JOBS, Command, Jobs, Seed
from mri_design.errors import InputError, MriDesignError, UsageError, naming_options
from mri_design.status import Status

if TYPE_CHECKING:
    from mri_design.runs.store import Run
    from mri_design.runs.stored_run import MadeFiles, Stored
    from mri_design.runs.work import Progress as Watching

DONE, FAILED, WRONG_USAGE, WRONG_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 4, 130


def verb(function: Callable[..., int]) -> Callable[..., None]:
    """A function of flags (`flags.Command`) as typer takes it; its code, or an error, is the exit code of the process.

    0 done, 2 wrong usage, 3 bad input, 4 finished but not converged or out of reach, 130 interrupted, 1 anything else.
    An error that is about an option given on the command line is wrong usage.
    """
    command = Command(function)

    @wraps(function)
    def run(**values: Any) -> None:
        try:
            with naming_options():
                raise typer.Exit(command(values))
        except (UsageError, InputError) as error:
            about = command.wrong_option(error, values)
            of_a_file = about is None and isinstance(error, InputError)
            code, told = WRONG_INPUT if of_a_file else WRONG_USAGE, about or str(error)
        except (MriDesignError, OSError, MemoryError) as error:
            code, told = FAILED, str(error)
        except KeyboardInterrupt as interruption:
            kept = str(interruption) or f"there is nothing to go on from; begin again with: {command_to_go_on()}"
            code, told = INTERRUPTED, f"interrupted; {kept}"
        warn(told)
        raise typer.Exit(code)

    run.__signature__ = inspect.Signature(list(command.flags.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: flag.annotation for name, flag in command.flags.items()}
    return run


def command_to_go_on(add: Iterable[str] = (), leave: Iterable[str] = ()) -> str:
    """This very command, as a shell takes it, with some options added and others left out."""
    words = [word for word in sys.argv[1:] if word not in set(leave)]
    return shlex.join(["mri-design", *words, *(word for word in add if word not in words)])


@contextmanager
def kept_on_interruption(kept: Path, *, resume: bool = True) -> Iterator[None]:
    """Let an interruption say what is on the disk and the command that goes on from it.

    Parameters
    ----------
    kept : Path
        The file that an unfinished run leaves.
    resume : bool
        Whether ``--resume`` goes on from it; otherwise the same command does.
    """
    try:
        yield
    except KeyboardInterrupt as interruption:
        if not kept.exists():
            raise
        command = command_to_go_on(["--resume"] if resume else [], leave=["--overwrite"])
        raise KeyboardInterrupt(f"{kept} holds what is finished; go on with: {command}") from interruption


def exit_code(*statuses: str) -> int:
    """The exit code of runs that finished with these statuses."""
    return DONE if all(status == Status.CONVERGED.value for status in statuses) else NOT_CONVERGED


def say(text: str, quiet: bool = False, where: TextIO | None = None) -> None:
    """One line of result, on stdout by default."""
    if not quiet:
        print(text, file=where)


def warn(text: str, quiet: bool = False) -> None:
    """One line on stderr about something that people may not expect."""
    say(f"mri-design: {text}", quiet, sys.stderr)


def written(made: MadeFiles, *, overwrite: bool, quiet: bool) -> int:
    """Write files, say what is in them and what they could not take, and return the exit code."""
    from mri_design.runs.stored_run import write_made_files

    write_made_files(made, overwrite=overwrite)
    if made.warning:
        warn(made.warning, quiet)
    for sentence in made.sentences:
        say(sentence, quiet)
    return DONE


class _Forgiving(FileIO):
    """A file that may end before the program does, as behind ``| head``: what comes later goes nowhere.

    A full disk is an error, once: what is left of the output goes nowhere, and is no error again as the process ends.
    """

    _ended = False

    def write(self, data: Any, /) -> int:
        """Write it, or act as if."""
        try:
            return memoryview(data).nbytes if self._ended else super().write(data)
        except OSError as error:
            self._ended = True
            if not isinstance(error, BrokenPipeError):
                raise
            return memoryview(data).nbytes


def output_may_end_early() -> None:
    """Make the process end as if all had been read where the reader of its output or messages goes away first.

    An output that was closed before the program began (``>&-``) goes nowhere from the beginning.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        else:
            with suppress(UnsupportedOperation):  # of one in memory, which ends with the program
                raw = BufferedWriter(_Forgiving(stream.fileno(), "w", closefd=False))
                stream = TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=True)
        setattr(sys, name, stream)


Watch = Callable[[str, int, int], None]
"""Takes what is being done, how much of it is done, and of how many."""


FRACTION, SECONDS = 0.1, 30.0
"""Logs have a line every tenth of the way, or after half a minute."""


def _plain_lines() -> Watch:
    """Progress as lines for logs; none for work of a single piece."""
    said: dict[str, tuple[float, int, float]] = {}

    def watch(label: str, done: int, total: int) -> None:
        if total == 1:  # nothing between its beginning and its end
            return
        now, fraction = time.monotonic(), done / total
        before, many, when = said.get(label, (-1.0, 0, 0.0))
        if done < many:  # the same work anew, on the next slice
            before = -1.0
        due = fraction - before >= FRACTION - 1e-9 or (now - when >= SECONDS and fraction > before)
        if due or (fraction >= 1.0 > before):
            said[label] = (fraction, done, now)
            print(f"{label}: {done} of {total}", file=sys.stderr, flush=True)

    return watch


@contextmanager
def progress(quiet: bool) -> Iterator[Watch]:
    """Bars on stderr, plain lines where stderr is no terminal, nothing where ``quiet`` is set."""
    if quiet:
        yield lambda label, done, total: None
        return
    if not sys.stderr.isatty():
        yield _plain_lines()
        return
    from rich import progress as bars  # here: most of it serves terminals alone
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    tasks: dict[str, bars.TaskID] = {}
    with bars.Progress(*columns, console=Console(stderr=True), transient=False) as display:

        def watch(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = display.add_task(label, total=total)
            display.update(tasks[label], completed=done, total=total)

        yield watch


@contextmanager
def telling(quiet: bool, where: TextIO | None = None) -> Iterator[Watching]:
    """Callbacks of a run: progress is drawn, lines of text go to ``where`` (stdout by default), warnings to stderr."""
    from mri_design.runs.work import Progress as Watching

    with progress(quiet) as watch:
        yield Watching(watch, lambda text: say(text, quiet, where), lambda text: warn(text, quiet))


def load_ahead(jobs: int, executor: str, sources: Iterable[str]) -> None:
    """Begin to load the program for the processes of ``--jobs``, before this one does; not where a file is missing."""
    files = (source.partition("#")[0] for source in sources)
    if jobs > 1 and all(name.startswith("phantom:") or Path(name).exists() for name in files):
        from mri_design.runs import workers

        workers.load_ahead(jobs, executor)


def check_resume(resume: bool, overwrite: bool) -> None:
    """Refuse to go on with what is there and to begin anew at once.

    Raises
    ------
    UsageError
        For both.
    """
    if resume and overwrite:
        raise UsageError("--resume goes on with what is there, --overwrite begins anew: give one of them")


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a run goes, and how it is made: the flags of every verb that leaves a run folder."""

    out: Path
    seed: Seed = 0
    overwrite: bool = False
    resume: bool = False
    no_report: bool = False
    png: bool = False
    quiet: bool = False

    @contextmanager
    def opened(self, kept: str, *, aloud: bool = True, resumed: bool = True) -> Iterator[Run]:
        """The run in its folder, alone, with its progress drawn.

        Parameters
        ----------
        kept : str
            The file from which an interrupted run goes on, which an interruption then says.
        resumed : bool
            Whether ``--resume`` goes on from it; otherwise the same command does.
        aloud : bool
            Whether what the run says goes to stdout, and not to stderr.

        Raises
        ------
        UsageError
            For both ``--resume`` and ``--overwrite``, ``--png`` without a report, an executor that there is not, or a
            folder that holds something else.
        """
        from mri_design.evaluation.run_folder import RunFolder
        from mri_design.runs.store import Run
        from mri_design.runs.workers import require_executor

        jobs, executor = getattr(self, "jobs", 1), getattr(self, "executor", "local")
        command, reported = sys.argv[1:], not self.no_report
        check_resume(self.resume, self.overwrite)
        if self.png and not reported:
            raise UsageError("--no-report leaves out the figures, --png wants them as PNG: give one of them")
        require_executor(executor)
        keeping = kept_on_interruption(self.out / kept, resume=resumed)
        opened = RunFolder(self.out, overwrite=self.overwrite, command=command, reported=reported, png=self.png)
        with keeping, opened as folder, telling(self.quiet, None if aloud else sys.stderr) as told:
            yield Run(
                folder=folder,
                command=command,
                seed=self.seed,
                jobs=jobs,
                executor=executor,
                resume=self.resume,
                progress=replace(told, about=folder.progress.note).also(folder.progress.show),
            )

    def ended(self, text: str, ending: Stored, *, aloud: bool = True) -> int:
        """Say how the run ended, where it lies, and last of all how wrong its image is or which mask; the exit code."""
        from mri_design.evaluation.page import worded  # which is there already: a run has ended

        where = self.out if self.no_report else self.out / "report.html"
        said = [f"{', '.join(filter(None, [text, ending.status]))}: {where}"]
        if str(ending.error):
            said.append(worded("images", "errors_in_words", ending.error))
        said += [ending.verdict] if ending.verdict else []
        say("\n".join(said), self.quiet, None if aloud else sys.stderr)
        return exit_code(ending.status)


@dataclass(frozen=True, kw_only=True)
class Resumed(Destination):
    """A `Destination` whose work several processes do."""

    jobs: Jobs = JOBS
    executor: str = "local"
