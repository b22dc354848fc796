"""Separable, periodic, orthonormal wavelet transforms of many images, and W^H diag(weights) W in one go.

A level takes an image apart into four bands, or puts them together, row by row:
low[k] = sum_t h[t] x[2 k + t - L/2 + 1], with g for high, indices modulo the length, as in PyWavelets' periodization.
All buffers are one flat array, their rows padded to whole registers; what lies in the padding is never used. Rows
filtered along kx wait in a ring, in the innermost cache, until the filters along ky have passed.
"""

from __future__ import annotations

from functools import lru_cache
from threading import local
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import (
    COUNT,
    compiled,
    fill,
    load,
    load_four,
    load_pairs,
    load_twos,
    store,
    store_four,
    store_pairs,
    store_twos,
    weights_of,
)


@compiled
def _wrap(work, at, length, margin, parts):
    """Continue ``length`` numbers at ``work[at:]`` periodically by ``margin`` on both sides."""
    for k in range(margin):
        turned = k if k < length else k % length
        for part in range(parts):
            work[at + (length + k) * parts + part] = work[at + turned * parts + part]
            work[at - (k + 1) * parts + part] = work[at + (length - 1 - turned) * parts + part]


@compiled
def _row_apart(source, row, work, target, half_stride, spare, half, parts, low, high, count):
    """A row of ``2 half`` numbers into a low and a high row at ``work[target:]``; ``spare`` as scratch."""
    taps = low.size
    margin, width = taps // 2, half * parts
    shift = taps // 2 - 1
    even = spare + margin * parts
    odd = even + half_stride + 2 * margin * parts
    for x in range(0, width, count):
        if parts == 2:
            first, second = load_twos(source, row + 2 * x)
        else:
            first, second = load_pairs(source, row + 2 * x)
        store(work, even + x, first)
        store(work, odd + x, second)
    _wrap(work, even, half, margin, parts)
    _wrap(work, odd, half, margin, parts)
    for x in range(0, width, 2 * count):
        value = load(work, (odd if shift % 2 == 1 else even) + (-shift >> 1) * parts + x)
        other = load(work, (odd if shift % 2 == 1 else even) + (-shift >> 1) * parts + x + count)
        l0, l1, h0, h1 = value * low[0], other * low[0], value * high[0], other * high[0]
        for t in range(1, taps):
            start = (odd if (t - shift) % 2 == 1 else even) + ((t - shift) >> 1) * parts + x
            value, other = load(work, start), load(work, start + count)
            a, b = fill(low[t]), fill(high[t])
            l0, l1 = l0 + a * value, l1 + a * other
            h0, h1 = h0 + b * value, h1 + b * other
        store(work, target + x, l0)
        store(work, target + x + count, l1)
        store(work, target + half_stride + x, h0)
        store(work, target + half_stride + x + count, h1)


