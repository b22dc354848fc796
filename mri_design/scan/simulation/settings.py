"""Checks of the settings that every simulation shares, and the pixel grid they speak of."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

_WHOLE = (int, np.integer)
_REAL = (*_WHOLE, float, np.floating)
_SMALLEST_SIDE = 4
_LARGEST_SIDE = 4096
MOST_COILS = 128


def pixel_positions(n: int) -> NDArray[np.float64]:
    """Centres of ``n`` pixels along one axis, in fields of view; pixel ``n // 2`` lies at zero.

    With these positions the centred orthonormal FFT of ``n`` samples is exactly the Riemann sum of the
    Fourier integral at whole cycles per field of view, for even and odd ``n`` alike.
    """
    return (np.arange(n) - n // 2) / n


def checked_shape(shape: object, field: str = "shape") -> tuple[int, int]:
    """Grid (ky, kx) as two ints; one number means a square grid.

    Raises
    ------
    InputError
        Where it is not one or two whole numbers from 4 to 4096.
    """
    sides = (shape, shape) if isinstance(shape, _WHOLE) else shape
    if (
        not isinstance(sides, (tuple, list))
        or len(sides) != 2
        or any(not isinstance(n, _WHOLE) or isinstance(n, bool) for n in sides)
        or not all(_SMALLEST_SIDE <= n <= _LARGEST_SIDE for n in sides)
    ):
        raise InputError(
            field=field,
            got=repr(shape),
            wanted=f"one or two whole numbers from {_SMALLEST_SIDE} to {_LARGEST_SIDE}, (ky, kx)",
        )
    return int(sides[0]), int(sides[1])


def checked_noise(noise: object) -> float:
    """Noise standard deviation per real component as a float; zero is allowed.

    Raises
    ------
    InputError
        Where it is negative or not a finite number.
    """
    if not isinstance(noise, _REAL) or isinstance(noise, bool) or not math.isfinite(noise) or noise < 0:
        raise InputError(field="noise", got=repr(noise), wanted="a finite number that is not negative")
    return float(noise)
