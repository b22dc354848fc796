"""The command line, called in the process of the tests."""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass

from mri_design.cli.main import call
from tests.undrawn import undrawn


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both, one after the other."""
        return self.stdout + self.stderr


def called(words: Iterable[object], *, drawn: bool = False) -> Result:
    """Call the command line with these words; figures stay empty unless ``drawn`` is asked for."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), nullcontext() if drawn else undrawn():
        code = call([str(word) for word in words])
    return Result(code, out.getvalue(), err.getvalue())
