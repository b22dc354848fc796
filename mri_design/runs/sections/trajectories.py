"""Pictures of shots: where they run through k-space, and what they make of a point."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation import plots
from mri_design.evaluation.output.page import ReportFigure, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.operators.nonuniform import density_weights, sums_at_pixels


def curves_figure(
    folder: RunFolder,
    name: str,
    sets: Mapping[str, NDArray[np.floating]],
    grid: tuple[int, int],
    unit: str,
    first: str,
    about: str = "",
) -> ReportFigure:
    """Sets of shots as curves in k-space, under a caption that says what the colours mean.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    name : str
        Of the figure's files.
    sets : mapping of str to float array, shape (shot, sample, 2)
        Title to shots, (ky, kx) in cycles per field of view; the first of each is drawn in a colour of its own.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    unit : str
        What a shot is called.
    first : str
        What the first one of a panel is: "the first one of the scan".
    about : str
        What else there is to say.
    """
    caption = (
        f"Where k-space is measured, one curve for each {unit}. The thick orange curve is {first}; the thin "
        "ones, in the colour of the text, are all the others, and do not tell their order. The frame is the image's "
        "grid, and ky runs down."
    )
    return saved_figure(
        folder, name, lambda: plots.trajectory_curves(sets, grid, first=first), f"{caption} {about}".strip()
    )


def point_spread_figure(
    folder: RunFolder,
    title: str,
    trajectory: NDArray[np.floating],
    grid: tuple[int, int],
    units: str,
    density: NDArray[np.float64] | None = None,
) -> ReportFigure:
    """The point-spread function of some shots, compensated for the density of their samples.

    Parameters
    ----------
    folder : RunFolder
        Of the run.
    title : str
        Of the panel.
    trajectory : float array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    units : str
        Which shots these are: "the chosen arms".
    density : float array, shape (sample,), optional
        Density compensation that came with the scan.
    """
    return saved_figure(
        folder,
        "point-spread",
        lambda: plots.point_spread_maps({title: compensated_spread(trajectory, grid, density)}),
        f"Point-spread function: what {units} make of a point in the middle of the image, the density of their samples "
        "compensated for as in the gridded image. Where it is bright, a point leaves an artefact.",
    )


def compensated_spread(
    trajectory: NDArray[np.floating], grid: tuple[int, int], density: NDArray[np.float64] | None = None
) -> NDArray[np.complex128]:
    """`point_spread` (ky, kx) of a trajectory (sample, 2) with `density_weights`, by the fast transform; 1 at its peak.

    Raises
    ------
    InputError
        As `density_weights`.
    """
    weights = density_weights(trajectory, grid, given=density)
    return sums_at_pixels(weights / weights.sum(), 2 * np.pi * trajectory / grid, grid).astype(np.complex128)
