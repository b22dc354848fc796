"""How objects of the front show themselves, how computations are made for them, and how errors name their arguments."""

from __future__ import annotations

import inspect
import os
import time
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mri_design import runs
from mri_design.errors import InputError, UsageError, argument_behind, say_once

if TYPE_CHECKING:
    from mri_design.runs.store import Record
    from mri_design.runs.work import Keep, Work

P = ParamSpec("P")
T = TypeVar("T")
Watch = Callable[[str, int, int], None]
"""Takes what is being done, how much of it is done, and of how many."""
_WIDE = 100
"""Letters of a line that shows itself in a console."""


def named_file(path: str | os.PathLike[str]) -> str:
    """A path with ``~`` for one's home, or the name of an input that is no file, as text."""
    return os.path.expanduser(os.fspath(path))


def file_given(value: object) -> Path | None:
    """The path that an argument gives; None for an array, another object, and None."""
    return Path(named_file(value)) if isinstance(value, str | os.PathLike) else None


def naming_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose errors name the argument that they are about, whatever it is called where they arise."""

    @wraps(function)
    def called(*values: P.args, **named: P.kwargs) -> T:
        try:
            return function(*values, **named)
        except InputError as error:
            given = inspect.signature(function).bind(*values, **named).arguments
            field = argument_behind(error, given)
            error.__init__(field or error.field, error.got, error.wanted, error.cure)  # type: ignore[misc]
            raise

    return called


@dataclass
class Told:
    """How a computation is made; what it warns of are notices on stderr.

    Parameters
    ----------
    seed, jobs : int
        See `Run`.
    watch : callable, optional
        See `Progress`.
    seconds : float
        Time that it took.
    record : Record, optional
        Inputs and settings, for a manifest.
    """

    seed: int = 0
    jobs: int = 1
    watch: Watch | None = None
    seconds: float = 0.0
    record: Record | None = None

    @property
    def recorded(self) -> Record:
        """Inputs and settings; a UsageError for what was read from a folder, without its scan."""
        if self.record is None:
            raise UsageError("it was read from a folder, without its scan: copy the folder, or compute it again")
        return self.record

    def computed(self, request: Any, compute: Callable[[Work, Keep], T]) -> T:
        """What a computation of a request returns that keeps nothing on a disk."""
        progress = runs.Progress(warn=say_once) if self.watch is None else runs.Progress(self.watch, warn=say_once)
        work, began = runs.Work(seed=self.seed, jobs=self.jobs, progress=progress), time.perf_counter()
        record, result = request.record(work), compute(work, runs.Keep())
        self.record, self.seconds = record, time.perf_counter() - began
        return result


class Shown(ABC):
    """What an object says of itself: a title and facts in a console, in a notebook pictures beside them."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""

    @property
    @abstractmethod
    def _title(self) -> str:
        """The object in a line."""

    @property
    @abstractmethod
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        """What they show, and PNG."""

    def __repr__(self) -> str:
        lines = [self._title, *(f"  {name}: {text}" for name, text in self.facts.items() if text)]
        return "\n".join(line if len(line) <= _WIDE else f"{line[: _WIDE - 3]}..." for line in lines)

    def _repr_html_(self) -> str:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        page = Environment(
            loader=PackageLoader("mri_design.interactive", "."), autoescape=True, undefined=StrictUndefined
        )
        figures = [(says, b64encode(png).decode()) for says, png in self._pictures]
        facts = {name: text for name, text in self.facts.items() if text}
        return page.get_template("shown.html.j2").render(title=self._title, figures=figures, facts=facts)
