"""Designs that are interrupted by their user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest import mock

from mri_design import make_strategy


@contextmanager
def interrupted(strategy: str, decisions: int, encoding: Any = "lines") -> Iterator[None]:
    """Within this, designs of a strategy stop as by Ctrl-C when so many decisions were made."""
    rule = type(make_strategy(strategy, encoding))
    method = "choose" if encoding == "lines" else "choose_block"
    choose, made = getattr(rule, method), count()

    def choosing(self: Any, *arguments: Any) -> Any:
        if next(made) == decisions:
            raise KeyboardInterrupt
        return choose(self, *arguments)

    with mock.patch.object(rule, method, choosing):
        yield


@contextmanager
def stopping(place: Any, name: str, after: float = float("inf")) -> Iterator[list[tuple[Any, ...]]]:
    """Within this, a function of a module works so many times and then stops as by Ctrl-C; arguments of its calls."""
    made, real = list[tuple[Any, ...]](), getattr(place, name)

    def working(*arguments: Any, **options: Any) -> Any:
        if len(made) >= after:
            raise KeyboardInterrupt
        made.append(arguments)
        return real(*arguments, **options)

    with mock.patch.object(place, name, working):
        yield made
