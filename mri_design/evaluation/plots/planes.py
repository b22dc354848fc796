"""Masks over a plane (ky, kz): which samples are measured, how the mask grew, and maps of numbers over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import (
    BLANK,
    INK,
    LABEL,
    SMALL,
    empty_figure,
    label_axes,
    plain_decades,
    plain_text,
)

ACROSS = 3
"""Panels beside each other."""
PANEL = 1.75
"""Inches that a panel is high, its title included."""
LEGEND = 0.25
"""Inches of a legend below the panels."""
DECADES = 5
"""Of a map of energies, below its largest value."""


def plane_masks(masks: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """Masks side by side, DC in the middle, each with its number of samples and its true acceleration.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky, kz)
        Title to mask; True where a sample is measured.

    Raises
    ------
    InputError
        Where there is no mask, or one is not a bool array over a plane.
    """
    panels = {title: _flags(mask).astype(int) for title, mask in masks.items()}
    return _panels(panels, [f"{title}\n{_size_of(panel > 0)}" for title, panel in panels.items()])


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

    Raises
    ------
    InputError
        For counts that are not ascending numbers of samples, or samples outside the plane.
    """
    ascending = list(counts) == sorted(set(counts)) and bool(counts) and counts[0] >= 1 and counts[-1] <= len(order)
    inside = all(0 <= sample < shape[0] * shape[1] for sample in order)
    if not ascending or not inside:
        raise InputError(field="counts", got=f"{list(counts)} of {len(order)}", wanted="ascending numbers of samples")
    panels: dict[str, NDArray[np.int_]] = {}
    before = 0
    for count in counts:
        panel = np.zeros(shape[0] * shape[1], dtype=int)
        panel[list(order[:before])] = 1
        panel[list(order[before:count])] = 2 if before else 1
        panels[str(count)] = panel.reshape(shape)
        before = count
    legend = ("measured before", "added since the panel before") if len(panels) > 1 else ()
    return _panels(panels, [_size_of(panel > 0) for panel in panels.values()], legend)


def plane_maps(maps: Mapping[str, NDArray[np.float64]], unit: str) -> Figure:
    """Positive numbers over a plane on one logarithmic scale; samples without one are blank.

    Parameters
    ----------
    maps : mapping of str to float array, shape (ky, kz)
        Title to map; NaN where there is no number.
    unit : str
        Of the numbers.

    Raises
    ------
    InputError
        Where no map has a positive number.
    """
    largest = max((float(np.nanmax(values)) for values in maps.values() if np.isfinite(values).any()), default=0.0)
    if not largest > 0:
        raise InputError(field="maps", got="no positive number", wanted="at least one")
    figure, cells = _grid(len(maps))
    scale = LogNorm(largest * 10.0**-DECADES, largest)
    drawn = None
    for axes, (title, values) in zip(cells, maps.items(), strict=True):
        axes.set_facecolor(BLANK)
        drawn = axes.imshow(
            np.where(values > 0, values, np.nan), norm=scale, extent=_extent(values.shape), cmap="viridis"
        )
        _label(axes, title, values.shape)
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=cells, shrink=0.8)
        bar.set_label(plain_text(unit), fontsize=LABEL)
        bar.ax.tick_params(labelsize=SMALL)
    return figure


def plane_order(places: Mapping[str, Mapping[int, int]], shape: tuple[int, int]) -> Figure:
    """When samples are measured: panels of whole numbers over a plane, each with a scale of its own.

    Parameters
    ----------
    places : mapping of str to mapping of int to int
        Title to sample to its number, for example that of its train or echo; other samples stay blank.
    shape : tuple of int
        (ky, kz).

    Raises
    ------
    InputError
        For a panel without a sample, or samples outside the plane.
    """
    figure, cells = _grid(len(places))
    for axes, (title, numbers) in zip(cells, places.items(), strict=True):
        if not numbers or not all(0 <= sample < shape[0] * shape[1] for sample in numbers):
            raise InputError(field="samples", got=str(list(numbers))[:80], wanted="samples of the plane, at least one")
        panel = np.full(shape[0] * shape[1], np.nan)
        panel[list(numbers)] = list(numbers.values())
        axes.set_facecolor(BLANK)
        drawn = axes.imshow(panel.reshape(shape), extent=_extent(shape), cmap="viridis", interpolation="nearest")
        _label(axes, title, shape)
        figure.colorbar(drawn, ax=axes, shrink=0.8).ax.tick_params(labelsize=SMALL)
    return figure


