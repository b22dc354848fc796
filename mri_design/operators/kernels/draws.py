"""Means over draws of squared moduli, and of what a control variate leaves of them, for many coefficients at once.

Coefficients come in pairs of numbers: the real and the imaginary part of a complex one, which have one weight, or two
real ones with a weight each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

Array = NDArray[Any]

BLOCK = 512
"""Places whose sums over draws stay in the innermost cache."""


def mean_squares(draws: Array, known: Array, share: Array) -> Array:
    """Mean over the first axis of |draws - share * known|^2.

    Parameters
    ----------
    draws, known : contiguous arrays of one shape (count, ...)
        Real or complex, of one precision.
    share : real array of the shape of one draw
        Converted to their precision.

    Returns
    -------
    real array of the shape of one draw, of their precision
    """
    real = draws.real.dtype
    out = np.empty(draws.shape[1:], dtype=real)
    numbers = (np.require(array, requirements=["C", "W"]).reshape(-1).view(real) for array in (draws, known))
    on_each = np.require(np.broadcast_to(share, out.shape), dtype=real, requirements=["C", "W"])
    parts = 2 if np.iscomplexobj(draws) else 1
    _mean_squares(*numbers, on_each.reshape(-1), len(draws), parts, np.empty(2 * BLOCK, dtype=real), out.reshape(-1))
    return out


@compiled
def _mean_squares(draws, known, share, count, parts, squares, out):
    size = out.size * parts
    for first in range(0, out.size, BLOCK):
        many = min(BLOCK, out.size - first)
        w, total = share[first : first + many], out[first : first + many]
        total[:] = 0
        for k in range(count):
            at = k * size + first * parts
            s, t = draws[at : at + many * parts], known[at : at + many * parts]
            if parts == 2:
                for i in range(many):
                    re = s[2 * i] - w[i] * t[2 * i]
                    im = s[2 * i + 1] - w[i] * t[2 * i + 1]
                    total[i] += re * re + im * im
            else:
                for i in range(many):
                    re = s[i] - w[i] * t[i]
                    total[i] += re * re
        for i in range(many):
            total[i] /= count


def add_powers(s: Array, t: Array, group: NDArray[np.int64], totals: Array) -> None:
    """Add |s|^2, |t|^2 and Re t s* to the totals of each draw's group, summed over the coefficients of a pixel.

    Parameters
    ----------
    s, t : contiguous real arrays, shape (count, over, size, 2)
        Draws and their controls.
    group : int array, shape (count,)
        Which of the totals a draw belongs to.
    totals : contiguous array of their precision, shape (groups, 3, size, parts)
        With one part the pairs are complex numbers, with two they are numbers apart. Written to.
    """
    groups, _, size, parts = totals.shape
    sums = np.empty((3, parts * BLOCK), dtype=totals.dtype)
    _add_powers(*_flat(s, t), group, s.shape[1], size, parts, sums, totals.reshape(groups, 3, -1))


def compared(s: Array, t: Array, group: NDArray[np.int64], share: Array, known: Array) -> tuple[Array, ...]:
    """Mean, sum of squared distances from it and mean modulus of the terms |s|^2 - w Re t s* + w c of all draws.

    Parameters
    ----------
    s, t, group
        As for `add_powers`.
    share : contiguous array of their precision, shape (groups, size, parts)
        w of each group of draws.
    known : contiguous array of their precision, shape (over, size, parts)
        c.

    Returns
    -------
    mean, scatter, typical, plain : arrays, shape (over, size, parts)
        Of the terms, and the mean of |s|^2.
    """
    out = tuple(np.empty(known.shape, dtype=known.dtype) for _ in range(4))
    parts = known.shape[-1]
    flat = (array.reshape(len(known), -1) for array in out)
    _compared(
        *_flat(s, t), group, share.reshape(len(share), -1), known.reshape(len(known), -1), parts, BLOCK * parts, *flat
    )
    return out


def box_means(maps: Array, side: int) -> Array:
    """Means over squares around each pixel, around the edges of the image.

    Parameters
    ----------
    maps : contiguous real array, shape (..., ky, kx, parts)
        Maps, each by itself.
    side : int
        Pixels a side, odd, at most the shorter side of the image.
    """
    out = np.empty_like(maps)
    n_lines, n_columns, parts = maps.shape[-3:]
    rows = maps.reshape(-1, n_lines, n_columns * parts)
    padded = np.empty(((n_columns + side - 1) * parts), dtype=maps.dtype)
    _box_means(rows, side, parts, maps.dtype.type(1 / side**2), padded, out.reshape(rows.shape))
    return out


def _flat(*pairs: Array) -> tuple[Array, ...]:
    return tuple(array.reshape(-1) for array in pairs)


@compiled
def _add_powers(s, t, group, over, size, parts, sums, totals):
    row = 2 * size
    for first in range(0, size, BLOCK):
        many = min(BLOCK, size - first)
        for g in range(totals.shape[0]):
            own, control, both = sums[0], sums[1], sums[2]
            sums[:] = 0
            for k in range(group.size):
                if group[k] != g:
                    continue
                for j in range(over):
                    at = (k * over + j) * row + 2 * first
                    a, b = s[at : at + 2 * many], t[at : at + 2 * many]
                    if parts == 2:
                        for i in range(2 * many):
                            own[i] += a[i] * a[i]
                            control[i] += b[i] * b[i]
                            both[i] += a[i] * b[i]
                    else:
                        for i in range(many):
                            re, im, seen, unseen = a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]
                            own[i] += re * re + im * im
                            control[i] += seen * seen + unseen * unseen
                            both[i] += re * seen + im * unseen
            for n in range(3):
                total = totals[g, n, first * parts : (first + many) * parts]
                for i in range(many * parts):
                    total[i] += sums[n, i]


@compiled
def _compared(s, t, group, share, known, parts, block, mean, scatter, typical, plain):
    over, row = known.shape
    width = 2 // parts  # numbers of a weight
    for j in range(over):
        for first in range(0, row, block):
            many = min(block, row - first)
            m, v = mean[j, first : first + many], scatter[j, first : first + many]
            size, power = typical[j, first : first + many], plain[j, first : first + many]
            c = known[j, first : first + many]
            m[:] = 0
            v[:] = 0
            size[:] = 0
            power[:] = 0
            for k in range(group.size):
                at = (k * over + j) * row * width + first * width
                a, b = s[at : at + many * width], t[at : at + many * width]
                w = share[group[k], first : first + many]
                part = m.dtype.type(1 / (k + 1))
                for i in range(many):
                    if width == 1:
                        own, left = a[i] * a[i], a[i] * (a[i] - w[i] * b[i])
                    else:
                        re, im = a[2 * i], a[2 * i + 1]
                        own = re * re + im * im
                        left = re * (re - w[i] * b[2 * i]) + im * (im - w[i] * b[2 * i + 1])
                    term = left + w[i] * c[i]
                    away = term - m[i]
                    m[i] += away * part
                    v[i] += away * (term - m[i])
                    size[i] += abs(term)
                    power[i] += own
            each = m.dtype.type(1 / group.size)
            for i in range(many):
                size[i] *= each
                power[i] *= each


@compiled
def _box_means(maps, side, parts, scale, padded, out):
    """Sums over lines first, kept in a row that is longer by what lies beyond both ends."""
    n_lines, width = maps.shape[1:]
    half = side // 2
    reach = half * parts
    for n in range(maps.shape[0]):
        for y in range(n_lines):
            middle = padded[reach : reach + width]
            middle[:] = 0
            for d in range(-half, half + 1):
                line = maps[n, (y + d) % n_lines]
                for x in range(width):
                    middle[x] += line[x]
            padded[:reach] = padded[width : width + reach]
            padded[reach + width :] = padded[reach : 2 * reach]
            line = out[n, y]
            line[:] = 0
            for d in range(side):
                shifted = padded[d * parts : d * parts + width]
                for x in range(width):
                    line[x] += shifted[x]
            for x in range(width):
                line[x] *= scale