@compiled
def row_together(work, row, half_stride, target, spare, half, parts, low, high, count):
    """The adjoint of `_row_apart`: a low and a high row at ``work[row:]`` into a row at ``work[target:]``."""
    taps = low.size
    margin, width = taps // 2, half * parts
    shift = taps // 2 - 1
    lows = spare + margin * parts
    highs = lows + half_stride + 2 * margin * parts
    even, odd = shift % 2, (shift + 1) % 2  # the first tap that reaches an even, an odd place
    for x in range(0, width, count):
        store(work, lows + x, load(work, row + x))
        store(work, highs + x, load(work, row + half_stride + x))
    _wrap(work, lows, half, margin, parts)
    _wrap(work, highs, half, margin, parts)
    for x in range(0, width, 2 * count):
        near, far = (shift - even) // 2 * parts + x, (shift + 1 - odd) // 2 * parts + x
        e0 = e1 = o0 = o1 = fill(low.dtype.type(0))
        for r in range(taps // 2):
            a, b = fill(low[2 * r + even]), fill(high[2 * r + even])
            at = near - r * parts
            e0 = e0 + a * load(work, lows + at) + b * load(work, highs + at)
            e1 = e1 + a * load(work, lows + at + count) + b * load(work, highs + at + count)
            a, b = fill(low[2 * r + odd]), fill(high[2 * r + odd])
            at = far - r * parts
            o0 = o0 + a * load(work, lows + at) + b * load(work, highs + at)
            o1 = o1 + a * load(work, lows + at + count) + b * load(work, highs + at + count)
        at = target + 2 * x
        if parts == 2:
            store_twos(work, at, e0, o0)
            store_twos(work, at + 2 * count, e1, o1)
        else:
            store_pairs(work, at, e0, o0)
            store_pairs(work, at + 2 * count, e1, o1)


@compiled
def level_apart(source, at, work, level, ring, parts, low, high, count, weights, width, last):
    """An image at ``source[at:]``, ``level`` of `_plan`, into bands, the first word of which is for ky.

    ``ring`` has room for as many rows as filters have taps, the beginning of ``work`` for a row and its periodic
    margins. ``weights``, which may be empty, have rows of ``width``; they multiply the bands, but low-low on the
    ``last`` level only.
    """
    half_rows, half, _, stride, half_stride = level[:5]
    bands = level[5:]
    taps, rows = low.size, 2 * half_rows
    weighted = weights.size > 0
    shift, slots = taps // 2 - 1, taps + taps % 2
    following = -shift
    for k in range(half_rows):
        while following < 2 * k + taps - shift:
            row = at + (following % rows) * stride
            slot = ring + (following % slots) * 2 * half_stride
            _row_apart(source, row, work, slot, half_stride, 0, half, parts, low, high, count)
            following += 1
        for x in range(0, 2 * half_stride, 4 * count):
            slot = (2 * k - shift) % slots
            c0, c1, c2, c3 = load_four(work, ring + slot * 2 * half_stride + x, count)
            a, b = fill(low[0]), fill(high[0])
            l0, l1, l2, l3, h0, h1, h2, h3 = c0 * a, c1 * a, c2 * a, c3 * a, c0 * b, c1 * b, c2 * b, c3 * b
            for t in range(1, taps):
                slot = slot + 1 if slot + 1 < slots else 0
                c0, c1, c2, c3 = load_four(work, ring + slot * 2 * half_stride + x, count)
                a, b = fill(low[t]), fill(high[t])
                l0, l1, l2, l3 = l0 + a * c0, l1 + a * c1, l2 + a * c2, l3 + a * c3
                h0, h1, h2, h3 = h0 + b * c0, h1 + b * c1, h2 + b * c2, h3 + b * c3
            side = 1 if x >= half_stride else 0
            along = x - side * half_stride
            if weighted:
                # A shift for // parts: divisions would take as long as the filters.
                w, step = side * half + (along >> parts - 1), 2 * count >> parts - 1
                row = (half_rows + k) * width + w
                w0, w1 = weights_of(weights, row, parts, count)
                w2, w3 = weights_of(weights, row + step, parts, count)
                h0, h1, h2, h3 = h0 * w0, h1 * w1, h2 * w2, h3 * w3
                if side == 1 or last:
                    row = k * width + w
                    w0, w1 = weights_of(weights, row, parts, count)
                    w2, w3 = weights_of(weights, row + step, parts, count)
                    l0, l1, l2, l3 = l0 * w0, l1 * w1, l2 * w2, l3 * w3
            store_four(work, bands[side] + k * half_stride + along, count, l0, l1, l2, l3)
            store_four(work, bands[2 + side] + k * half_stride + along, count, h0, h1, h2, h3)


@compiled
def rows_together(work, bands, half_stride, ring, pair, half_rows, low, high, count):
    """Two rows of the adjoint of `level_apart`, before the filters along kx, written to ``work[ring:]``.

    They are the rows ``2 pair - shift`` and the next, modulo their number, with ``shift = taps / 2 - 1``: the ones
    that need the same rows of the bands.
    """
    taps = low.size
    for x in range(0, 2 * half_stride, 2 * count):
        side = 1 if x >= half_stride else 0
        at_low, at_high = bands[side] + x - side * half_stride, bands[2 + side] + x - side * half_stride
        s0 = s1 = t0 = t1 = fill(low.dtype.type(0))
        k = pair
        for t in range(0, taps, 2):
            c, d = at_low + k * half_stride, at_high + k * half_stride
            c0, c1, d0, d1 = load(work, c), load(work, c + count), load(work, d), load(work, d + count)
            a, b = fill(low[t]), fill(high[t])
            s0, s1 = s0 + a * c0 + b * d0, s1 + a * c1 + b * d1
            a, b = fill(low[t + 1]), fill(high[t + 1])
            t0, t1 = t0 + a * c0 + b * d0, t1 + a * c1 + b * d1
            k = k - 1 if k > 0 else half_rows - 1
        store(work, ring + x, s0)
        store(work, ring + x + count, s1)
        store(work, ring + 2 * half_stride + x, t0)
        store(work, ring + 2 * half_stride + x + count, t1)


Array = NDArray[Any]


_kept = local()


def _scratch(size: int, real: np.dtype[Any]) -> Array:
    """Room that a thread keeps from call to call: fresh pages cost a product of one image dearly."""
    if getattr(_kept, "room", np.empty(0)).nbytes < size * real.itemsize:
        _kept.room = np.zeros(size * real.itemsize, dtype=np.uint8)
    return np.asarray(_kept.room[: size * real.itemsize].view(real))


Plan = tuple[Array, Array, Array, Array, int]


@lru_cache(maxsize=32)
def _plan(shape: tuple[int, int], wavelet: str, levels: int, parts: int, dtype: str) -> tuple[Plan, int]:
    """Low and high filter, levels, bands and ring: where everything lies in the scratch of one image; and its size.

    Levels have a row for each: half its rows, half the numbers in a row, place and stride of its image, stride of
    its bands, and their places: (low y, low x), which is the next image, (low, high), (high, low) and (high, high).
    Bands have one for each band: place, rows, numbers in a row, stride, and row and column where it begins in the
    array of coefficients. The ring is where rows wait.
    """
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
    return (low, high, np.array(table), np.array(bands), end), size


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
    plan, size = _plan((padded[0], padded[1]), wavelet, levels, parts, real.char)
    loop(
        np.require(u, requirements=["C", "W"]).reshape(-1).view(real),
        out.reshape(-1).view(real),
        np.empty(0, dtype=real) if weights is None else weights,
        *u.shape[-2:],
        padded[1],
        parts,
        *plan,
        _scratch(size, real),
        COUNT[real.itemsize],
    )


@compiled
def _apart(u, image, weights, n_rows, n_columns, padded, parts, low, high, levels, ring, work, count):
    """One image into bands, weighted where there are weights."""
    width, (half_rows, _, at, stride) = parts * n_columns, levels[0, :4]
    fits = n_rows == 2 * half_rows and stride == width
    if not fits:
        for y in range(n_rows):
            for x in range(width):
                work[at + y * stride + x] = u[image + y * width + x]
            work[at + y * stride + width : at + (y + 1) * stride] = 0
        work[at + n_rows * stride : at + 2 * half_rows * stride] = 0
    for level in range(len(levels)):
        last = level == len(levels) - 1
        source, at = (u, image) if level == 0 and fits else (work, levels[level, 2])
        level_apart(source, at, work, levels[level], ring, parts, low, high, count, weights, padded, last)


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
