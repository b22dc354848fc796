"""A mask or a set of shots beside its point-spread function."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import (
    BLANK,
    INK,
    KY_LABEL,
    SMALL,
    WIDTH,
    colour_bar,
    empty_figure,
    extent,
    ky_ends,
    plain_text,
    runs,
)
from mri_design.scan.trajectories.point_spread import largest_side_lobe

_FLOOR = -60.0  # decibels
_FROM_POINT = "pixels from the point"


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
    with np.errstate(divide="ignore"):
        decibels = 20 * np.log10(np.abs(spread) / np.abs(spread).max())
    if spread.ndim == 1:
        figure = empty_figure(height=3.0)
        above, below = figure.subplots(2, 1, height_ratios=(1, 4))
        _lines(above, mask)
        _profile(below, decibels, largest_side_lobe(spread).place)
    else:
        tall = min(spread.shape[0] / spread.shape[1], 2.0)
        figure = empty_figure(height=WIDTH / 2 * 0.8 * tall + 1.1)
        left, right = figure.subplots(1, 2)
        if shots is None:
            _samples(left, mask)
        else:
            _shots(left, shots, spread.shape)
        _map(figure, right, decibels, largest_side_lobe(spread).place)
    figure.suptitle("\n".join(plain_text(line, width=78) for line in title.split("\n")), fontsize=SMALL)
    return figure


def _lines(axes: Axes, mask: NDArray[np.bool_]) -> None:
    starts, widths = runs(mask)
    axes.set_facecolor(BLANK)
    axes.bar(starts, 1.0, widths, align="edge", color=INK, linewidth=0)
    axes.set(xlim=ky_ends(len(mask)), ylim=(0, 1), yticks=[])
    axes.set_xlabel(KY_LABEL, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)


def _profile(axes: Axes, decibels: NDArray[np.float64], lobe: tuple[int, ...]) -> None:
    pixels = np.arange(len(decibels)) - len(decibels) // 2
    axes.plot(pixels, np.maximum(decibels, _FLOOR), color=PALETTE[0], linewidth=1)
    if any(lobe):
        axes.plot(lobe, decibels[lobe[0] + len(decibels) // 2], "o", color=PALETTE[1], markersize=5)
    axes.set(xlim=ky_ends(len(decibels)), ylim=(_FLOOR, 2))
    axes.set_xlabel(f"{_FROM_POINT}, along ky", fontsize=SMALL)
    axes.set_ylabel("point spread (dB)", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)


def _samples(axes: Axes, mask: NDArray[np.bool_]) -> None:
    axes.imshow(
        mask, cmap=ListedColormap([BLANK, INK]), extent=extent(mask.shape), vmin=0, vmax=1, interpolation="none"
    )
    axes.set_xlabel("kz (cycles per field of view)", fontsize=SMALL)
    axes.set_ylabel(f"\N{LEFTWARDS ARROW} {KY_LABEL}", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)


def _shots(axes: Axes, shots: NDArray[np.floating], shape: tuple[int, ...]) -> None:
    thin = float(np.clip(3 / np.sqrt(len(shots)), 0.3, 1.0))
    axes.add_collection(LineCollection(list(shots[:, :, ::-1]), colors=INK, linewidths=thin))
    left, right, bottom, top = extent(shape)
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_xlabel("kx (cycles per field of view)", fontsize=SMALL)
    axes.set_ylabel(f"\N{LEFTWARDS ARROW} {KY_LABEL}", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)


def _map(figure: Figure, axes: Axes, decibels: NDArray[np.float64], lobe: tuple[int, ...]) -> None:
    drawn = axes.imshow(
        decibels, cmap="viridis", vmin=_FLOOR, vmax=0, interpolation="none", extent=extent(decibels.shape)
    )
    if any(lobe):
        axes.plot(lobe[1], lobe[0], "o", markersize=9, markerfacecolor="none", markeredgecolor=PALETTE[1])
    axes.set_xlabel(_FROM_POINT, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    place = {"location": "bottom", "shrink": 0.9, "aspect": 30}
    colour_bar(figure, drawn, axes, "point spread (dB)", SMALL, **place)
