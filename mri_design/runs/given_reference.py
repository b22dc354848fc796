"""Images of a user's file that errors are measured against, in the place of what a scan knows of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array, option
from mri_design.operators.base import Array
from mri_design.runs.provenance import told
from mri_design.scan.io.formats import read_images

_TURNS: Mapping[str, Callable[[Array], Array]] = {
    "flipped along ky": lambda pixels: pixels[::-1],
    "flipped along kx": lambda pixels: pixels[:, ::-1],
    "turned by 180 degrees": lambda pixels: pixels[::-1, ::-1],
    "with rows and columns exchanged": lambda pixels: pixels.T,
    "turned by 90 degrees": lambda pixels: pixels.T[::-1],
    "turned by 270 degrees": lambda pixels: pixels.T[:, ::-1],
    "with rows and columns exchanged and turned by 180 degrees": lambda pixels: pixels.T[::-1, ::-1],
}
ARRAY = "the array"
"""Name of images that are given in memory."""
_MUCH_BETTER = 0.7
"""An image lies otherwise than its reference where the error would be less than this part of what it is."""


@dataclass(frozen=True)
class GivenReference:
    """Images of a user's file that slices are measured against.

    Parameters
    ----------
    name : str
        Of the file.
    images : float or complex array, shape (image, ky, kx)
        In any unit; only their magnitude counts.
    factor : float
        What the file's image was multiplied by, of one that is fitted to the image that is judged.
    turned : str
        How it would fit much better; empty where it fits best as it lies.
    """

    name: str
    images: NDArray[np.generic]
    factor: float = 1.0
    turned: str = ""

    @property
    def image(self) -> Array:
        """The one of a single slice, shape (ky, kx)."""
        return np.asarray(self.images[0])

    @property
    def words(self) -> str:
        """The reference, and what was done with it."""
        return told("given_reference", self.name, [self.factor])

    @property
    def caption(self) -> str:
        """What errors mean, for a table of them."""
        return told("given_errors", self.name, [self.factor])

    @classmethod
    def read(cls, path: Path) -> GivenReference:
        """Read them, see `read_images`."""
        return cls(path.name, read_images(path).images)

    @classmethod
    def of_array(cls, images: object) -> GivenReference:
        """Images in memory, (ky, kx) or (image, ky, kx)."""
        array = number_array("reference", images, kind="finite")
        if array.ndim not in (2, 3):
            raise InputError("reference", f"shape {array.shape}", "images (ky, kx) or (slice, ky, kx)")
        return cls(ARRAY, array.reshape(-1, *array.shape[-2:]))

    @property
    def field(self) -> str:
        """What an error calls them."""
        return "reference" if self.name == ARRAY else f"reference {self.name}"

    def of_slices(self, numbers: Sequence[int], count: int, grid: tuple[int, int]) -> dict[int, GivenReference]:
        """The one image of every slice, by its number.

        Parameters
        ----------
        numbers : sequence of int
            Slices that are reconstructed.
        count : int
            Slices of the input. A file of as many images has one for each of them; another one has an image for each of
            ``numbers``, in their order.
        grid : tuple of int
            Pixels (ky, kx).

        Raises
        ------
        InputError
            For images of another number or size, and such without signal.
        """
        images, by_number = self.images, len(self.images) == count
        if images.shape[1:] != grid or not (by_number or len(images) == len(numbers)):
            got = f"{len(images)} x {images.shape[1]} x {images.shape[2]} (images, rows, columns)"
            wanted = f"{len(numbers)} x {grid[0]} x {grid[1]}, the slices reconstructed, their ky and kx"
            wanted += f"; or images of all {count} slices" if count != len(numbers) else ""
            cure = "Give an image on the matrix of the reconstruction, with ky along rows as recon.npy has it"
            turn = " (turn it by numpy.transpose)." if images.shape[:0:-1] == grid else "."
            raise InputError(self.field, got, wanted, cure + turn)
        places = {number: number if by_number else place for place, number in enumerate(numbers)}
        for number, place in places.items():
            if not images[place].any():
                cure = f"Leave the slice out with {option('slices')}."
                raise InputError(self.field, f"all zeros for slice {number}", "an image with signal", cure)
        return {number: GivenReference(self.name, images[place : place + 1]) for number, place in places.items()}

    def fitted(self, image: Array) -> GivenReference:
        """Scale the first to an image (ky, kx) by the one factor that leaves the least squares of magnitudes.

        It has the phase of that image.

        Raises
        ------
        InputError
            Where no pixel is bright in both.
        """
        # in double precision and scaled to a peak of one: squares of scanners' units would leave the range
        own, theirs = (np.abs(one).astype(np.float64) for one in (image, self.image))
        peak = theirs.max()
        given = theirs / peak
        factor = float(np.vdot(given, own) / np.vdot(given, given)) / peak
        if not factor > 0:
            got, wanted = "an image that is zero wherever the reconstruction is not", "one of the same object and place"
            raise InputError(self.field, got, wanted)
        phase = np.exp(1j * np.angle(image))
        fitted = np.asarray(factor * theirs * phase, dtype=np.complex64)
        return GivenReference(self.name, fitted[np.newaxis], factor, _better_turned(given, own))


def _better_turned(given: Array, image: Array) -> str:
    """How a reference fits an image much better than it does as it lies, each scaled to fit; empty if in no way."""

    def missed(pixels: Array) -> float:
        alike = float(np.vdot(pixels, image)) / float(np.linalg.norm(pixels) * np.linalg.norm(image))
        return 1 - min(alike, 1.0) ** 2

    errors = {name: missed(turn(given)) for name, turn in _TURNS.items() if turn(given).shape == image.shape}
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] < _MUCH_BETTER**2 * missed(given) else ""
