"""Images that come one after the other from a file: gathered, or only looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.image_outline import ImageOutline
from mri_design.scan.source_image import SourceImage

Image = NDArray[np.float32] | NDArray[np.complex64]


@dataclass(frozen=True)
class ImageSequence:
    """Images of a file, of which one is in memory at a time. They can be gone through once.

    Parameters
    ----------
    images : iterator of float32 or complex64 arrays, shape (row, column)
        All of one kind, as many as ``shape`` says.
    shape : tuple of int
        Images, rows and columns.
    name, card, geometry, source
        As of an `ImageStack`.
    """

    images: Iterator[Image]
    shape: tuple[int, int, int]
    _: KW_ONLY
    name: str = "images"
    card: Mapping[str, str] = field(default_factory=dict)
    geometry: SliceGeometry | None = None
    source: SourceImage | None = None

    def stack(self) -> ImageStack:
        """All of them.

        Raises
        ------
        InputError
            From the file, or as `ImageStack`.
        """
        first = next(self.images)
        gathered: Any = np.empty(self.shape, first.dtype)
        gathered[0] = first
        for number, image in enumerate(self.images, 1):
            gathered[number] = image
        return ImageStack(gathered, self.name, self.card, self.geometry, self.source)

    def outline(self) -> ImageOutline:
        """Their values' range, and what else is known of them.

        Raises
        ------
        InputError
            As `stack`.
        """
        told = {"name": self.name, "card": self.card, "geometry": self.geometry}
        return ImageOutline.of_images(self.images, self.shape, **told)
