"""The two halves of an ADMM step on copies of coefficients, each in one pass and in place.

Complex arrays are seen as flat real ones, (real, imaginary) interleaved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled
from mri_design.operators.kernels.suitable import flat_numbers

__all__ = ["pulled", "relax", "split"]

Array = NDArray[Any]

BLOCK = 512
"""Numbers whose squares are added up in their own precision, by halves, before sums go on in double."""


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
    _relax(*numbers, real.type(relaxation), real.type(1 - relaxation), powers.reshape(-1), _parts(scaled))
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


def split(given: Array, copies: Array, scaled: Array, factor: Array) -> tuple[float, float, float, float, float]:
    """``copies = factor * scaled`` and ``scaled -= copies``.

    Parameters
    ----------
    given, copies, scaled : contiguous arrays of one shape
        As for `relax`.
    factor : contiguous real array of that shape
        Of their precision.

    Returns
    -------
    five floats
        Squared norms of given - copies, of the change of the copies, and of given, copies and scaled.
    """
    sums, squares = np.zeros(5), np.zeros((5, BLOCK), dtype=scaled.real.dtype)
    _split(*flat_numbers(given, copies, scaled), factor.reshape(-1), _parts(scaled), squares, sums)
    missed, moved, of_given, of_copies, of_scaled = sums.tolist()
    return missed, moved, of_given, of_copies, of_scaled


def _parts(array: Array) -> int:
    return 2 if np.iscomplexobj(array) else 1


@compiled
def _relax(given, copies, scaled, weight, rest, powers, parts):
    for i in range(scaled.size):
        scaled[i] += weight * given[i] + rest * copies[i]
    if parts == 2:
        for i in range(powers.size):
            powers[i] = scaled[2 * i] * scaled[2 * i] + scaled[2 * i + 1] * scaled[2 * i + 1]
    else:
        for i in range(powers.size):
            powers[i] = scaled[i] * scaled[i]


@compiled
def _pulled(copies, scaled, out, weight):
    for i in range(out.size):
        out[i] = weight * (copies[i] - scaled[i])


@compiled
def _split(given, copies, scaled, factor, parts, squares, sums):
    missed, moved, of_given, of_copies, of_scaled = squares[0], squares[1], squares[2], squares[3], squares[4]
    for first in range(0, scaled.size, BLOCK):
        count = min(BLOCK, scaled.size - first)
        a, s, v = given[first : first + count], copies[first : first + count], scaled[first : first + count]
        f = factor[first // parts : (first + count) // parts]
        new = of_copies
        if parts == 2:
            for i in range(count // 2):
                new[2 * i] = f[i] * v[2 * i]
                new[2 * i + 1] = f[i] * v[2 * i + 1]
        else:
            for i in range(count):
                new[i] = f[i] * v[i]
        for i in range(count):
            rest = v[i] - new[i]
            missed[i] = (a[i] - new[i]) * (a[i] - new[i])
            moved[i] = (s[i] - new[i]) * (s[i] - new[i])
            of_given[i] = a[i] * a[i]
            of_scaled[i] = rest * rest
            s[i], v[i] = new[i], rest
        for i in range(count):
            new[i] = new[i] * new[i]
        squares[:, count:] = 0
        for k in range(5):
            half = BLOCK // 2
            while half > 0:
                for i in range(half):
                    squares[k, i] += squares[k, half + i]
                half //= 2
            sums[k] += squares[k, 0]
