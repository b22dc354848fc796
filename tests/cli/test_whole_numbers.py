"""Every option that takes a whole number takes digits, and nothing that a library happens to read as a number."""

from collections.abc import Callable
from typing import get_args, get_type_hints

import pytest
import typer
from typer.testing import Result

from mri_design.cli.main import app

Run = Callable[..., Result]
VERBS = {command.name: command.callback for command in app.registered_commands}


def _whole_options() -> list[tuple[str, str, str]]:
    """Verb, parameter and option of every parameter that is an int, None or not."""
    found = []
    for verb, callback in VERBS.items():
        assert verb is not None and callback is not None
        for name, hint in get_type_hints(callback, include_extras=True).items():
            kind, *described = get_args(hint) or (hint,)
            if described and int in (kind, *get_args(kind)):
                (option,) = described
                found.append((verb, name, next(iter(option.param_decls), "") or option.default))
    return found


OPTIONS = _whole_options()


def test_the_options_are_found() -> None:
    named = {option for _, _, option in OPTIONS}
    assert {
        "--slice",
        "--lines",
        "--seed",
        "--seeds",
        "--jobs",
        "--start",
        "--repetition",
        "--listen",
        "--dummies",
    } <= named
    assert len(OPTIONS) > 60


@pytest.mark.parametrize(("verb", "name", "option"), OPTIONS, ids=[f"{verb} {option}" for verb, _, option in OPTIONS])
def test_what_is_no_number_in_digits_is_refused(verb: str, name: str, option: str) -> None:
    callback = VERBS[verb]
    assert callback is not None
    (described,) = get_args(get_type_hints(callback, include_extras=True)[name])[1:]
    for text in ("0-3", "1_0", " 2", "+1", "2.0", "٣"):
        with pytest.raises(typer.BadParameter, match="is no whole number"):
            described.parser(text)
    assert described.parser("7") == described.parser(7) == 7
