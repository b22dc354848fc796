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


def filter_parts(images: Array, weights: Array, turn: Array) -> Array:
    """Images turned back, filtered with weights of each wave and of its opposite, and turned again.

    On Fourier coefficients w of ``conj(turn) * images`` the filter gives ``own(k) w(k) + other(k) conj(w(-k))``.

    Parameters
    ----------
    images : complex array, shape (..., ky, kx)
        As for `filter_images`.
    weights : array, shape (2, ...)
        ``own`` and ``other`` as `in_groups` gives them.
    turn : contiguous complex array, shape (ky, kx)
        Of modulus one, in the precision of the images.

    Returns
    -------
    array of the shape and precision of ``images``
    """
    n_lines, n_columns = images.shape[-2:]
    real = images.real.dtype
    return _filtered(
        images, weights.reshape(2, -1), _opposite(n_lines, n_columns, real.char), turn.reshape(-1).view(real)
    )


@lru_cache(maxsize=8)
def _opposite(n_lines: int, n_columns: int, real: str) -> NDArray[np.uint32]:
    """Of the waves in the order in which they are read, where the real part of the opposite one stands."""
    places = _places(n_lines, n_columns, real).reshape(-1)
    number = np.empty(places.size, dtype=np.uint32)
    number[places] = np.arange(places.size, dtype=np.uint32)
    ky, kx = np.divmod(places, n_columns)
    found, count = number[-ky % n_lines * n_columns + -kx % n_columns], COUNT[np.dtype(real).itemsize]
    return (found + found // count * count).astype(np.uint32)  # real parts of a group, then imaginary ones


@lru_cache(maxsize=8)
def _places(n_lines: int, n_columns: int, real: str) -> NDArray[np.intp]:
    """Where the numbers that are read one after another lie in the response."""
    lines = plan(n_lines, real).order.reshape(-1, 1, COUNT[np.dtype(real).itemsize])
    return np.asarray(lines * n_columns + plan(n_columns, real).order[:, np.newaxis])


def filter_images(images: Array, response: Array, grid: tuple[int, int] | None = None) -> Array:
    """F^H diag(response) F of images, with F the unitary transform along both axes.

    Parameters
    ----------
    images : complex array, shape (..., ky, kx)
        Leading axes are a batch; sides and precision as `suits_both` wants them.
    response : array
        As `in_groups` gives it for the precision of the images.
    grid : tuple of int, optional
        Sides of the response where they are larger, and suit as well: images are taken to be zero beyond their own, and
        what the filter gives there is left out.

    Returns
    -------
    array of the shape and precision of ``images``
    """
    real = images.real.dtype
    none = np.empty(0, dtype=np.uint32)
    return _filtered(images, response.reshape(1, -1), none, np.empty(0, dtype=real), grid)


def _filtered(
    images: Array, weights: Array, opposite: NDArray[np.uint32], turn: Array, grid: tuple[int, int] | None = None
) -> Array:
    n_lines, n_columns = images.shape[-2:] if grid is None else grid
    real = images.real.dtype
    down, across, count = plan(n_lines, real.char), plan(n_columns, real.char), COUNT[real.itemsize]
    waves = (n_lines // count * n_columns + LARGEST_FACTOR) * 2 * count
    images = np.require(images, requirements=["C"])
    out = np.empty(images.shape, dtype=images.dtype)
    _filter(
        images.reshape(-1).view(real),
        weights,
        opposite,
        turn,
        images.shape[-2],
        images.shape[-1],
        n_lines,
        n_columns,
        (down.radices, down.twiddles, down.roots),
        (across.radices, across.twiddles, across.roots),
        np.empty((PANEL * n_lines + LARGEST_FACTOR) * 2 * count, dtype=real),
        np.empty(waves, dtype=real),
        np.empty(waves if opposite.size else 0, dtype=real),
        count,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _filter(
    images, weights, opposite, turn, rows, columns, n_lines, n_columns, down, across, work, waves, mixed, count, out
):
    """One image after another: ``work`` holds a panel's strips, ``waves`` the spectrum, both with spare rows behind.

    Where there is an ``opposite``, ``mixed`` takes the spectrum with that of opposite waves.
    """
    row, size = 2 * count, 2 * rows * columns
    strip, along = n_lines * row, n_columns * row
    strips, groups = columns // count, n_lines // count
    zero = work.dtype.type(0)
    spare, spare_waves = PANEL * strip, groups * along
    own = weights[0]
    turning = turn.size > 0
    filtered = mixed if opposite.size > 0 else waves
    for first in range(0, images.size, size):
        for panel in range(0, strips, PANEL):
            width = min(PANEL, strips - panel)
            for y in range(rows):
                for k in range(width):
                    at = 2 * (y * columns + (panel + k) * count)
                    re, im = load_pairs(images, first + at)
                    if turning:
                        c, s = load_pairs(turn, at)
                        re, im = c * re + s * im, c * im - s * re
                    store(work, k * strip + y * row, re)
                    store(work, k * strip + y * row + count, im)
            for k in range(width):
                work[k * strip + rows * row : (k + 1) * strip] = zero
                forth(work, k * strip, spare, n_lines, down[0], down[1], down[2], count)
                for group in range(groups):
                    here, there = k * strip + group * count * row, group * along + (panel + k) * count * row
                    transpose(work, here, row, waves, there, row)
                    transpose(work, here + count, row, waves, there + count, row)
        for group in range(groups):
            base = group * along
            waves[base + columns * row : base + along] = zero
            forth(waves, base, spare_waves, n_columns, across[0], across[1], across[2], count)
            if opposite.size > 0:
                continue
            for x in range(n_columns):
                w, at = load(own, (group * n_columns + x) * count), base + x * row
                store(waves, at, load(waves, at) * w)
                store(waves, at + count, load(waves, at + count) * w)
            back(waves, base, spare_waves, n_columns, across[0], across[1], across[2], count)
        if opposite.size > 0:
            _mix(waves, weights, opposite, count, mixed)
            for group in range(groups):
                back(mixed, group * along, spare_waves, n_columns, across[0], across[1], across[2], count)
        for panel in range(0, strips, PANEL):
            width = min(PANEL, strips - panel)
            for k in range(width):
                for group in range(groups):
                    here, there = k * strip + group * count * row, group * along + (panel + k) * count * row
                    transpose(filtered, there, row, work, here, row)
                    transpose(filtered, there + count, row, work, here + count, row)
                back(work, k * strip, spare, n_lines, down[0], down[1], down[2], count)
            for y in range(rows):
                for k in range(width):
                    at = 2 * (y * columns + (panel + k) * count)
                    re, im = load(work, k * strip + y * row), load(work, k * strip + y * row + count)
                    if turning:
                        c, s = load_pairs(turn, at)
                        re, im = c * re - s * im, c * im + s * re
                    store_pairs(out, first + at, re, im)


@compiled
def _mix(waves, weights, opposite, count, mixed):
    """Every wave by its own weight, and the conjugate of the opposite one by the other."""
    for first in range(0, opposite.size, count):
        own, other = weights[0, first : first + count], weights[1, first : first + count]
        there = opposite[first : first + count]
        re, im = waves[2 * first : 2 * first + count], waves[2 * first + count : 2 * (first + count)]
        to_re, to_im = mixed[2 * first : 2 * first + count], mixed[2 * first + count : 2 * (first + count)]
        for lane in range(count):
            to_re[lane] = own[lane] * re[lane] + other[lane] * waves[there[lane]]
            to_im[lane] = own[lane] * im[lane] - other[lane] * waves[there[lane] + count]
