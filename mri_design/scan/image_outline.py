"""What a file of images holds, told from one image at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import SliceGeometry

Image = NDArray[np.float32] | NDArray[np.complex64]


@dataclass(frozen=True)
class ImageOutline:
    """All that is to be told of images which need not be held together.

    Parameters
    ----------
    shape : tuple of int
        Images, rows and columns.
    values : tuple of float
        The smallest and the largest value; of complex images, 0 and the largest modulus.
    has_phase : bool
        Whether the images are complex.
    name : str
        Short name.
    card : mapping of str to str
        Provenance.
    geometry : SliceGeometry, optional
        As of an `ImageStack`.

    Raises
    ------
    InputError
        For images that are zero everywhere.
    """

    shape: tuple[int, int, int]
    values: tuple[float, float]
    _: KW_ONLY
    has_phase: bool = False
    name: str = "images"
    card: Mapping[str, str] = field(default_factory=dict)
    geometry: SliceGeometry | None = None

    def __post_init__(self) -> None:
        if self.values == (0, 0):
            raise InputError(field="images", got="all zeros", wanted="at least one non-zero pixel")

    @classmethod
    def of(cls, stack: ImageStack) -> ImageOutline:
        """Of images that were read as a whole."""
        count, rows, columns = stack.images.shape
        told = {"name": stack.name, "card": stack.card, "geometry": stack.geometry}
        return cls.of_images(stack.images, (count, rows, columns), **told)

    @classmethod
    def of_images(cls, images: Iterable[Image], shape: tuple[int, int, int], **told: Any) -> ImageOutline:
        """Of images (row, column) that come one by one; ``told`` are name, card and geometry."""
        low, high, has_phase = np.inf, -np.inf, False
        for image in images:
            has_phase = np.iscomplexobj(image)
            values = np.abs(image) if has_phase else image
            low, high = min(low, float(values.min())), max(high, float(values.max()))
        return cls(shape, (0.0 if has_phase else low, high), has_phase=has_phase, **told)
