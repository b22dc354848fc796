"""How an image lies on the page."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import Orientation

Layout = Orientation | Literal["plane-rows", "plane-columns", "no-lines"]
"""How an image lies on the page: as its source file has it, or, where no lines were encoded, as its array.

In "plane-rows" and "plane-columns" both directions are phase encodes (ky, kz), and it lies as in those of lines.
"""
LAYOUTS: tuple[str, ...] = (*get_args(Orientation), "plane-rows", "plane-columns", "no-lines")


def displayed(image: NDArray[np.generic], orientation: Layout) -> NDArray[np.generic]:
    """The array as rows and columns of the source file.

    Parameters
    ----------
    image : array, shape (ky, kx)
    orientation : Layout
        In "ky-columns" and "plane-columns" ky runs across the page.

    Raises
    ------
    InputError
        Where there are not two axes or the orientation is unknown.
    """
    if image.ndim != 2:
        raise InputError(field="image", got=f"shape {image.shape}", wanted="one image (ky, kx)")
    return image.T if across(orientation) else image


def across(orientation: Layout) -> bool:
    """True where the phase-encode direction, or ky of a plane, runs across the page.

    Raises
    ------
    InputError
        Where the orientation is unknown.
    """
    if orientation not in LAYOUTS:
        raise InputError(field="orientation", got=repr(orientation), wanted=f"one of: {', '.join(LAYOUTS)}")
    return orientation in ("ky-columns", "plane-columns")
