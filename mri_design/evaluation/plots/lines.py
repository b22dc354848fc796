"""Phase-encode lines: masks, the order in which they were measured, their scores, and predictions line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import (
    BLANK,
    CHOICE_ORDER,
    GREY,
    INK,
    KY_LABEL,
    LABEL,
    SMALL,
    START,
    colour_bar,
    empty_figure,
    ky_coordinates,
    ky_ends,
    label_axes,
    legend_above,
    plain_numbers,
    plain_text,
    runs,
    size_of,
)


def mask_barcodes(masks: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """Masks one above the other over ky, each with its number of lines and its true acceleration.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky,)
        Title to mask; True where the line is measured. All of one length.
    """
    figure = empty_figure(height=0.55 * len(masks) + 0.6)
    rows = figure.subplots(len(masks), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (title, mask) in zip(rows, masks.items(), strict=True):
        starts, widths = runs(mask)  # bars of whole runs: no seams, and no thin line is lost between pixels
        axes.set_facecolor(BLANK)
        axes.bar(starts, 1.0, widths, align="edge", color=INK, linewidth=0)
        axes.plot([0, 0], [1.0, 1.18], color=PALETTE[1], linewidth=2, clip_on=False)
        axes.set(xlim=ky_ends(len(mask)), ylim=(0, 1), yticks=[])
        axes.tick_params(labelsize=SMALL)
        axes.spines[:].set_visible(False)
        axes.set_title(f"{plain_text(title)}  \N{EN DASH}  {size_of(mask, 'lines')}", fontsize=SMALL, loc="left")
    rows[-1].set_xlabel(KY_LABEL, fontsize=LABEL)
    return figure


def acquisition_order(lines: Sequence[int], n_lines: int, n_start: int = 0, axis: str = CHOICE_ORDER) -> Figure:
    """Position ky of each line against its place in an order: of choice, or of measurement.

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
    """
    figure = empty_figure(height=3.0)
    axes = figure.subplots()
    order, ky = np.arange(1, len(lines) + 1), ky_coordinates(lines, n_lines)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=":")
    if n_start:
        axes.axvspan(0.5, n_start + 0.5, color=BLANK, linewidth=0, zorder=0)
        axes.plot(order[:n_start], ky[:n_start], "s", color=GREY, markersize=3.5, label="start lines")
    axes.plot(order[n_start:], ky[n_start:], "o", color=PALETTE[0], markersize=3.5, label="chosen by the design")
    axes.set_xlim(0.5, len(lines) + 0.5)
    axes.set_ylim(ky_ends(n_lines)[::-1])
    label_axes(axes, axis, KY_LABEL)
    legend_above(figure, 2)
    return figure


def information_gained(gains: Sequence[float], first_order: int = 1, unit: str = "nats") -> Figure:
    """Information gained with each line, and the sum so far.

    Parameters
    ----------
    gains : sequence of float
        Information gain of each chosen line in acquisition order.
    first_order : int
        Acquisition number of the first of them.
    unit : str
        Unit of the gain.
    """
    values = np.asarray(gains, dtype=np.float64)
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
    """
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
    axes.set_xlim(ky_ends(n_lines))
    axes.set_ylim(end, max(n_start, 1) - 0.5)
    label_axes(axes, KY_LABEL, "lines measured")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend_above(figure, 3)
    return figure


_WIDE_RANGE = 30.0  # largest over smallest score from which a linear scale would show one step only


def score_map(
    scores: NDArray[np.floating],
    chosen: Sequence[int],
    unit: str = "information gain (nats)",
    first_order: int = 1,
) -> Figure:
    """The score of every candidate line at every step, the chosen line marked.

    Parameters
    ----------
    scores : float array, shape (step, ky)
        NaN where a line was no candidate (measured before).
    chosen : sequence of int, length step
        The line taken at each step.
    unit : str
        Name and unit of the score.
    first_order : int
        Acquisition number of the first step, so that the axis agrees with `acquisition_order`.
    """
    n_steps, n_lines = scores.shape
    low, high = ky_ends(n_lines)
    figure = empty_figure(height=3.4)
    axes = figure.subplots()
    axes.set_facecolor(BLANK)
    drawn = axes.imshow(
        np.ma.masked_invalid(scores.T),
        extent=(first_order - 0.5, first_order + n_steps - 0.5, high, low),
        aspect="auto",
        cmap="viridis",
        norm=_score_scale(scores),
        interpolation="none",
    )
    steps = np.arange(first_order, first_order + n_steps)
    size = float(np.clip(400 / max(n_steps, n_lines), 3, 6))
    axes.plot(
        steps,
        ky_coordinates(chosen, n_lines),
        "o",
        markersize=size,
        markerfacecolor=PALETTE[1],
        markeredgecolor="white",
        markeredgewidth=size / 8,
        label="chosen line",
    )
    label_axes(axes, CHOICE_ORDER, KY_LABEL)
    bar = colour_bar(figure, drawn, axes, unit, pad=0.01, aspect=30)
    if bar.ax.get_yscale() == "log":
        plain_numbers(bar.ax.yaxis)
    axes.fill_between([], [], color=BLANK, label="not a candidate")
    legend_above(figure, 2)
    return figure


def score_profiles(
    scores: NDArray[np.floating],
    chosen: Sequence[int],
    steps: Sequence[int],
    unit: str = "information gain (nats)",
    first_order: int = 1,
) -> Figure:
    """Score against ky at a few steps, one panel each, so that the shape of the score can be read; grey: no candidate.

    Parameters
    ----------
    scores : float array, shape (step, ky)
        NaN where a line was no candidate.
    chosen : sequence of int, length step
        The line taken at each step.
    steps : sequence of int
        Indices into the first axis of ``scores``.
    unit : str
        Name and unit of the score.
    first_order : int
        Acquisition number of step 0.
    """
    n_lines = scores.shape[1]
    ky = ky_coordinates(np.arange(n_lines), n_lines)
    figure = empty_figure(height=1.15 * len(steps) + 0.5)
    rows = figure.subplots(len(steps), 1, squeeze=False, sharex=True)[:, 0]
    for axes, step in zip(rows, steps, strict=True):
        starts, widths = runs(np.isnan(scores[step]))
        whole = axes.get_xaxis_transform()
        axes.bar(starts, 1.0, widths, transform=whole, align="edge", color=BLANK, linewidth=0, zorder=0)
        axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
        axes.plot(ky, scores[step], color=PALETTE[0], linewidth=1.2, marker=".", markersize=3)
        line = chosen[step]
        axes.plot(ky[line], scores[step, line], "o", color=PALETTE[1], markersize=5)
        axes.set_title(
            f"line {first_order + step}: ky = {ky[line]:+d} chosen",
            fontsize=SMALL,
            loc="left",
            color=PALETTE[1],
        )
        label_axes(axes, "", "")
        finite = scores[step][np.isfinite(scores[step])]
        if finite.size:
            room = 0.15 * (float(np.ptp(finite)) or 1.0)
            axes.set_ylim(float(finite.min()) - room, float(finite.max()) + room)
    rows[-1].set_xlim(ky[0] - 0.5, ky[-1] + 0.5)
    rows[-1].set_xlabel(KY_LABEL, fontsize=LABEL)
    figure.supylabel(plain_text(unit), fontsize=LABEL)
    return figure


def _score_scale(scores: NDArray[np.floating]) -> Normalize:
    finite = scores[np.isfinite(scores)]
    low, high = float(finite.min()), float(finite.max())
    return LogNorm(low, high) if low > 0 and high > _WIDE_RANGE * low else Normalize(low, high)
