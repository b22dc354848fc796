"""Separable, periodic, orthonormal wavelet transforms of many images, and W^H diag(weights) W in one go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import local
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.filter_bank import level_apart, row_together, rows_together
from mri_design.operators.kernels.lanes import COUNT, load, store

Array = NDArray[Any]


@dataclass(frozen=True)
class _Plan:
    """Filters, and where everything lies in the scratch of one image.

    ``levels`` has a row for each: half its rows, half the numbers in a row, place and stride of its image, stride of
    its bands, and their places: (low y, low x), which is the next image, (low, high), (high, low) and (high, high).
    ``bands`` has one for each band: place, rows, numbers in a row, stride, and row and column where it begins in the
    array of coefficients. ``ring`` is where rows wait.
    """

    low: Array
    high: Array
    levels: Array
    bands: Array
    ring: int
    size: int


_kept = local()


def _scratch(size: int, real: np.dtype[Any]) -> Array:
    """Room that a thread keeps from call to call: fresh pages cost a product of one image dearly."""
    if getattr(_kept, "room", np.empty(0)).nbytes < size * real.itemsize:
        _kept.room = np.zeros(size * real.itemsize, dtype=np.uint8)
    return np.asarray(_kept.room[: size * real.itemsize].view(real))


@lru_cache(maxsize=32)
def _plan(shape: tuple[int, int], wavelet: str, levels: int, parts: int, dtype: str) -> _Plan:
    unit = 4 * COUNT[np.dtype(dtype).itemsize]
    filters = pywt.Wavelet(wavelet)
    low, high = (np.array(taps[::-1], dtype=dtype) for taps in (filters.dec_lo, filters.dec_hi))

    def stride(numbers: int) -> int:
        return -(-numbers * parts // unit) * unit

    rows, numbers = shape
    spare = 2 * stride(numbers) + 4 * len(low) * parts + 4 * unit
    image, end = spare, spare + rows * stride(numbers)
    table, bands = [], []
    for _ in range(levels):
        rows, half = rows // 2, numbers // 2
        following, *details = (end + k * rows * stride(half) for k in range(4))
        end += 4 * rows * stride(half)
        table.append((rows, half, image, stride(numbers), stride(half), following, *details))
        places = zip(details, ((0, half), (rows, 0), (rows, half)), strict=True)
        bands += [(place, rows, half, stride(half), *begin) for place, begin in places]
        image, numbers = following, half
    bands.append((image, rows, numbers, stride(numbers), 0, 0))
    size = end + 2 * len(low) * stride(shape[1] // 2) + 2 * unit
    return _Plan(low, high, np.array(table), np.array(bands), end, size)


def analysis(u: Array, padded: tuple[int, ...], wavelet: str, levels: int) -> Array:
    """Coefficients (..., *padded) of images (..., ky, kx), which zeros continue to the padded grid."""
    out = np.empty((*u.shape[:-2], *padded), dtype=u.dtype)
    _run(_analyse, u, out, None, padded, wavelet, levels)
    return out


def synthesis(v: Array, wavelet: str, levels: int) -> Array:
    """Images of the grid of their coefficients; the adjoint and the inverse of `analysis` without padding."""
    out = np.zeros(v.shape, dtype=v.dtype)
    _run(_synthesise, v, out, None, v.shape[-2:], wavelet, levels)
    return out


def add_weighted_bands(weights: Array, u: Array, out: Array, wavelet: str, levels: int) -> None:
    """``out += W^H diag(weights) W u``.

    Parameters
    ----------
    weights : contiguous real array, shape of the padded grid
        One for each coefficient, of the precision of ``u``.
    u, out : contiguous arrays, shape (..., ky, kx)
        Real or complex, of one precision.
    wavelet, levels : str, int
        Name of an orthogonal family, and number of levels.
    """
    # Registers reach beyond the last row.
    room = np.zeros(4 * COUNT[weights.itemsize], dtype=weights.dtype)
    _run(_weigh, u, out, np.concatenate([weights.reshape(-1), room]), weights.shape, wavelet, levels)


def _run(
    loop: Any, u: Array, out: Array, weights: Array | None, padded: tuple[int, ...], wavelet: str, levels: int
) -> None:
    real = u.real.dtype
    parts = u.dtype.itemsize // real.itemsize
    plan = _plan((padded[0], padded[1]), wavelet, levels, parts, real.char)
    loop(
        np.require(u, requirements=["C", "W"]).reshape(-1).view(real),
        out.reshape(-1).view(real),
        np.empty(0, dtype=real) if weights is None else weights,
        *u.shape[-2:],
        padded[1],
        parts,
        plan.low,
        plan.high,
        plan.levels,
        plan.bands,
        plan.ring,
        _scratch(plan.size, real),
        COUNT[real.itemsize],
    )


@compiled
def _apart(u, image, weights, n_rows, n_columns, padded_width, parts, low, high, levels, ring, work, count):
    """One image into bands, weighted where there are weights."""
    width, (half_rows, half, at, stride) = parts * n_columns, levels[0, :4]
    fits = n_rows == 2 * half_rows and stride == width
    if not fits:
        for y in range(n_rows):
            for x in range(width):
                work[at + y * stride + x] = u[image + y * width + x]
            work[at + y * stride + width : at + (y + 1) * stride] = 0
        work[at + n_rows * stride : at + 2 * half_rows * stride] = 0
    for level in range(len(levels)):
        half_rows, half, at, stride, half_stride = levels[level, :5]
        source, begin = (u, image) if level == 0 and fits else (work, at)
        level_apart(
            source,
            begin,
            stride,
            work,
            levels[level, 5:],
            half_stride,
            ring,
            0,
            half_rows,
            half,
            parts,
            low,
            high,
            count,
            weights,
            padded_width,
            level == len(levels) - 1,
        )


@compiled
def _together(out, image, n_rows, n_columns, parts, low, high, levels, ring, work, count):
    """Bands into one image, added to ``out``."""
    width = parts * n_columns
    whole = width // count * count
    for level in range(len(levels) - 1, -1, -1):
        half_rows, half, at, stride, half_stride = levels[level, :5]
        rows, shift = 2 * half_rows, low.size // 2 - 1
        for pair in range(half_rows):
            rows_together(work, levels[level, 5:], half_stride, ring, pair, half_rows, low, high, count)
            for odd in range(2):
                y = (2 * pair + odd - shift) % rows
                row = ring + 2 * odd * half_stride
                if level > 0:
                    row_together(work, row, half_stride, at + y * stride, 0, half, parts, low, high, count)
                elif y < n_rows:  # the rows of the image itself need no room of their own
                    row_together(work, row, half_stride, at, 0, half, parts, low, high, count)
                    to = image + y * width
                    for x in range(0, whole, count):
                        store(out, to + x, load(out, to + x) + load(work, at + x))
                    for x in range(whole, width):
                        out[to + x] += work[at + x]


@compiled
def _analyse(u, out, weights, n_rows, n_columns, width, parts, low, high, levels, bands, ring, work, count):
    size, full = n_rows * n_columns * parts, 2 * levels[0, 0] * width * parts
    for image in range(u.size // size):
        _apart(u, image * size, weights, n_rows, n_columns, width, parts, low, high, levels, ring, work, count)
        for band in range(len(bands)):
            at, rows, numbers, stride, top, left = bands[band]
            for y in range(rows):
                row, to = at + y * stride, image * full + ((top + y) * width + left) * parts
                out[to : to + numbers * parts] = work[row : row + numbers * parts]


@compiled
def _synthesise(v, out, weights, n_rows, n_columns, width, parts, low, high, levels, bands, ring, work, count):
    size = n_rows * n_columns * parts
    for image in range(0, v.size, size):
        for band in range(len(bands)):
            at, rows, numbers, stride, top, left = bands[band]
            for y in range(rows):
                row, source = at + y * stride, image + ((top + y) * width + left) * parts
                work[row : row + numbers * parts] = v[source : source + numbers * parts]
        _together(out, image, n_rows, n_columns, parts, low, high, levels, ring, work, count)


@compiled
def _weigh(u, out, weights, n_rows, n_columns, width, parts, low, high, levels, bands, ring, work, count):
    size = n_rows * n_columns * parts
    for image in range(0, u.size, size):
        _apart(u, image, weights, n_rows, n_columns, width, parts, low, high, levels, ring, work, count)
        _together(out, image, n_rows, n_columns, parts, low, high, levels, ring, work, count)
