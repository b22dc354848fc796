"""Bare pictures of pixels, without axes: for pages that lay them out themselves."""

from __future__ import annotations

import io

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image  # the plotting library's own; what that writes itself has three times the bytes

from mri_design.evaluation.plots.layout import Layout, displayed
from mri_design.evaluation.plots.style import ERROR_COLOURS


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
    picture = Image.fromarray(np.rint(shades).astype(np.uint8))
    if error:
        picture.putpalette(colormaps[ERROR_COLOURS](np.arange(256), bytes=True)[:, :3].tobytes())
    target = io.BytesIO()
    picture.save(target, format="png", optimize=True)
    return target.getvalue()
