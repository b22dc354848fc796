"""Input of figures: images, energies and errors with the words beside them, and the layout of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.metrics import ImageMetrics, bright
from mri_design.evaluation.tables import percent
from mri_design.readouts import Readouts
from mri_design.scan.data import Orientation

Layout = Orientation | Literal["plane-rows", "plane-columns", "no-lines"]
"""Orientation of an image on the page: as its source file has it, or, where no lines were encoded, as its array.

In "plane-rows" and "plane-columns" both directions are phase encodes (ky, kz), and it lies as in those of lines.
"""


def layout_of(candidates: Readouts, orientation: Orientation) -> Layout:
    """Layout of images of these candidates, from which their directions are named.

    Parameters
    ----------
    candidates : Readouts
        Candidates: a plane has two phase encodes, shots have none.
    orientation : {"ky-rows", "ky-columns"}
        Layout of the source image.
    """
    of_plane: Layout = "plane-columns" if orientation == "ky-columns" else "plane-rows"
    layouts: tuple[Layout, ...] = ("no-lines", orientation, of_plane)
    return layouts[candidates.kind.axes]


def displayed(image: NDArray[np.generic], orientation: Layout) -> NDArray[np.generic]:
    """The array as rows and columns of the source file.

    Parameters
    ----------
    image : array, shape (ky, kx)
    orientation : Layout
        In "ky-columns" and "plane-columns" ky runs across the page.
    """
    return image.T if across(orientation) else image


def across(orientation: Layout) -> bool:
    """True where the phase-encode direction, or ky of a plane, runs across the page."""
    return orientation in ("ky-columns", "plane-columns")


_BAR_LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # millimetres
_LONGEST_BAR = 0.4  # of the picture's width


Pixel = tuple[float, float]
"""Size of a pixel along (ky, kx) in millimetres."""


@dataclass(frozen=True)
class Frame:
    """How an image lies on the page, and how large its pixels are.

    Parameters
    ----------
    layout : Layout
        As its source file has it.
    pixel : tuple of float, optional
        Size of a pixel along (ky, kx) in millimetres, for a scale bar; None where nobody says.
    """

    layout: Layout = "ky-rows"
    pixel: Pixel | None = None

    @property
    def proportion(self) -> float:
        """Height over width of a pixel on the page; 1 where nobody says."""
        down, along = self._sides or (1.0, 1.0)
        return down / along

    def scale_bar(self, columns: int) -> tuple[int, float] | None:
        """The longest round length up to two fifths of a picture of so many columns.

        Millimetres, and their share of the width; None where all are longer, or the size of pixels is not known.
        """
        width = 0.0 if self._sides is None else columns * self._sides[1]
        length = max((length for length in _BAR_LENGTHS if length <= _LONGEST_BAR * width), default=None)
        return None if length is None else (length, length / width)

    @property
    def _sides(self) -> Pixel | None:
        """Height and width of a pixel on the page."""
        if self.pixel is None or not across(self.layout):
            return self.pixel
        return self.pixel[1], self.pixel[0]


Image = NDArray[np.complexfloating] | NDArray[np.floating]

_BRIGHT = 99.0
_SHOWN_FRACTION = 99.8  # percent of the pixels inside the scale: one bright vessel must not darken the rest


@dataclass(frozen=True)
class ImagePanel:
    """One image of a grid.

    Parameters
    ----------
    image : complex or real array, shape (ky, kx)
        Its magnitude is shown.
    title : str
        Short; above the image.
    caption : str
        Below the image, for example `metric_caption`.
    error : bool
        Whether it shows errors or error bars, which have colours and a scale of their own.
    """

    image: Image
    title: str
    caption: str = ""
    error: bool = False


def metric_caption(error: float | None, metrics: ImageMetrics | None) -> str:
    """The error and other metrics, as far as they are known, in short lines for an image's caption."""
    others = "" if metrics is None else f"PSNR {metrics.psnr:.1f} dB\nSSIM {metrics.ssim:.3f}"
    return "\n".join(filter(None, (error_caption(error), others)))


def error_caption(error: float | None) -> str:
    """The error alone, for a map of it: three digits, as images beside each other are compared by it."""
    return "" if error is None else f"error {percent(error, 3)}"


def object_top(images: Sequence[NDArray[np.floating]]) -> float:
    """White of magnitude images: all but the brightest hundredth of the object's pixels lie below it.

    These are `metrics.bright`, so that neither air nor a few bright pixels, a vessel or an artefact, set the scale.

    Parameters
    ----------
    images : sequence of float array
        Magnitudes on one scale.
    """
    tops = []
    for pixels in images:
        inside = pixels[bright(pixels)]
        tops.append(float(np.percentile(inside, _BRIGHT)) if inside.size else 0.0)
    return max(tops) or 1.0


def scale_top(images: Sequence[NDArray[np.floating]]) -> float:
    """Upper end of the scale of these images: all but their brightest pixels lie below it."""
    top = max(float(np.percentile(pixels, _SHOWN_FRACTION)) for pixels in images)
    return top or max(float(pixels.max()) for pixels in images) or 1.0


def numbered(name: str, images: Sequence[Image]) -> list[ImagePanel]:
    """Panels of images that are numbered from 1."""
    return [ImagePanel(image, f"{name} {number}") for number, image in enumerate(images, 1)]
