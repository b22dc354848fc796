"""Discrete Fourier transforms of a strip of columns, there, masked, and back, without ever sorting the spectrum.

The forward transform decimates in frequency and leaves the spectrum in digit-reversed order; the mask is brought into
that order once; the inverse is the same steps' adjoint, backwards. Van Loan, Computational Frameworks for the Fast
Fourier Transform (1992), sections 1.9 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import fill, load, store

Array = NDArray[Any]

LARGEST_FACTOR = 13
"""Prime factors above this are left to the libraries: a step of radix r takes r^2 products here."""


@dataclass(frozen=True)
class Plan:
    """Radices from the first step to the last, where each output ends up, and the constants of all steps."""

    radices: Array
    order: Array
    twiddles: Array
    roots: Array


@lru_cache(maxsize=64)
def radices(n: int) -> tuple[int, ...]:
    """Factors of n, fours first; empty for 1 and where one is too large."""
    factors = []
    for radix in (4, 2, *range(3, LARGEST_FACTOR + 1, 2)):
        while n % radix == 0:
            factors.append(radix)
            n //= radix
    return tuple(factors) if n == 1 else ()


@lru_cache(maxsize=64)
def plan(n: int, dtype: str) -> Plan:
    """Steps and constants for n = 2 or more without large prime factors; ``dtype`` is a real one's character."""
    factors, order, twiddles, roots = radices(n), np.zeros(1, dtype=np.intp), [], []
    length = n
    for radix in factors:
        length //= radix
        powers = np.outer(np.arange(length), np.arange(1, radix))
        twiddles.append(np.exp(-2j * np.pi * powers / (length * radix)).ravel())
        roots.append(np.exp(-2j * np.pi * np.arange(radix) / radix))
    for radix in reversed(factors):
        order = np.concatenate([p + radix * order for p in range(radix)])
    return Plan(
        np.array(factors, dtype=np.intp),
        order,
        np.concatenate(twiddles).view(float).astype(dtype),
        np.concatenate(roots).view(float).astype(dtype),
    )


@compiled
def _four(work, base, n_lines, length, twiddles, at, count):
    row, step = 2 * count, 2 * count * length
    for j in range(length):
        w = at + 6 * j
        w1r, w1i, w2r, w2i, w3r, w3i = (
            fill(twiddles[w]),
            fill(twiddles[w + 1]),
            fill(twiddles[w + 2]),
            fill(twiddles[w + 3]),
            fill(twiddles[w + 4]),
            fill(twiddles[w + 5]),
        )
        for y in range(base + j * row, base + n_lines * row, 4 * step):
            ar, ai = load(work, y), load(work, y + count)
            br, bi = load(work, y + step), load(work, y + step + count)
            cr, ci = load(work, y + 2 * step), load(work, y + 2 * step + count)
            dr, di = load(work, y + 3 * step), load(work, y + 3 * step + count)
            sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
            pr, pi, qr, qi = br + dr, bi + di, br - dr, bi - di
            store(work, y, sr + pr)
            store(work, y + count, si + pi)
            er, ei = tr + qi, ti - qr
            store(work, y + step, er * w1r - ei * w1i)
            store(work, y + step + count, er * w1i + ei * w1r)
            er, ei = sr - pr, si - pi
            store(work, y + 2 * step, er * w2r - ei * w2i)
            store(work, y + 2 * step + count, er * w2i + ei * w2r)
            er, ei = tr - qi, ti + qr
            store(work, y + 3 * step, er * w3r - ei * w3i)
            store(work, y + 3 * step + count, er * w3i + ei * w3r)


@compiled
def _four_back(work, base, n_lines, length, twiddles, at, count):
    row, step = 2 * count, 2 * count * length
    for j in range(length):
        w = at + 6 * j
        w1r, w1i, w2r, w2i, w3r, w3i = (
            fill(twiddles[w]),
            fill(twiddles[w + 1]),
            fill(twiddles[w + 2]),
            fill(twiddles[w + 3]),
            fill(twiddles[w + 4]),
            fill(twiddles[w + 5]),
        )
        for y in range(base + j * row, base + n_lines * row, 4 * step):
            ar, ai = load(work, y), load(work, y + count)
            er, ei = load(work, y + step), load(work, y + step + count)
            br, bi = er * w1r + ei * w1i, ei * w1r - er * w1i
            er, ei = load(work, y + 2 * step), load(work, y + 2 * step + count)
            cr, ci = er * w2r + ei * w2i, ei * w2r - er * w2i
            er, ei = load(work, y + 3 * step), load(work, y + 3 * step + count)
            dr, di = er * w3r + ei * w3i, ei * w3r - er * w3i
            sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
            pr, pi, qr, qi = br + dr, bi + di, br - dr, bi - di
            store(work, y, sr + pr)
            store(work, y + count, si + pi)
            store(work, y + step, tr - qi)
            store(work, y + step + count, ti + qr)
            store(work, y + 2 * step, sr - pr)
            store(work, y + 2 * step + count, si - pi)
            store(work, y + 3 * step, tr + qi)
            store(work, y + 3 * step + count, ti - qr)


