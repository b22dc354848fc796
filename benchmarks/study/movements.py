"""Movements of the object between an earlier scan and the one that is to be measured, or none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.ndimage

from mri_design.operators.base import Array

SAME = "other noise"


def _turned(image: Array, degrees: float) -> Array:
    parts = (scipy.ndimage.rotate(part, degrees, reshape=False) for part in (image.real, image.imag))
    return np.asarray(next(parts) + 1j * next(parts))


def _shifted(image: Array, pixels: tuple[float, float]) -> Array:
    parts = (scipy.ndimage.shift(part, pixels) for part in (image.real, image.imag))
    return np.asarray(next(parts) + 1j * next(parts))


MOVEMENTS: dict[str, Callable[[Array], Array]] = {
    SAME: lambda image: image,
    "shifted by (2.3, 1.2) pixels": lambda image: _shifted(image, (2.3, 1.2)),
    "turned by 3 degrees": lambda image: _turned(image, 3.0),
}
