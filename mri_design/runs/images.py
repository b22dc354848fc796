"""The images that a run compares: what made each, and its errors where the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.evaluation.metrics import ImageMetrics, measure
from mri_design.experiment.reconstruction import Reconstruction
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.operators.encodings import ShotEncoding
from mri_design.status import Convergence, Status

ZERO_FILLED, GRIDDED = "zero-filled", "gridded"


@dataclass(frozen=True)
class NamedImage:
    """An image on the way into a table or a figure.

    Parameters
    ----------
    name : str
        What made it.
    reconstruction : Reconstruction
        Image and error bars.
    errors : ImageMetrics, optional
        Against the reference; None where there is none.
    """

    name: str
    reconstruction: Reconstruction
    errors: ImageMetrics | None = None

    @classmethod
    def judged(cls, name: str, reconstruction: Reconstruction, reference: Array | None) -> NamedImage:
        """The image with its errors against a reference (ky, kx), where there is one."""
        return cls(name, reconstruction, None if reference is None else measure(reconstruction.image, reference))


def with_zero_filled(
    images: Sequence[NamedImage],
    slice_model: MRSlice,
    lines: Sequence[int],
    reference: Array | None = None,
    unit: float | Array = 1.0,
) -> list[NamedImage]:
    """The images and, where it is not among them, the zero-filled one: what the lines show without a model.

    Of shots this is the gridded image. Like the images it is in the input's units, to which ``unit`` takes it.
    """
    if any(named.name in (ZERO_FILLED, GRIDDED) for named in images):
        return list(images)
    image = np.asarray(slice_model.plain_image(lines) * unit)
    plain = Reconstruction(image, None, Convergence(Status.CONVERGED, 0, 0.0))
    name = GRIDDED if isinstance(slice_model.candidates, ShotEncoding) else ZERO_FILLED
    return [*images, NamedImage.judged(name, plain, reference)]