@compiled
def _masked_four(work, base, mask, n_lines, count):
    """Last step forth, mask, first step back."""
    row = 2 * count
    for line in range(0, n_lines, 4):
        y = base + line * row
        ar, ai = load(work, y), load(work, y + count)
        br, bi = load(work, y + row), load(work, y + row + count)
        cr, ci = load(work, y + 2 * row), load(work, y + 2 * row + count)
        dr, di = load(work, y + 3 * row), load(work, y + 3 * row + count)
        sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
        pr, pi, qr, qi = br + dr, bi + di, br - dr, bi - di
        m0, m1, m2, m3 = fill(mask[line]), fill(mask[line + 1]), fill(mask[line + 2]), fill(mask[line + 3])
        ar, ai = (sr + pr) * m0, (si + pi) * m0
        br, bi = (tr + qi) * m1, (ti - qr) * m1
        cr, ci = (sr - pr) * m2, (si - pi) * m2
        dr, di = (tr - qi) * m3, (ti + qr) * m3
        sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
        pr, pi, qr, qi = br + dr, bi + di, br - dr, bi - di
        store(work, y, sr + pr)
        store(work, y + count, si + pi)
        store(work, y + row, tr - qi)
        store(work, y + row + count, ti + qr)
        store(work, y + 2 * row, sr - pr)
        store(work, y + 2 * row + count, si - pi)
        store(work, y + 3 * row, tr + qi)
        store(work, y + 3 * row + count, ti - qr)


@compiled
def _masked_two(work, base, mask, n_lines, count):
    row = 2 * count
    for line in range(0, n_lines, 2):
        m0, m1 = fill(mask[line]), fill(mask[line + 1])
        for y in range(base + line * row, base + line * row + row, count):
            a, b = load(work, y), load(work, y + row)
            a, b = (a + b) * m0, (a - b) * m1
            store(work, y, a + b)
            store(work, y + row, a - b)


@compiled
def _any(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count):
    """A step of any radix, by the definition."""
    row, step = 2 * count, 2 * count * length
    for j in range(length):
        for y in range(base + j * row, base + n_lines * row, radix * step):
            for p in range(radix):
                re, im = load(work, y), load(work, y + count)
                for q in range(1, radix):
                    c = root + 2 * (p * q % radix)
                    er, ei = load(work, y + q * step), load(work, y + q * step + count)
                    re = re + (er * roots[c] - ei * roots[c + 1])
                    im = im + (er * roots[c + 1] + ei * roots[c])
                if p > 0:
                    w = at + 2 * (j * (radix - 1) + p - 1)
                    re, im = re * twiddles[w] - im * twiddles[w + 1], re * twiddles[w + 1] + im * twiddles[w]
                store(work, spare + p * row, re)
                store(work, spare + p * row + count, im)
            for p in range(radix):
                store(work, y + p * step, load(work, spare + p * row))
                store(work, y + p * step + count, load(work, spare + p * row + count))


@compiled
def _any_back(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count):
    """The adjoint of `_any`."""
    row, step = 2 * count, 2 * count * length
    for j in range(length):
        for y in range(base + j * row, base + n_lines * row, radix * step):
            for p in range(radix):
                re, im = load(work, y + p * step), load(work, y + p * step + count)
                if p > 0:
                    w = at + 2 * (j * (radix - 1) + p - 1)
                    re, im = re * twiddles[w] + im * twiddles[w + 1], im * twiddles[w] - re * twiddles[w + 1]
                store(work, spare + p * row, re)
                store(work, spare + p * row + count, im)
            for q in range(radix):
                re, im = load(work, spare), load(work, spare + count)
                for p in range(1, radix):
                    c = root + 2 * (p * q % radix)
                    er, ei = load(work, spare + p * row), load(work, spare + p * row + count)
                    re = re + (er * roots[c] + ei * roots[c + 1])
                    im = im + (ei * roots[c] - er * roots[c + 1])
                store(work, y + q * step, re)
                store(work, y + q * step + count, im)


@compiled
def there_and_back(work, base, spare, mask, n_lines, radices, twiddles, roots, count):
    """Transform, mask and inverse of one strip of rows (real lanes, imaginary lanes); the last step meets the mask."""
    row = 2 * count
    last = radices.size - 1
    at, root = forth(work, base, spare, n_lines, radices[:last], twiddles, roots, count)
    radix = radices[last]
    if radix == 4:
        _masked_four(work, base, mask, n_lines, count)
    elif radix == 2:
        _masked_two(work, base, mask, n_lines, count)
    else:
        _any(work, base, spare, n_lines, 1, radix, twiddles, at, roots, root, count)
        for line in range(n_lines):
            for y in range(base + line * row, base + line * row + row, count):
                store(work, y, load(work, y) * mask[line])
        _any_back(work, base, spare, n_lines, 1, radix, twiddles, at, roots, root, count)
    back(work, base, spare, n_lines, radices[:last], twiddles[:at], roots[:root], count)


@compiled
def forth(work, base, spare, n_lines, radices, twiddles, roots, count):
    """Transform of one strip of rows, left in the order of the plan; not scaled.

    With the first radices of a plan only, its first steps. Gives how many twiddles and roots these take.
    """
    length, at, root = n_lines, 0, 0
    for radix in radices:
        length //= radix
        if radix == 4:
            _four(work, base, n_lines, length, twiddles, at, count)
        else:
            _any(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count)
        at += 2 * length * (radix - 1)
        root += 2 * radix
    return at, root


@compiled
def back(work, base, spare, n_lines, radices, twiddles, roots, count):
    """Inverse of `forth` on one strip of rows, but for the scale, with the twiddles and roots of these radices."""
    length, at, root = n_lines, twiddles.size, roots.size
    for radix in radices:
        length //= radix
    for step in range(radices.size - 1, -1, -1):
        radix = radices[step]
        at -= 2 * length * (radix - 1)
        root -= 2 * radix
        if radix == 4:
            _four_back(work, base, n_lines, length, twiddles, at, count)
        else:
            _any_back(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count)
        length *= radix
