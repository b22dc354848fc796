"""Figures of shots: their curves in k-space, their point-spread functions, scores of their angles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import (
    DOT,
    GREY,
    INK,
    KY_LABEL,
    LABEL,
    SMALL,
    WIDTH,
    colour_bar,
    extent,
    grid_of_axes,
    legend_below,
    plain_text,
)
from mri_design.kinds import count_text
from mri_design.scan.trajectories.point_spread import conjugate_coverage, largest_side_lobe

_FLOOR = -60.0  # decibels
_CAPTIONS, _BAR, _LEGEND = 0.8, 0.55, 0.6  # inches: title, ticks and lines below a panel; colour bar; legend


def trajectory_curves(
    sets: Mapping[str, NDArray[np.floating]], shape: tuple[int, int], first: str = "the first shot"
) -> Figure:
    """Sets of shots as curves in k-space, the first shot of each marked.

    Every caption counts shots and samples, and says which fraction of the cells of k-space is measured by its mirror
    image, too (`conjugate_coverage`).

    Parameters
    ----------
    sets : mapping of str to float array, shape (shot, sample, 2)
        Title to shots, (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx), drawn as a frame.
    first : str
        What the marked one is, for the legend.
    """
    rows_of_grid, columns_of_grid = shape
    figure, cells = _panels(len(sets), 2, rows_of_grid / columns_of_grid, bar=_LEGEND)
    for axes, (title, each) in zip(cells, sets.items(), strict=True):
        left, top = -columns_of_grid / 2, -rows_of_grid / 2
        axes.add_patch(Rectangle((left, top), columns_of_grid, rows_of_grid, fill=False, edgecolor=DOT, linewidth=0.5))
        thin = float(np.clip(12 / np.sqrt(len(each)) / 4, 0.3, 1.0))
        axes.add_collection(LineCollection(list(each[1:, :, ::-1]), colors=INK, linewidths=thin))
        axes.add_collection(LineCollection([each[0, :, ::-1]], colors=PALETTE[1], linewidths=1.5))
        axes.set_xlim(1.03 * left, -1.03 * left)
        axes.set_ylim(-1.03 * top, 1.03 * top)  # ky runs down, as the rows of an image do
        axes.set_aspect("equal")
        axes.tick_params(labelsize=SMALL)
        axes.set_title(plain_text(title, width=26), fontsize=LABEL)
        twice = conjugate_coverage(each).redundancy
        axes.set_xlabel(
            f"kx\n{count_text(len(each), 'shot')} of {each.shape[1]} samples\n{100 * twice:.0f} % measured as k and −k",
            fontsize=SMALL,
            color=GREY,
        )
    cells[0].set_ylabel(f"\N{LEFTWARDS ARROW} {KY_LABEL}", fontsize=SMALL, color=GREY)
    others, marked = cells[0].collections
    curves = [marked] if all(len(each) == 1 for each in sets.values()) else [marked, others]
    legend_below(figure, curves, [first, "the others"][: len(curves)], min(len(cells), 2))
    return figure


def point_spread_maps(spreads: Mapping[str, NDArray[Any]]) -> Figure:
    """Moduli of point-spread functions in decibels below their peaks, all on one scale.

    Every caption has the largest side lobe: how strong the strongest artefact of a point is.

    Parameters
    ----------
    spreads : mapping of str to array, shape (ky, kx)
        Title to point-spread function, as `scan.trajectories.point_spread` makes it; all of one shape.
    """
    shape = next(iter(spreads.values())).shape
    middle = shape[0] // 2, shape[1] // 2
    figure, cells = _panels(len(spreads), 2, shape[0] / shape[1], bar=_BAR)
    for axes, (title, spread) in zip(cells, spreads.items(), strict=True):
        peak = float(np.abs(spread[middle]))
        with np.errstate(divide="ignore"):
            decibels = 20 * np.log10(np.abs(spread) / peak)
        drawn = axes.imshow(decibels, cmap="viridis", vmin=_FLOOR, vmax=0.0, interpolation="none", extent=extent(shape))
        axes.tick_params(labelsize=SMALL)
        axes.set_title(plain_text(title, width=26), fontsize=LABEL)
        lobe = f"largest side lobe {largest_side_lobe(spread).decibels:.1f} dB"
        axes.set_xlabel(f"pixels from the point\n{lobe}", fontsize=SMALL, color=GREY)
    cells[0].set_ylabel("\N{LEFTWARDS ARROW} pixels from the point", fontsize=SMALL, color=GREY)
    place = {"location": "bottom", "shrink": 0.6, "aspect": 30}
    colour_bar(figure, drawn, cells, "modulus below the peak (dB)", SMALL, **place)
    return figure


def angle_scores(
    angles: NDArray[np.floating],
    scores: Mapping[str, NDArray[np.floating]],
    measured: Mapping[str, NDArray[np.bool_]],
    unit: str = "",
) -> Figure:
    """Scores of shots over their angles, one panel for each moment, with ticks at the angles measured so far.

    Parameters
    ----------
    angles : float array, shape (shot,)
        Radians.
    scores : mapping of str to float array, shape (shot,)
        Title to scores, NaN where there are none.
    measured : mapping of str to bool array, shape (shot,)
        The same titles to what had been measured.
    unit : str
        Of the scores, where they have one.
    """
    degrees = np.degrees(angles)
    figure, cells = _panels(len(scores), len(scores), 0.8, bar=_LEGEND)
    for axes, (title, each) in zip(cells, scores.items(), strict=True):
        axes.plot(degrees, each, color=INK, linewidth=1.0, marker=".", markersize=2)
        low = float(np.nanmin(each)) if np.isfinite(each).any() else 0.0
        there = degrees[measured[title]]
        axes.plot(there, np.full(len(there), low), "|", color=PALETTE[1], markersize=8)
        axes.set_title(plain_text(title, width=26), fontsize=LABEL)
        axes.set_xlabel("angle (degrees)", fontsize=SMALL, color=GREY)
        axes.tick_params(labelsize=SMALL)
    cells[0].set_ylabel(f"score ({unit})" if unit else "score", fontsize=SMALL, color=GREY)
    drawn, ticks = cells[0].lines
    legend_below(figure, [drawn, ticks], ["score of an angle", "measured angle"], min(len(cells), 2))
    return figure


def _panels(count: int, columns: int, tallness: float, *, bar: float) -> tuple[Figure, list[Axes]]:
    """Panels in rows of equal length; ``tallness`` is the height of one over its width, ``bar`` what stands below."""
    across = min(count, max(columns, 1))
    down = -(-count // across)
    each = min(WIDTH / across, 3.2)
    return grid_of_axes(count, across, down * (each * tallness + _CAPTIONS) + bar, across * each + 0.3)
