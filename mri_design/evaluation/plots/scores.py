"""The score of every candidate line at every step of a design."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evaluation.colours import PALETTE
from mri_design.evaluation.plots.style import (
    BLANK,
    CHOICE_ORDER,
    GREY,
    KY_LABEL,
    LABEL,
    SMALL,
    empty_figure,
    ky_coordinates,
    label_axes,
    plain_numbers,
    plain_text,
    refuse_lines,
    runs,
)

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

    Raises
    ------
    InputError
        Where the shapes disagree or no score is finite.
    """
    _refuse_scores(scores, chosen)
    n_steps, n_lines = scores.shape
    low, high = -(n_lines // 2) - 0.5, n_lines - n_lines // 2 - 0.5
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
    bar = figure.colorbar(drawn, ax=axes, pad=0.01, aspect=30)
    bar.set_label(plain_text(unit), fontsize=LABEL)
    bar.ax.tick_params(labelsize=SMALL)
    if bar.ax.get_yscale() == "log":
        plain_numbers(bar.ax.yaxis)
    axes.fill_between([], [], color=BLANK, label="not a candidate")
    figure.legend(loc="outside upper center", ncols=2, fontsize=SMALL, frameon=False)
    return figure


def score_profiles(
    scores: NDArray[np.floating],
    chosen: Sequence[int],
    steps: Sequence[int] | None = None,
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
    steps : sequence of int, optional
        Indices into the first axis of ``scores``; by default four spread over the run.
    unit : str
        Name and unit of the score.
    first_order : int
        Acquisition number of step 0.

    Raises
    ------
    InputError
        Where the shapes disagree, no score is finite, or a step does not exist.
    """
    _refuse_scores(scores, chosen)
    n_steps, n_lines = scores.shape
    shown = sorted(set(np.linspace(0, n_steps - 1, min(4, n_steps)).astype(int))) if steps is None else list(steps)
    if not shown or not all(0 <= step < n_steps for step in shown):
        raise InputError(field="steps", got=str(list(shown)), wanted=f"steps from 0 to {n_steps - 1}")
    ky = ky_coordinates(np.arange(n_lines), n_lines)
    figure = empty_figure(height=1.15 * len(shown) + 0.5)
    cells = figure.subplots(len(shown), 1, squeeze=False, sharex=True)[:, 0]
    for axes, step in zip(cells, shown, strict=True):
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
    cells[-1].set_xlim(ky[0] - 0.5, ky[-1] + 0.5)
    cells[-1].set_xlabel(KY_LABEL, fontsize=LABEL)
    figure.supylabel(plain_text(unit), fontsize=LABEL)
    return figure


def _score_scale(scores: NDArray[np.floating]) -> Normalize:
    finite = scores[np.isfinite(scores)]
    low, high = float(finite.min()), float(finite.max())
    return LogNorm(low, high) if low > 0 and high > _WIDE_RANGE * low else Normalize(low, high)


def _refuse_scores(scores: NDArray[np.floating], chosen: Sequence[int]) -> None:
    if scores.ndim != 2 or len(chosen) != len(scores):
        raise InputError(
            field="scores",
            got=f"shape {scores.shape} and {len(chosen)} chosen lines",
            wanted="(step, ky), one each",
        )
    if not np.isfinite(scores).any():
        raise InputError(field="scores", got="no finite score", wanted="at least one candidate with a score")
    refuse_lines(chosen, scores.shape[1])
