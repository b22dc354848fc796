"""The pictures and facts that a report begins with: what was measured, the image, its error bars, and their sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation import plots
from mri_design.evaluation.page import FirstPicture
from mri_design.evaluation.plots.panels import (
    Frame,
    Layout,
    Pixel,
    across,
    displayed,
    object_top,
    scale_top,
)
from mri_design.evaluation.tables import percent
from mri_design.experiment.reconstruction import Reconstruction
from mri_design.kinds import KINDS, count_text
from mri_design.operators.base import Array
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts

ERROR = (
    "Error: norm of the difference of magnitudes to the reference, divided by the norm of the reference. 5 % is hard "
    "to see, 20 % is plain."
)
ACCELERATION = (
    "Acceleration: lines (or samples) of the full grid over those measured, those at the centre included; of spokes "
    "and spirals, pixels over samples."
)
ERROR_BARS = (
    "Error bars: the standard deviation of each pixel under the posterior. They say where the image is uncertain, and "
    "are bright where lines are missing that the image needs."
)
READING = (
    "Error found: norm of the difference of the complex image to the reference, divided by the norm of the reference; "
    "where that is the scan's own image, its noise is taken off. Beside the image of a file, whose phase is not "
    "compared, it is the error of the modulus. 5 % is hard to see, 20 % is plain.",
    "Error predicted: the same as the error bars have it, without a look at the reference: the root of the sum of "
    "their squares, divided by the norm that the true image is expected to have, from image and error together. It "
    "holds where model and noise are right.",
    ERROR_BARS,
    ACCELERATION,
)
"""How to read what stands above it, in paragraphs."""


def reading_of(layout: Layout) -> tuple[str, ...]:
    """`READING`, and how the image's array in the folder lies against the picture of it."""
    second = {"plane-rows": "kz", "plane-columns": "kz", "no-lines": "columns"}.get(layout, "kx")
    first = "rows" if layout == "no-lines" else "ky"
    axes = f"Arrays: recon.npy has the axes {first} and {second}, behind that of slices where there are several"
    if not across(layout):
        return *READING, f"{axes}, and lies as the picture does."
    return (
        *READING,
        f"{axes}. The picture has {first} across, as the scan's file has it: numpy.transpose of an image, or "
        "numpy.swapaxes(array, -2, -1) of several, lies as the picture does.",
    )


def first_row(readouts: Readouts, mask: NDArray[np.bool_], result: Reconstruction, frame: Frame) -> list[FirstPicture]:
    """Mask, image, and error bars where there are some, in one row.

    Parameters
    ----------
    readouts : Readouts
        Candidates.
    mask : bool array of their shape
        Those behind the image.
    result : Reconstruction
        Image and error bars in the units of the scan.
    frame : Frame
        Of the image.
    """
    row = [mask_picture(frame, readouts, mask), image_picture(frame, result.image)]
    if result.std is not None:
        white = object_top([np.abs(result.image)])
        caption = (
            "Standard deviation of each pixel, in per cent of what is white in the image; where it is bright, the "
            "image is uncertain."
        )
        row.append(doubt_picture(frame, result.std, scale_top([result.std]), white, "Error bars", caption))
    return row


def mask_picture(frame: Frame, readouts: Readouts, mask: NDArray[np.bool_], strategy: str = "") -> FirstPicture:
    """K-space with what is measured of it in white, by a strategy that is named where there are several."""
    count, size = int(mask.sum()), mask.size
    if isinstance(readouts, LineReadouts):
        cells = np.broadcast_to(mask[:, np.newaxis], readouts.grid)
        caption = f"{count} of {size} lines of k-space are measured (white)"
        centre = _centre(mask)
        caption += f", {centre} of them at the centre without a gap." if centre > 1 else "."
    elif isinstance(readouts, PlaneReadouts):
        cells, caption = mask, f"{count} of {size} samples (ky, kz) are measured (white)."
    else:
        assert isinstance(readouts, ShotReadouts)
        cells = _cells(readouts, mask)
        caption = f"{count_text(count, readouts.unit)}: white cells of k-space hold samples."
    named = f"{strategy}: " if strategy else ""
    return _picture(Frame(frame.layout), cells.astype(float), 1.0, "Measured", named + caption)


