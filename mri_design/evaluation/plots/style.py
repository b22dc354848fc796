"""Parts that figures share: size, palette, grids of axes, legends, labels."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray

from mri_design.evaluation.plots.pictures import COLOURS, Layout, across

WIDTH = 5.2  # inches; a phone shows that at 7/10 of its size, where letters of 8 points can still be read
DPI = 200
LABEL, SMALL = 9.0, 8.0  # points: names of axes, everything else; nothing is smaller

ERROR_COLOURS = "magma"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MANY_DECADES = 1e4
"""Ratio of a logarithmic axis's ends from which on only its decades are named."""
_LIGHT = {role: light for role, (light, _) in COLOURS.items()}
INK, GREY, GRID = _LIGHT["ink"], _LIGHT["faint"], _LIGHT["grid"]
BLANK, START = _LIGHT["unmeasured"], _LIGHT["start"]
CONNECTOR, DOT = _LIGHT["connector"], _LIGHT["dot"]
RIGHT, NEAR = _LIGHT["right"], _LIGHT["near"]
CHOICE_ORDER = "line number in the order of choice"
KY_LABEL = "ky (cycles per field of view)"


class SteadyFigure(Figure):
    """A figure whose files do not depend on the user's settings of the plotting library."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """As Matplotlib's, but text in SVG is drawn as outlines, so that it does not depend on installed fonts."""
        svg: dict[Any, Any] = {"svg.fonttype": "path", "svg.hashsalt": "mri_design", "svg.image_inline": True}
        with rc_context({"savefig.bbox": None, "savefig.transparent": False, **svg}):
            super().savefig(fname, **options)


def panels(
    height: float, count: int = 1, across: int = 1, width: float = WIDTH, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure outside any plotting state with ``count`` axes in rows of equal length, whose labels do not overlap.

    Parameters
    ----------
    height, width : float
        Of the figure in inches.
    count, across : int
        Axes, and how many of them in a row; what is left of the last row stays empty.
    **shared
        As for ``Figure.subplots``: axes that are shared, ratios of heights.
    """
    figure = SteadyFigure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.subplots(-(-count // across), across, squeeze=False, **shared).ravel().tolist()
    for unused in axes[count:]:
        unused.set_axis_off()
    return figure, axes[:count]


def panel_title(axes: Axes, title: str) -> None:
    """A small title at the left."""
    axes.set_title(plain_text(title), fontsize=SMALL, loc="left")


def legend_above(figure: Figure, columns: int, of: Axes | None = None) -> None:
    """A legend above the axes: for all of them, or for one if the others repeat it."""
    marks = () if of is None else of.get_legend_handles_labels()
    figure.legend(*marks, loc="outside upper center", ncols=columns, fontsize=SMALL, frameon=False)


def legend_below(figure: Figure, marks: Sequence[Any], names: Sequence[str], columns: int = 2) -> None:
    """A legend of these marks and names below the axes."""
    shown = [plain_text(name, width=45) for name in names]
    figure.legend(list(marks), shown, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False)


def colour_bar(
    figure: Figure, drawn: ScalarMappable, axes: Axes | list[Axes], label: str, size: float = LABEL, **place: Any
) -> Colorbar:
    """The scale of a picture, with its name and unit."""
    bar = figure.colorbar(drawn, ax=axes, **place)
    bar.set_label(plain_text(label), fontsize=size)
    bar.ax.tick_params(labelsize=SMALL)
    return bar


def extent(shape: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of an array whose zero is at ``n // 2`` of either axis, rows downwards."""
    (top, bottom), (left, right) = (ky_ends(count) for count in shape)
    return left, right, bottom, top


def ky_ends(n_lines: int) -> tuple[float, float]:
    """Outer edges of the first and of the last of ``n_lines`` cells around zero."""
    return -(n_lines // 2) - 0.5, n_lines - n_lines // 2 - 0.5


def size_of(mask: NDArray[np.bool_], counted: str) -> str:
    """Number measured by a mask, and its true acceleration, in words."""
    count = int(mask.sum())
    acceleration = f", {mask.size / count:.2f}\N{MULTIPLICATION SIGN}" if count else ""
    return f"{count} {counted}{acceleration}"


def directions(orientation: Layout) -> tuple[str, str]:
    """Names of what runs down an image and across it, with arrows; empty where it has none, or follows from the other.

    Pixels have no ticks, and the readout of lines is not named if the phase encode is.
    """
    if orientation == "no-lines":
        return "", ""
    plane = orientation.startswith("plane")
    names = ("phase encode 1 (ky)", "phase encode 2 (kz)") if plane else ("phase encode", "readout")
    down, along = names[::-1] if across(orientation) else names
    return f"\N{LEFTWARDS ARROW} {down}", f"{along} \N{RIGHTWARDS ARROW}" * plane


def plain_decades(axis: Axis, most: float = MANY_DECADES) -> None:
    """Numbers along a logarithmic axis as people write them: at 1, 2 and 5 of a decade; of many decades at 1 alone."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < most * low else (1.0,)))
    plain_numbers(axis)


def plain_numbers(axis: Axis) -> None:
    """Numbers along a logarithmic axis as people write them, none between its ticks.

    Powers of ten, which the library writes by itself, are formulas to it: their typesetting takes longer than the rest
    of a figure's letters.
    """
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def plain_text(text: str, width: int | None = None) -> str:
    """Text shown as it is (no formula between dollar signs), in lines of at most ``width`` letters."""
    shown = text if width is None else textwrap.fill(text, width)
    return shown.replace("$", r"\$")


def runs(mask: NDArray[np.bool_]) -> tuple[NDArray[np.floating], NDArray[np.integer]]:
    """Left ends and lengths of a mask's runs over ky: bars of whole runs have no seams."""
    steps = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return steps[::2] - len(mask) // 2 - 0.5, np.diff(steps)[::2]


def ky_coordinates(lines: Sequence[int] | NDArray[np.integer], n_lines: int) -> NDArray[np.int_]:
    """Line indices as ky in cycles per field of view, 0 at the centre ``n_lines // 2``."""
    return np.asarray(lines, dtype=np.int_) - n_lines // 2


def label_axes(
    axes: Axes, x_label: str = "", y_label: str = "", *, title: str = "", size: float = LABEL, colour: str = "black"
) -> None:
    """Names and units of two axes whose horizontal one counts, and the name of the panel."""
    axes.set_xlabel(plain_text(x_label), fontsize=size, color=colour)
    axes.set_ylabel(plain_text(y_label), fontsize=size, color=colour)
    if title:
        axes.set_title(plain_text(title, width=26), fontsize=LABEL)
    axes.tick_params(labelsize=SMALL)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
