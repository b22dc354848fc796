"""The numbers behind a drawn figure's curves, for a page that shows them under the pointer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_POINTS = 4000
"""Of all curves of a figure; figures with more are shown as they are."""
DIGITS = 4


def pointed_curves(figure: Any) -> str:
    """Where the axes of a figure lie, and what their curves hold, as JSON for a script element; empty without curves.

    Parameters
    ----------
    figure : Figure
        Drawn, so that its axes are where they will be seen; anything without ``axes`` has no curves.

    Returns
    -------
    str
        A list with an entry for each axes that has curves: ``box`` (left, top, right, bottom, as shares of the
        figure, from its upper left corner), ``x`` (its limits), ``log`` (whether the x axis is logarithmic), ``what``
        (name of the x axis) and ``curves`` (name, x and y of each).
    """
    panels = [panel for axes in getattr(figure, "axes", ()) if (panel := _panel(axes)) is not None]
    count = sum(len(curve["x"]) for panel in panels for curve in panel["curves"])
    return json_for_script(panels) if 0 < count <= MOST_POINTS else ""


def json_for_script(content: object) -> str:
    """JSON that may stand in a script element of a page."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _panel(axes: Any) -> dict[str, Any] | None:
    curves = [curve for line in axes.get_lines() if (curve := _curve(line, axes)) is not None]
    if not curves:
        return None
    place, (low, high) = axes.get_position(), axes.get_xlim()
    return {
        "box": _numbers([place.x0, 1 - place.y1, place.x1, 1 - place.y0]),
        "x": _numbers([low, high]),
        "log": axes.get_xscale() == "log",
        "what": str(axes.get_xlabel()),
        "curves": curves,
    }


def _curve(line: Any, axes: Any) -> dict[str, Any] | None:
    """Of a line with a name, or of one without in axes that have a name; lines for orientation are none."""
    name = str(line.get_label())
    if name.startswith("_"):
        named = [other for other in axes.get_lines() if not str(other.get_label()).startswith("_")]
        name = "" if named else str(axes.get_ylabel())
    in_data = line.get_transform() == axes.transData
    if not name or not in_data:
        return None
    x, y = (np.asarray(values, dtype=float) for values in (line.get_xdata(), line.get_ydata()))
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 2:
        return None
    return {"name": name, "x": _numbers(x[known]), "y": _numbers(y[known])}


def _numbers(values: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=float).tolist()]
