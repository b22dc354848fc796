"""Images filtered by a spectrum: a transform along both axes, weights, and back, without ever sorting the spectrum.

Columns are transformed a strip at a time, in lanes of neighbouring columns. Their spectra are written as rows, so that
the other axis is transformed in the same way, in lanes of neighbouring ky.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.fft.steps import LARGEST_FACTOR, back, forth, plan, radices
from mri_design.operators.kernels.lanes import COUNT, load, load_pairs, store, store_pairs, transpose

__all__ = ["filter_images", "in_groups", "suits_both"]

Array = NDArray[Any]

PANEL = 4
"""Strips taken out of an image at a time: short reads far apart are slow."""
LARGEST_OTHER = 7
"""Of the steps of a side one may have another radix than four, up to this: with more of them libraries are faster."""


def suits_both(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether `filter_images` knows images of this shape and is fast on them, as on 64, 80, 128, 192, 256, 320, 512."""
    return dtype.char in "FD" and all(n % COUNT[dtype.itemsize // 2] == 0 and _nearly_fours(n) for n in shape[-2:])


def _nearly_fours(n: int) -> bool:
    others = [radix for radix in radices(n) if radix != 4]
    return n > 1 and bool(radices(n)) and (not others or (len(others) == 1 and others[0] <= LARGEST_OTHER))


def in_groups(response: Array, dtype: np.dtype[Any]) -> Array:
    """A real response of every wave in the order in which `filter_images` reads it: (group of ky, kx, ky in it).

    Parameters
    ----------
    response : real array, shape (ky, kx)
        In FFT order, both sides as `suits_both` wants them.
    dtype : complex dtype
        Precision of the images to come.
    """
    real = np.dtype(dtype).type(0).real.dtype
    ordered = np.take(response.reshape(-1), _places(*response.shape, real.char))
    return (ordered / response.size).astype(real)


@lru_cache(maxsize=8)
def _places(n_lines: int, n_columns: int, real: str) -> NDArray[np.intp]:
    """Where the numbers that are read one after another lie in the response."""
    lines = plan(n_lines, real).order.reshape(-1, 1, COUNT[np.dtype(real).itemsize])
    return np.asarray(lines * n_columns + plan(n_columns, real).order[:, np.newaxis])


def filter_images(images: Array, response: Array) -> Array:
    """F^H diag(response) F of images, with F the unitary transform along both axes.

    Parameters
    ----------
    images : complex array, shape (..., ky, kx)
        Leading axes are a batch; sides and precision as `suits_both` wants them.
    response : array
        As `in_groups` gives it for the precision of the images.

    Returns
    -------
    array of the shape and precision of ``images``
    """
    n_lines, n_columns = images.shape[-2:]
    real = images.real.dtype
    down, across, count = plan(n_lines, real.char), plan(n_columns, real.char), COUNT[real.itemsize]
    images = np.require(images, requirements=["C"])
    out = np.empty(images.shape, dtype=images.dtype)
    _filter(
        images.reshape(-1).view(real),
        response.reshape(-1),
        n_lines,
        n_columns,
        (down.radices, down.twiddles, down.roots),
        (across.radices, across.twiddles, across.roots),
        np.empty((PANEL * n_lines + LARGEST_FACTOR) * 2 * count, dtype=real),
        np.empty((n_lines // count * n_columns + LARGEST_FACTOR) * 2 * count, dtype=real),
        count,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _filter(images, response, n_lines, n_columns, down, across, work, waves, count, out):
    """One image after another: ``work`` holds a panel's strips, ``waves`` the spectrum, both with spare rows behind."""
    row, size = 2 * count, 2 * n_lines * n_columns
    strip, along = n_lines * row, n_columns * row
    strips, groups = n_columns // count, n_lines // count
    spare, spare_waves = PANEL * strip, groups * along
    for first in range(0, images.size, size):
        for panel in range(0, strips, PANEL):
            width = min(PANEL, strips - panel)
            for y in range(n_lines):
                for k in range(width):
                    re, im = load_pairs(images, first + 2 * (y * n_columns + (panel + k) * count))
                    store(work, k * strip + y * row, re)
                    store(work, k * strip + y * row + count, im)
            for k in range(width):
                forth(work, k * strip, spare, n_lines, down[0], down[1], down[2], count)
                for group in range(groups):
                    here, there = k * strip + group * count * row, group * along + (panel + k) * count * row
                    transpose(work, here, row, waves, there, row)
                    transpose(work, here + count, row, waves, there + count, row)
        for group in range(groups):
            base = group * along
            forth(waves, base, spare_waves, n_columns, across[0], across[1], across[2], count)
            for x in range(n_columns):
                weights, at = load(response, (group * n_columns + x) * count), base + x * row
                store(waves, at, load(waves, at) * weights)
                store(waves, at + count, load(waves, at + count) * weights)
            back(waves, base, spare_waves, n_columns, across[0], across[1], across[2], count)
        for panel in range(0, strips, PANEL):
            width = min(PANEL, strips - panel)
            for k in range(width):
                for group in range(groups):
                    here, there = k * strip + group * count * row, group * along + (panel + k) * count * row
                    transpose(waves, there, row, work, here, row)
                    transpose(waves, there + count, row, work, here + count, row)
                back(work, k * strip, spare, n_lines, down[0], down[1], down[2], count)
            for y in range(n_lines):
                for k in range(width):
                    at = k * strip + y * row
                    to = first + 2 * (y * n_columns + (panel + k) * count)
                    store_pairs(out, to, load(work, at), load(work, at + count))
