"""One level of a periodic orthonormal filter bank on images, apart into four bands and back together, row by row.

low[k] = sum_t h[t] x[2 k + t - L/2 + 1], with g for high, indices modulo the length, as in PyWavelets' periodization.
All buffers are one flat array, their rows padded to whole registers; what lies in the padding is never used. Rows
filtered along kx wait in a ring, in the innermost cache, until the filters along ky have passed.
"""

from __future__ import annotations

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import (
    fill,
    load,
    load_pairs,
    load_twos,
    store,
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
def level_apart(
    source,
    at,
    stride,
    work,
    bands,
    half_stride,
    ring,
    spare,
    half_rows,
    half,
    parts,
    low,
    high,
    count,
    weights,
    width,
    coarsest,
):
    """An image of ``2 half_rows`` rows at ``source[at:]`` into bands, whose places ``bands`` gives.

    They are low-low, low-high, high-low and high-high, the first word for ky. ``ring`` has room for as many rows as
    filters have taps, ``spare`` for a row and its periodic margins. ``weights``, where there are any, have rows of
    ``width``; they multiply the bands, but low-low on the ``coarsest`` level only.
    """
    taps, rows = low.size, 2 * half_rows
    weighted = weights.size > 0
    shift, slots = taps // 2 - 1, taps + taps % 2
    following = -shift
    for k in range(half_rows):
        while following < 2 * k + taps - shift:
            row = at + (following % rows) * stride
            slot = ring + (following % slots) * 2 * half_stride
            _row_apart(source, row, work, slot, half_stride, spare, half, parts, low, high, count)
            following += 1
        for x in range(0, 2 * half_stride, 4 * count):
            slot = (2 * k - shift) % slots
            row = ring + slot * 2 * half_stride + x
            c0, c1 = load(work, row), load(work, row + count)
            c2, c3 = load(work, row + 2 * count), load(work, row + 3 * count)
            a, b = fill(low[0]), fill(high[0])
            l0, l1, l2, l3, h0, h1, h2, h3 = c0 * a, c1 * a, c2 * a, c3 * a, c0 * b, c1 * b, c2 * b, c3 * b
            for t in range(1, taps):
                slot = slot + 1 if slot + 1 < slots else 0
                row = ring + slot * 2 * half_stride + x
                c0, c1 = load(work, row), load(work, row + count)
                c2, c3 = load(work, row + 2 * count), load(work, row + 3 * count)
                a, b = fill(low[t]), fill(high[t])
                l0, l1, l2, l3 = l0 + a * c0, l1 + a * c1, l2 + a * c2, l3 + a * c3
                h0, h1, h2, h3 = h0 + b * c0, h1 + b * c1, h2 + b * c2, h3 + b * c3
            side = 1 if x >= half_stride else 0
            along = x - side * half_stride
            at_low, at_high = bands[side] + k * half_stride + along, bands[2 + side] + k * half_stride + along
            if weighted:
                # A shift for // parts: divisions would take as long as the filters.
                w, step = side * half + (along >> parts - 1), 2 * count >> parts - 1
                row = (half_rows + k) * width + w
                w0, w1 = weights_of(weights, row, parts, count)
                w2, w3 = weights_of(weights, row + step, parts, count)
                h0, h1, h2, h3 = h0 * w0, h1 * w1, h2 * w2, h3 * w3
                if side == 1 or coarsest:
                    row = k * width + w
                    w0, w1 = weights_of(weights, row, parts, count)
                    w2, w3 = weights_of(weights, row + step, parts, count)
                    l0, l1, l2, l3 = l0 * w0, l1 * w1, l2 * w2, l3 * w3
            store(work, at_low, l0)
            store(work, at_low + count, l1)
            store(work, at_low + 2 * count, l2)
            store(work, at_low + 3 * count, l3)
            store(work, at_high, h0)
            store(work, at_high + count, h1)
            store(work, at_high + 2 * count, h2)
            store(work, at_high + 3 * count, h3)


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
