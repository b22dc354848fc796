"""Images of a user's file that errors are measured against, in the place of what a scan knows of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.operators.base import Array
from mri_design.scan.data import ImageStack
from mri_design.scan.io.companions import read_images


@dataclass(frozen=True)
class FittedReference:
    """The reference of one image, in its units.

    Parameters
    ----------
    name : str
        Of the file.
    image : complex array, shape (ky, kx)
        Magnitude of the file's image times ``factor``, with the phase of the image that is judged.
    factor : float
        What the file's image was multiplied by.
    """

    name: str
    image: Array
    factor: float

    @property
    def words(self) -> str:
        """The reference, and what was done with it."""
        return f"{self.name}, {scaled_words([self.factor])}"


def scaled_words(factors: Sequence[float]) -> str:
    """What the images of a file were multiplied by."""
    least, most = min(factors), max(factors)
    by = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}, slice by slice"
    return f"its magnitude scaled by {by}, which fits the image best"


@dataclass(frozen=True)
class GivenReference:
    """An image that somebody measures a slice against.

    Parameters
    ----------
    name : str
        Of the file.
    image : float or complex array, shape (ky, kx)
        In any unit; only its magnitude counts.
    """

    name: str
    image: Array

    def fitted(self, image: Array) -> FittedReference:
        """Scale it to an image (ky, kx) by the one factor that leaves the least squares of magnitudes.

        Raises
        ------
        InputError
            Where no pixel is bright in both.
        """
        # in double precision and scaled to a peak of one: squares of scanners' units would leave the range
        own, theirs = (np.abs(one).astype(np.float64) for one in (image, self.image))
        peak = theirs.max()
        factor = float(np.vdot(theirs / peak, own) / np.vdot(theirs / peak, theirs / peak)) / peak
        if not factor > 0:
            raise InputError(
                field=f"reference {self.name}",
                got="an image that is zero wherever the reconstruction is not",
                wanted="an image of the same object in the same place",
            )
        phase = np.exp(1j * np.angle(image))
        return FittedReference(self.name, np.asarray(factor * theirs * phase, dtype=np.complex64), factor)


@dataclass(frozen=True)
class GivenReferences:
    """The images of a file.

    Parameters
    ----------
    name : str
        Of the file.
    stack : ImageStack
        One image or several.
    """

    name: str
    stack: ImageStack

    @classmethod
    def read(cls, path: Path) -> GivenReferences:
        """Read them, see `read_images`."""
        return cls(path.name, read_images(path))

    def of_slices(self, numbers: Sequence[int], count: int, grid: tuple[int, int]) -> dict[int, GivenReference]:
        """The image of every slice, by its number.

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
        images: NDArray[np.generic] = self.stack.images
        by_number = len(images) == count
        if images.shape[1:] != grid or not (by_number or len(images) == len(numbers)):
            raise InputError(
                field=f"reference {self.name}",
                got=f"{len(images)} x {images.shape[1]} x {images.shape[2]} (images, rows, columns)",
                wanted=f"{len(numbers)} x {grid[0]} x {grid[1]}, the slices reconstructed, their ky and kx"
                + (f"; or images of all {count} slices" if count != len(numbers) else ""),
                cure="Give an image on the matrix of the reconstruction, with ky along rows as recon.npy has it"
                + (" (turn it by numpy.transpose)." if images.shape[:0:-1] == grid else "."),
            )
        found = {
            number: GivenReference(self.name, np.asarray(images[number if by_number else place]))
            for place, number in enumerate(numbers)
        }
        for number, given in found.items():
            if not given.image.any():
                raise InputError(
                    field=f"reference {self.name}, slice {number}",
                    got="all zeros",
                    wanted="an image with signal",
                    cure="Leave the slice out with --slices.",
                )
        return found
