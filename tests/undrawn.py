"""Figures whose files are written with nothing in them: drawing takes most of the time of a small run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from matplotlib.figure import Figure

__all__ = ["EMPTY_PICTURE", "undrawn"]

EMPTY_PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="1pt" height="1pt" viewBox="0 0 1 1"/>'


@contextmanager
def undrawn() -> Iterator[None]:
    """Within this, saving a figure writes an empty picture."""
    with mock.patch.object(Figure, "savefig", _leave_undrawn):
        yield


def _leave_undrawn(figure: Figure, target: Any, **options: object) -> None:
    if isinstance(target, str):
        with open(target, "wb") as stream:
            stream.write(EMPTY_PICTURE)
    else:
        target.write(EMPTY_PICTURE)
