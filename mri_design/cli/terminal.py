"""Parts of every verb: exit codes, errors in words, progress on stderr."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper, UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mri_design.errors import InputError, UnknownNameError, UsageError, argument_behind, whole_number
from mri_design.status import Status

if TYPE_CHECKING:
    from cyclopts import App

    from mri_design.experiment.effort import Effort
    from mri_design.runs.stored_run import MadeFiles
    from mri_design.runs.work import Progress as Watching

DONE, FAILED, WRONG_USAGE, WRONG_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 4, 130


def option_behind(error: UsageError | InputError, verb: App | None, words: Sequence[str]) -> str | None:
    """The message of an error by the option that it is about, as it was typed; None for any other error.

    Its field, which the text leaves out where the option says as much, names a value of the program, or a setting of
    the recipe in force (``recipe: design.until_error``); one of a file (``recipe mine.toml: ...``) is about that file.
    For unknown names it is the option that gave them. ``words`` are what was typed behind the verb.
    """
    given, found, field = _given_options(verb, words), None, ""
    if isinstance(error, InputError):
        field = error.field
        for written, value in given.get("setting", ()):
            setting = f"recipe: {value.partition('=')[0].strip()}."  # the field is this, or a section that there is not
            if f"{field}.".startswith(setting) or setting.startswith(f"{field}."):
                return f"{written} {str(error).removeprefix('recipe: ')}"
        found = given.get(argument_behind(error, given) or "")
    elif isinstance(error, UnknownNameError):
        typed = (pairs for pairs in given.values() if error.name in re.split("[,:]", pairs[-1][1]))
        found = next(typed, None)
    if found is None:
        return None
    written = found[-1][0]
    same = field.replace(" ", "-").replace("_", "-") == written.lstrip("-").lower()
    named = same or field.rpartition(".")[2] in given or field.startswith("recipe: ")
    return f"{written}: {str(error).removeprefix(f'{field}: ') if named else error}"


def _given_options(verb: App | None, words: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Each option of a verb as it was typed, and its value, by the names of the parameter."""
    found: dict[str, list[tuple[str, str]]] = {}
    if verb is None:
        return found
    arguments = verb.assemble_argument_collection()
    for argument in (one for one in arguments if one.index is not None):
        found[argument.field_info.name] = [(argument.names[0].lstrip("-").upper(), "")]
    for word, value in zip(words, [*words[1:], ""], strict=True):
        written, mark, joined = word.partition("=")
        with suppress(ValueError):
            argument = arguments.match(written)[0]
            names = {name.lstrip("-").replace("-", "_") for name in argument.names} | {argument.field_info.name}
            for name in names:
                found.setdefault(name, []).append((written, joined if mark else value))
    for written, value in found.get("setting", ()):
        path = value.partition("=")[0].strip()
        found.setdefault(path.rpartition(".")[2], []).append((f"{written} {path}", value))
    return found


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
    shown: dict[str, tuple[float, int, float]] = {}

    def watch(label: str, done: int, total: int) -> None:
        if total == 1:  # nothing between its beginning and its end
            return
        now, fraction = time.monotonic(), done / total
        before, many, when = shown.get(label, (-1.0, 0, 0.0))
        if done < many:  # the same work anew, on the next slice
            before = -1.0
        due = fraction - before >= FRACTION - 1e-9 or (now - when >= SECONDS and fraction > before)
        if due or (fraction >= 1.0 > before):
            shown[label] = (fraction, done, now)
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
    from mri_design.runs.provenance import phrase
    from mri_design.runs.work import Progress as Watching

    def expect(effort: Effort) -> None:
        if not quiet:
            say(phrase("effort", effort), where=sys.stderr)

    with progress(quiet) as watch:
        yield Watching(watch, lambda text: say(text, quiet, where), lambda text: warn(text, quiet), expect)


def may_be_several(slices: str | None) -> bool:
    """Whether a choice of slices as it is typed names more than one; of all of a scan it is not known yet."""
    return slices not in (None, "middle") and whole_number(slices.removeprefix("-")) is None


def load_ahead(jobs: int, executor: str, sources: Iterable[str]) -> None:
    """Begin to load the program for the processes of ``--jobs``, before this one does; not where a file is missing."""
    files = (source.partition("#")[0] for source in sources)
    if jobs > 1 and all(name.startswith("phantom:") or Path(name).exists() for name in files):
        from mri_design.runs import beginnings

        beginnings.load_ahead(jobs, executor)


def check_resume(resume: bool, overwrite: bool) -> None:
    """Refuse to go on with what is there and to begin anew at once.

    Raises
    ------
    UsageError
        For both.
    """
    if resume and overwrite:
        raise UsageError("--resume goes on with what is there, --overwrite begins anew: give one of them")


def print_json(answer: object) -> None:
    """An answer as one JSON document on stdout; numbers that are not finite, and what is unknown, are null."""

    def plain(value: object) -> object:
        if isinstance(value, Mapping):
            return {str(name): plain(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [plain(member) for member in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    say(json.dumps(plain(answer), ensure_ascii=False, indent=2))
