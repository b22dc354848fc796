"""A drawn figure as PNG bytes, without importing the plotting library."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Drawing", "png_bytes"]


class Drawing(Protocol):
    """Whatever can write itself as PNG; every function in `plots` returns one."""

    @property
    def savefig(self) -> Callable[..., Any]:
        """Writes the figure to an open binary file."""


def png_bytes(figure: Drawing) -> bytes:
    """The figure as PNG, at its own resolution; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Drawing
        For example a `matplotlib.figure.Figure`.
    """
    target = io.BytesIO()
    # the library's version would otherwise be written into every file
    figure.savefig(target, format="png", dpi="figure", metadata={"Software": None})
    return target.getvalue()
