"""What other images of the same object say about an image: which of its pixels belong together.

Another contrast, echo, repeat or frame has its edges where the image has them, whatever its brightness. So patches are
compared in its modulus, and the image is expected to be smooth between pixels whose surroundings are alike there:
Bowsher et al., IEEE Nucl Sci Symp 2004, for single pixels; Ehrhardt & Betcke, SIAM J Imaging Sci 9:1084 (2016), for
weights of total variation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np

from mri_design.brief import briefly
from mri_design.errors import InputError
from mri_design.model.alike_patches import AlikePatches, Window, find_alike
from mri_design.operators.base import Array

WINDOW = Window(nearest=1, radius=4, half=1, indistinct=0.36)
"""3 x 3 patches within four pixels, neighbours included (results/companions has what noise and heads show)."""


class Volume(Protocol):
    """A volume around the slice of it that is a companion."""

    @property
    def places(self) -> Sequence[float]:
        """Distances from that slice, across it, at which the volume can be looked at; never 0."""
        ...

    def at(self, place: float) -> Array | None:
        """Its image there, as `Companion.image`; None where it has none."""
        ...

    def words(self, place: float) -> str:
        """Where that is, after "taken from"."""
        ...


@briefly
@dataclass(frozen=True)
class Companion:
    """Another image of the object that a scan shows.

    Parameters
    ----------
    name : str
        For messages.
    image : float or complex array, shape (ky, kx)
        On the grid of the scan, of any brightness and contrast; zero where it shows nothing.
    placed : str
        How it was laid over the scan, in words.
    by_headers : bool
        Whether headers say where both images lie.
    pixel : (float, float), optional
        Size of a pixel along (ky, kx), millimetres; None where nobody says.
    in_place : bool
        Whether it lies where the scan lies, so that it is never registered: another slice or echo of the same scan.
    refused : str
        Why it cannot serve, as the end of a sentence; empty where it can.
    volume : Volume, optional
        What it was taken from, where that has more than one slice; its places are millimetres where headers say where
        both images lie.

    Raises
    ------
    InputError
        For an image that is zero, or not finite.
    """

    name: str
    image: Array
    placed: str = ""
    _: KW_ONLY
    by_headers: bool = False
    pixel: tuple[float, float] | None = None
    in_place: bool = False
    refused: str = ""
    volume: Volume | None = None

    def __post_init__(self) -> None:
        if self.image.ndim != 2:
            raise InputError(f"companion {self.name}", f"shape {self.image.shape}", "one image (ky, kx)")
        unit_modulus(self.image)


def unit_modulus(image: Array) -> Array:
    """Modulus of an image, its 99.5th percentile 1.

    Raises
    ------
    InputError
        For images that are not finite, or zero nearly everywhere.
    """
    modulus = np.abs(image).astype(np.float64)
    level = float(np.percentile(modulus, 99.5)) if np.isfinite(modulus).all() else float("nan")
    if not level > 0:
        raise InputError("companion", "an image that is zero, or NaN", "an image that shows the object")
    return modulus / level


def companion_patches(images: Sequence[Array], count: int = 6) -> AlikePatches:
    """Pixels that are alike in all companions.

    Parameters
    ----------
    images : sequence of arrays, shape (ky, kx)
        On the grid of the scan, complex or moduli, of any brightness.
    count : int
        Neighbours of every pixel.

    Returns
    -------
    AlikePatches
        Differences in signal levels; those of several companions add up as squares.

    Raises
    ------
    InputError
        For images that show nothing, noise for example.
    """
    return find_alike(np.stack([unit_modulus(image) for image in images]), count, WINDOW)
