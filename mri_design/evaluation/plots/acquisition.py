"""The order in which lines were measured, and the information each brought."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mri_design.errors import InputError
from mri_design.evaluation.colours import PALETTE
from mri_design.evaluation.plots.style import (
    BLANK,
    CHOICE_ORDER,
    GREY,
    INK,
    KY_LABEL,
    LABEL,
    SMALL,
    START,
    empty_figure,
    ky_coordinates,
    label_axes,
    refuse_lines,
)


def acquisition_order(lines: Sequence[int], n_lines: int, n_start: int = 0, axis: str = CHOICE_ORDER) -> Figure:
    """Where each line lies against its place in an order: of choice, or of measurement.

    Parameters
    ----------
    lines : sequence of int
        Indices into ky in the order of ``axis``, start lines first.
    n_lines : int
        Length of ky.
    n_start : int
        How many of ``lines`` were given before the design began.
    axis : str
        Name of the order.

    Raises
    ------
    InputError
        Where there is no line or a line lies outside ky.
    """
    refuse_lines(lines, n_lines)
    figure = empty_figure(height=3.0)
    axes = figure.subplots()
    order, ky = np.arange(1, len(lines) + 1), ky_coordinates(lines, n_lines)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=":")
    if n_start:
        axes.axvspan(0.5, n_start + 0.5, color=BLANK, linewidth=0, zorder=0)
        axes.plot(order[:n_start], ky[:n_start], "s", color=GREY, markersize=3.5, label="start lines")
    axes.plot(order[n_start:], ky[n_start:], "o", color=PALETTE[0], markersize=3.5, label="chosen by the design")
    axes.set_xlim(0.5, len(lines) + 0.5)
    axes.set_ylim(n_lines - n_lines // 2 - 0.5, -(n_lines // 2) - 0.5)
    label_axes(axes, axis, KY_LABEL)
    figure.legend(loc="outside upper center", ncols=2, fontsize=SMALL, frameon=False)
    return figure


def information_gained(gains: Sequence[float], first_order: int = 1, unit: str = "nats") -> Figure:
    """What each line brought when it was chosen, and the sum so far.

    Parameters
    ----------
    gains : sequence of float
        Information gain of each chosen line in acquisition order.
    first_order : int
        Acquisition number of the first of them.
    unit : str
        Unit of the gain.

    Raises
    ------
    InputError
        Where there is no gain or one is not finite.
    """
    values = np.asarray(gains, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InputError(field="gains", got=f"shape {values.shape}", wanted="finite numbers, one per chosen line")
    order = np.arange(first_order, first_order + len(values))
    figure = empty_figure(height=2.4)
    each, total = figure.subplots(1, 2)
    each.plot(order, values, color=PALETTE[0], marker="o", markersize=3, linewidth=1)
    each.set_ylim(min(0.0, values.min()), max(1.08 * values.max(), np.finfo(float).tiny))
    label_axes(each, "", f"gain of the line ({unit})")
    total.plot(order, np.cumsum(values), color=PALETTE[2], marker="s", markersize=3, linewidth=1)
    total.set_ylim(bottom=0.0)
    label_axes(total, "", f"gained so far ({unit})")
    figure.supxlabel(CHOICE_ORDER, fontsize=LABEL)
    return figure


def mask_growth(lines: Sequence[int], n_lines: int, n_start: int = 0) -> Figure:
    """The mask at every step, one row each: lines that are there, and the one that comes.

    Parameters
    ----------
    lines : sequence of int
        Indices into ky in acquisition order, start lines first.
    n_lines : int
        Length of ky.
    n_start : int
        How many of ``lines`` were given before the design began; they are there from the first row on.

    Raises
    ------
    InputError
        Where there is no line or a line lies outside ky.
    """
    refuse_lines(lines, n_lines)
    ky = ky_coordinates(lines, n_lines)
    begins = np.maximum(np.arange(1, len(lines) + 1), max(n_start, 1)).astype(float)
    end = len(lines) + 0.5
    figure = empty_figure(height=float(np.clip(1.2 + 0.05 * (len(lines) - n_start), 2.4, 5.0)))
    axes = figure.subplots()
    chosen = np.arange(len(lines)) >= n_start
    edges = np.arange(n_lines + 1) - n_lines // 2 - 0.5
    for group, colour, label in ((~chosen, START, "start lines"), (chosen, INK, "measured before")):
        if group.any():
            tops = np.full(n_lines, np.nan)
            tops[np.asarray(lines)[group]] = begins[group] - 0.5
            # one outline for neighbours: bars of their own would leave seams
            axes.stairs(tops, edges, baseline=end, fill=True, color=colour, label=label, linewidth=0)
    new = begins[chosen]
    width = max(1.0, n_lines / 180)  # seen also where a line is thinner than a dot of the print
    axes.bar(ky[chosen], np.ones(len(new)), width, bottom=new - 0.5, color=PALETTE[1], linewidth=0, label="new line")
    axes.set_xlim(-(n_lines // 2) - 0.5, n_lines - n_lines // 2 - 0.5)
    axes.set_ylim(end, max(n_start, 1) - 0.5)
    label_axes(axes, KY_LABEL, "lines measured")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside upper center", ncols=3, fontsize=SMALL, frameon=False)
    return figure
