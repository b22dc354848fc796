"""What every verb shares: exit codes, errors in words, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mri_design.errors import InputError, MriDesignError, UsageError
from mri_design.status import Status

__all__ = ["DONE", "FAILED", "NOT_CONVERGED", "WRONG_INPUT", "WRONG_USAGE", "Bar", "ending", "exits", "progress", "say"]

DONE, FAILED, WRONG_USAGE, WRONG_INPUT, NOT_CONVERGED = 0, 1, 2, 3, 4

P = ParamSpec("P")


def exits(verb: Callable[P, int]) -> Callable[P, None]:
    """Turn a verb's returned code and raised errors into the process's exit code.

    0 done, 2 wrong usage, 3 bad input, 4 finished but not converged, 1 anything else.
    """

    @wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = verb(*args, **kwargs)
        except UsageError as error:
            code = _report(error, WRONG_USAGE)
        except InputError as error:
            code = _report(error, WRONG_INPUT)
        except (MriDesignError, OSError, MemoryError) as error:
            code = _report(error, FAILED)
        except KeyboardInterrupt:
            code = _report("interrupted; what was finished is on disk", FAILED)
        raise typer.Exit(code)

    return run


def _report(error: object, code: int) -> int:
    print(f"mri-design: {error}", file=sys.stderr)
    return code


def ending(*statuses: str) -> int:
    """The exit code of runs that finished with these statuses."""
    return DONE if all(status == Status.CONVERGED.value for status in statuses) else NOT_CONVERGED


def say(text: str, quiet: bool = False) -> None:
    """One line of result on stdout."""
    if not quiet:
        print(text)


class Bar:
    """A progress bar that may be invisible."""

    def __init__(self, display: Progress | None) -> None:
        self._display = display
        self._tasks: dict[str, object] = {}

    def update(self, label: str, done: int, total: int) -> None:
        """Show ``done`` of ``total`` beside ``label``."""
        if self._display is None:
            return
        if label not in self._tasks:
            self._tasks[label] = self._display.add_task(label, total=total)
        self._display.update(self._tasks[label], completed=done, total=total)  # type: ignore[arg-type]


@contextmanager
def progress(quiet: bool) -> Iterator[Bar]:
    """Bars on stderr; nothing where stderr is not a terminal or ``quiet`` is set."""
    if quiet or not sys.stderr.isatty():
        yield Bar(None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as display:
        yield Bar(display)
