"""What is measured: masks of lines, planes and shots, how a design grew, its scores, and its point-spread function.

A family of readouts is drawn by a class and a line of `FAMILIES`; any other by the cells of k-space that it measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mri_design.design.trace import DesignTrace
from mri_design.evaluation.plots import style
from mri_design.evaluation.plots.pictures import PALETTE
from mri_design.evaluation.predictions import score_unit
from mri_design.experiment.extent import Acquisition
from mri_design.kinds import count_text
from mri_design.readouts import Readouts
from mri_design.scan.sampling import gapless_run, line_pattern
from mri_design.scan.trajectories import compensated_spread, conjugate_redundancy, largest_side_lobe

DECADES = 5
"""Decades that a map of energies shows below its largest value."""
_FLOOR = -60.0  # decibels
_WIDE_RANGE = 30.0  # largest over smallest score from which a linear scale would show one step only
_FROM_POINT, _DOWN = "pixels from the point", "\N{LEFTWARDS ARROW} "
_NOTE: dict[str, Any] = {"size": style.SMALL, "colour": style.GREY}


def mask_barcodes(masks: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """Masks one above the other over ky, each with its number of lines and its true acceleration.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky,)
        Title to mask; True where the line is measured. All of one length.
    """
    figure, rows = style.panels(0.55 * len(masks) + 0.6, len(masks), sharex=True)
    for axes, (title, mask) in zip(rows, masks.items(), strict=True):
        _draw_lines(axes, mask)
        axes.plot([0, 0], [1.0, 1.18], color=PALETTE[1], linewidth=2, clip_on=False)
        axes.spines[:].set_visible(False)
        style.panel_title(axes, f"{title}  \N{EN DASH}  {style.size_of(mask, 'lines')}")
    rows[-1].set_xlabel(style.KY_LABEL, fontsize=style.LABEL)
    return figure


def _draw_lines(axes: Axes, mask: NDArray[np.bool_]) -> None:
    """Measured lines over ky, as bars of whole runs: no seams, and no thin line is lost between pixels."""
    starts, widths = style.runs(mask)
    axes.set_facecolor(style.BLANK)
    axes.bar(starts, 1.0, widths, align="edge", color=style.INK, linewidth=0)
    axes.set(xlim=style.ky_ends(len(mask)), ylim=(0, 1), yticks=[])
    axes.tick_params(labelsize=style.SMALL)


def acquisition_order(lines: Sequence[int], n_lines: int, n_start: int = 0, axis: str = style.CHOICE_ORDER) -> Figure:
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
    figure, (axes,) = style.panels(3.0)
    order, ky = np.arange(1, len(lines) + 1), style.ky_coordinates(lines, n_lines)
    axes.axhline(0, color=style.GREY, linewidth=0.8, linestyle=":")
    if n_start:
        axes.axvspan(0.5, n_start + 0.5, color=style.BLANK, linewidth=0, zorder=0)
        axes.plot(order[:n_start], ky[:n_start], "s", color=style.GREY, markersize=3.5, label="start lines")
    axes.plot(order[n_start:], ky[n_start:], "o", color=PALETTE[0], markersize=3.5, label="chosen by the design")
    axes.set(xlim=(0.5, len(lines) + 0.5), ylim=style.ky_ends(n_lines)[::-1])
    style.label_axes(axes, axis, style.KY_LABEL)
    style.legend_above(figure, 2)
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
    ky = style.ky_coordinates(lines, n_lines)
    begins = np.maximum(np.arange(1, len(lines) + 1), max(n_start, 1)).astype(float)
    end = len(lines) + 0.5
    figure, (axes,) = style.panels(float(np.clip(1.2 + 0.05 * (len(lines) - n_start), 2.4, 5.0)))
    chosen = np.arange(len(lines)) >= n_start
    edges = np.arange(n_lines + 1) - n_lines // 2 - 0.5
    for group, colour, label in ((~chosen, style.START, "start lines"), (chosen, style.INK, "measured before")):
        if group.any():
            tops = np.full(n_lines, np.nan)
            tops[np.asarray(lines)[group]] = begins[group] - 0.5
            # one outline for neighbours: bars of their own would leave seams
            axes.stairs(tops, edges, baseline=end, fill=True, color=colour, label=label, linewidth=0)
    new = begins[chosen]
    width = max(1.0, n_lines / 180)  # seen also where a line is thinner than a dot of the print
    axes.bar(ky[chosen], np.ones(len(new)), width, bottom=new - 0.5, color=PALETTE[1], linewidth=0, label="new line")
    axes.set(xlim=style.ky_ends(n_lines), ylim=(end, max(n_start, 1) - 0.5))
    style.label_axes(axes, style.KY_LABEL, "lines measured")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    style.legend_above(figure, 3)
    return figure


def score_map(scores: NDArray[np.floating], chosen: Sequence[int], unit: str, first_order: int = 1) -> Figure:
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
    low, high = style.ky_ends(n_lines)
    finite = scores[np.isfinite(scores)]
    least, most = float(finite.min()), float(finite.max())
    wide = least > 0 and most > _WIDE_RANGE * least
    figure, (axes,) = style.panels(3.4)
    axes.set_facecolor(style.BLANK)
    drawn = axes.imshow(
        np.ma.masked_invalid(scores.T),
        extent=(first_order - 0.5, first_order + n_steps - 0.5, high, low),
        aspect="auto",
        cmap="viridis",
        norm=LogNorm(least, most) if wide else Normalize(least, most),
        interpolation="none",
    )
    size = float(np.clip(400 / max(n_steps, n_lines), 3, 6))
    dots: dict[str, Any] = {"markersize": size, "markeredgewidth": size / 8, "markeredgecolor": "white"}
    steps = np.arange(first_order, first_order + n_steps)
    axes.plot(steps, style.ky_coordinates(chosen, n_lines), "o", color=PALETTE[1], label="chosen line", **dots)
    style.label_axes(axes, style.CHOICE_ORDER, style.KY_LABEL)
    bar = style.colour_bar(figure, drawn, axes, unit, pad=0.01, aspect=30)
    if wide:
        style.plain_numbers(bar.ax.yaxis)
    axes.fill_between([], [], color=style.BLANK, label="not a candidate")
    style.legend_above(figure, 2)
    return figure


def score_profiles(
    places: NDArray[np.number],
    panels: Mapping[str, tuple[NDArray[np.floating], NDArray[np.bool_]]],
    axis: str,
    unit: str,
) -> Figure:
    """Scores over the places of candidates at some moments, one panel each; ticks mark those measured before.

    Parameters
    ----------
    places : array, shape (candidate,)
        Of candidates: ky of lines, angles of shots.
    panels : mapping of str to (float array, bool array), shapes (candidate,)
        From top to bottom: title to scores, NaN of what could not be chosen, and what had been measured. The largest
        score is marked.
    axis, unit : str
        Names of the axes, with units.
    """
    figure, rows = style.panels(1.15 * len(panels) + 0.5, len(panels), sharex=True)
    ascending = np.argsort(places)
    places = places[ascending]
    for axes, (title, parts) in zip(rows, panels.items(), strict=True):
        scores, measured = parts[0][ascending], parts[1][ascending]
        axes.plot(places, scores, color=PALETTE[0], linewidth=1.2, marker=".", markersize=3)
        known = scores[np.isfinite(scores)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        axes.plot(places[scores == high], scores[scores == high], "o", color=PALETTE[1], markersize=5)
        room = 0.15 * ((high - low) or 1.0)
        axes.set_ylim(low - 2 * room, high + room)
        axes.plot(places[measured], np.full(measured.sum(), low - room), "|", color=style.GREY, markersize=5)
        style.panel_title(axes, title)
        style.label_axes(axes)
    rows[-1].set_xlabel(axis, fontsize=style.LABEL)
    figure.supylabel(style.plain_text(unit), fontsize=style.LABEL)
    return figure


def plane_flags(panels: Mapping[str, NDArray[np.integer | np.bool_]], marks: Sequence[str] = ()) -> Figure:
    """What is measured of a plane, DC in the middle, by panels under their titles.

    Parameters
    ----------
    panels : mapping of str to array, shape (ky, kz)
        Title to 0 where a sample is not measured, 1 where it is, and 2 where it is new.
    marks : sequence of str
        Names of 1 and 2, for a legend.
    """
    figure, cells = _planes(len(panels), legend=bool(marks))
    for axes, (title, panel) in zip(cells, panels.items(), strict=True):
        _draw_plane(axes, title, panel.astype(int), **_FLAGS)
    if marks:
        style.legend_below(figure, [Patch(color=colour) for colour in (style.INK, PALETTE[1])], marks)
    return figure


def plane_maps(maps: Mapping[str, NDArray[np.floating]], unit: str = "") -> Figure:
    """Numbers over a plane; samples without one are blank.

    Parameters
    ----------
    maps : mapping of str to float array, shape (ky, kz)
        Title to map; NaN where there is no number.
    unit : str
        Of positive numbers that share one logarithmic scale; without it every map has a linear scale of its own.
    """
    figure, cells = _planes(len(maps))
    largest = max(float(np.nanmax(values, initial=0)) for values in maps.values())
    scale: dict[str, Any] = {"norm": LogNorm(largest * 10.0**-DECADES, largest)} if unit else {}
    for axes, (title, values) in zip(cells, maps.items(), strict=True):
        seen = np.where(values > 0, values, np.nan) if unit else values
        drawn = _draw_plane(axes, title, seen, cmap="viridis", **scale)
        if not unit:
            style.colour_bar(figure, drawn, axes, "", shrink=0.8)
    if unit:
        style.colour_bar(figure, drawn, cells, unit, shrink=0.8)
    return figure


_FLAGS: dict[str, Any] = {"cmap": ListedColormap([style.BLANK, style.INK, PALETTE[1]]), "vmin": 0, "vmax": 2}


def _planes(count: int, legend: bool = False) -> tuple[Figure, list[Axes]]:
    across = min(count, 3)
    return style.panels(1.75 * -(-count // across) + 0.3 + 0.25 * legend, count, across)


def _draw_plane(axes: Axes, title: str, panel: NDArray[np.generic], **scale: Any) -> AxesImage:
    """Draw an array over the plane, with the ends and the middle of both axes named; NaN stays blank."""
    axes.set_facecolor(style.BLANK)
    axes.set_title("\n".join(style.plain_text(part) for part in title.split("\n")), fontsize=style.SMALL)
    for axis, name, count in ((axes.yaxis, "ky", panel.shape[0]), (axes.xaxis, "kz", panel.shape[1])):
        axis.set_ticks(sorted({-(count // 2), 0, count - 1 - count // 2}))
        axis.set_label_text(name, fontsize=style.SMALL)
        axis.labelpad = 1
    axes.tick_params(labelsize=style.SMALL, length=2)
    return axes.imshow(panel, extent=style.extent(panel.shape), interpolation="nearest", **scale)


def trajectory_curves(
    sets: Mapping[str, NDArray[np.floating]], shape: tuple[int, int], first: str = "the first shot"
) -> Figure:
    """Sets of shots as curves in k-space, the first shot of each marked.

    Every caption counts shots and samples, and names the fraction of k-space cells whose mirror image is measured,
    too (`conjugate_redundancy`).

    Parameters
    ----------
    sets : mapping of str to float array, shape (shot, sample, 2)
        Title to shots, (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx), drawn as a frame.
    first : str
        What the marked one is, for the legend.
    """
    rows, columns = shape
    across = min(len(sets), 2)
    wide = min(style.WIDTH / across, 3.2)
    height = -(-len(sets) // across) * (wide * rows / columns + 0.8) + 0.6
    figure, cells = style.panels(height, len(sets), across, across * wide + 0.3)
    for axes, (title, each) in zip(cells, sets.items(), strict=True):
        frame = Rectangle((-columns / 2, -rows / 2), columns, rows, fill=False, edgecolor=style.DOT, linewidth=0.5)
        axes.add_patch(frame)
        _draw_shots(axes, each[1:], 3 / np.sqrt(len(each)))
        axes.add_collection(LineCollection([each[0, :, ::-1]], colors=PALETTE[1], linewidths=1.5))
        # ky runs down, as the rows of an image do
        axes.set(xlim=(-1.03 * columns / 2, 1.03 * columns / 2), ylim=(1.03 * rows / 2, -1.03 * rows / 2))
        twice = f"{100 * conjugate_redundancy(each):.0f} % measured as k and \N{MINUS SIGN}k"
        counts = f"kx\n{count_text(len(each), 'shot')} of {each.shape[1]} samples\n{twice}"
        style.label_axes(axes, counts, title=title, **_NOTE)
    cells[0].set_ylabel(f"{_DOWN}{style.KY_LABEL}", fontsize=style.SMALL, color=style.GREY)
    others, marked = cells[0].collections
    curves = [marked] if all(len(each) == 1 for each in sets.values()) else [marked, others]
    style.legend_below(figure, curves, [first, "the others"][: len(curves)], min(len(cells), 2))
    return figure


def _draw_shots(axes: Axes, shots: NDArray[np.floating], width: float) -> None:
    thin = float(np.clip(width, 0.3, 1.0))
    axes.add_collection(LineCollection(list(shots[:, :, ::-1]), colors=style.INK, linewidths=thin))
    axes.set_aspect("equal")


def _decibels(spread: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(20 * np.log10(np.abs(spread) / np.abs(spread).max()))


def mask_with_spread(
    title: str, mask: NDArray[np.bool_], spread: NDArray[np.complexfloating], shots: NDArray[np.floating] | None = None
) -> Figure:
    """What is measured, and what it makes of a point, in decibels below the peak; the largest side lobe is marked.

    Parameters
    ----------
    title : str
        About both.
    mask : bool array, shape (ky,), (ky, kz) or (shot,)
        True where measured.
    spread : complex array, shape (y,) or (y, x)
        Point-spread function, the point at ``N // 2``.
    shots : float array, shape (shot, sample, 2), optional
        Of a mask of shots, columns (ky, kx) in cycles per field of view, on a grid of the shape of ``spread``.
    """
    _, lobe = largest_side_lobe(spread)
    if spread.ndim == 1:
        figure, (above, below) = style.panels(3.0, 2, height_ratios=(1, 4))
        _draw_lines(above, mask)
        above.set_xlabel(style.KY_LABEL, fontsize=style.SMALL)
        decibels, middle = _decibels(spread), len(spread) // 2
        below.plot(np.arange(len(spread)) - middle, np.maximum(decibels, _FLOOR), color=PALETTE[0], linewidth=1)
        if any(lobe):
            below.plot(lobe, decibels[lobe[0] + middle], "o", color=PALETTE[1], markersize=5)
        below.set(xlim=style.ky_ends(len(spread)), ylim=(_FLOOR, 2))
        style.label_axes(below, f"{_FROM_POINT}, along ky", "point spread (dB)", size=style.SMALL)
    else:
        tallness = min(spread.shape[0] / spread.shape[1], 2.0)
        figure, (left, right) = style.panels(style.WIDTH / 2 * 0.8 * tallness + 1.1, 2, 2)
        if shots is None:
            left.imshow(mask, extent=style.extent(mask.shape), interpolation="none", **_FLAGS)
        else:
            _draw_shots(left, shots, 3 / np.sqrt(len(shots)))
            west, east, south, north = style.extent(spread.shape)
            left.set(xlim=(west, east), ylim=(south, north))
        across = "kz" if shots is None else "kx"
        style.label_axes(left, f"{across} (cycles per field of view)", f"{_DOWN}{style.KY_LABEL}", size=style.SMALL)
        scale: dict[str, Any] = {"cmap": "viridis", "vmin": _FLOOR, "vmax": 0.0, "extent": style.extent(spread.shape)}
        drawn = right.imshow(_decibels(spread), interpolation="none", **scale)
        if any(lobe):
            right.plot(lobe[1], lobe[0], "o", markersize=9, markerfacecolor="none", markeredgecolor=PALETTE[1])
        style.label_axes(right, _FROM_POINT, size=style.SMALL)
        style.colour_bar(
            figure, drawn, right, "point spread (dB)", style.SMALL, location="bottom", shrink=0.9, aspect=30
        )
    shown = "\n".join(style.plain_text(line, width=78) for line in title.split("\n"))
    figure.suptitle(shown, fontsize=style.SMALL)
    return figure


Masks = Mapping[str, tuple[Readouts, NDArray[np.bool_]]]
"""Title to readouts and flags of those measured, shape (size,)."""
MEASURED_ORDER = "line number in the order of measurement"


class Drawn:
    """How readouts are drawn, by the cells of k-space that they measure."""

    def masks(self, masks: Masks) -> Figure:
        """What is measured, of several masks side by side or one above the other."""
        named = {title: f"{title}\n{style.size_of(mask, each.kind.counted)}" for title, (each, mask) in masks.items()}
        return plane_flags({named[title]: each.cells(mask) for title, (each, mask) in masks.items()})

    def spacing(self, mask: NDArray[np.bool_]) -> dict[str, Any]:
        """Of lines, the ``pattern`` in which they lie if any, those around the ``centre``, and the largest ``gap``."""
        return {}

    def growth(self, readouts: Readouts, trace: DesignTrace) -> Figure:
        """What was measured from the start of a design to its end."""
        panels = {}
        for before, count in pairwise((0, *_counts_shown(trace, 6))):
            mask, new = trace.mask(count), trace.mask(count) & ~trace.mask(before) & (before > 0)
            panels[style.size_of(mask, readouts.kind.counted)] = readouts.cells(mask).astype(int) + readouts.cells(new)
        return plane_flags(panels, ("measured before", "added since the panel before"))

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        """Figures of a design by the names of their files."""
        return {"mask-growth": self.growth(readouts, trace)}

    def acquisition(self, made: Acquisition) -> Figure:
        """The order of measurement, train after train."""
        return acquisition_order(made.lines, made.readouts.size, axis=MEASURED_ORDER)


class DrawnLines(Drawn):
    """How lines are drawn, over ky."""

    def masks(self, masks: Masks) -> Figure:
        return mask_barcodes({title: mask for title, (_, mask) in masks.items()})

    def spacing(self, mask: NDArray[np.bool_]) -> dict[str, Any]:
        dc, gaps = len(mask) // 2, np.diff(np.flatnonzero(mask)) - 1
        low, high = gapless_run(mask, dc)
        centre = (low - dc, high - dc) if mask[dc] else None
        return {"pattern": line_pattern(mask), "centre": centre, "gap": int(gaps.max(initial=0))}

    def growth(self, readouts: Readouts, trace: DesignTrace) -> Figure:
        return mask_growth(trace.lines, trace.n_lines, len(trace.start))

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        size, first = trace.n_lines, len(trace.start)
        figures = {
            "mask": self.masks({trace.strategy: (readouts, trace.mask())}),
            "mask-growth": self.growth(readouts, trace),
            "order": acquisition_order(trace.lines, size, first),
        }
        if moments := _moments(readouts, trace):
            steps, unit = [step for step in trace.steps if step.choice.scores is not None], score_unit(trace)
            scores, chosen = np.array([step.choice.scores for step in steps]), [step.line for step in steps]
            figures["scores"] = score_map(scores, chosen, unit, first + 1)
            ky = style.ky_coordinates(np.arange(size), size)
            figures["score-profiles"] = score_profiles(ky, moments, style.KY_LABEL, unit)
        return figures


class DrawnPlane(Drawn):
    """How samples of a plane are drawn, over ky and kz."""

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        figures = {"mask-growth": self.growth(readouts, trace)}
        blocks = [step.choice.scores for step in trace.steps if step.choice.pending == 0]
        scored = [(number, scores) for number, scores in enumerate(blocks, 1) if scores is not None]
        if scored:
            chosen = [scored[at] for at in sorted({0, len(scored) // 2, len(scored) - 1})]
            maps = {f"block {number}": scores.reshape(readouts.grid) for number, scores in chosen}
            figures["scores"] = plane_maps(maps, score_unit(trace))
        return figures

    def acquisition(self, made: Acquisition) -> Figure:
        panels = {name: np.full(made.readouts.size, np.nan) for name in ("train", "echo")}
        for number, train in enumerate(made.trains, 1):
            panels["train"][list(train)], panels["echo"][list(train)] = number, np.arange(1, len(train) + 1)
        if len(made.trains) == len(made.lines):
            panels = {"order": panels["train"]}
        return plane_maps({name: panel.reshape(made.readouts.grid) for name, panel in panels.items()})


class DrawnShots(Drawn):
    """How shots are drawn, along their trajectory."""

    def masks(self, masks: Masks) -> Figure:
        readouts = next(iter(masks.values()))[0]
        shots = {title: _shots(each, mask) for title, (each, mask) in masks.items()}
        first = f"the measured {readouts.unit} with the lowest number among the candidates"
        return trajectory_curves(shots, readouts.grid, first)

    def growth(self, readouts: Readouts, trace: DesignTrace) -> Figure:
        counts, lines = _counts_shown(trace, 4), list(trace.lines)
        shots = {count_text(count, readouts.unit): _shots(readouts, lines[:count]) for count in counts}
        return trajectory_curves(shots, readouts.grid, f"the first {readouts.unit} of the start")

    def design(self, readouts: Readouts, trace: DesignTrace) -> dict[str, Figure]:
        figures = {"trajectory": self.growth(readouts, trace)}
        if readouts.angles is not None and (moments := _moments(readouts, trace)):
            degrees = np.degrees(readouts.angles)
            figures["scores"] = score_profiles(degrees, moments, "angle (degrees)", score_unit(trace))
        return figures | {"point-spread": shots_with_spread(_shots(readouts, list(trace.lines)), readouts.grid)}


FAMILIES: dict[str, Drawn] = {"lines": DrawnLines(), "plane": DrawnPlane()}
"""By `Kind.sort`, of those on a grid."""


def drawn(readouts: Readouts) -> Drawn:
    """How these readouts are drawn."""
    kind = readouts.kind
    return FAMILIES.get(kind.sort, Drawn()) if kind.on_grid else DrawnShots()


def shots_with_spread(
    shots: NDArray[np.floating], grid: tuple[int, int], density: NDArray[np.float64] | None = None
) -> Figure:
    """Shots (shot, sample, 2), and what they make of a point, with the density that came with the scan or their own."""
    spread = compensated_spread(shots.reshape(-1, 2), grid, density)
    return mask_with_spread("", np.ones(len(shots), dtype=bool), spread, shots)


def _shots(readouts: Readouts, ids: Sequence[int] | NDArray[np.bool_]) -> NDArray[np.float64]:
    """Samples (shot, sample, 2) of what runs along a trajectory."""
    shots = readouts.trajectory(ids)
    assert shots is not None
    return shots


def _moments(readouts: Readouts, trace: DesignTrace) -> dict[str, tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """Scores, and what had been measured, at the start, after a quarter, at half and at the end of what has scores."""
    scored = [(count, s) for count, s in enumerate(trace.steps, len(trace.start)) if s.choice.scores is not None]
    last, unit = len(scored) - 1, readouts.unit
    chosen = [scored[at] for at in sorted({0, last // 4, last // 2, last})] if scored else []
    return {f"{count_text(n, unit)} measured": (np.asarray(s.choice.scores), trace.mask(n)) for n, s in chosen}


def _counts_shown(trace: DesignTrace, panels: int) -> list[int]:
    """Numbers of candidates, from the start to the end of the design, at which a picture is drawn."""
    counts = np.linspace(len(trace.start), len(trace.lines), panels)
    return sorted({round(count) for count in counts if count >= 1})
