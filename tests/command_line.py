"""The command line, called in the process of the tests."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from unittest import mock

import typer.testing

from mri_design.cli.main import application
from tests.undrawn import undrawn

COMMAND = application()
"""Made once: to make it takes a tenth of a small run."""


def called(words: Iterable[object], *, drawn: bool = False) -> typer.testing.Result:
    """Call the command line with these words; figures stay empty unless ``drawn`` is asked for."""
    with (
        mock.patch.object(typer.testing, "_get_command", lambda _: COMMAND),
        nullcontext() if drawn else undrawn(),
    ):
        return typer.testing.CliRunner().invoke(COMMAND, [str(word) for word in words])
