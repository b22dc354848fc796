"""The command line: one verb per task."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from typing import Annotated, Any

import typer

from mri_design.cli.files import convert, export, info, mask, measure
from mri_design.cli.flags import filled, without_types
from mri_design.cli.scans import adapt, design, recon
from mri_design.cli.study import compare, demo, protocol, train
from mri_design.cli.terminal import output_may_end_early, verb
from mri_design.experiment.settings import docstring

VERBS = (demo, info, design, adapt, recon, measure, compare, protocol, train, export, mask, convert)
"""In the order of the help; the docstring of each ends with an example."""

PLURAL = {"token_normalize_func": lambda name: "acceleration" if name == "accelerations" else name}
"""Some verbs take one acceleration, others several: both names are taken everywhere."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"mri-design {version('mri-design')}\n")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decide which k-space lines to measure next, and reconstruct with error bars.

    Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 finished but not converged or the wanted error out of reach,
    130 interrupted, 1 anything else.
    """


def application(asked: Collection[str] = tuple(function.__name__ for function in VERBS)) -> Any:
    """The command with its verbs; only those that are ``asked`` for have their flags, which take time to make."""
    app = typer.Typer(
        name="mri-design",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(_main)
    for function in VERBS:
        told = filled(docstring(function)).partition("Parameters\n-----")[0]
        text, _, example = told.partition("Example: ")
        example = f"Example: {' '.join(example.split())}"
        called = verb(function) if function.__name__ in asked else lambda: None
        name = function.__name__
        app.command(name, help=text, epilog=example, context_settings=PLURAL)(called)
    command = typer.main.get_command(app)
    without_types(command)
    return command


def main() -> None:
    """The process behind ``mri-design``."""
    output_may_end_early()
    completed = [os.environ.get(name, "") for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")]  # where a shell asks
    application([*sys.argv[1:2], *" ".join(completed).split()])()


if __name__ == "__main__":
    main()
