"""Pictures before and after they are drawn: image panels and how they lie on a page, colours, PNG and SVG.

The plotting library is not imported here.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.evaluation.metrics import ImageMetrics, bright
from mri_design.evaluation.tables import percent
from mri_design.readouts import Readouts
from mri_design.scan.data import Orientation

Drawing = Any
"""A figure of the plotting library, which is not imported here; every function in `plots` returns one."""


COLOURS = {
    "paper": ("#ffffff", "#17181b"),
    "ink": ("#1c1c1e", "#e8e8ea"),
    "faint": ("#5d6066", "#a4a7ad"),
    "rule": ("#d9dbdf", "#3a3c42"),
    "band": ("#f4f5f7", "#212328"),
    "shade": ("#b4b8bf", "#000000"),
    "alert": ("#a33b00", "#ff9b66"),
    "link": ("#005a8c", "#6cb6ec"),
    # of figures
    "grid": ("#e6e6e6", "#303238"),
    "unmeasured": ("#ececec", "#2b2d33"),
    "start": ("#b0b0b0", "#6d7078"),
    "connector": ("#c8c8c8", "#4a4d55"),
    "dot": ("#8c8c8c", "#8d9097"),
    "right": ("#dcebf5", "#1d3345"),
    "near": ("#fbe6d8", "#45301f"),
}
"""Role to colours on light and dark paper. A report's page names them ``--role``; figures have the light ones."""

# The first four of Okabe and Ito 2008; their light blue and orange are too faint on white. All but ink have a contrast
# of 3 or more with both papers, and no two come closer under protanopia, deuteranopia or tritanopia than theirs do.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8B3FE0", "#945D41", "#000000")
"""Colours of curves, in this order."""

THEMED = {light: f"var(--{role})" for role, (light, _) in COLOURS.items()} | {"#000000": "var(--ink)"}
"""Colour of a figure to the variable that replaces it inside a page; the plotting library writes ink as black."""


_LEFT_OUT = re.compile(r"<\?xml.*?\?>|<!.*?>|<(metadata|style)\b.*?</\1>", re.DOTALL)
_NAMES = re.compile(r'(\bid="|href="#|url\(#)')
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_ROOT = re.compile(r'<svg\b.*?width="([\d.]+)pt".*?(viewBox="[^"]*").*?>', re.DOTALL)
_UNIT_PER_POINT = 96 / 72
"""CSS pixels of a point."""

NARROWEST, WIDEST = 0.72, 1.4
"""Sizes between which a page may scale a picture: below the first, letters of 8 points are too small to read."""


def inline(svg: str, prefix: str, label: str) -> str:
    """A picture as part of a page: scalable, read out as ``label``, in colours that follow light and dark paper.

    Parameters
    ----------
    svg : str
        As `svg_text` writes it.
    prefix : str
        For the names inside it, another one for every picture of a page.
    label : str
        For those who cannot see it.
    """
    # its style sheet would apply to the whole page: the root element has the same styles instead
    drawn = _NAMES.sub(rf"\g<1>{prefix}", _LEFT_OUT.sub("", svg))
    drawn = _COLOUR.sub(lambda match: THEMED.get(match[0].lower(), match[0]), " ".join(drawn.split()))

    def root(match: re.Match[str]) -> str:
        width = float(match[1]) * _UNIT_PER_POINT
        sizes = f"min-width: {NARROWEST * width:.0f}px; max-width: {WIDEST * width:.0f}px"
        looks = f'style="{sizes}" stroke-linejoin="round" stroke-linecap="butt"'
        return f'<svg role="img" aria-label="{html.escape(label)}" {looks} {match[2]}>'

    return _ROOT.sub(root, drawn, count=1)


def png_bytes(figure: Drawing) -> bytes:
    """The figure as PNG on white, at its own resolution; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Drawing
        For example a `matplotlib.figure.Figure`.
    """
    target = io.BytesIO()
    # the library's version would otherwise be written into every file
    figure.savefig(target, format="png", dpi="figure", metadata={"Software": None})
    return target.getvalue()


def svg_text(figure: Drawing) -> str:
    """The figure as SVG without a background; the same figure gives the same text."""
    target = io.StringIO()
    written = {"Date": None, "Creator": None}
    figure.savefig(target, format="svg", dpi="figure", facecolor="none", metadata=written)
    return target.getvalue()


@contextmanager
def placed(figure: Drawing) -> Iterator[None]:
    """Place the axes of a figure now, and leave them there while its files are written.

    Where a figure has something that places its axes, the plotting library otherwise draws it twice for every file. The
    files are the same.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


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
        Size of a pixel along (ky, kx) in millimetres, for a scale bar; None if unknown.
    """

    layout: Layout = "ky-rows"
    pixel: Pixel | None = None

    @property
    def proportion(self) -> float:
        """Height over width of a pixel on the page; 1 if unknown."""
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
    """The error alone, for a map of it: three digits, because images are compared by it."""
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
