"""Reconstructions side by side, maps of their errors, and bare pictures of pixels."""

from __future__ import annotations

import io
import math
import textwrap
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray
from PIL import Image as Pixels  # of the plotting library; what that writes itself has three times the bytes

from mri_design.evaluation.plots import style
from mri_design.evaluation.plots.pictures import (
    Frame,
    Image,
    ImagePanel,
    Layout,
    across,
    displayed,
    object_top,
    scale_top,
)

_NAME, _TITLE, _LINE, _BAR = 0.3, 0.27, 0.14, 0.55  # inches of a direction's name, title, line of a caption, colour bar
_LETTERS = 13  # of a scale's name in an inch
# not the white and black of paper and ink, which change places on dark paper
_BAR_COLOUR, _UNDER_BAR = "#fefefe", "#010101"
# of outlines on grey pixels: the yellow, sky blue, orange and pink of Okabe and Ito 2008, made brighter, and a green
_BRIGHT = ("#ffe14d", "#5cd0ff", "#ffa31a", "#ff9ed8", "#7dffa8")
_PLAIN = Frame()
_FLAT = 0.6  # height over width of maps that stand one below the other
_SCALE: dict[str, Any] = {"extend": "max", "format": "{x:g}"}
"""Of colour bars: numbers as they are, since a power of ten taken out of them would stand in the bar's name."""