def block_course(counts: Sequence[int], curves: Mapping[str, Sequence[float]], what: str, scale: str = "log") -> Figure:
    """Numbers along a design, one per block of samples.

    Parameters
    ----------
    counts : sequence of int
        Samples measured at each.
    curves : mapping of str to sequence of float
        Name to values, as many as counts; NaN leaves a gap.
    what : str
        Name of the vertical axis.
    scale : {"log", "linear"}
        Of the vertical axis.

    Raises
    ------
    InputError
        Where lengths disagree.
    """
    if any(len(values) != len(counts) for values in curves.values()):
        lengths = [len(values) for values in curves.values()]
        raise InputError(field="curves", got=f"{lengths} values", wanted=f"{len(counts)} each")
    figure = empty_figure(height=2.8)
    axes = figure.subplots()
    for number, (name, values) in enumerate(curves.items()):
        style = "-" if number == 0 else "--"
        axes.plot(counts, values, style, marker="o", markersize=3, color=PALETTE[number], label=plain_text(name))
    axes.set_yscale(scale)
    if scale == "log":
        plain_decades(axes)
    label_axes(axes, "measured samples", what)
    axes.legend(fontsize=SMALL, frameon=False)
    return figure


def _panels(panels: Mapping[str, NDArray[np.int_]], titles: Sequence[str], legend: Sequence[str] = ()) -> Figure:
    """Panels of blank, ink and colour; ``legend`` names the last two."""
    if not panels:
        raise InputError(field="masks", got="no mask", wanted="at least one")
    figure, cells = _grid(len(panels), bool(legend))
    colours = ListedColormap([BLANK, INK, PALETTE[1]])
    for axes, panel, title in zip(cells, panels.values(), titles, strict=True):
        axes.imshow(panel, cmap=colours, vmin=0, vmax=2, extent=_extent(panel.shape), interpolation="nearest")
        _label(axes, title, panel.shape)
    if legend:
        marks = [Patch(color=colour) for colour in (INK, PALETTE[1])]
        figure.legend(marks, list(legend), loc="outside lower center", ncols=2, fontsize=SMALL, frameon=False)
    return figure


def _grid(count: int, legend: bool = False) -> tuple[Figure, list[Axes]]:
    rows, across = -(-count // ACROSS), min(count, ACROSS)
    figure = empty_figure(height=PANEL * rows + 0.3 + LEGEND * legend)
    cells = figure.subplots(rows, across, squeeze=False).ravel().tolist()
    for axes in cells[count:]:
        axes.set_visible(False)
    return figure, cells[:count]


def _label(axes: Axes, title: str, shape: tuple[int, ...]) -> None:
    axes.set_title("\n".join(plain_text(part) for part in title.split("\n")), fontsize=SMALL)
    rows, columns = shape
    axes.set_xticks(_ends_and_middle(columns))
    axes.set_yticks(_ends_and_middle(rows))
    axes.tick_params(labelsize=SMALL, length=2)
    axes.set_xlabel("kz", fontsize=SMALL, labelpad=1)
    axes.set_ylabel("ky", fontsize=SMALL, labelpad=1)


def _ends_and_middle(count: int) -> list[int]:
    """Lowest frequency, DC and the highest one of an axis."""
    return sorted({-(count // 2), 0, count - 1 - count // 2})


def _extent(shape: tuple[int, ...]) -> tuple[float, float, float, float]:
    rows, columns = shape
    top, left = -(rows // 2) - 0.5, -(columns // 2) - 0.5
    return left, left + columns, top + rows, top


def _flags(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if mask.ndim != 2 or mask.dtype != np.bool_:
        raise InputError(field="mask", got=f"{mask.dtype} {mask.shape}", wanted="bool (ky, kz)")
    return mask


def _size_of(mask: NDArray[np.bool_]) -> str:
    count = int(mask.sum())
    acceleration = f", {mask.size / count:.2f}\N{MULTIPLICATION SIGN}" if count else ""
    return f"{count} samples{acceleration}"
