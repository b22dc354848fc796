"""The image that a repeat of a scan makes expect: the same object in the same contrast, seen before."""

from __future__ import annotations

from dataclasses import dataclass

from mri_design.brief import briefly
from mri_design.errors import InputError
from mri_design.operators.base import Array


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
