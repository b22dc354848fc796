"""Figures whose files are written blank: drawing takes most of the time of a small run, and has tests of its own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine


@contextmanager
def undrawn() -> Iterator[None]:
    """Within this, saving a figure writes a small blank one of the same format, and its axes are placed nowhere."""
    for kind in ("png", "svg"):
        _blank(kind)  # drawn before drawing is taken away
    with (
        mock.patch.object(Figure, "savefig", _save_blank),
        mock.patch.object(ConstrainedLayoutEngine, "execute", _place_nothing),
    ):
        yield


@cache
def _blank(kind: str) -> bytes:
    written = io.BytesIO()
    Figure(figsize=(0.2, 0.2)).savefig(written, format=kind)
    return written.getvalue()


def _place_nothing(engine: ConstrainedLayoutEngine, figure: Figure) -> None:
    """Leave the axes where they are: to place them, the library measures every letter, as if it drew the figure."""


def _save_blank(figure: Figure, target: object, **options: object) -> None:
    picture = _blank(str(options.get("format") or Path(str(target)).suffix[1:]))
    if isinstance(target, io.StringIO):
        target.write(picture.decode("utf-8"))
    elif isinstance(target, io.BytesIO):
        target.write(picture)
    else:
        Path(str(target)).write_bytes(picture)
