"""A drawn figure as PNG for slides and as SVG for pages, without importing the plotting library."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mri_design.evaluation.output.vector_picture import tidy


class Drawing(Protocol):
    """Whatever can write itself as PNG and SVG; every function in `plots` returns one."""

    @property
    def savefig(self) -> Callable[..., Any]:
        """Writes the figure to an open binary file."""

    @property
    def get_layout_engine(self) -> Callable[[], Any]:
        """What places the axes whenever the figure is written."""

    @property
    def set_layout_engine(self) -> Callable[..., Any]:
        """Takes another one, or None for axes that stay where they are."""


def png_bytes(figure: Drawing) -> bytes:
    """The figure as PNG on white, at its own resolution; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Drawing
        For example a `matplotlib.figure.Figure`.
    """
    # the library's version would otherwise be written into every file
    return _saved(figure, format="png", dpi="figure", metadata={"Software": None})


def svg_text(figure: Drawing) -> str:
    """The figure as SVG without a background; the same figure gives the same text."""
    return tidy(_saved(figure, format="svg", dpi="figure", facecolor="none", metadata={"Date": None}).decode("utf-8"))


@contextmanager
def drawing() -> Iterator[None]:
    """Look for unreachable objects after a figure is drawn, not while it is.

    The plotting library makes some ten thousand small objects for a figure, which refer to one another until it is
    written; looking through them again and again takes a tenth of the time.
    """
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()


@contextmanager
def placed(figure: Drawing) -> Iterator[None]:
    """Place the axes of a figure now, and leave them there while its files are written.

    Where a figure has something that places its axes, the plotting library otherwise draws it twice for every file. The
    files are the same.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def _saved(figure: Drawing, **options: Any) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, **options)
    return target.getvalue()
