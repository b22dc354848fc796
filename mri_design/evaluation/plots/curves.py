"""Error against the number of lines, predicted against actual errors, energies and innovations along a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.evaluation.plots import style
from mri_design.evaluation.plots.pictures import PALETTE
from mri_design.kinds import count_text

MOST_INSIDE = 6
"""Curves whose legend fits inside the axes."""
MOST_COUNTS = 8
"""Numbers of lines that all fit on the axis."""
CLOSE = 100.0
"""Ratio of the ends of a short logarithmic axis up to which there is room for labels between the decades."""
_LINE_STYLES = ("-", "--", "-.", ":")
Values = NDArray[np.floating]


def error_against_lines(
    counts: Sequence[int],
    curves: Mapping[str, Values],
    bands: bool = True,
    unit: str = "line",
    of: str = "run",
    places: Sequence[int] = (),
) -> Figure:
    """Mean error of each strategy; the band is one standard deviation over runs to either side.

    Parameters
    ----------
    counts : sequence of int, length n
        Numbers measured, increasing.
    curves : mapping of str to float array, shape (run, n)
        By strategy, one row per seed or image; drawn in this order.
    bands : bool
        Draw them; many curves are easier to read without.
    unit : str
        What the counts are of, in the singular (`Readouts.unit`).
    of : str
        What a row of errors is: a run, an image.
    places : sequence of int
        Of colours and markers, where they are to be the same in several figures; those of the curves by default.
    """
    crowded = len(curves) > MOST_INSIDE
    figure, (axes,) = style.panels(3.2 + 0.18 * -(-len(curves) // 2) * crowded)
    for index, (name, errors) in zip(places or range(len(curves)), curves.items(), strict=True):
        again, colour, runs = index // len(PALETTE), PALETTE[index % len(PALETTE)], len(errors)
        mean = 100.0 * errors.mean(axis=0)
        if bands and runs > 1:
            spread = 100.0 * errors.std(axis=0, ddof=1)
            axes.fill_between(counts, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        line, marker = _LINE_STYLES[again % len(_LINE_STYLES)], style.MARKERS[(index + again) % len(style.MARKERS)]
        label = f"{style.plain_text(name)} ({count_text(runs, of)})"
        looks: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 1.4}
        axes.plot(counts, mean, label=label, marker=marker, markersize=4, **looks)
    axes.set_ylim(bottom=0.0)
    style.label_axes(axes, f"measured {unit}s", "relative error of the magnitude (%)")
    if len(counts) <= MOST_COUNTS:
        axes.set_xticks(counts)
    axes.grid(color=style.GRID, linewidth=0.6)
    title = f"mean, band \N{PLUS-MINUS SIGN} 1 std over {of}s" if bands else f"mean over {of}s"
    legend: dict[str, Any] = {"fontsize": style.SMALL, "frameon": False, "title": title, "title_fontsize": style.SMALL}
    if crowded:
        figure.legend(loc="outside lower center", ncols=2, **legend)
    else:
        axes.legend(**legend)
    return figure


def calibration(
    predicted: NDArray[np.floating], actual: NDArray[np.floating], distance: NDArray[np.floating], unit: str
) -> Figure:
    """Residual energy the posterior predicts for each line against what measuring it showed.

    Parameters
    ----------
    predicted, actual : float array, shape (n,)
        Positive energies of the same lines.
    distance : float array, shape (n,)
        Of each line from the centre in cycles per field of view, for the colour.
    unit : str
        Unit of the energies.
    """
    figure, (axes,) = style.panels(3.6, width=4.6)
    both = np.concatenate([predicted, actual])
    ends = np.array([both.min() / 1.5, both.max() * 1.5])
    axes.plot(ends, ends, color=style.GREY, linewidth=1, linestyle="--", label="predicted = actual", zorder=1)
    drawn = axes.scatter(
        predicted, actual, c=distance, cmap="viridis_r", s=16, linewidths=0.5, edgecolors=style.GREY, zorder=2
    )
    style.colour_bar(figure, drawn, axes, "distance from the centre, |ky|", pad=0.02, aspect=30)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    style.label_axes(axes, f"predicted residual energy ({unit})", f"actual residual energy ({unit})")
    for axis in (axes.xaxis, axes.yaxis):
        style.plain_decades(axis, CLOSE)
    axes.set_title(f"median predicted / actual = {np.median(predicted / actual):.2f}", fontsize=style.LABEL)
    axes.legend(fontsize=style.SMALL, frameon=False, loc="upper left")
    return figure


def information_gained(gains: Values, first_order: int, unit: str, axis: str = style.CHOICE_ORDER) -> Figure:
    """Information gained with each choice, and the sum so far.

    Parameters
    ----------
    gains : float array, shape (n,)
        Information gain of each choice in their order.
    first_order : int
        Acquisition number of the first of them.
    unit, axis : str
        Unit of the gain, and name of the order.
    """
    order = np.arange(first_order, first_order + len(gains))
    figure, (each, total) = style.panels(2.4, 2, 2)
    each.plot(order, gains, color=PALETTE[0], marker="o", markersize=3, linewidth=1)
    each.set_ylim(min(0.0, gains.min()), max(1.08 * gains.max(), np.finfo(float).tiny))
    style.label_axes(each, "", f"gain of each ({unit})")
    total.plot(order, np.cumsum(gains), color=PALETTE[2], marker="s", markersize=3, linewidth=1)
    total.set_ylim(bottom=0.0)
    style.label_axes(total, "", f"gained so far ({unit})")
    figure.supxlabel(axis, fontsize=style.LABEL)
    return figure


PREDICTED, ACTUAL = PALETTE[0], PALETTE[1]
_DECADES_SHOWN = 1e4


def error_course(
    predicted: tuple[Sequence[int], Sequence[float]], checked: Sequence[Sequence[float]], part: str, unit: str = "line"
) -> Figure:
    """Predicted remaining error along a run, and the actual one where the truth is known.

    Parameters
    ----------
    predicted : (sequence of int, sequence of float)
        Numbers measured, and the relative L2 error predicted with them.
    checked : sequence of (int, float, float)
        Numbers measured where the actual error is known, the predicted and the actual one.
    part : str
        Which lines of k-space the checked errors are about; the others are always about all lines.
    unit : str
        What is measured one by one (`Readouts.unit`), where this speaks of lines.
    """
    x, y = predicted[0], 100 * np.asarray(predicted[1])
    at, expected, actual = np.array(checked, dtype=float).reshape(-1, 3).T
    figure, (axes,) = style.panels(3.2)
    axes.plot(x, y, color=PREDICTED, linewidth=1.5, label=f"predicted, all {unit}s")
    if at.size:
        positive = actual > 0
        low, high = 100 * actual[positive] / 2, 100 * actual[positive] * 2
        axes.fill_between(at[positive], low, high, color=style.NEAR, linewidth=0, label="within a factor of 2")
        name = f"actual, {style.plain_text(part)}"
        axes.plot(at[positive], 100 * actual[positive], "s-", color=ACTUAL, markersize=5, linewidth=1, label=name)
        name = "_" if part == f"all {unit}s" else f"predicted, {style.plain_text(part)}"  # the curve itself, then
        axes.plot(at, 100 * expected, "o", color=PREDICTED, markerfacecolor="white", markersize=5, label=name)
    axes.set_yscale("log")
    style.plain_decades(axes.yaxis)
    axes.grid(axis="y", color=style.GRID, linewidth=0.6)
    style.label_axes(axes, f"measured {unit}s", "remaining relative L2 error (%)")
    style.legend_above(figure, 2)
    return figure


def interval_course(
    names: Sequence[str],
    counts: Sequence[int],
    intervals: Values,
    truths: Sequence[float | None],
    unit: str = "line",
    of: str = "image units",
) -> Figure:
    """Intervals of regions at every look at the image, and the truth where it is known.

    Parameters
    ----------
    names : sequence of str
        Of the regions, a panel each.
    counts : sequence of int
        Numbers measured at the looks.
    intervals : float array, shape (look, region, 2)
        Ends.
    truths : sequence of float or None
        Of every region.
    unit : str
        What is measured one by one (`Readouts.unit`).
    of : str
        Unit of the intervals.
    """
    figure, every = style.panels(1.1 + 1.3 * len(names), len(names), sharex=True)
    for axes, name, ends, true in zip(every, names, np.swapaxes(intervals, 0, 1), truths, strict=True):
        axes.fill_between(counts, ends[:, 0], ends[:, 1], color=PREDICTED, alpha=0.25, linewidth=0, label="interval")
        axes.plot(counts, ends.mean(axis=1), "o-", color=PREDICTED, markersize=4, linewidth=1.2, label="its middle")
        if true is not None:
            axes.axhline(true, color=ACTUAL, linestyle="--", linewidth=1.2, label="true")
        style.panel_title(axes, name)
        style.label_axes(axes)
        axes.grid(axis="y", color=style.GRID, linewidth=0.6)
    every[-1].set_xlabel(f"measured {unit}s", fontsize=style.LABEL)
    figure.supylabel(style.plain_text(of), fontsize=style.LABEL)
    style.legend_above(figure, 3, every[0])
    return figure


def innovation_course(
    order: Values, predicted: Values, measured: Values, running: Values, noise: Values | None, unit: str, axis: str
) -> Figure:
    """Energy of innovations, predicted and found, of every one or of blocks of them, in acquisition order.

    Parameters
    ----------
    order : array, shape (n,)
        Acquisition numbers, or numbers measured before each block.
    predicted, measured : float array, shape (n,)
        Energy of the innovation, noise included.
    running : float array, shape (n,)
        Predicted over measured, averaged over the last lines.
    noise : float array, shape (n,), optional
        The noise's part of ``predicted``.
    unit, axis : str
        Unit of the energies, and name of the order.
    """
    ratio = predicted / measured
    figure, (above, below) = style.panels(3.9, 2, sharex=True, height_ratios=(2, 1))
    above.vlines(order, predicted, measured, color=style.CONNECTOR, linewidth=1, zorder=1)
    above.plot(order, predicted, "o", color=PREDICTED, markersize=4, label="predicted before it was measured")
    above.plot(order, measured, "s", color=ACTUAL, markersize=4, label="found")
    if noise is not None:
        above.plot(order, noise, "--", color=style.GREY, linewidth=1, label="noise alone")
    above.set_yscale("log")
    style.plain_numbers(above.yaxis)
    style.label_axes(above, "", f"innovation ({unit})")
    style.legend_above(figure, 3, above)
    below.axhspan(0.5, 2.0, color=style.RIGHT, linewidth=0)
    below.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle=":")
    below.plot(order, ratio, ".", color=style.DOT, markersize=4)
    below.plot(order, running, color=PALETTE[2], linewidth=1.5)
    below.set_yscale("log")
    below.set_ylim(min(0.4, ratio.min() / 1.2), max(2.5, ratio.max() * 1.2))
    style.plain_decades(below.yaxis)
    style.label_axes(below, axis, "predicted / found")
    return figure


Energies = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def line_predictions(panels: Mapping[str, Energies], unit: str = "k-space units squared") -> Figure:
    """Predicted and actual energy of the error on every unmeasured line at some moments of a run, a panel each.

    Parameters
    ----------
    panels : mapping of str to (float array, float array, bool array), shapes (ky,)
        From top to bottom: title to predicted and actual energies, NaN where not known, and lines measured so far.
        What is not positive cannot be drawn on a logarithmic scale and is left out.
    unit : str
        Unit of the energies.
    """
    figure, rows = style.panels(max(1.45 * len(panels) + 0.6, 3.2), len(panels), sharex=True, sharey=True)
    rows[0].set_yscale("log")
    for axes, (title, (predicted, actual, acquired)) in zip(rows, panels.items(), strict=True):
        ky, (starts, widths) = style.ky_coordinates(np.arange(len(acquired)), len(acquired)), style.runs(acquired)
        looks: dict[str, Any] = {"align": "edge", "linewidth": 0, "transform": axes.get_xaxis_transform()}
        axes.bar(starts, 1.0, widths, color=style.BLANK, label="measured", **looks)
        for energy, mark, colour, label in (
            (actual, "s-", ACTUAL, "actual"),
            (predicted, "o-", PREDICTED, "predicted"),
        ):
            drawn = np.where(~acquired & (energy > 0), energy, np.nan)
            axes.plot(ky, drawn, mark, color=colour, markersize=1.8, linewidth=0.8, label=label)
        style.panel_title(axes, title)
        style.label_axes(axes, "", "")
    low, high = rows[0].get_ylim()
    rows[0].set(xlim=style.ky_ends(len(acquired)), ylim=(max(low, high / _DECADES_SHOWN), high))
    style.plain_decades(rows[0].yaxis)
    rows[-1].set_xlabel(style.KY_LABEL, fontsize=style.LABEL)
    figure.supylabel(style.plain_text(f"energy of the error ({unit})"), fontsize=style.LABEL)
    style.legend_above(figure, 3, rows[0])
    return figure