def image_picture(frame: Frame, image: Array) -> FirstPicture:
    """The magnitude in grey."""
    magnitude = np.abs(image)
    white = object_top([magnitude])
    caption = "Magnitude. White is the 99th percentile of the object, so that no bright spot darkens the rest."
    return _picture(frame, magnitude, white, "Image", caption, f"{white:.3g}")


def doubt_picture(
    frame: Frame, pixels: NDArray[np.floating], top: float, white: float, title: str, caption: str
) -> FirstPicture:
    """Error bars or actual errors in the colours of both.

    Parameters
    ----------
    frame : Frame
        Of the image.
    pixels : float array, shape (ky, kx)
        Not negative.
    top : float
        What is shown brightest.
    white : float
        What is white in the image, the unit of the scale.
    title, caption : str
        Above and below it.
    """
    return _picture(frame, pixels, top, title, caption, percent(top / white), error=True)


def facts_of(
    readouts: Readouts, pixel: Pixel | None, coils: int, acceleration: float | None, part: str = ""
) -> list[str]:
    """Slice, matrix, field of view, coils and acceleration, each in a few words.

    Parameters
    ----------
    readouts : Readouts
        Candidates.
    pixel : tuple of float, optional
        Size of a pixel.
    coils : int
        Coils of the scan.
    acceleration : float, optional
        Of what is shown.
    part : str
        `part_of_scan`; empty of a scan that is all that its file holds.
    """
    rows, columns = readouts.grid
    axes = {"lines": "phase encode x readout", "plane": "ky x kz"}.get(readouts.name, "pixels")
    facts = [part or "the only slice", f"matrix {rows} x {columns} ({axes})"]
    if pixel is None:
        facts.append("field of view: not in the file")
    else:
        sides = f"{rows * pixel[0]:.4g} x {columns * pixel[1]:.4g} mm"
        facts.append(f"field of view {sides}, pixel {pixel[0]:.3g} x {pixel[1]:.3g} mm")
    facts.append(count_text(coils, "coil"))
    if acceleration is not None:
        facts.append(f"acceleration {acceleration:.3g}")
    return [fact.replace(" x ", " \N{MULTIPLICATION SIGN} ") for fact in facts]


def measured_text(readouts: Readouts, count: int) -> str:
    """So many of so many: "64 of 256 lines"; of shots, which are as many as asked for, the number alone."""
    if KINDS[readouts.name].shots or readouts.name == "readouts":
        return count_text(count, readouts.unit)
    return f"{count} of {count_text(readouts.size, readouts.unit)}"


def _picture(
    frame: Frame,
    pixels: NDArray[np.floating],
    top: float,
    title: str,
    caption: str,
    told: str = "",
    *,
    error: bool = False,
) -> FirstPicture:
    """Pixels from 0 to ``top``, which is ``told`` beside the colours; without it colours mean no number."""
    layout, shape = frame.layout, displayed(pixels, frame.layout).shape
    ramp = plots.pixels_png(np.linspace(0, 1, 64)[np.newaxis], 1.0, "ky-rows", error=error) if told else b""
    return FirstPicture(
        title,
        plots.pixels_png(pixels, top, layout, error=error),
        (shape[0], shape[1]),
        caption,
        proportion=frame.proportion,
        bar=frame.scale_bar(shape[1]),
        ramp=ramp,
        top=told,
    )


def _centre(mask: NDArray[np.bool_]) -> int:
    """Lines without a gap around the one through the centre of k-space; 0 where that is not measured."""
    missing = np.flatnonzero(~mask)
    dc = len(mask) // 2
    if not mask[dc]:
        return 0
    below, above = missing[missing < dc], missing[missing > dc]
    return int((above[0] if len(above) else len(mask)) - (below[-1] if len(below) else -1) - 1)


def _cells(readouts: ShotReadouts, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells of the grid (ky, kx) in which some sample of the chosen shots lies."""
    cells = np.zeros(readouts.grid, dtype=bool)
    places = np.rint(readouts.shots[mask].reshape(-1, 2)).astype(int) + np.array(readouts.grid) // 2
    inside = ((places >= 0) & (places < readouts.grid)).all(axis=1)
    cells[tuple(places[inside].T)] = True
    return cells
