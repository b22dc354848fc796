"""F^H diag(mask) F along ky of many images and coils at once, in cache.

A strip of a few columns is taken apart into real and imaginary rows and stays in the innermost cache through coil
product, forward transform, mask, inverse transform and coil sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.fft.steps import LARGEST_FACTOR, back, forth, plan, radices, there_and_back
from mri_design.operators.kernels.lanes import COUNT, fill, load, load_pairs, store, store_pairs

Array = NDArray[Any]

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
    steps, count = plan(n_lines, real.char), COUNT[real.itemsize]
    u = np.require(u, requirements=["C", "W"])
    out = np.empty(u.shape, dtype=u.dtype)
    _filter(
        u.reshape(-1).view(real),
        (mask[steps.order] / n_lines).astype(real),
        np.empty(0, dtype=real) if maps is None else maps.reshape(-1),
        0 if maps is None else maps.shape[1],
        n_lines,
        n_columns,
        steps.radices,
        steps.twiddles,
        steps.roots,
        np.empty((3 * PANEL * n_lines + LARGEST_FACTOR) * 2 * count, dtype=real),
        count,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _filter(u, mask, maps, coils, n_lines, n_columns, radices, twiddles, roots, work, count, out):
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
                store(work, target + k * strip + y * row, re)
                store(work, target + k * strip + y * row + count, im)
        for k in range(width):
            for coil in range(coils):
                map_at = ((panel + k) * coils + coil) * strip
                for at in range(k * strip, (k + 1) * strip, row):
                    re, im = load(work, image_at + at), load(work, image_at + at + count)
                    sre, sim = load(maps, map_at), load(maps, map_at + count)
                    store(work, at, re * sre - im * sim)
                    store(work, at + count, re * sim + im * sre)
                    map_at += row
                there_and_back(work, k * strip, spare, mask, n_lines, radices, twiddles, roots, count)
                map_at -= strip
                for at in range(k * strip, (k + 1) * strip, row):
                    re, im = load(work, at), load(work, at + count)
                    sre, sim = load(maps, map_at), load(maps, map_at + count)
                    re, im = re * sre + im * sim, im * sre - re * sim
                    if coil > 0:
                        re, im = re + load(work, sum_at + at), im + load(work, sum_at + at + count)
                    store(work, sum_at + at, re)
                    store(work, sum_at + at + count, im)
                    map_at += row
        if coils == 0:
            for k in range(width):
                there_and_back(work, k * strip, spare, mask, n_lines, radices, twiddles, roots, count)
        result = sum_at if coils > 0 else 0
        for y in range(n_lines):
            for k in range(width):
                column = min((panel + k) * count, n_columns - count)
                at = result + k * strip + y * row
                store_pairs(out, image + 2 * (y * n_columns + column), load(work, at), load(work, at + count))


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
    steps, lanes = plan(n_lines, real.char), COUNT[real.itemsize]
    places = np.full(n_lines, -1)
    places[lines] = np.arange(len(lines))
    out = np.empty((count, coils, len(lines), n_columns), dtype=u.dtype)
    _to_lines(
        np.require(u, requirements=["C", "W"]).reshape(-1).view(real),
        places[(steps.order + n_lines // 2) % n_lines],
        np.empty(0, dtype=real) if maps is None else maps.reshape(-1),
        coils,
        n_lines,
        n_columns,
        len(lines),
        steps.radices,
        steps.twiddles,
        steps.roots,
        np.empty((2 * n_lines + LARGEST_FACTOR) * 2 * lanes, dtype=real),
        lanes,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _to_lines(u, places, maps, coils, n_lines, n_columns, chosen, radices, twiddles, roots, work, count, out):
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
            store(work, strip + line * row, scale * re)
            store(work, strip + line * row + count, scale * im)
        for coil in range(coils):
            for line in range(n_lines):
                re, im = load(work, strip + line * row), load(work, strip + line * row + count)
                if maps.size > 0:
                    y = line + half if line + half < n_lines else line + half - n_lines
                    map_at = ((k * coils + coil) * n_lines + y) * row
                    sre, sim = load(maps, map_at), load(maps, map_at + count)
                    re, im = re * sre - im * sim, re * sim + im * sre
                store(work, line * row, re)
                store(work, line * row + count, im)
            forth(work, 0, 2 * strip, n_lines, radices, twiddles, roots, count)
            at = 2 * ((image * coils + coil) * chosen * n_columns + column)
            for line in range(n_lines):
                if places[line] >= 0:
                    re, im = load(work, line * row), load(work, line * row + count)
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
    steps, lanes = plan(n_lines, real.char), COUNT[real.itemsize]
    source = (steps.order + n_lines // 2) % n_lines
    out = np.empty((count, n_lines, n_columns), dtype=values.dtype)
    _to_images(
        values.reshape(-1).view(real),
        np.where(mask[source], source, -1),
        np.empty(0, dtype=real) if maps is None else maps.reshape(-1),
        coils,
        n_lines,
        n_columns,
        steps.radices,
        steps.twiddles,
        steps.roots,
        np.empty((2 * n_lines + LARGEST_FACTOR) * 2 * lanes, dtype=real),
        lanes,
        out.reshape(-1).view(real),
    )
    return out


@compiled
def _to_images(values, source, maps, coils, n_lines, n_columns, radices, twiddles, roots, work, count, out):
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
                store(work, line * row, re)
                store(work, line * row + count, im)
            back(work, 0, 2 * strip, n_lines, radices, twiddles, roots, count)
            for line in range(n_lines):
                y = line + half if line + half < n_lines else line + half - n_lines
                re, im = load(work, line * row), load(work, line * row + count)
                if maps.size > 0:
                    map_at = ((k * coils + coil) * n_lines + y) * row
                    sre, sim = load(maps, map_at), load(maps, map_at + count)
                    re, im = re * sre + im * sim, im * sre - re * sim
                if coil > 0:
                    re, im = re + load(work, strip + y * row), im + load(work, strip + y * row + count)
                store(work, strip + y * row, re)
                store(work, strip + y * row + count, im)
        for y in range(n_lines):
            re, im = load(work, strip + y * row), load(work, strip + y * row + count)
            store_pairs(out, image * size + 2 * (y * n_columns + column), scale * re, scale * im)
