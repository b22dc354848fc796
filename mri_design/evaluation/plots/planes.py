"""Masks over a plane (ky, kz): which samples are measured, how the mask grew, and maps of numbers over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from numpy.typing import NDArray

from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import (
    BLANK,
    INK,
    SMALL,
    colour_bar,
    extent,
    grid_of_axes,
    legend_below,
    plain_text,
    size_of,
)

ACROSS = 3
"""Panels beside each other."""
PANEL = 1.75
"""Inches that a panel is high, its title included."""
LEGEND = 0.25
"""Inches of a legend below the panels."""
DECADES = 5
"""Decades that a map of energies shows below its largest value."""


def plane_masks(masks: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """Masks side by side, DC in the middle, each with its number of samples and its true acceleration.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky, kz)
        Title to mask; True where a sample is measured.
    """
    return _panels({f"{title}\n{size_of(mask, 'samples')}": mask.astype(int) for title, mask in masks.items()})


def plane_growth(order: Sequence[int], shape: tuple[int, int], counts: Sequence[int]) -> Figure:
    """The mask after each of some numbers of samples; what came since the panel before is coloured.

    Parameters
    ----------
    order : sequence of int
        Samples in the order of choice, numbered row by row.
    shape : tuple of int
        (ky, kz).
    counts : sequence of int
        Ascending.
    """
    panels: dict[str, NDArray[np.int_]] = {}
    for before, count in pairwise((0, *counts)):
        panel = np.zeros(shape[0] * shape[1], dtype=int)
        panel[list(order[:before])] = 1
        panel[list(order[before:count])] = 2 if before else 1
        panels[size_of(panel > 0, "samples")] = panel.reshape(shape)
    return _panels(panels, ("measured before", "added since the panel before") if len(panels) > 1 else ())


def plane_maps(maps: Mapping[str, NDArray[np.float64]], unit: str) -> Figure:
    """Positive numbers over a plane on one logarithmic scale; samples without one are blank.

    Parameters
    ----------
    maps : mapping of str to float array, shape (ky, kz)
        Title to map; NaN where there is no number.
    unit : str
        Of the numbers.
    """
    largest = max(float(np.nanmax(values)) for values in maps.values() if np.isfinite(values).any())
    figure, cells = _grid(len(maps))
    scale = LogNorm(largest * 10.0**-DECADES, largest)
    for axes, (title, values) in zip(cells, maps.items(), strict=True):
        drawn = _show(axes, title, np.where(values > 0, values, np.nan), norm=scale, cmap="viridis")
    colour_bar(figure, drawn, cells, unit, shrink=0.8)
    return figure


def plane_order(places: Mapping[str, Mapping[int, int]], shape: tuple[int, int]) -> Figure:
    """When samples are measured: panels of whole numbers over a plane, each with a scale of its own.

    Parameters
    ----------
    places : mapping of str to mapping of int to int
        Title to sample to its number, for example that of its train or echo; other samples stay blank.
    shape : tuple of int
        (ky, kz).
    """
    figure, cells = _grid(len(places))
    for axes, (title, numbers) in zip(cells, places.items(), strict=True):
        panel = np.full(shape[0] * shape[1], np.nan)
        panel[list(numbers)] = list(numbers.values())
        colour_bar(figure, _show(axes, title, panel.reshape(shape), cmap="viridis"), axes, "", shrink=0.8)
    return figure


def _panels(panels: Mapping[str, NDArray[np.int_]], legend: Sequence[str] = ()) -> Figure:
    """Panels of blank, ink and colour by their titles; ``legend`` names the last two."""
    figure, cells = _grid(len(panels), bool(legend))
    colours = ListedColormap([BLANK, INK, PALETTE[1]])
    for axes, (title, panel) in zip(cells, panels.items(), strict=True):
        _show(axes, title, panel, cmap=colours, vmin=0, vmax=2)
    if legend:
        legend_below(figure, [Patch(color=colour) for colour in (INK, PALETTE[1])], legend)
    return figure


def _grid(count: int, legend: bool = False) -> tuple[Figure, list[Axes]]:
    height = PANEL * -(-count // ACROSS) + 0.3 + LEGEND * legend
    return grid_of_axes(count, min(count, ACROSS), height)


def _show(axes: Axes, title: str, panel: NDArray[np.generic], **scale: Any) -> AxesImage:
    """Draw an array over the plane, with the ends and the middle of both axes named; NaN stays blank."""
    axes.set_facecolor(BLANK)
    axes.set_title("\n".join(plain_text(part) for part in title.split("\n")), fontsize=SMALL)
    for axis, name, count in ((axes.yaxis, "ky", panel.shape[0]), (axes.xaxis, "kz", panel.shape[1])):
        axis.set_ticks(sorted({-(count // 2), 0, count - 1 - count // 2}))
        axis.set_label_text(name, fontsize=SMALL)
        axis.labelpad = 1
    axes.tick_params(labelsize=SMALL, length=2)
    return axes.imshow(panel, extent=extent(panel.shape), interpolation="nearest", **scale)
