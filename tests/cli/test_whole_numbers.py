"""Every option that takes a whole number takes digits, and nothing that a library happens to read as a number."""

from typing import get_args, get_type_hints

import pytest
import typer

from mri_design.cli.main import app

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


def test_what_is_no_number_in_digits_is_refused() -> None:
    options = _whole_options()
    named = {option for _, _, option in options}
    known = "slice lines seed seeds jobs start repetition listen dummies"
    assert {f"--{name}" for name in known.split()} <= named and len(options) > 60
    for verb, name, option in options:
        callback = VERBS[verb]
        assert callback is not None
        (described,) = get_args(get_type_hints(callback, include_extras=True)[name])[1:]
        for text in ("0-3", "1_0", " 2", "+1", "2.0", "٣"):
            with pytest.raises(typer.BadParameter, match="is no whole number"):
                described.parser(text)
        assert described.parser("7") == described.parser(7) == 7, f"{verb} {option}"
