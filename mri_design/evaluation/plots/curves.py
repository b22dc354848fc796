"""Error against the number of lines, and predicted against actual residual energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike

from mri_design.errors import InputError
from mri_design.evaluation.colours import PALETTE
from mri_design.evaluation.metrics import mean_and_spread
from mri_design.evaluation.plots.panels import ErrorCurve
from mri_design.evaluation.plots.style import (
    GREY,
    GRID,
    LABEL,
    MARKERS,
    SMALL,
    empty_figure,
    label_axes,
    measured_label,
    plain_numbers,
    plain_text,
)

MOST_INSIDE = 6
"""Curves whose legend fits inside the axes."""
MOST_COUNTS = 8
"""Numbers of lines that all fit on the axis."""
CLOSE = 100
"""Ratio of a logarithmic axis's ends up to which there is room for labels between the decades."""
_LINE_STYLES = ("-", "--", "-.", ":")


def error_against_lines(
    curves: Sequence[ErrorCurve],
    y_label: str = "relative error of the magnitude (%)",
    percent: bool = True,
    of: str = "run",
    bands: bool = True,
    unit: str = "line",
) -> Figure:
    """Mean error of each strategy; the band is one standard deviation over runs to either side.

    Parameters
    ----------
    curves : sequence of ErrorCurve
        Drawn in this order; colours follow it.
    y_label : str
        Name and unit of the error as drawn.
    percent : bool
        Multiply the errors by 100.
    of : str
        What a row of errors is: a run, an image.
    bands : bool
        Draw them; many curves are easier to read without.
    unit : str
        What the counts are of, in the singular (`Encoding.unit`).

    Raises
    ------
    InputError
        Where there is no curve or an error is not finite.
    """
    if not curves:
        raise InputError(field="curves", got="no curve", wanted="at least one")
    crowded = len(curves) > MOST_INSIDE
    figure = empty_figure(height=3.2 + 0.18 * -(-len(curves) // 2) * crowded)
    axes = figure.subplots()
    for number, curve in enumerate(curves):
        index = number if curve.place is None else curve.place
        mean, spread = mean_and_spread((100.0 if percent else 1.0) * curve.errors)
        colour = PALETTE[index % len(PALETTE)]
        runs = len(curve.errors)
        if bands and runs > 1:
            axes.fill_between(curve.lines, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            curve.lines,
            mean,
            color=colour,
            linestyle=_LINE_STYLES[index // len(PALETTE) % len(_LINE_STYLES)],
            marker=MARKERS[(index + index // len(PALETTE)) % len(MARKERS)],
            markersize=4,
            linewidth=1.4,
            label=f"{plain_text(curve.name)} ({runs} {of}{'s' if runs > 1 else ''})",
        )
    axes.set_ylim(bottom=0.0)
    label_axes(axes, measured_label(unit), y_label)
    counts = sorted({int(count) for curve in curves for count in curve.lines})
    if len(counts) <= MOST_COUNTS:
        axes.set_xticks(counts)
    axes.grid(color=GRID, linewidth=0.6)
    title = f"mean, band \N{PLUS-MINUS SIGN} 1 std over {of}s" if bands else f"mean over {of}s"
    looks: dict[str, Any] = {"fontsize": SMALL, "frameon": False, "title": title, "title_fontsize": SMALL}
    if crowded:
        figure.legend(loc="outside lower center", ncols=2, **looks)
    else:
        axes.legend(**looks)
    return figure


def calibration(
    predicted: ArrayLike, actual: ArrayLike, ky: ArrayLike | None = None, unit: str = "k-space units squared"
) -> Figure:
    """Residual energy the posterior predicts for each line against what measuring it showed.

    Parameters
    ----------
    predicted, actual : array_like, shape (n,)
        Energies of the same lines. Pairs where either is not positive cannot be drawn on a log scale; the
        title counts them.
    ky : array_like, shape (n,), optional
        Cycles per field of view of each line, for the colour.
    unit : str
        Unit of the energies.

    Raises
    ------
    InputError
        Where the lengths disagree or no pair is positive and finite.
    """
    x, y = np.asarray(predicted, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    distance = np.abs(np.zeros_like(x) if ky is None else np.asarray(ky, dtype=np.float64))
    if x.ndim != 1 or x.shape != y.shape or x.shape != distance.shape:
        raise InputError(
            field="actual",
            got=f"shapes {x.shape}, {y.shape}, ky {distance.shape}",
            wanted="three equal lengths",
        )
    drawable = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    if not drawable.any():
        raise InputError(field="predicted", got="no positive finite pair", wanted="at least one line with energy")
    x, y, distance = x[drawable], y[drawable], distance[drawable]
    figure = empty_figure(height=4.0 if ky is None else 3.6, width=4.1 if ky is None else 4.6)
    axes = figure.subplots()
    ends = np.array([min(x.min(), y.min()) / 1.5, max(x.max(), y.max()) * 1.5])
    axes.plot(ends, ends, color=GREY, linewidth=1, linestyle="--", label="predicted = actual", zorder=1)
    if ky is None:
        axes.scatter(x, y, color=PALETTE[0], s=14, linewidths=0, zorder=2)
    else:
        drawn = axes.scatter(x, y, c=distance, cmap="viridis_r", s=16, linewidths=0.5, edgecolors=GREY, zorder=2)
        bar = figure.colorbar(drawn, ax=axes, pad=0.02, aspect=30)
        bar.set_label("distance from the centre, |ky|", fontsize=LABEL)
        bar.ax.tick_params(labelsize=SMALL)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ends[1] < CLOSE * ends[0] else (1.0,)))
        plain_numbers(axis)
    axes.set_xlabel(plain_text(f"predicted residual energy ({unit})"), fontsize=LABEL)
    axes.set_ylabel(plain_text(f"actual residual energy ({unit})"), fontsize=LABEL)
    axes.tick_params(labelsize=SMALL)
    left_out = int((~drawable).sum())
    note = f"; {left_out} not drawable" if left_out else ""
    axes.set_title(f"median predicted / actual = {np.median(x / y):.2f}{note}", fontsize=LABEL)
    axes.legend(fontsize=SMALL, frameon=False, loc="upper left")
    return figure
