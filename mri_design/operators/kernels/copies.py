"""Steps of ADMM: soft thresholds, and copies of coefficients and coil images renewed in one pass, in place.

A rounded soft threshold is a scalar equation per site, solved by Newton's method for many sites at a time. Complex
arrays are seen as flat real ones, (real, imaginary) interleaved; coil images are (coil, ky, kx).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.conventions import flat_numbers
from mri_design.operators.kernels.compiling import (
    COUNT,
    compiled,
    fill,
    load,
    load_pairs,
    store,
    store_pairs,
    weights_of,
)

Array = NDArray[Any]

SITES = 512
"""Sites that go on together until all of them are solved; their numbers stay in the innermost cache."""


def rounded_shrinkage(level: Array, epsilon: Array, power: Array, iterations: int, unit: float = 1.0) -> Array:
    """r / m for r >= 0 with r + level r / sqrt(r^2 + epsilon) = m = sqrt(power); the limit of m -> 0 where m is 0.

    Parameters
    ----------
    level, epsilon : real arrays, of the shape of ``power``, or single numbers
        Positive; of the precision of ``power``.
    power : real array
        Not negative.
    iterations : int
        Limit; a few are enough, to a few times the rounding of 1.
    unit : float
        In which ``epsilon`` is given.

    Notes
    -----
    The equation is solved for x = r / m, so that units do not matter: x + a x / sqrt(x^2 + e) = 1 with a = level / m
    and e = epsilon / m^2. The left side is concave in x, so Newton's steps from below stay below. Soft thresholding is
    below, and so is 1 / (1 + a / sqrt(e)), which is the solution where e is large.
    """
    real = power.dtype
    out = np.empty(power.shape, dtype=real)
    limits = np.finfo(real)
    _threshold(
        level.reshape(-1),
        epsilon.reshape(-1),
        np.ascontiguousarray(power).reshape(-1),
        real.type(unit),
        (real.type(4 * limits.eps / 1.5), limits.tiny, limits.eps),
        iterations,
        np.empty((4, SITES), dtype=real),
        out.reshape(-1),
    )
    return out


@compiled
def _threshold(level, epsilon, power, unit, limits, iterations, work, out):
    """``limits``: what a step may leave, the least that is told from nothing, and the least beside one."""
    levels, rounding = work[0], work[1]
    one = unit / unit
    for first in range(0, power.size, SITES):
        last = min(first + SITES, power.size)
        _spread(level, one, first, last, levels)
        _spread(epsilon, unit, first, last, rounding)
        _solve(levels, rounding, power[first:last], limits, iterations, work[2], work[3], out[first:last])


@compiled
def _spread(values, unit, first, last, block):
    """``values[first:last]`` times ``unit`` as a block; one value for all is filled in once."""
    if values.size > 1:
        given = values[first:last]
        for i in range(given.size):
            block[i] = unit * given[i]
    elif first == 0:
        block[:] = unit * values[0]


@compiled
def _solve(levels, rounding, power, limits, iterations, a, e, x):
    """x for a block of sites, in loops with so few arrays that the compiler joins lanes.

    Where m is so small beside the root of epsilon that x is known, it is taken to be no smaller than that.
    """
    accuracy, tiny, least = limits
    one, zero, count = accuracy / accuracy, accuracy - accuracy, power.size
    steepest = one / (least * least * least * least)  # x is nearly zero beyond
    for i in range(count):
        e[i] = np.sqrt(max(rounding[i], tiny))
    for i in range(count):
        x[i] = e[i] / (e[i] + levels[i])
    for i in range(count):
        a[i] = one / max(max(np.sqrt(power[i]), least * e[i]), tiny)
    for i in range(count):
        e[i] = rounding[i] * a[i] * a[i]
    for i in range(count):
        a[i] = min(levels[i] * a[i], steepest)
        x[i] = max(one - a[i], x[i])
    for _ in range(iterations):
        unsolved = np.int32(0)
        for i in range(count):
            square = x[i] * x[i] + e[i]
            root = np.sqrt(square)
            step = ((one - x[i]) * root - a[i] * x[i]) * square
            step /= square * root + (a[i] * e[i] + tiny)
            x[i] += step
            # What Newton's step leaves: |f''| step^2 / (2 f') <= 3 x step^2 / (2 square), with the new x.
            unsolved += np.int32(x[i] * step * step > accuracy * square)
        if unsolved == 0:
            break
    for i in range(count):
        x[i] = max(x[i], zero)


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
    """Compiled loop over the copies; ``lanes`` is scratch space of one register."""
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


def seen_by_coils(maps: Array, copies: Array, scaled: Array) -> Array:
    """S^H (copies - scaled), shape (ky, kx): the sum over coils of conj(maps) times the difference."""
    out = np.empty(maps.shape[1:], dtype=maps.dtype)
    _seen(*flat_numbers(maps, copies, scaled, out), len(maps), COUNT[maps.real.itemsize])
    return out


def relax_coils(maps: Array, image: Array, copies: Array, scaled: Array, relaxation: float) -> None:
    """``scaled += relaxation * maps * image + (1 - relaxation) * copies``."""
    real = maps.real.dtype.type
    numbers = flat_numbers(maps, image, copies, scaled)
    _relax_coils(*numbers, real(relaxation), real(1 - relaxation), len(maps), COUNT[maps.real.itemsize])


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
def _relax_coils(maps, image, copies, scaled, weight, rest, coils, count):
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
