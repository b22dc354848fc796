"""One level of a periodic orthonormal filter bank on images: rows apart into low and high, then columns; and back.

low[k] = sum_t h[t] x[2 k + t - L/2 + 1], with g for high, indices modulo the length, as in PyWavelets' periodization.
All buffers are one flat array, their rows padded to whole registers; what lies in the padding is never used.
"""

from __future__ import annotations

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import fill, load, load_pairs, load_twos, store, store_pairs, store_twos

__all__ = ["columns_apart", "columns_together", "rows_apart", "rows_together"]


@compiled
def rows_apart(source, at, stride, work, to, half_stride, spare, rows, half, parts, low, high, count):
    """Rows at ``source[at:]``, of ``2 half`` numbers, into (low, high) rows at ``work[to:]``; ``spare`` as scratch."""
    taps = low.size
    margin, width = taps // 2, half * parts
    shift = taps // 2 - 1
    even = spare + margin * parts
    odd = even + half_stride + 2 * margin * parts
    for y in range(rows):
        row = at + y * stride
        for x in range(0, width, count):
            if parts == 2:
                first, second = load_twos(source, row + 2 * x)
            else:
                first, second = load_pairs(source, row + 2 * x)
            store(work, even + x, first)
            store(work, odd + x, second)
        _wrap(work, even, half, margin, parts)
        _wrap(work, odd, half, margin, parts)
        target = to + 2 * y * half_stride
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
def columns_apart(work, at, half_stride, side, to_low, to_high, half_rows, low, high, count):
    """Columns of one half (``side`` 0 or 1) of the rows at ``work[at:]`` into low rows and high rows."""
    taps, rows = low.size, 2 * half_rows
    shift = taps // 2 - 1
    for k in range(half_rows):
        for x in range(0, half_stride, 2 * count):
            start = at + side * half_stride + x
            row = start + ((2 * k - shift) % rows) * 2 * half_stride
            value, other = load(work, row), load(work, row + count)
            l0, l1, h0, h1 = value * low[0], other * low[0], value * high[0], other * high[0]
            for t in range(1, taps):
                y = 2 * k + t - shift
                if y < 0 or y >= rows:
                    y %= rows
                row = start + y * 2 * half_stride
                value, other = load(work, row), load(work, row + count)
                a, b = fill(low[t]), fill(high[t])
                l0, l1 = l0 + a * value, l1 + a * other
                h0, h1 = h0 + b * value, h1 + b * other
            row = k * half_stride + x
            store(work, to_low + row, l0)
            store(work, to_low + row + count, l1)
            store(work, to_high + row, h0)
            store(work, to_high + row + count, h1)


@compiled
def columns_together(work, at_low, at_high, side, to, half_stride, half_rows, low, high, count):
    """The adjoint of `columns_apart`: fills one half of the rows at ``work[to:]``."""
    taps = low.size
    shift = taps // 2 - 1
    for y in range(2 * half_rows):
        first = (y + shift) % 2
        k0 = (y + shift - first) // 2
        for x in range(0, half_stride, 2 * count):
            row = (k0 % half_rows) * half_stride + x
            a, b = fill(low[first]), fill(high[first])
            s0 = a * load(work, at_low + row) + b * load(work, at_high + row)
            s1 = a * load(work, at_low + row + count) + b * load(work, at_high + row + count)
            for r in range(1, taps // 2):
                k = k0 - r
                if k < 0 or k >= half_rows:
                    k %= half_rows
                row = k * half_stride + x
                a, b = fill(low[2 * r + first]), fill(high[2 * r + first])
                s0 = s0 + a * load(work, at_low + row) + b * load(work, at_high + row)
                s1 = s1 + a * load(work, at_low + row + count) + b * load(work, at_high + row + count)
            row = to + (2 * y + side) * half_stride + x
            store(work, row, s0)
            store(work, row + count, s1)


@compiled
def rows_together(work, at, half_stride, to, stride, spare, rows, half, parts, low, high, count):
    """The adjoint of `rows_apart`: (low, high) rows at ``work[at:]`` into rows at ``work[to:]``."""
    taps = low.size
    margin, width = taps // 2, half * parts
    shift = taps // 2 - 1
    lows = spare + margin * parts
    highs = lows + half_stride + 2 * margin * parts
    even, odd = shift % 2, (shift + 1) % 2  # the first tap that reaches an even, an odd place
    for y in range(rows):
        row = at + 2 * y * half_stride
        for x in range(0, width, count):
            store(work, lows + x, load(work, row + x))
            store(work, highs + x, load(work, row + half_stride + x))
        _wrap(work, lows, half, margin, parts)
        _wrap(work, highs, half, margin, parts)
        target = to + y * stride
        for x in range(0, width, count):
            start = (shift - even) // 2 * parts + x
            e = fill(low[even]) * load(work, lows + start) + fill(high[even]) * load(work, highs + start)
            start = (shift + 1 - odd) // 2 * parts + x
            o = fill(low[odd]) * load(work, lows + start) + fill(high[odd]) * load(work, highs + start)
            for r in range(1, taps // 2):
                start = ((shift - even) // 2 - r) * parts + x
                coarse, fine = load(work, lows + start), load(work, highs + start)
                e = e + fill(low[2 * r + even]) * coarse + fill(high[2 * r + even]) * fine
                start = ((shift + 1 - odd) // 2 - r) * parts + x
                coarse, fine = load(work, lows + start), load(work, highs + start)
                o = o + fill(low[2 * r + odd]) * coarse + fill(high[2 * r + odd]) * fine
            if parts == 2:
                store_twos(work, target + 2 * x, e, o)
            else:
                store_pairs(work, target + 2 * x, e, o)


@compiled
def _wrap(work, at, length, margin, parts):
    """Continue ``length`` numbers at ``work[at:]`` periodically by ``margin`` on both sides."""
    for k in range(margin):
        for part in range(parts):
            work[at + (length + k) * parts + part] = work[at + k % length * parts + part]
            work[at - (k + 1) * parts + part] = work[at + (length - 1 - k % length) * parts + part]
