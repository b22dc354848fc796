"""The two halves of an ADMM step on copies of coefficients, each in one pass and in place.

Complex arrays are seen as flat real ones, (real, imaginary) interleaved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.lanes import COUNT, fill, load, load_pairs, store, store_pairs, weights_of
from mri_design.operators.kernels.suitable import flat_numbers

Array = NDArray[Any]

BLOCK = 512
"""Numbers whose squares are added up in their own precision, lane by lane, before sums go on in double."""


def relax(given: Array, copies: Array, scaled: Array, relaxation: float) -> Array:
    """``scaled += relaxation * given + (1 - relaxation) * copies``, and its squared moduli.

    Parameters
    ----------
    given, copies, scaled : contiguous arrays of one shape
        Real or complex, of one precision.
    relaxation : float
        Weight.

    Returns
    -------
    real array of that shape
        |scaled|^2 afterwards.
    """
    real = scaled.real.dtype
    powers = np.empty(scaled.shape, dtype=real)
    numbers = flat_numbers(given, copies, scaled)
    weights = real.type(relaxation), real.type(1 - relaxation)
    _relax(*numbers, *weights, powers.reshape(-1), _parts(scaled), COUNT[real.itemsize])
    return powers


def pulled(copies: Array, scaled: Array, weight: float) -> Array:
    """``weight * (copies - scaled)``: where copies and multipliers draw the coefficients, times the weight of that.

    Parameters
    ----------
    copies, scaled : contiguous arrays of one shape
        As for `relax`.
    weight : float
        rho.
    """
    out = np.empty_like(scaled)
    _pulled(*flat_numbers(copies, scaled, out), scaled.real.dtype.type(weight))
    return out


def split(given: Array, copies: Array, scaled: Array, factor: Array, weight: float) -> tuple[float, ...]:
    """``copies = factor * scaled`` and ``scaled -= copies``, and with these ``given = pulled(copies, scaled, weight)``.

    Parameters
    ----------
    given, copies, scaled : contiguous arrays of one shape
        As for `relax`.
    factor : contiguous real array of that shape
        Of their precision.
    weight : float
        As for `pulled`.

    Returns
    -------
    five floats
        Squared norms of given - copies, of the change of the copies, and of given, copies and scaled, where ``given``
        is what it was.
    """
    real, sums = scaled.real.dtype, np.zeros(5)
    lanes = np.empty(COUNT[real.itemsize], dtype=real)
    numbers = flat_numbers(given, copies, scaled)
    _split(*numbers, factor.reshape(-1), _parts(scaled), real.type(weight), lanes, len(lanes), sums)
    return tuple(sums.tolist())


def _parts(array: Array) -> int:
    return 2 if np.iscomplexobj(array) else 1


@compiled
def _relax(given, copies, scaled, weight, rest, powers, parts, count):
    whole = powers.size // count * count if parts == 2 else 0
    for x in range(0, whole, count):
        a, b = load_pairs(given, 2 * x)
        s, t = load_pairs(copies, 2 * x)
        v, w = load_pairs(scaled, 2 * x)
        v, w = v + (weight * a + rest * s), w + (weight * b + rest * t)
        store_pairs(scaled, 2 * x, v, w)
        store(powers, x, v * v + w * w)
    for x in range(whole, powers.size):
        power = weight - weight
        for i in range(parts * x, parts * (x + 1)):
            scaled[i] += weight * given[i] + rest * copies[i]
            power += scaled[i] * scaled[i]
        powers[x] = power


@compiled
def _pulled(copies, scaled, out, weight):
    for i in range(out.size):
        out[i] = weight * (copies[i] - scaled[i])


@compiled
def _split(given, copies, scaled, factor, parts, weight, lanes, count, sums):
    """``lanes`` has room for one register."""
    for first in range(0, scaled.size, BLOCK):
        last = min(first + BLOCK, scaled.size)
        missed = fill(weight - weight)
        moved, of_given, of_copies, of_scaled = missed, missed, missed, missed
        whole = first + (last - first) // (2 * count) * (2 * count)
        for x in range(first, whole, 2 * count):
            pair = weights_of(factor, x >> parts - 1, parts, count)
            for k in range(2):
                at = x + k * count
                a, s, v = load(given, at), load(copies, at), load(scaled, at)
                new = pair[k] * v
                rest, apart, step = v - new, a - new, s - new
                store(copies, at, new)
                store(scaled, at, rest)
                store(given, at, weight * (new - rest))
                missed, moved = missed + apart * apart, moved + step * step
                of_given, of_copies, of_scaled = of_given + a * a, of_copies + new * new, of_scaled + rest * rest
        for k, sum_of_lanes in enumerate((missed, moved, of_given, of_copies, of_scaled)):
            store(lanes, 0, sum_of_lanes)
            for lane in range(count):
                sums[k] += lanes[lane]
        for x in range(whole, last):
            a, s, new = given[x], copies[x], factor[x // parts] * scaled[x]
            rest = scaled[x] - new
            copies[x], scaled[x], given[x] = new, rest, weight * (new - rest)
            for k, value in enumerate((a - new, s - new, a, new, rest)):
                sums[k] += value * value
