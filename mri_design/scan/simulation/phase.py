"""Phase maps for images that come without phase."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.simulation.settings import checked_shape, pixel_positions

_BUMPS, _HIGHEST_BUMP = 12, np.pi / 2


def no_phase(shape: int | tuple[int, int]) -> NDArray[np.float64]:
    """Zero phase in radians, shape (ky, kx)."""
    return np.zeros(checked_shape(shape))


def smooth_phase(
    shape: int | tuple[int, int], rng: np.random.Generator, *, amplitude: float = np.pi / 2, degree: int = 3
) -> NDArray[np.float64]:
    """Draw a polynomial phase over the field of view, as an imperfect shim and a delay leave it.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx).
    rng : numpy Generator
        Source of the coefficients: normal, so every monomial up to ``degree`` takes part.
    amplitude : float
        Largest absolute phase on the grid, in radians.
    degree : int, 1 to 8
        Total degree of the polynomial.

    Returns
    -------
    float64 array, shape (ky, kx)
        Phase in radians, between -amplitude and +amplitude.

    Raises
    ------
    InputError
        On a wrong shape, amplitude or degree.

    Notes
    -----
    Results on images with such a phase flatter every method that models phase: real phase has local
    exceptions. Use `rough_phase`, or complex images with their own phase, before believing them.
    """
    rows, columns = checked_shape(shape)
    if not (np.isfinite(amplitude) and amplitude >= 0):
        raise InputError(field="amplitude", got=repr(amplitude), wanted="radians, not negative")
    if not isinstance(degree, (int, np.integer)) or not 1 <= degree <= 8:
        raise InputError(field="degree", got=repr(degree), wanted="a whole number from 1 to 8")
    y, x = 2 * pixel_positions(rows), 2 * pixel_positions(columns)
    coefficients = rng.standard_normal((degree + 1, degree + 1))
    power = np.add.outer(np.arange(degree + 1), np.arange(degree + 1))
    coefficients[power > degree] = 0
    phase = np.polynomial.polynomial.polygrid2d(y, x, coefficients)
    return amplitude * phase / np.abs(phase).max()


def rough_phase(
    shape: int | tuple[int, int], rng: np.random.Generator, *, amplitude: float = np.pi / 2
) -> NDArray[np.float64]:
    """Draw a smooth phase with local exceptions, as air, vessels and iron make them.

    The exceptions are twelve Gaussian bumps of either sign, up to half pi high, scattered over the middle 80 % of the
    field of view, with standard deviations from 0.01 to 0.06 fields of view.

    Parameters
    ----------
    shape, rng, amplitude
        As for `smooth_phase`, which gives the slow part.

    Returns
    -------
    float64 array, shape (ky, kx)
        Phase in radians; not wrapped.

    Raises
    ------
    InputError
        On a wrong shape or amplitude.
    """
    phase = smooth_phase(shape, rng, amplitude=amplitude)
    y, x = pixel_positions(phase.shape[0]), pixel_positions(phase.shape[1])
    for _ in range(_BUMPS):
        centre_y, centre_x = rng.uniform(-0.4, 0.4, 2)
        width_y, width_x = np.exp(rng.uniform(np.log(0.01), np.log(0.06), 2))
        height = rng.uniform(-_HIGHEST_BUMP, _HIGHEST_BUMP)
        bump_y = np.exp(-0.5 * ((y - centre_y) / width_y) ** 2)
        bump_x = np.exp(-0.5 * ((x - centre_x) / width_x) ** 2)
        phase += height * np.outer(bump_y, bump_x)
    return phase
