"""Reconstructions side by side, maps of their errors, and bare pictures of pixels."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image as Pixels  # of the plotting library; what that writes itself has three times the bytes

from mri_design.errors import InputError
from mri_design.evaluation.plots.panels import Image, ImagePanel, Layout, displayed, scale_top
from mri_design.evaluation.plots.style import (
    ERROR_COLOURS,
    GREY,
    LABEL,
    SMALL,
    WIDTH,
    empty_figure,
    label_image_axes,
    named_across,
    plain_text,
)

_NAME, _TITLE, _LINE, _BAR = 0.3, 0.27, 0.14, 0.55  # inches of a direction's name, title, line of a caption, colour bar


def image_grid(panels: Sequence[ImagePanel], orientation: Layout = "ky-rows", columns: int = 3) -> Figure:
    """Magnitude images on one grey scale.

    Parameters
    ----------
    panels : sequence of ImagePanel
        All of one shape (ky, kx), in the same units.
    orientation : Layout
        How the source file lays the image.
    columns : int
        At most this many images in a row.

    Raises
    ------
    InputError
        Where there is no panel or the shapes disagree.
    """
    magnitudes = [np.abs(panel.image) for panel in panels]
    captions = _captions([panel.caption for panel in panels], orientation)
    figure, cells = _grid(magnitudes, orientation, columns, with_bar=False, captions=captions)
    top = scale_top(magnitudes)
    for index, (axes, magnitude, panel) in enumerate(zip(cells, magnitudes, panels, strict=True)):
        _show(axes, magnitude, orientation, top, "gray", panel.title, labelled=index == 0)
        _caption(axes, captions[index])
    return figure


def error_maps(
    panels: Sequence[ImagePanel],
    reference: Image,
    orientation: Layout = "ky-rows",
    columns: int = 3,
    unit: str = "image units",
) -> Figure:
    """Absolute difference of magnitudes to the reference, every map on the same scale.

    Parameters
    ----------
    panels : sequence of ImagePanel
        Images of the reference's shape (ky, kx), in its units.
    reference : complex or real array, shape (ky, kx)
    orientation : Layout
        How the source file lays the image.
    columns : int
        At most this many maps in a row.
    unit : str
        Unit of the pixels, for the colour bar.

    Raises
    ------
    InputError
        Where there is no panel or the shapes disagree.
    """
    _refuse_other_shapes([reference, *(panel.image for panel in panels)])
    errors = [np.abs(np.abs(panel.image) - np.abs(reference)) for panel in panels]
    captions = _captions([panel.caption for panel in panels], orientation)
    figure, cells = _grid(errors, orientation, columns, with_bar=True, captions=captions)
    top = scale_top(errors)
    for index, (axes, error, panel) in enumerate(zip(cells, errors, panels, strict=True)):
        drawn = _show(axes, error, orientation, top, ERROR_COLOURS, panel.title, labelled=index == 0)
        _caption(axes, captions[index])
    _colour_bar(figure, drawn, cells, f"|magnitude error| ({unit})")
    return figure


def std_map(std: NDArray[np.floating], orientation: Layout = "ky-rows", unit: str = "image units") -> Figure:
    """Posterior standard deviation of every pixel.

    Parameters
    ----------
    std : float array, shape (ky, kx)
        Square root of the pixel's total variance (real and imaginary part together), in the image's units.
    orientation : Layout
        How the source file lays the image.
    unit : str
        Unit of the pixels, for the colour bar.

    Raises
    ------
    InputError
        Where ``std`` has not two axes.
    """
    captions = _captions([""], orientation)
    figure, cells = _grid([std], orientation, columns=1, with_bar=True, captions=captions)
    drawn = _show(cells[0], std, orientation, scale_top([std]), ERROR_COLOURS, "posterior std", labelled=True)
    _caption(cells[0], captions[0])
    _colour_bar(figure, drawn, cells, f"std per pixel ({unit})")
    return figure


def std_against_error(
    std: NDArray[np.floating],
    image: Image,
    reference: Image,
    orientation: Layout = "ky-rows",
    unit: str = "image units",
) -> Figure:
    """Predicted error beside the error that was made, on one scale.

    Parameters
    ----------
    std : float array, shape (ky, kx)
        Square root of the pixel's total variance (real and imaginary part together), in the image's units.
    image, reference : complex or real array, shape (ky, kx)
        The error shown is that of the complex pixel, ``|image - reference|``, which is what ``std`` predicts.
    orientation : Layout
        How the source file lays the image.
    unit : str
        Unit of the pixels, for the colour bar.

    Raises
    ------
    InputError
        Where the shapes disagree.
    """
    _refuse_other_shapes([reference, image, std])
    error = np.abs(np.asarray(image) - np.asarray(reference))
    said = [f"root mean square {np.sqrt(np.mean(np.square(pixels))):.3g}" for pixels in (std, error)]
    captions = _captions(said, orientation)
    figure, cells = _grid([std, error], orientation, columns=2, with_bar=True, captions=captions)
    top = scale_top([std, error])
    for index, (axes, pixels, title) in enumerate(
        zip(
            cells,
            (std, error),
            ("posterior std", "actual error"),
            strict=True,
        )
    ):
        drawn = _show(axes, pixels, orientation, top, ERROR_COLOURS, title, labelled=index == 0)
        _caption(axes, captions[index])
    _colour_bar(figure, drawn, cells, f"per pixel ({unit})")
    return figure


def _grid(
    images: Sequence[NDArray[np.floating]],
    orientation: Layout,
    columns: int,
    with_bar: bool,
    captions: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:
    """One axes per image in rows of equal length, the figure as high as the images' shape and captions ask for."""
    _refuse_other_shapes(images)
    down = -(-len(images) // max(columns, 1))
    across = -(-len(images) // down)
    caption_lines = max((len(text.splitlines()) for text in captions), default=0)
    rows, row_length = displayed(images[0], orientation).shape
    each = min((WIDTH - _NAME) / across, 2.6)
    tall = min(each * rows / row_length, 5.0)
    height = down * (tall + _TITLE + _LINE * caption_lines) + _BAR * with_bar
    figure = empty_figure(height=height, width=across * each + _NAME)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for unused in axes[len(images) :]:
        unused.set_axis_off()
    return figure, list(axes[: len(images)])


def _show(
    axes: Axes,
    pixels: NDArray[np.floating],
    orientation: Layout,
    top: float,
    colours: str,
    title: str,
    labelled: bool,
) -> AxesImage:
    axes.set_title(plain_text(title, width=22), fontsize=LABEL)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if labelled:
        label_image_axes(axes, orientation)
    return axes.imshow(displayed(pixels, orientation), cmap=colours, vmin=0.0, vmax=top, interpolation="none")


def _captions(captions: Sequence[str], orientation: Layout) -> list[str]:
    """Captions, above the first one the name of the direction across where it needs one."""
    first, *others = captions or [""]
    return ["\n".join(filter(None, (named_across(orientation), first))), *others]


def _caption(axes: Axes, text: str) -> None:
    axes.set_xlabel(plain_text(text), color=GREY, fontsize=SMALL)


def _colour_bar(figure: Figure, drawn: AxesImage, cells: Sequence[Axes], label: str) -> None:
    bar = figure.colorbar(drawn, ax=list(cells), extend="max", location="bottom", shrink=0.7, aspect=40, pad=0.02)
    bar.set_label(plain_text(label), fontsize=LABEL)
    bar.ax.tick_params(labelsize=SMALL)


def _refuse_other_shapes(images: Sequence[NDArray[np.generic]]) -> None:
    if not images:
        raise InputError(field="panels", got="no image", wanted="at least one")
    shapes = sorted({np.shape(pixels) for pixels in images})
    if len(shapes) > 1:
        raise InputError(field="panels", got=f"shapes {shapes}", wanted="one shape")


def pixels_png(pixels: NDArray[np.floating], top: float, orientation: Layout, *, error: bool = False) -> bytes:
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

    Raises
    ------
    InputError
        Where there are not two axes or the orientation is unknown.
    """
    shades = np.clip(np.asarray(displayed(np.asarray(pixels), orientation)) * (255 / (top or 1.0)), 0, 255)
    picture = Pixels.fromarray(np.rint(shades).astype(np.uint8))
    if error:
        picture.putpalette(colormaps[ERROR_COLOURS](np.arange(256), bytes=True)[:, :3].tobytes())
    target = io.BytesIO()
    picture.save(target, format="png", optimize=True)
    return target.getvalue()
