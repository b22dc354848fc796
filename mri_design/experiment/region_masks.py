"""Masks of regions, from files of any kind, laid over the slices of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, number_array
from mri_design.experiment.companion_images import CompanionImages
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.companions import read_images

MOST_REGIONS, _LARGEST = 64, 1e6


@briefly
@dataclass(frozen=True)
class RegionMask:
    """Regions of an image, each with a number of its own.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    labels : int array, shape (slice, ky, kx)
        0 outside, 1 and more in the regions.
    places : tuple of SliceGeometry, optional
        Of the slices, where the file says them.
    """

    name: str
    labels: NDArray[np.int64]
    places: tuple[SliceGeometry, ...] | None = None

    @classmethod
    def read(cls, path: Path) -> RegionMask:
        """Regions of a file: flags or whole numbers, as ``.npy`` with the axes of ``recon.npy``, or any other image.

        Raises
        ------
        InputError
            Where it cannot be read, or holds no regions.
        """
        held = read_images(path)
        first = held.geometry
        places = None if first is None else tuple(first.slice_after(number) for number in range(held.n_slices))
        return cls(path.name, region_labels(held.images, path.name), places)

    @classmethod
    def of(cls, given: ArrayLike, name: str = "region") -> RegionMask:
        """Regions of an array, (ky, kx) or (slice, ky, kx).

        Raises
        ------
        InputError
            Where it holds none.
        """
        array = number_array(name, given)
        if array.ndim not in (2, 3):
            raise InputError(name, f"shape {array.shape}", "(ky, kx) or (slice, ky, kx)")
        return cls(name, region_labels(array.reshape(-1, *array.shape[-2:]), name))

    def over(self, places: Sequence[SliceGeometry | None], shape: tuple[int, int, int]) -> NDArray[np.int64]:
        """The labels on the grid of an image.

        Where both headers say where slices lie, they count, and a pixel has the label that fills half of it; else the
        mask has to be on the same grid.

        Parameters
        ----------
        places : sequence of SliceGeometry or None
            Of the slices of the image.
        shape : tuple of int
            Of the image, (slice, ky, kx).

        Raises
        ------
        InputError
            For another grid, and for a mask that lies elsewhere.
        """
        known = [place for place in places if place is not None and place.placed]
        if self.places is not None and self.places[0].placed and known and len(known) == shape[0]:
            found = self._at(known, shape)
            if not found.any():
                raise InputError(
                    self.name,
                    "regions that lie outside of the image, by the places in both headers",
                    "a mask of the same place",
                    "Draw it on the image that mri-design export RUN --to nifti writes.",
                )
            return found
        if self.labels.shape != shape:
            got, wanted = (" x ".join(map(str, sides)) for sides in (self.labels.shape, shape))
            raise InputError(
                self.name,
                f"a mask of {got} pixels (slice, ky, kx)",
                f"{wanted}, as the image, since not both say where they lie",
                "Draw it on the image of the run (recon.npy, or what mri-design export RUN --to nifti writes); one of "
                "a volume's slices is named by --slice.",
            )
        return self.labels

    def _at(self, places: Sequence[SliceGeometry], shape: tuple[int, int, int]) -> NDArray[np.int64]:
        found = np.zeros(shape, dtype=np.int64)
        for label in np.unique(self.labels[self.labels > 0]):
            region = CompanionImages(self.name, (self.labels == label).astype(np.float32), self.places)
            for number, place in enumerate(places):
                found[number][region.at_places(place, shape[1:])[0] > 0.5] = label
        return found


def region_labels(array: NDArray[np.generic], name: str) -> NDArray[np.int64]:
    """A mask as whole numbers.

    Raises
    ------
    InputError
        For values that are not whole, negative, not finite or complex, for no region and for too many.
    """
    wanted, outside = "flags, or whole numbers from 0, one for each region", "Write 0 where there is no region."
    if array.dtype.kind not in "buif":
        raise InputError(name, f"values of type {array.dtype}", wanted, "Make a mask of them: abs(image) > threshold.")
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(name, "NaN or infinite values", wanted, outside)
    if (values < 0).any():
        raise InputError(name, f"negative values, {values.min():g}", wanted, outside)
    if values.max() > _LARGEST:
        raise InputError(name, f"a label of {values.max():g}", f"{_LARGEST:g} at most", "Number the regions from 1.")
    labels = values.astype(np.int64)
    if (labels != values).any():
        broken = values[labels != values][0]
        raise InputError(name, f"values that are not whole, {broken:g}", wanted, "Take mask > 0.5 of it.")
    count = np.unique(labels[labels > 0]).size
    if not count:
        raise InputError(name, "zeros only", "a region of one pixel or more", "Draw it on the image of the run.")
    if count > MOST_REGIONS:
        raise InputError(name, f"{count} regions", f"{MOST_REGIONS} at most", "Is it an image, and no mask?")
    return labels
