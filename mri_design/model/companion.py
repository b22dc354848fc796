"""What other images of the same object say about an image: which of its pixels belong together, and what it looks like.

Another contrast, echo, repeat or frame has its edges where the image has them, whatever its brightness. So patches are
compared in its modulus, and the image is expected to be smooth between pixels whose surroundings are alike there:
Bowsher et al., IEEE Nucl Sci Symp 2004, for single pixels; Ehrhardt & Betcke, SIAM J Imaging Sci 9:1084 (2016), for
weights of total variation. A repeat in the same contrast shows the image itself (`ExpectedImage`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from mri_design.brief import briefly
from mri_design.errors import InputError, require_counts
from mri_design.operators.base import Array

NEAREST = 2
"""Pixels closer than this along both axes are left to plain differences."""

LEAST_KNOWN = 0.01
"""Fraction of the signal below which differences are never expected to lie, however alike the patches."""


@briefly
@dataclass(frozen=True)
class AlikePatches:
    """For every pixel those in the middle of the most similar patches, and how similar they are.

    Parameters
    ----------
    neighbours : int array, shape (K, ky, kx)
        Flat numbers (row times kx plus column) of pixels, the most alike first.
    differences : float array, shape (K, ky, kx)
        Root mean square difference of the two patches, in units of the image.

    Raises
    ------
    InputError
        For shapes that differ.
    """

    neighbours: Array
    differences: Array

    def __post_init__(self) -> None:
        if self.neighbours.ndim != 3 or self.differences.shape != self.neighbours.shape:
            raise InputError(
                "alike patches", f"{self.neighbours.shape}, {self.differences.shape}", "two arrays (K, ky, kx)"
            )

    def expected(self, signal: float) -> Array:
        """Differences to expect between a pixel and its neighbours, for an image whose signal level is that."""
        return np.asarray(self.differences + LEAST_KNOWN * signal)


@briefly
@dataclass(frozen=True)
class Window:
    """Where similar patches are looked for, and what is compared.

    Parameters
    ----------
    nearest : int
        Pixels closer than this along both axes are left out.
    radius : int
        Pixels farther than this along either axis are left out; on small grids the window ends where it would meet
        itself.
    half : int
        Patches have 2 half + 1 pixels a side.
    indistinct : float
        Mean squared distance of the nearest patches over that of all in the window, from which no pixels are alike.
        White noise has more, heads have much less (results/benchmarks/measured-once.md).
    """

    nearest: int
    radius: int
    half: int
    indistinct: float

    @classmethod
    def of_grid(cls, shape: tuple[int, ...]) -> Window:
        """The image's own: 5 x 5 pixels within 8 pixels for 128 x 128, 9 x 9 within 12 for 256 x 256."""
        side = float(np.sqrt(shape[0] * shape[1]))
        return cls(NEAREST, round(4 + side / 32), min(max(1, round(side / 64)), (min(shape) - 1) // 2), 0.4)

    def steps(self, shape: tuple[int, ...]) -> Array:
        """Steps to one half of the window, which stand for their opposites too, (number, 2)."""
        down, right = (min(self.radius, (n - 1) // 2) for n in shape)
        steps = [
            (dy, dx)
            for dy in range(down + 1)
            for dx in range(-right, right + 1)
            if (dy > 0 or dx > 0) and max(dy, abs(dx)) >= self.nearest
        ]
        return np.array(steps, dtype=np.int64).reshape(-1, 2)


def find_alike(image: Array, count: int = 6, window: Window | None = None) -> AlikePatches:
    """The K most similar patches of every pixel, within a window around it.

    The image is taken to be periodic.

    Parameters
    ----------
    image : float or complex array, shape (ky, kx) or (images, ky, kx)
        The image so far. Of several images pixels are alike that are in all of them: squared differences add up.
    count : int
        K.
    window : Window, optional
        By default it grows with the grid (`Window.of_grid`).

    Returns
    -------
    AlikePatches
        The same for the same image: of equally similar patches the one that comes first in the window.

    Raises
    ------
    InputError
        For anything but a finite image, a grid whose window holds fewer than K other patches, and images in which
        nothing is more alike than anything else (constant ones, noise).

    Notes
    -----
    Patches are compared as complex numbers, so that pixels of other phase are not alike. Buades, Coll & Morel, SIAM
    Multiscale Model. Simul. 4 (2005), compare patches for denoising.
    """
    from mri_design.operators.kernels.patches import nearest_patches

    require_counts(least=1, neighbours=count)
    if image.ndim not in (2, 3) or not np.isfinite(image).all():
        raise InputError("image", f"shape {image.shape}, or NaN", "a finite image (ky, kx)")
    shape = image.shape[-2:]
    window = Window.of_grid(shape) if window is None else window
    half, steps = window.half, window.steps(shape)
    if 2 * len(steps) < count:
        raise InputError(
            "neighbours",
            str(count),
            f"at most the {2 * len(steps)} patches of the window in an image {shape}"
            if len(steps)
            else f"an image larger than {shape[0]} x {shape[1]}, which has no window of patches",
            "Take fewer, or leave the non-local block out for images as small as this.",
        )
    scale = float(np.abs(image).max())
    channels = image.reshape(-1, *shape)
    parts = np.concatenate([channels.real, channels.imag] if np.iscomplexobj(image) else [channels])
    parts = parts.astype(np.float64) / (scale if scale > 0 else 1.0)
    neighbours, distances, mean = nearest_patches(parts, steps, half, count)
    if not float(distances.mean()) < window.indistinct * mean:
        raise InputError("image", "patches that are all equally alike", "structure", "Leave the non-local block out.")
    return AlikePatches(neighbours, scale * np.sqrt(distances) / (2 * half + 1))


WINDOW = Window(nearest=1, radius=4, half=1, indistinct=0.36)
"""3 x 3 patches within four pixels, neighbours included (results/companions has what noise and heads show)."""


@dataclass(frozen=True)
class Volume:
    """A volume around the slice of it that is a companion.

    Parameters
    ----------
    places : mapping of float to str
        Distances from that slice, across it, at which the volume can be looked at, never 0; and where that is, in words
        that go on from "taken from".
    at : callable
        Gives the image at a place, as `Companion.image`; None where the volume has none.
    """

    places: Mapping[float, str]
    at: Callable[[float], Array | None]


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


@briefly
@dataclass(frozen=True)
class ExpectedImage:
    """An image about which another one is expected to lie, and how far that is believed where.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        In the units and with the phase of the image that is inferred.
    trust : float array, shape (ky, kx)
        From 0 to 1: share of their full rate that sites have.

    Raises
    ------
    InputError
        For different shapes.
    """

    image: Array
    trust: Array

    def __post_init__(self) -> None:
        if self.image.ndim != 2 or self.image.shape != self.trust.shape:
            raise InputError("repeat", f"shapes {self.image.shape} and {self.trust.shape}", "two images (ky, kx)")
