"""Coil maps on another grid, or of another field of view around the same centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def places_in(
    of: tuple[int, ...], shape: tuple[int, int], ratio: tuple[float, float]
) -> tuple[NDArray[np.float64], ...]:
    """Where the pixels of a grid lie in another one around the same centre, in its pixels: rows and columns.

    Parameters
    ----------
    of, shape : (int, int)
        Rows and columns of the other grid, and of the grid whose pixels are placed.
    ratio : (float, float)
        As in `maps_on_grid`.
    """
    along = ((np.arange(n) - n // 2) / n * wide * m + m // 2 for n, m, wide in zip(shape, of, ratio, strict=True))
    rows, columns = np.meshgrid(*along, indexing="ij")
    return rows, columns


def maps_on_grid(
    maps: NDArray[np.complex64], shape: tuple[int, int], ratio: tuple[float, float] = (1.0, 1.0)
) -> NDArray[np.complex64]:
    """Coil maps between their pixels, linearly, and beyond their field of view as at its edge.

    Parameters
    ----------
    maps : complex64 array, shape (coil, row, column)
        Smooth, with pixel ``N // 2`` at the centre.
    shape : (int, int)
        Rows and columns of the new grid.
    ratio : (float, float)
        Field of view of the new grid over that of the maps, along rows and columns.

    Returns
    -------
    complex64 array, shape (coil, *shape)
        With unit root-sum-of-squares wherever there are maps.
    """
    from scipy.ndimage import map_coordinates

    places = places_in(maps.shape[-2:], shape, ratio)
    found = np.stack([map_coordinates(coil, places, order=1, mode="nearest") for coil in maps])
    strength = np.linalg.norm(found, axis=0)
    return np.asarray(found / np.where(strength > 0, strength, 1), dtype=np.complex64)
