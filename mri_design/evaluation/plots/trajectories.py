"""Trajectories as curves in k-space."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.evaluation.plots.style import GREY, INK, KY_LABEL, LABEL, SMALL, empty_figure

__all__ = ["trajectory_curves"]

MOST_POINTS = 12000
"""Points drawn of all curves together: enough for the eye, and small enough for a page."""


def trajectory_curves(trajectory: NDArray[np.floating], readouts: int, grid: tuple[int, int]) -> Figure:
    """Every readout as a curve, kx to the right and ky upwards; the first is dark.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Columns ky and kx in cycles per field of view, one readout after the other.
    readouts : int
        How many there are, of equal length. Readouts of one sample are drawn as dots.
    grid : tuple of int
        Pixels (ky, kx) of the image, whose frequencies the axes span.

    Raises
    ------
    InputError
        For another shape, or readouts that do not divide the samples.
    """
    if trajectory.ndim != 2 or trajectory.shape[1] != 2 or readouts < 1 or len(trajectory) % readouts:
        got = f"shape {trajectory.shape} and {readouts} readouts"
        raise InputError(field="trajectory", got=got, wanted="(sample, 2), and readouts that divide the samples")
    curves = trajectory.reshape(readouts, -1, 2)
    step = max(1, -(-curves.shape[0] * curves.shape[1] // MOST_POINTS))
    figure = empty_figure(height=4.6, width=4.8)
    axes = figure.subplots()
    if curves.shape[1] == 1:
        axes.plot(curves[::step, 0, 1], curves[::step, 0, 0], linestyle="none", marker=".", markersize=2, color=INK)
    else:
        for curve in curves[:0:-1]:
            axes.plot(curve[::step, 1], curve[::step, 0], color=GREY, linewidth=0.6)
        axes.plot(curves[0, ::step, 1], curves[0, ::step, 0], color=INK, linewidth=1.4)
    axes.set_xlim(-grid[1] / 2, grid[1] / 2)
    axes.set_ylim(-grid[0] / 2, grid[0] / 2)
    axes.set_aspect("equal")
    axes.set_xlabel(KY_LABEL.replace("ky", "kx"), fontsize=LABEL)
    axes.set_ylabel(KY_LABEL, fontsize=LABEL)
    axes.tick_params(labelsize=SMALL)
    return figure
