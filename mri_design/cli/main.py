"""The command line: one verb per task."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, Token, UnknownOptionError

from mri_design.cli import terminal
from mri_design.errors import InputError, MriDesignError, UsageError, naming_options

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel

HELP, HELP_ALL = "--help", "--help-all"
USUAL = ("Arguments", "Options")
"""Headings of what the short help explains."""
VERBS = {
    "demo": ("study:demo", "See the program at work on scans that it brings along."),
    "info": ("files:info", "Describe a scan, an image, a sequence or the folder of a run."),
    "design": ("scans:design", "Decide which k-space lines to measure, or draw a mask."),
    "adapt": ("scans:adapt", "Decide lines while a scanner measures them."),
    "recon": ("scans:recon", "Reconstruct an image with error bars."),
    "open": ("files:open_report", "Show the report of a run in the browser."),
    "measure": ("files:measure", "Measure regions of an image, with their errors."),
    "compare": ("study:compare", "Compare sampling strategies on scans whose truth is known."),
    "protocol": ("study:protocol", "Design one mask, or learn an order of lines, for many scans."),
    "export": ("files:export", "Write a run, a scan or an image in another format."),
    "recipe": ("files:recipe", "Print a recipe that comes with the program, or its JSON Schema."),
}
"""Verbs in the order of the help: the function in this package, which is imported when its verb is requested."""

ABOUT = """Decide which k-space lines to measure next, and reconstruct with error bars.

Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 finished but not converged or the wanted error out of reach,
130 interrupted, 1 anything else."""


def _version() -> str:
    from importlib.metadata import version

    return f"mri-design {version('mri-design')}"


def application() -> App:
    """The command with its verbs, none of which is imported yet."""
    app = App(
        name="mri-design",
        help=_flowing(ABOUT),
        version=_version,
        help_flags=[HELP, HELP_ALL],
        help_format="plaintext",
        help_formatter="plain" if os.environ.get("NO_COLOR") else None,
        group_parameters=Group(USUAL[1], sort_key=0),
        default_parameter=Parameter(negative=(), allow_repeating=True, show_default=lambda value: value or None),
    )
    for place, (name, (function, phrase)) in enumerate(VERBS.items()):
        app.command(f"mri_design.cli.{function}", name=name, help=phrase, help_format="markdown", sort_key=place)
    app[HELP].help = f"Explain a verb: {HELP} the options that most people use, {HELP_ALL} every one."
    app.register_install_completion_command(help="Install the completion of options for this shell.")
    return app


def _flowing(text: str) -> str:
    """A text whose paragraphs are single lines, for the terminal to wrap."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _describe(verb: App, *, all_of_it: bool) -> None:
    """Give a verb the help of its docstring: what stands before the parameters, and the notes behind the options.

    Options with a heading of their own, and the notes, are for ``--help-all``; the short help gives their names alone.
    """
    from mri_design.cli.options import names_in_help

    text = inspect.getdoc(verb.default_command) or ""
    about, _, notes = re.sub(r"\nParameters\n-+\n.*?(?=Notes\n-|\Z)", "", text, flags=re.S).partition("Notes\n-----\n")
    verb.help, verb.help_epilogue = _flowing(about), _flowing(notes).format(**names_in_help())
    options = [one for one in verb.assemble_argument_collection() if one.show and one.index is None]
    groups: list[Any] = [one.parameter.group for one in options]
    others = [one.name for one, of in zip(options, groups, strict=True) if not any(group.name in USUAL for group in of)]
    if others and not all_of_it:
        verb.help_epilogue = f"mri-design {verb.name[0]} {HELP_ALL} explains also {', '.join(others)}."
        _leave_out_headed(verb)


def _leave_out_headed(verb: App) -> None:
    """Let the help of a verb leave out the options that have a heading of their own."""
    from cyclopts.help import DefaultFormatter, PlainFormatter

    class Short(PlainFormatter if os.environ.get("NO_COLOR") else DefaultFormatter):  # type: ignore[misc]
        def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
            if panel.title in USUAL:
                super().__call__(console, options, panel)

    verb.help_formatter = Short()


def call(words: Sequence[str]) -> int:
    """Carry out a command line; its code is the exit code of the process.

    0 done, 2 wrong usage, 3 bad input, 4 finished but not converged or out of reach, 130 interrupted, 1 anything else.
    An error that is about an option given on the command line is wrong usage.
    """
    app = application()
    verb = app[words[0]] if words and words[0] in VERBS else None
    if verb is not None and {HELP, HELP_ALL} & {*words}:
        _describe(verb, all_of_it=HELP_ALL in words)
    try:
        function, bound, _ = app.parse_args(_with_values(words), print_error=False, exit_on_error=False)
    except CycloptsError as error:
        terminal.warn(_wrong_word(_misspelt(verb, words[1:]) or error))
        return terminal.WRONG_USAGE
    try:
        with naming_options():
            return function(*bound.args, **bound.kwargs) or terminal.DONE
    except (UsageError, InputError) as error:
        about = terminal.option_behind(error, verb, words[1:])
        of_a_file = about is None and isinstance(error, InputError)
        code, text = terminal.WRONG_INPUT if of_a_file else terminal.WRONG_USAGE, about or str(error)
    except (MriDesignError, OSError, MemoryError) as error:
        code, text = terminal.FAILED, str(error)
    except KeyboardInterrupt as interruption:
        again = f"there is nothing to go on from; begin again with: {terminal.command_to_go_on()}"
        code, text = terminal.INTERRUPTED, f"interrupted; {str(interruption) or again}"
    terminal.warn(text)
    return code


def _with_values(words: Sequence[str]) -> list[str]:
    """What was typed, with the value of options that need none to be typed."""
    pairs = zip(words, [*words[1:], "-"], strict=True)
    return [f"{word}=0" if word == "--live" and after.startswith("-") else word for word, after in pairs]


def _misspelt(verb: App | None, words: Sequence[str]) -> UnknownOptionError | None:
    """The first option typed behind a verb that it does not have; another may seem to be missing for that reason."""
    if verb is None:
        return None
    arguments = verb.assemble_argument_collection()
    for word in itertools.takewhile(lambda word: word != "--", words):
        name = word.partition("=")[0]
        try:
            if name.startswith("--") and name not in (HELP, HELP_ALL):
                arguments.match(name)
        except ValueError:
            return UnknownOptionError(token=Token(keyword=name, source="cli"), argument_collection=arguments)
    return None


def _wrong_word(error: CycloptsError) -> str:
    """The message of a command line that is not understood; for a setting instead of an option how it is written."""
    error.verbose = False
    if isinstance(error, MissingArgumentError) and error.argument is not None and error.keyword is None:
        name, verb = error.argument.name, " ".join(error.command_chain or ())
        name = name if error.argument.index is None else name.lstrip("-").upper()
        return f"{name} is missing: mri-design {verb} --help says what it is"
    if isinstance(error, UnknownOptionError):
        from mri_design.experiment.recipe import Recipe

        written, name = error.token.keyword or "", (error.token.keyword or "").lstrip("-").replace("-", "_")
        if section := next((section for section, kind in Recipe.sections.items() if name in kind.declared()), ""):
            return f"Unknown option: {written}. Did you mean the setting -s {section}.{name}=VALUE?"
    return str(error)


def main() -> None:
    """The process behind ``mri-design``."""
    terminal.output_may_end_early()
    sys.exit(call(sys.argv[1:]))


if __name__ == "__main__":
    main()