def image_grid(panels: Sequence[ImagePanel], frame: Frame = _PLAIN, columns: int = 3, errors: str = "") -> Figure:
    """Magnitudes from 0 up, under the titles and over the captions of panels: images on one scale, errors on another.

    Parameters
    ----------
    panels : sequence of ImagePanel
        All of one shape (ky, kx), in the same units; `object_top` ends the grey scale of images.
    frame : Frame
        How the image lies on the page, and how large its pixels are.
    columns : int
        At most this many images in a row.
    errors : str
        Name of the errors' scale, below it.
    """
    shown = [np.abs(panel.image) for panel in panels]
    captions = [panel.caption for panel in panels]
    down_name, across_name = style.directions(frame.layout)
    captions[0] = "\n".join(filter(None, (across_name, captions[0])))
    down = -(-len(shown) // max(columns, 1))
    across = -(-len(shown) // down)
    rows, row_length = displayed(shown[0], frame.layout).shape
    name = _NAME * bool(down_name)
    each = min((style.WIDTH - name) / across, 2.6)
    starts = range(0, len(captions), across)
    below = _LINE * sum(max(len(text.splitlines()) for text in captions[at : at + across]) for at in starts)
    bar = textwrap.fill(errors, int(_LETTERS * (across * each + name)))
    height = down * (min(each * rows * frame.proportion / row_length, 5.0) + _TITLE) + below
    height += (_BAR + _LINE * bar.count("\n")) * bool(bar)
    figure, cells = style.panels(height, len(shown), across, across * each + name)
    wrong = [panel.error for panel in panels]
    looks: dict[bool, dict[str, Any]] = {
        error: {"cmap": colours, "vmin": 0.0, "vmax": top([s for s, w in zip(shown, wrong, strict=True) if w == error])}
        for error, colours, top in ((False, "gray", object_top), (True, style.ERROR_COLOURS, scale_top))
        if error in wrong
    }
    for axes, pixels, panel, caption in zip(cells, shown, panels, captions, strict=True):
        axes.set_title(style.plain_text(panel.title, width=22), fontsize=style.LABEL)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.imshow(displayed(pixels, frame.layout), interpolation="none", **looks[panel.error])
        axes.set_aspect(frame.proportion)
        axes.set_xlabel(style.plain_text(caption), color=style.GREY, fontsize=style.SMALL)
    cells[0].set_ylabel(down_name, color=style.GREY, fontsize=style.SMALL)
    _draw_bar(cells[0], frame, (rows, row_length))
    if bar:
        place = _SCALE | {"location": "bottom", "shrink": 0.7, "aspect": 40, "pad": 0.02}
        coloured = [axes for axes, error in zip(cells, wrong, strict=True) if error]
        style.colour_bar(figure, coloured[-1].images[0], coloured, bar, **place)
    return figure


def error_maps(
    panels: Sequence[ImagePanel], reference: Image, frame: Frame = _PLAIN, *, modulus: bool = True
) -> Figure:
    """Modulus of the difference to the reference, every map on the same scale.

    Parameters
    ----------
    panels : sequence of ImagePanel
        Images of the reference's shape (ky, kx), in its units.
    reference : complex or real array, shape (ky, kx)
    frame : Frame
        How the image lies on the page, and how large its pixels are.
    modulus : bool
        Whether the difference is that of moduli, or of complex images.
    """
    errors = [np.abs(p.image) - np.abs(reference) if modulus else p.image - reference for p in panels]
    shown = [replace(panel, image=error, error=True) for panel, error in zip(panels, errors, strict=True)]
    return image_grid(shown, frame, 3, f"|{'magnitude ' * modulus}error| ({unit(reference)})")


def doubt_panels(
    std: NDArray[np.floating], image: Image, reference: Image | None, captions: Sequence[str] = ("", "")
) -> list[ImagePanel]:
    """Predicted error and, where the truth is known, the error that was made, with captions.

    Parameters
    ----------
    std : float array, shape (ky, kx)
        Square root of the pixel's total variance (real and imaginary part together), in the image's units.
    image, reference : complex or real array, shape (ky, kx)
        The error is that of the complex pixel, ``|image - reference|``, which is what ``std`` predicts.
    captions : sequence of str
        Below the two.
    """
    pair = {"posterior std": std} | ({} if reference is None else {"actual error": np.abs(image - reference)})
    return [ImagePanel(shown, name, text, True) for (name, shown), text in zip(pair.items(), captions, strict=False)]


def unit(image: Image) -> str:
    """Unit of the numbers of an image's scale, and the value that is shown white."""
    return f"image units; white in the image is {object_top([np.abs(image)]):.3g}"


def image_with_regions(image: Image, regions: Mapping[str, NDArray[np.bool_]], frame: Frame = _PLAIN) -> Figure:
    """An image with the outlines of regions on it, each in a colour of its own, and their names.

    Parameters
    ----------
    image : complex or real array, shape (ky, kx)
        Its magnitude is shown.
    regions : mapping of str to bool array, shape (ky, kx)
        By name.
    frame : Frame
        How the image lies on the page, and how large its pixels are.
    """
    figure = image_grid([ImagePanel(image, "regions")], frame)
    around = [withStroke(linewidth=3.0, foreground=_UNDER_BAR)]
    axes = figure.axes[0]
    for place, (name, inside) in enumerate(regions.items()):
        if not inside.any():
            continue
        colour = _BRIGHT[place % len(_BRIGHT)]
        shown = np.pad(displayed(inside, frame.layout).astype(float), 1)
        rows, columns = (np.arange(-1, side - 1) for side in shown.shape)
        axes.contour(columns, rows, shown, [0.5], colors=[colour], linewidths=1.4).set(path_effects=around)
        row, column = np.argwhere(shown > 0)[0] - 1
        _outlined(axes, (column, row - 1), style.plain_text(name), colour)
    return figure


def quantity_maps(maps: Mapping[str, NDArray[np.floating]], frame: Frame = _PLAIN) -> Figure:
    """Maps side by side, each with a scale of its own below it; what is NaN has none of its colours.

    Parameters
    ----------
    maps : mapping of str to float array, shape (ky, kx)
        By the name of their scale.
    frame : Frame
        How they lie on the page, and how large their pixels are.
    """
    laid = {name: displayed(values, frame.layout) for name, values in maps.items()}
    rows, columns = next(iter(laid.values())).shape
    ratio = rows * frame.proportion / columns
    across = len(laid) if ratio > _FLAT else 1
    each = style.WIDTH / across
    down = -(-len(laid) // across)
    figure, cells = style.panels(down * (min(each * ratio, 5.0) + _BAR + _LINE), len(laid), across)
    for axes, (name, values) in zip(cells, laid.items(), strict=True):
        found = values[np.isfinite(values)]
        low, high = np.percentile(found, (2, 98)).tolist() if found.size else (0.0, 1.0)
        axes.imshow(values, interpolation="none", cmap="viridis", vmin=low, vmax=high)
        axes.set(xticks=[], yticks=[], facecolor=style.BLANK)
        axes.spines[:].set_visible(False)
        axes.set_aspect(frame.proportion)
        place = _SCALE | {"extend": "both", "location": "bottom", "shrink": 0.9, "aspect": 20, "pad": 0.03}
        style.colour_bar(figure, axes.images[0], axes, textwrap.fill(name, int(_LETTERS * each)), **place)
    return figure


def _draw_bar(axes: Axes, frame: Frame, shape: tuple[int, int]) -> None:
    """A length in millimetres at the lower left of an image of ``shape``, white on black, as far as it is known."""
    rows, columns = shape
    bar = frame.scale_bar(columns)
    if bar is None:
        return
    (millimetres, share), left, low = bar, 0.04 * columns, 0.96 * rows
    line = withStroke(linewidth=3.5, foreground=_UNDER_BAR)
    axes.plot([left, left + share * columns], [low, low], color=_BAR_COLOUR, linewidth=2, path_effects=[line])
    _outlined(axes, (left, low - 0.02 * rows), f"{millimetres} mm", _BAR_COLOUR)


def _outlined(axes: Axes, place: tuple[float, float], text: str, colour: str) -> None:
    """Text above a place, in a colour with a dark outline."""
    under = withStroke(linewidth=2, foreground=_UNDER_BAR)
    axes.text(*place, text, color=colour, fontsize=style.SMALL, va="bottom", path_effects=[under])


_TALLEST = 20.0  # rem: the highest picture of the first row of a page
_CRISP = 150  # pixels of a side up to which pixels are shown as squares


def pixels(
    frame: Frame, shown: NDArray[np.generic], top: float, scale: str = "", *, error: bool = False, quick: bool = False
) -> dict[str, Any]:
    """A picture of a page's first row: PNG and style, a bar of millimetres, and the colours' scale if it has a name.

    Parameters
    ----------
    frame : Frame
        How it lies on the page.
    shown : array, shape (ky, kx)
        Not negative.
    top : float
        What is shown brightest.
    scale : str
        What that is, with its unit; empty where colours mean no number.
    error : bool
        In the colours of error maps, not in grey.
    quick : bool
        Whether the PNG may be larger, to be made sooner.
    """
    rows, columns = displayed(shown, frame.layout).shape
    ratio = columns / (rows * frame.proportion)  # as wide as its place, but no higher than a screen has room for
    crisp = "; image-rendering: pixelated" if max(rows, columns) <= _CRISP else ""
    return {
        "png": pixels_png(np.asarray(shown, dtype=float), top, frame.layout, error=error, quick=quick),
        "style": f"width: min(100%, {_TALLEST * ratio:.2f}rem); aspect-ratio: {ratio:.4f}{crisp}",
        "bar": frame.scale_bar(columns),
        "ramp": pixels_png(np.linspace(0, 1, 64)[np.newaxis], 1.0, "ky-rows", error=error),
        "top": scale,
    }


_MOST_PIXELS = 110_000
"""Pixels whose values a page holds, of each image: of larger ones every second along both sides, or fewer."""


def pixel_values(
    frame: Frame, image: Image, std: NDArray[np.floating] | None, others: Mapping[str, Image]
) -> dict[str, Any]:
    """Values of an image for those who point at its pixels: what page.js reads, and draws in the colours of figures.

    Parameters
    ----------
    frame : Frame
        How it lies on the page.
    image : complex or real array, shape (ky, kx)
        Its magnitude is shown.
    std : float array, shape (ky, kx), optional
        Its error bars.
    others : mapping of str to array, shape (ky, kx)
        Images to look at in turn with it, on its grey scale.
    """
    step = max(1, math.ceil(math.sqrt(image.size / _MOST_PIXELS)))
    white = object_top([np.abs(image)])
    shown = {"image": image} | ({} if std is None else {"standard deviation": std}) | dict(others)
    views = []
    for name, values in shown.items():
        lying = np.abs(displayed(values, frame.layout)[::step, ::step])
        largest, error = float(lying.max()) or 1.0, name == "standard deviation"
        words = np.rint(lying * (65535 / largest)).astype("<u2").tobytes()
        top = scale_top([lying]) if error else white
        packed = {"largest": f"{largest:.6g}", "top": f"{top:.6g}", "values": b64encode(words).decode()}
        views.append({"name": name, "error": error, **packed})
    palette = colormaps[style.ERROR_COLOURS](np.arange(256), bytes=True)[:, :3].tobytes()
    rows, columns = lying.shape
    sides = {"rows": rows, "columns": columns, "step": step, "across": across(frame.layout)}
    return {
        **sides,
        "ratio": columns / (rows * frame.proportion),
        "colours": b64encode(palette).decode(),
        "views": views,
    }


def pixels_png(
    pixels: NDArray[np.floating], top: float, orientation: Layout, *, error: bool = False, quick: bool = False
) -> bytes:
    """An image as PNG, one pixel each, from 0 to ``top``; the same image gives the same bytes.

    Parameters
    ----------
    pixels : float array, shape (ky, kx)
        Magnitudes, errors or standard deviations.
    top : float
        What is shown brightest, and all above it.
    orientation : Layout
        How the source file lays the image.
    error : bool
        In the colours of error maps, not in grey.
    quick : bool
        Whether the PNG may be larger, to be made sooner.
    """
    shades = np.clip(np.asarray(displayed(np.asarray(pixels), orientation)) * (255 / (top or 1.0)), 0, 255)
    picture = Pixels.fromarray(np.rint(shades).astype(np.uint8))
    if error:
        picture.putpalette(colormaps[style.ERROR_COLOURS](np.arange(256), bytes=True)[:, :3].tobytes())
    target = io.BytesIO()
    picture.save(target, format="png", **({"compress_level": 1} if quick else {"optimize": True}))
    return target.getvalue()
