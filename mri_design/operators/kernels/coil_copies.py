"""The coil images' share of an ADMM step: what copies say of the image, and copies and multipliers renewed.

Every array is complex and contiguous, of one precision; coil images are (coil, ky, kx).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, fill, load_pairs, store_pairs
from mri_design.operators.kernels.suitable import flat_numbers

Array = NDArray[Any]


def seen_by_coils(maps: Array, copies: Array, scaled: Array) -> Array:
    """S^H (copies - scaled), shape (ky, kx): the sum over coils of conj(maps) times the difference."""
    out = np.empty(maps.shape[1:], dtype=maps.dtype)
    _seen(*flat_numbers(maps, copies, scaled, out), len(maps), COUNT[maps.real.itemsize])
    return out


def relax_coils(maps: Array, image: Array, copies: Array, scaled: Array, relaxation: float) -> None:
    """``scaled += relaxation * maps * image + (1 - relaxation) * copies``."""
    real = maps.real.dtype.type
    numbers = flat_numbers(maps, image, copies, scaled)
    _relax(*numbers, real(relaxation), real(1 - relaxation), len(maps), COUNT[maps.real.itemsize])


def renew_coils(data: Array, filtered: Array, copies: Array, scaled: Array, share: float) -> None:
    """``copies = scaled + share * (data - filtered)`` and ``scaled = share * (filtered - data)``."""
    _renew(*flat_numbers(data, filtered, copies, scaled), data.real.dtype.type(share))


@compiled
def _seen(maps, copies, scaled, out, coils, count):
    numbers = out.size
    whole = numbers // (2 * count) * (2 * count)
    zero = fill(out.dtype.type(0))
    for at in range(0, whole, 2 * count):
        re, im = zero, zero
        for first in range(at, at + coils * numbers, numbers):
            mre, mim = load_pairs(maps, first)
            cre, cim = load_pairs(copies, first)
            sre, sim = load_pairs(scaled, first)
            cre, cim = cre - sre, cim - sim
            re, im = re + (mre * cre + mim * cim), im + (mre * cim - mim * cre)
        store_pairs(out, at, re, im)
    for at in range(whole, numbers, 2):
        out[at], out[at + 1] = 0, 0
        for k in range(at, at + coils * numbers, numbers):
            re, im = copies[k] - scaled[k], copies[k + 1] - scaled[k + 1]
            out[at] += maps[k] * re + maps[k + 1] * im
            out[at + 1] += maps[k] * im - maps[k + 1] * re


@compiled
def _relax(maps, image, copies, scaled, weight, rest, coils, count):
    numbers = image.size
    whole = numbers // (2 * count) * (2 * count)
    for at in range(0, whole, 2 * count):
        ure, uim = load_pairs(image, at)
        ure, uim = weight * ure, weight * uim
        for first in range(at, at + coils * numbers, numbers):
            mre, mim = load_pairs(maps, first)
            cre, cim = load_pairs(copies, first)
            sre, sim = load_pairs(scaled, first)
            sre, sim = sre + (mre * ure - mim * uim) + rest * cre, sim + (mre * uim + mim * ure) + rest * cim
            store_pairs(scaled, first, sre, sim)
    for at in range(whole, numbers, 2):
        re, im = weight * image[at], weight * image[at + 1]
        for k in range(at, at + coils * numbers, numbers):
            scaled[k] += (maps[k] * re - maps[k + 1] * im) + rest * copies[k]
            scaled[k + 1] += (maps[k] * im + maps[k + 1] * re) + rest * copies[k + 1]


@compiled
def _renew(data, filtered, copies, scaled, share):
    for i in range(data.size):
        change = share * (data[i] - filtered[i])
        copies[i] = scaled[i] + change
        scaled[i] = -change
