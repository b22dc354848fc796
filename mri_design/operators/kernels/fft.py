"""Fourier transforms of many images in cache: lines masked along ky, and filters by a spectrum, which is never sorted.

The forward transform decimates in frequency and leaves the spectrum in digit-reversed order; masks and weights are
brought into that order once; the inverse is the adjoint of the same steps, backwards. Van Loan, Computational
Frameworks for the Fast Fourier Transform (1992), sections 1.9 and 4.2.

`filter_lines` is F^H diag(mask) F along ky, of images and coils: a strip of a few columns is taken apart into real and
imaginary rows and stays in the innermost cache through coil product, transform, mask, inverse transform and coil sum.

`filter_images` is F^H diag(response) F along both axes. Columns are transformed a strip at a time, in lanes of
neighbouring columns. Their spectra are written as rows, so that the other axis is transformed in the same way, in lanes
of neighbouring ky.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import (
    COUNT,
    compiled,
    fill,
    load,
    load_filled,
    load_pairs,
    load_parts,
    store,
    store_pairs,
    store_parts,
    transpose,
)

Array = NDArray[Any]

LARGEST_FACTOR = 127
"""Prime factors above this are left to the libraries: a step of radix r takes r products for each of its numbers."""


Steps = tuple[Array, Array, Array]
"""Radices from the first step to the last, and the constants of all steps: twiddles and roots of unity."""


@lru_cache(maxsize=64)
def radices(n: int) -> tuple[int, ...]:
    """Odd factors of n, fours, and a two if there is one; empty for 1 and where a factor is too large."""
    factors = []
    for radix in (4, 2, *range(3, LARGEST_FACTOR + 1, 2)):
        while n % radix == 0:
            factors.append(radix)
            n //= radix
    return tuple(sorted(factors, key=lambda radix: (radix % 2 == 0, -radix))) if n == 1 else ()


@lru_cache(maxsize=64)
def plan(n: int, dtype: str) -> tuple[Steps, Array]:
    """Steps for n = 2 or more without large prime factors, and where each output of them ends up.

    ``dtype`` is a real one's character.
    """
    factors, order, twiddles, roots = radices(n), np.zeros(1, dtype=np.intp), [], [np.zeros(0, dtype=complex)]
    length = n
    for radix in factors:
        length //= radix
        powers = np.outer(np.arange(length), np.arange(1, radix))
        twiddles.append(np.exp(-2j * np.pi * powers / (length * radix)).ravel())
        if radix % 2:
            roots.append(_roots_by_twos(radix))
    for radix in reversed(factors):
        order = np.concatenate([p + radix * order for p in range(radix)])
    turns, units = (np.concatenate(each).view(float).astype(dtype) for each in (twiddles, roots))
    return (np.array(factors, dtype=np.intp), turns, units), order


def _roots_by_twos(radix: int) -> Array:
    """Roots of unity as `_odd` reads them: for two outputs at a time, those of every pair of inputs."""
    pairs = np.arange(1, radix // 2 + 1)
    outputs = np.append(pairs, pairs[-1:] if radix // 2 % 2 else pairs[:0]).reshape(-1, 1, 2)
    return np.exp(2j * np.pi * (outputs * pairs[:, np.newaxis] % radix) / radix).ravel()


@compiled
def _butterfly(ar, ai, br, bi, cr, ci, dr, di):
    """The transform of four numbers; of the inverse, the second and the fourth change places."""
    sr, si, tr, ti = ar + cr, ai + ci, ar - cr, ai - ci
    pr, pi, qr, qi = br + dr, bi + di, br - dr, bi - di
    return sr + pr, si + pi, tr + qi, ti - qr, sr - pr, si - pi, tr - qi, ti + qr


@compiled
def _twiddles_of_four(twiddles, at):
    """The three twiddles of a step of radix four, in every lane."""
    return (
        load_filled(twiddles, at),
        load_filled(twiddles, at + 1),
        load_filled(twiddles, at + 2),
        load_filled(twiddles, at + 3),
        load_filled(twiddles, at + 4),
        load_filled(twiddles, at + 5),
    )


@compiled
def _four(work, base, n_lines, length, twiddles, at, count):
    row, step = 2 * count, 2 * count * length
    for j in range(length):
        w1r, w1i, w2r, w2i, w3r, w3i = _twiddles_of_four(twiddles, at + 6 * j)
        for y in range(base + j * row, base + n_lines * row, 4 * step):
            ar, ai = load_parts(work, y, count)
            br, bi = load_parts(work, y + step, count)
            cr, ci = load_parts(work, y + 2 * step, count)
            dr, di = load_parts(work, y + 3 * step, count)
            ar, ai, br, bi, cr, ci, dr, di = _butterfly(ar, ai, br, bi, cr, ci, dr, di)
            store_parts(work, y, count, ar, ai)
            store_parts(work, y + step, count, br * w1r - bi * w1i, br * w1i + bi * w1r)
            store_parts(work, y + 2 * step, count, cr * w2r - ci * w2i, cr * w2i + ci * w2r)
            store_parts(work, y + 3 * step, count, dr * w3r - di * w3i, dr * w3i + di * w3r)


@compiled
def _four_back(work, base, n_lines, length, twiddles, at, count):
    row, step = 2 * count, 2 * count * length
    for j in range(length):
        w1r, w1i, w2r, w2i, w3r, w3i = _twiddles_of_four(twiddles, at + 6 * j)
        for y in range(base + j * row, base + n_lines * row, 4 * step):
            ar, ai = load_parts(work, y, count)
            er, ei = load_parts(work, y + step, count)
            br, bi = er * w1r + ei * w1i, ei * w1r - er * w1i
            er, ei = load_parts(work, y + 2 * step, count)
            cr, ci = er * w2r + ei * w2i, ei * w2r - er * w2i
            er, ei = load_parts(work, y + 3 * step, count)
            dr, di = er * w3r + ei * w3i, ei * w3r - er * w3i
            ar, ai, dr, di, cr, ci, br, bi = _butterfly(ar, ai, br, bi, cr, ci, dr, di)
            store_parts(work, y, count, ar, ai)
            store_parts(work, y + step, count, br, bi)
            store_parts(work, y + 2 * step, count, cr, ci)
            store_parts(work, y + 3 * step, count, dr, di)


@compiled
def _masked_four(work, base, mask, n_lines, count):
    """Last step forth, mask, first step back."""
    row = 2 * count
    for line in range(0, n_lines, 4):
        y = base + line * row
        ar, ai = load_parts(work, y, count)
        br, bi = load_parts(work, y + row, count)
        cr, ci = load_parts(work, y + 2 * row, count)
        dr, di = load_parts(work, y + 3 * row, count)
        ar, ai, br, bi, cr, ci, dr, di = _butterfly(ar, ai, br, bi, cr, ci, dr, di)
        m0, m1, m2, m3 = (
            load_filled(mask, line),
            load_filled(mask, line + 1),
            load_filled(mask, line + 2),
            load_filled(mask, line + 3),
        )
        ar, ai, br, bi, cr, ci, dr, di = ar * m0, ai * m0, br * m1, bi * m1, cr * m2, ci * m2, dr * m3, di * m3
        ar, ai, dr, di, cr, ci, br, bi = _butterfly(ar, ai, br, bi, cr, ci, dr, di)
        store_parts(work, y, count, ar, ai)
        store_parts(work, y + row, count, br, bi)
        store_parts(work, y + 2 * row, count, cr, ci)
        store_parts(work, y + 3 * row, count, dr, di)


@compiled
def _masked_two(work, base, mask, n_lines, count):
    row = 2 * count
    for line in range(0, n_lines, 2):
        m0, m1 = load_filled(mask, line), load_filled(mask, line + 1)
        for y in range(base + line * row, base + line * row + row, count):
            a, b = load(work, y), load(work, y + row)
            a, b = (a + b) * m0, (a - b) * m1
            store(work, y, a + b)
            store(work, y + row, a - b)


@compiled
def _two(work, base, n_lines, count):
    """Sums and differences of neighbours: the step of radix two, which is the last one, and its own adjoint."""
    row = 2 * count
    for line in range(base, base + n_lines * row, 2 * row):
        for y in range(line, line + row, count):
            a, b = load(work, y), load(work, y + row)
            store(work, y, a + b)
            store(work, y + row, a - b)


@compiled
def _turned(re, im, twiddles, w, back):
    """Times a twiddle, or its conjugate."""
    c, s = load_filled(twiddles, w), load_filled(twiddles, w + 1)
    if back:
        return re * c + im * s, im * c - re * s
    return re * c - im * s, re * s + im * c


@compiled
def _three(work, base, n_lines, length, twiddles, at, count, back):
    """A step of radix three, or its adjoint, as `_odd` has it."""
    row, step = 2 * count, 2 * count * length
    half, root = fill(work.dtype.type(0.5)), fill(work.dtype.type(np.sqrt(0.75)))
    for j in range(length):
        w = at + 4 * j
        for y in range(base + j * row, base + n_lines * row, 3 * step):
            re, im = load_parts(work, y, count)
            ar, ai = load_parts(work, y + step, count)
            br, bi = load_parts(work, y + 2 * step, count)
            if back:
                ar, ai = _turned(ar, ai, twiddles, w, True)
                br, bi = _turned(br, bi, twiddles, w + 2, True)
            sr, si, fr, fi = ar + br, ai + bi, root * (ar - br), root * (ai - bi)
            store_parts(work, y, count, re + sr, im + si)
            er, ei = re - half * sr, im - half * si
            if back:
                ar, ai, br, bi = er - fi, ei + fr, er + fi, ei - fr
            else:
                ar, ai = _turned(er + fi, ei - fr, twiddles, w, False)
                br, bi = _turned(er - fi, ei + fr, twiddles, w + 2, False)
            store_parts(work, y + step, count, ar, ai)
            store_parts(work, y + 2 * step, count, br, bi)


@compiled
def _odd(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count, back):
    """A step of odd radix, or its adjoint.

    With s_q = x_q + x_-q and d_q = x_q - x_-q, the outputs p and -p are x_0 + sum_q cos s_q -+ i sum_q sin d_q.
    """
    row, step, half = 2 * count, 2 * count * length, radix // 2
    for j in range(length):
        turns = at + 2 * j * (radix - 1) - 2
        for y in range(base + j * row, base + n_lines * row, radix * step):
            re0, im0 = load_parts(work, y, count)
            re, im = re0, im0
            for q in range(1, half + 1):
                ar, ai = load_parts(work, y + q * step, count)
                br, bi = load_parts(work, y + (radix - q) * step, count)
                if back:
                    ar, ai = _turned(ar, ai, twiddles, turns + 2 * q, True)
                    br, bi = _turned(br, bi, twiddles, turns + 2 * (radix - q), True)
                store_parts(work, spare + (2 * q - 2) * row, count, ar + br, ai + bi)
                store_parts(work, spare + (2 * q - 1) * row, count, ar - br, ai - bi)
                re, im = re + (ar + br), im + (ai + bi)
            store_parts(work, y, count, re, im)
            unit, zero = root, fill(work.dtype.type(0))
            for p in range(1, half + 1, 2):
                second = min(p + 1, half)
                er, ei, fr, fi = re0, im0, zero, zero
                gr, gi, hr, hi = re0, im0, zero, zero
                for place in range(spare, spare + 2 * half * row, 2 * row):
                    sr, si = load_parts(work, place, count)
                    dr, di = load_parts(work, place + row, count)
                    c, s = load_filled(roots, unit), load_filled(roots, unit + 1)
                    er, ei, fr, fi = er + sr * c, ei + si * c, fr + dr * s, fi + di * s
                    c, s = load_filled(roots, unit + 2), load_filled(roots, unit + 3)
                    gr, gi, hr, hi = gr + sr * c, gi + si * c, hr + dr * s, hi + di * s
                    unit += 4
                _store_pair(work, y, step, radix, p, er, ei, fr, fi, twiddles, turns, count, back)
                _store_pair(work, y, step, radix, second, gr, gi, hr, hi, twiddles, turns, count, back)


@compiled
def _store_pair(work, y, step, radix, p, er, ei, fr, fi, twiddles, turns, count, back):
    """Outputs p and -p of an odd radix: e - i f and e + i f, or the other way round."""
    if back:
        store_parts(work, y + p * step, count, er - fi, ei + fr)
        store_parts(work, y + (radix - p) * step, count, er + fi, ei - fr)
    else:
        re, im = _turned(er + fi, ei - fr, twiddles, turns + 2 * p, False)
        store_parts(work, y + p * step, count, re, im)
        re, im = _turned(er - fi, ei + fr, twiddles, turns + 2 * (radix - p), False)
        store_parts(work, y + (radix - p) * step, count, re, im)


@compiled
def _roots_of(radix):
    """How many numbers `_roots_by_twos` has."""
    return radix // 2 * ((radix // 2 + 1) // 2 * 4) if radix % 2 == 1 else 0


@compiled
def there_and_back(work, base, spare, mask, n_lines, steps, count):
    """Transform, mask and inverse of one strip of rows (real lanes, imaginary lanes); the last step meets the mask."""
    radices, twiddles, roots = steps
    row, last = 2 * count, radices.size - 1
    radix = radices[last]
    kept = last if radix % 2 == 0 else last + 1
    at, root = forth(work, base, spare, n_lines, (radices[:kept], twiddles, roots), count)
    if radix == 4:
        _masked_four(work, base, mask, n_lines, count)
    elif radix == 2:
        _masked_two(work, base, mask, n_lines, count)
    else:
        for line in range(n_lines):
            for y in range(base + line * row, base + line * row + row, count):
                store(work, y, load(work, y) * mask[line])
    back(work, base, spare, n_lines, (radices[:kept], twiddles[:at], roots[:root]), count)


@compiled
def forth(work, base, spare, n_lines, steps, count):
    """Transform of one strip of rows, left in the order of the plan; not scaled.

    With the first radices of a plan only, its first steps. Gives how many twiddles and roots these take.
    """
    radices, twiddles, roots = steps
    length, at, root = n_lines, np.intp(0), np.intp(0)  # a literal 0 would be compiled apart
    for radix in radices:
        length //= radix
        if radix == 4:
            _four(work, base, n_lines, length, twiddles, at, count)
        elif radix == 2:
            _two(work, base, n_lines, count)
        elif radix == 3:
            _three(work, base, n_lines, length, twiddles, at, count, False)
        elif radix == 5:  # known here, its loops unroll
            _odd(work, base, spare, n_lines, length, 5, twiddles, at, roots, root, count, False)
        else:
            _odd(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count, False)
        at += 2 * length * (radix - 1)
        root += _roots_of(radix)
    return at, root


@compiled
def back(work, base, spare, n_lines, steps, count):
    """Inverse of `forth` on one strip of rows, but for the scale, with the twiddles and roots of these radices."""
    radices, twiddles, roots = steps
    length, at, root = n_lines, twiddles.size, roots.size
    for radix in radices:
        length //= radix
    for step in range(radices.size - 1, -1, -1):
        radix = radices[step]
        at -= 2 * length * (radix - 1)
        root -= _roots_of(radix)
        if radix == 4:
            _four_back(work, base, n_lines, length, twiddles, at, count)
        elif radix == 2:
            _two(work, base, n_lines, count)
        elif radix == 3:
            _three(work, base, n_lines, length, twiddles, at, count, True)
        elif radix == 5:
            _odd(work, base, spare, n_lines, length, 5, twiddles, at, roots, root, count, True)
        else:
            _odd(work, base, spare, n_lines, length, radix, twiddles, at, roots, root, count, True)
        length *= radix


PANEL = 4
"""Strips taken out of an image at a time: short reads far apart are slow."""


def suits(shape: tuple[int, int], dtype: np.dtype[Any]) -> bool:
    """Whether `filter_lines` knows these images: ky of small prime factors, and at least one strip of columns."""
    return dtype.char in "FD" and shape[1] >= COUNT[dtype.itemsize // 2] and bool(radices(shape[0]))


def in_strips(maps: Array, dtype: np.dtype[Any]) -> Array:
    """Coil maps in the order in which `filter_lines` reads them: (strip, coil, ky, part, column).

    Parameters
    ----------
    maps : complex array, shape (coil, ky, kx)
        Sensitivities.
    dtype : complex dtype
        Precision of the images to come.
    """
    real = np.dtype(dtype).type(0).real.dtype
    count, n_columns = COUNT[real.itemsize], maps.shape[-1]
    starts = np.minimum(np.arange(0, n_columns, count), n_columns - count)
    strips = np.empty((len(starts), *maps.shape[:2], 2, count), dtype=real)
    for strip, start in zip(strips, starts, strict=True):
        columns = maps[..., start : start + count]
        strip[:, :, 0], strip[:, :, 1] = columns.real, columns.imag
    return strips


def filter_lines(u: Array, mask: Array, maps: Array | None) -> Array:
    """Sum over coils of conj(S) F^H diag(mask) F S u, with F the unitary transform along ky.

    Parameters
    ----------
    u : complex array, shape (..., ky, kx)
        Images; leading axes are a batch.
    mask : real array, shape (ky,)
        Weights of the lines, in FFT order.
    maps : array or None
        S as `in_strips` gives it for the precision of ``u``; None is one coil of sensitivity 1.

    Returns
    -------
    array of the shape and precision of ``u``
    """
    n_lines, n_columns = u.shape[-2:]
    real = u.real.dtype
    (steps, order), count = plan(n_lines, real.char), COUNT[real.itemsize]
    u = np.require(u, requirements=["C", "W"])
    out = np.empty(u.shape, dtype=u.dtype)
    _filter(
        u.reshape(-1).view(real),
        (mask[order] / n_lines).astype(real),
        np.empty(0, dtype=real) if maps is None else maps.reshape(-1),
        0 if maps is None else maps.shape[1],
        n_lines,
        n_columns,
        steps,
        np.empty((3 * PANEL * n_lines + LARGEST_FACTOR) * 2 * count, dtype=real),
        count,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _filter(u, mask, maps, coils, n_lines, n_columns, steps, work, count, out):
    """Images, panel by panel: ``work`` holds a panel's strips, as many of the image, of the coil sum, spare rows."""
    row, size = 2 * count, 2 * n_lines * n_columns
    strip = n_lines * row
    image_at, sum_at, spare = PANEL * strip, 2 * PANEL * strip, 3 * PANEL * strip
    strips = (n_columns + count - 1) // count
    panels, images = (strips + PANEL - 1) // PANEL, u.size // size
    for turn in range(panels * images):
        # An image stays in cache for all its panels; with coils a panel's maps stay for all images.
        panel = PANEL * (turn % panels if coils == 0 else turn // images)
        image = size * (turn // panels if coils == 0 else turn % images)
        width = min(PANEL, strips - panel)
        if coils == 0 and panel == 0:  # in place from here on: one walk in order, not two across
            out[image : image + size] = u[image : image + size]
        # The last strip may overlap another, which would then be filtered twice.
        overlapping = panel + width == strips and n_columns % count > 0
        source = u if coils > 0 or overlapping else out
        target = image_at if coils > 0 else 0
        for y in range(n_lines):
            for k in range(width):
                column = min((panel + k) * count, n_columns - count)
                re, im = load_pairs(source, image + 2 * (y * n_columns + column))
                store_parts(work, target + k * strip + y * row, count, re, im)
        for k in range(width):
            for coil in range(coils):
                map_at = ((panel + k) * coils + coil) * strip
                for at in range(k * strip, (k + 1) * strip, row):
                    re, im = load_parts(work, image_at + at, count)
                    sre, sim = load_parts(maps, map_at, count)
                    store_parts(work, at, count, re * sre - im * sim, re * sim + im * sre)
                    map_at += row
                there_and_back(work, k * strip, spare, mask, n_lines, steps, count)
                map_at -= strip
                for at in range(k * strip, (k + 1) * strip, row):
                    re, im = load_parts(work, at, count)
                    sre, sim = load_parts(maps, map_at, count)
                    re, im = re * sre + im * sim, im * sre - re * sim
                    if coil > 0:
                        re, im = re + load(work, sum_at + at), im + load(work, sum_at + at + count)
                    store_parts(work, sum_at + at, count, re, im)
                    map_at += row
        if coils == 0:
            for k in range(width):
                there_and_back(work, k * strip, spare, mask, n_lines, steps, count)
        result = sum_at if coils > 0 else 0
        for y in range(n_lines):
            for k in range(width):
                column = min((panel + k) * count, n_columns - count)
                at = result + k * strip + y * row
                re, im = load_parts(work, at, count)
                store_pairs(out, image + 2 * (y * n_columns + column), re, im)


def images_to_lines(u: Array, lines: Array, maps: Array | None) -> Array:
    """Chosen lines of F S u with F the centred unitary transform along ky; the adjoint of `lines_to_images`.

    Parameters
    ----------
    u : complex array, shape (count, ky, kx)
        Images.
    lines : int array, shape (line,)
        Lines in the scanner's order.
    maps : array or None
        S as for `filter_lines`.

    Returns
    -------
    array, shape (count, coil, line, x), of the precision of ``u``
    """
    count, n_lines, n_columns = u.shape
    real = u.real.dtype
    coils = 1 if maps is None else maps.shape[1]
    (steps, order), lanes = plan(n_lines, real.char), COUNT[real.itemsize]
    places = np.full(n_lines, -1)
    places[lines] = np.arange(len(lines))
    out = np.empty((count, coils, len(lines), n_columns), dtype=u.dtype)
    _to_lines(
        np.require(u, requirements=["C", "W"]).reshape(-1).view(real),
        places[(order + n_lines // 2) % n_lines],
        np.empty(0, dtype=real) if maps is None else maps.reshape(-1),
        coils,
        n_lines,
        n_columns,
        len(lines),
        steps,
        np.empty((2 * n_lines + LARGEST_FACTOR) * 2 * lanes, dtype=real),
        lanes,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _to_lines(u, places, maps, coils, n_lines, n_columns, chosen, steps, work, count, out):
    """Strip by strip; ``work`` holds a coil's, the image's and spare rows. ``places`` is -1 where no line is chosen."""
    row, half = 2 * count, n_lines // 2
    strip, size = n_lines * row, 2 * n_lines * n_columns
    scale = work.dtype.type(1 / np.sqrt(n_lines))
    for turn in range((n_columns + count - 1) // count * (u.size // size)):
        k, image = divmod(turn, u.size // size)  # a strip's maps stay in cache for all images
        column = min(k * count, n_columns - count)
        for y in range(n_lines):
            line = y - half if y >= half else y - half + n_lines
            re, im = load_pairs(u, image * size + 2 * (y * n_columns + column))
            store_parts(work, strip + line * row, count, scale * re, scale * im)
        for coil in range(coils):
            for line in range(n_lines):
                re, im = load_parts(work, strip + line * row, count)
                if maps.size > 0:
                    y = line + half if line + half < n_lines else line + half - n_lines
                    map_at = ((k * coils + coil) * n_lines + y) * row
                    sre, sim = load_parts(maps, map_at, count)
                    re, im = re * sre - im * sim, re * sim + im * sre
                store_parts(work, line * row, count, re, im)
            forth(work, np.intp(0), 2 * strip, n_lines, steps, count)
            at = 2 * ((image * coils + coil) * chosen * n_columns + column)
            for line in range(n_lines):
                if places[line] >= 0:
                    re, im = load_parts(work, line * row, count)
                    store_pairs(out, at + 2 * places[line] * n_columns, re, im)


def lines_to_images(values: Array, mask: Array, maps: Array | None) -> Array:
    """Sum over coils of conj(S) F^H values of the lines in a mask, with F the centred unitary transform along ky.

    Parameters
    ----------
    values : contiguous complex array, shape (count, coil, ky, x)
        Of all lines in the scanner's order, readouts transformed back.
    mask : bool array, shape (ky,)
        Lines that count.
    maps : array or None
        S as for `filter_lines`.

    Returns
    -------
    array, shape (count, ky, kx), of the precision of ``values``
    """
    count, coils, n_lines, n_columns = values.shape
    real = values.real.dtype
    (steps, order), lanes = plan(n_lines, real.char), COUNT[real.itemsize]
    source = (order + n_lines // 2) % n_lines
    out = np.empty((count, n_lines, n_columns), dtype=values.dtype)
    _to_images(
        values.reshape(-1).view(real),
        np.where(mask[source], source, -1),
        np.empty(0, dtype=real) if maps is None else maps.reshape(-1),
        coils,
        n_lines,
        n_columns,
        steps,
        np.empty((2 * n_lines + LARGEST_FACTOR) * 2 * lanes, dtype=real),
        lanes,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _to_images(values, source, maps, coils, n_lines, n_columns, steps, work, count, out):
    """Strip by strip; ``work`` holds one strip, its coil sum, spare rows. ``source`` is -1 where nothing counts."""
    row, half = 2 * count, n_lines // 2
    strip, size = n_lines * row, 2 * n_lines * n_columns
    zero = fill(work.dtype.type(0))
    scale = work.dtype.type(1 / np.sqrt(n_lines))
    for turn in range((n_columns + count - 1) // count * (out.size // size)):
        k, image = divmod(turn, out.size // size)  # a strip's maps stay in cache for all images
        column = min(k * count, n_columns - count)
        for coil in range(coils):
            at = (image * coils + coil) * size + 2 * column
            for line in range(n_lines):
                re, im = zero, zero
                if source[line] >= 0:
                    re, im = load_pairs(values, at + 2 * source[line] * n_columns)
                store_parts(work, line * row, count, re, im)
            back(work, np.intp(0), 2 * strip, n_lines, steps, count)
            for line in range(n_lines):
                y = line + half if line + half < n_lines else line + half - n_lines
                re, im = load_parts(work, line * row, count)
                if maps.size > 0:
                    map_at = ((k * coils + coil) * n_lines + y) * row
                    sre, sim = load_parts(maps, map_at, count)
                    re, im = re * sre + im * sim, im * sre - re * sim
                if coil > 0:
                    re, im = re + load(work, strip + y * row), im + load(work, strip + y * row + count)
                store_parts(work, strip + y * row, count, re, im)
        for y in range(n_lines):
            re, im = load_parts(work, strip + y * row, count)
            store_pairs(out, image * size + 2 * (y * n_columns + column), scale * re, scale * im)


def suits_both(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether `filter_images` knows images of this shape: sides of small prime factors, and no shorter than a strip."""
    return dtype.char in "FD" and all(n >= COUNT[dtype.itemsize // 2] and bool(radices(n)) for n in shape[-2:])


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
def _opposite(n_lines: int, n_columns: int, real: str) -> NDArray[np.uint32]:
    """Place of the real part of the opposite wave, for the waves in the order in which they are read."""
    places = _places(n_lines, n_columns, real).reshape(-1)
    number = np.empty(n_lines * n_columns, dtype=np.uint32)
    number[places] = np.arange(places.size, dtype=np.uint32)
    ky, kx = np.divmod(places, n_columns)
    found, count = number[-ky % n_lines * n_columns + -kx % n_columns], COUNT[np.dtype(real).itemsize]
    return (found + found // count * count).astype(np.uint32)  # real parts of a group, then imaginary ones


@lru_cache(maxsize=8)
def _places(n_lines: int, n_columns: int, real: str) -> NDArray[np.intp]:
    """Where the numbers that are read one after another lie in the response."""
    count = COUNT[np.dtype(real).itemsize]
    starts = np.minimum(np.arange(0, n_lines, count), n_lines - count)  # the last group may overlap another
    lines = plan(n_lines, real)[1][starts[:, np.newaxis, np.newaxis] + np.arange(count)]
    return np.asarray(lines * n_columns + plan(n_columns, real)[1][:, np.newaxis])


def filter_images(images: Array, weights: Array, turn: Array | None, grid: tuple[int, int]) -> Array:
    """As `SpectralFilter` of the seam, on sizes that `suits_both`.

    Parameters
    ----------
    images : complex array, shape (..., ky, kx)
        Leading axes are a batch.
    weights : array, shape (1 or 2, ...)
        The response, and what multiplies opposite waves, as `in_groups` gives them for the precision of the images.
    turn : contiguous complex array, shape (ky, kx), or None
        In that precision.
    grid : tuple of int
        Sides of the response.

    Returns
    -------
    array of the shape and precision of ``images``
    """
    n_lines, n_columns = grid
    real = images.real.dtype
    (down, _), (across, _), count = plan(n_lines, real.char), plan(n_columns, real.char), COUNT[real.itemsize]
    waves = (-(-n_lines // count) * n_columns + LARGEST_FACTOR) * 2 * count
    images = np.require(images, requirements=["C"])
    out = np.empty(images.shape, dtype=images.dtype)
    mixing = len(weights) == 2
    _filter_by_spectrum(
        images.reshape(-1).view(real),
        weights.reshape(len(weights), -1),
        _opposite(n_lines, n_columns, real.char) if mixing else np.empty(0, dtype=np.uint32),
        np.empty(0, dtype=real) if turn is None else turn.reshape(-1).view(real),
        images.shape[-2],
        images.shape[-1],
        n_lines,
        n_columns,
        down,
        across,
        np.empty((PANEL * n_lines + LARGEST_FACTOR) * 2 * count, dtype=real),
        np.empty(waves, dtype=real),
        np.empty(waves if mixing else 0, dtype=real),
        count,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _filter_by_spectrum(
    images, weights, opposite, turn, rows, columns, n_lines, n_columns, down, across, work, waves, mixed, count, out
):
    """One image after another: ``work`` holds a panel's strips, ``waves`` the spectrum, both with spare rows behind.

    The last strip of columns and the last group of ky may overlap another. Where there is an ``opposite``, ``mixed``
    takes the spectrum with that of opposite waves.
    """
    row, size = 2 * count, 2 * rows * columns
    strip, along = n_lines * row, n_columns * row
    strips, groups = (columns + count - 1) // count, (n_lines + count - 1) // count
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
                    at = 2 * (y * columns + min((panel + k) * count, columns - count))
                    re, im = load_pairs(images, first + at)
                    if turning:
                        c, s = load_pairs(turn, at)
                        re, im = c * re + s * im, c * im - s * re
                    store_parts(work, k * strip + y * row, count, re, im)
            for k in range(width):
                work[k * strip + rows * row : (k + 1) * strip] = zero
                forth(work, k * strip, spare, n_lines, down, count)
                for group in range(groups):
                    here = k * strip + min(group * count, n_lines - count) * row
                    there = group * along + min((panel + k) * count, columns - count) * row
                    transpose(work, here, row, waves, there, row)
                    transpose(work, here + count, row, waves, there + count, row)
        for group in range(groups):
            base = group * along
            waves[base + columns * row : base + along] = zero
            forth(waves, base, spare_waves, n_columns, across, count)
            if opposite.size > 0:
                continue
            for x in range(n_columns):
                w, at = load(own, (group * n_columns + x) * count), base + x * row
                store(waves, at, load(waves, at) * w)
                store(waves, at + count, load(waves, at + count) * w)
            back(waves, base, spare_waves, n_columns, across, count)
        if opposite.size > 0:
            _mix(waves, weights, opposite, count, mixed)
            for group in range(groups):
                back(mixed, group * along, spare_waves, n_columns, across, count)
        for panel in range(0, strips, PANEL):
            width = min(PANEL, strips - panel)
            for k in range(width):
                for group in range(groups):
                    here = k * strip + min(group * count, n_lines - count) * row
                    there = group * along + min((panel + k) * count, columns - count) * row
                    transpose(filtered, there, row, work, here, row)
                    transpose(filtered, there + count, row, work, here + count, row)
                back(work, k * strip, spare, n_lines, down, count)
            for y in range(rows):
                for k in range(width):
                    at = 2 * (y * columns + min((panel + k) * count, columns - count))
                    re, im = load_parts(work, k * strip + y * row, count)
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
