"""Drawn figures as PNG and SVG, without importing the plotting library: colours, files, numbers behind curves."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

Drawing = Any
"""A figure of the plotting library, which is not imported here; every function in `plots` returns one."""


COLOURS = {
    "paper": ("#ffffff", "#17181b"),
    "ink": ("#1c1c1e", "#e8e8ea"),
    "faint": ("#5d6066", "#a4a7ad"),
    "rule": ("#d9dbdf", "#3a3c42"),
    "band": ("#f4f5f7", "#212328"),
    "shade": ("#b4b8bf", "#000000"),
    "alert": ("#a33b00", "#ff9b66"),
    "link": ("#005a8c", "#6cb6ec"),
    # of figures
    "grid": ("#e6e6e6", "#303238"),
    "unmeasured": ("#ececec", "#2b2d33"),
    "start": ("#b0b0b0", "#6d7078"),
    "connector": ("#c8c8c8", "#4a4d55"),
    "dot": ("#8c8c8c", "#8d9097"),
    "right": ("#dcebf5", "#1d3345"),
    "near": ("#fbe6d8", "#45301f"),
}
"""Role to colours on light and dark paper. A report's page names them ``--role``; figures have the light ones."""

# The first four of Okabe and Ito 2008; their light blue and orange are too faint on white. All but ink have a contrast
# of 3 or more with both papers, and no two come closer under protanopia, deuteranopia or tritanopia than theirs do.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8B3FE0", "#945D41", "#000000")
"""Colours of curves, in this order."""

THEMED = {light: f"var(--{role})" for role, (light, _) in COLOURS.items()} | {"#000000": "var(--ink)"}
"""Colour of a figure to the variable that replaces it inside a page; the plotting library writes ink as black."""


_LEFT_OUT = re.compile(r"<\?xml.*?\?>|<!.*?>|<(metadata|style)\b.*?</\1>", re.DOTALL)
_NAMES = re.compile(r'(\bid="|href="#|url\(#)')
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_ROOT = re.compile(r'<svg\b.*?width="([\d.]+)pt".*?(viewBox="[^"]*").*?>', re.DOTALL)
_UNIT_PER_POINT = 96 / 72
"""CSS pixels of a point."""

NARROWEST, WIDEST = 0.72, 1.4
"""Sizes between which a page may scale a picture: below the first, letters of 8 points are too small to read."""


def inline(svg: str, prefix: str, label: str) -> str:
    """A picture as part of a page: scalable, read out as ``label``, in colours that follow light and dark paper.

    Parameters
    ----------
    svg : str
        As `svg_text` writes it.
    prefix : str
        For the names inside it, another one for every picture of a page.
    label : str
        For those who cannot see it.
    """
    # its style sheet would speak of the whole page: the root says the same of the picture
    drawn = _NAMES.sub(rf"\g<1>{prefix}", _LEFT_OUT.sub("", svg))
    drawn = _COLOUR.sub(lambda match: THEMED.get(match[0].lower(), match[0]), " ".join(drawn.split()))

    def root(match: re.Match[str]) -> str:
        width = float(match[1]) * _UNIT_PER_POINT
        sizes = f"min-width: {NARROWEST * width:.0f}px; max-width: {WIDEST * width:.0f}px"
        looks = f'style="{sizes}" stroke-linejoin="round" stroke-linecap="butt"'
        return f'<svg role="img" aria-label="{html.escape(label)}" {looks} {match[2]}>'

    return _ROOT.sub(root, drawn, count=1)


def png_bytes(figure: Drawing) -> bytes:
    """The figure as PNG on white, at its own resolution; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Drawing
        For example a `matplotlib.figure.Figure`.
    """
    target = io.BytesIO()
    # the library's version would otherwise be written into every file
    figure.savefig(target, format="png", dpi="figure", metadata={"Software": None})
    return target.getvalue()


def svg_text(figure: Drawing) -> str:
    """The figure as SVG without a background; the same figure gives the same text."""
    target = io.StringIO()
    written = {"Date": None, "Creator": None}
    figure.savefig(target, format="svg", dpi="figure", facecolor="none", metadata=written)
    return target.getvalue()


@contextmanager
def placed(figure: Drawing) -> Iterator[None]:
    """Place the axes of a figure now, and leave them there while its files are written.

    Where a figure has something that places its axes, the plotting library otherwise draws it twice for every file. The
    files are the same.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


MOST_POINTS = 4000
"""Points of all curves of a figure together; figures with more are shown as they are."""
DIGITS = 4


def pointed_curves(figure: Any) -> str:
    """Places of a figure's axes and points of its curves, as JSON for a script element; empty without curves.

    Parameters
    ----------
    figure : Figure
        Drawn, so that its axes are where they will be seen; anything without ``axes`` has no curves.

    Returns
    -------
    str
        A list with an entry for each axes that has curves: ``box`` (left, top, right, bottom, as fractions of the
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
    """Name and points of a line, which takes the name of its axes where no line has one; None for guide lines."""
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
