"""Loops over pixels, coefficients or sites in one pass, without temporaries.

Products and squared moduli; soft thresholds and the copies of ADMM, renewed in place; means over draws of squared
moduli, and of the rest that a control variate leaves. Complex arrays are seen as flat real ones, (real, imaginary)
interleaved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.conventions import flat_numbers
from mri_design.operators.kernels.compiling import compiled, summing

Array = NDArray[Any]

BLOCK = 512
"""Numbers of an array that a loop takes at a time, so that they stay in the innermost cache."""


def add_product(weights: Array, u: Array, out: Array) -> None:
    """``out += weights * u``.

    Parameters
    ----------
    weights : real array, shape (size,)
        One for every number of an image.
    u, out : contiguous arrays, of a multiple of that size
        Real or complex, of one precision, which the weights share.
    """
    real = u.real.dtype
    width = weights.size * (u.dtype.itemsize // real.itemsize)
    _add_products(weights, u.reshape(-1).view(real).reshape(-1, width), out.reshape(-1).view(real).reshape(-1, width))


@compiled
def _add_products(weights, u, out):
    for image in range(u.shape[0]):
        add_row_product(weights, u[image], out[image])


@compiled
def add_row_product(weights, u, out):
    """``out += weights * u``; a weight is shared by both parts of a complex number, or is of one part."""
    if weights.size == out.size:
        for x in range(out.size):
            out[x] += weights[x] * u[x]
    else:
        for x in range(weights.size):
            out[2 * x] += weights[x] * u[2 * x]
            out[2 * x + 1] += weights[x] * u[2 * x + 1]


def squares_of_moduli(u: Array) -> Array:
    """|u|^2 of a contiguous complex array, in its precision."""
    out = np.empty(u.shape, dtype=u.real.dtype)
    _squares_of_moduli(*flat_numbers(u, out))
    return out


@compiled
def _squares_of_moduli(u, out):
    for i in range(out.size):
        out[i] = u[2 * i] * u[2 * i] + u[2 * i + 1] * u[2 * i + 1]


def shrink(u: Array, threshold: float) -> Array:
    """A contiguous complex array whose moduli were made smaller by the threshold, or zero where they are, in place."""
    (flat,) = flat_numbers(u)
    _shrink(flat, flat.dtype.type(threshold))
    return u


@compiled
def _shrink(u, threshold):
    one, least = u.dtype.type(1), threshold * threshold
    for i in range(u.size // 2):
        re, im = u[2 * i], u[2 * i + 1]
        factor = one - threshold / np.sqrt(max(re * re + im * im, least))
        u[2 * i], u[2 * i + 1] = factor * re, factor * im


def pixel_products(a: Array, b: Array, factors: Array) -> tuple[Array, Array]:
    """Re a* b and |b|^2 of every pixel.

    Parameters
    ----------
    a, b : contiguous complex arrays, shape (ky, kx)
        Of one precision.
    factors : contiguous real array, shape (ky, kx)
        Of that precision: imaginary parts of products count so many times.

    Returns
    -------
    cross, power : real arrays, shape (ky, kx)
    """
    cross, power = np.empty((2, *a.shape), dtype=a.real.dtype)
    _pixels(*flat_numbers(a, b), factors.reshape(-1), cross.reshape(-1), power.reshape(-1))
    return cross, power


def difference_products(a: Array, b: Array, factors: Array, together: bool) -> tuple[Array, Array]:
    """Products as in `pixel_products`, of the periodic differences along both axes.

    Parameters
    ----------
    a, b, factors
        As for `pixel_products`.
    together : bool
        Whether both differences of a pixel are added up.

    Returns
    -------
    cross, power : real arrays, shape (2, ky, kx), or (1, ky, kx) of their sums
    """
    shape = (1 if together else 2, *a.shape)
    cross, power = np.empty((2, *shape), dtype=a.real.dtype)
    _differences(*flat_numbers(a, b), factors.reshape(-1), a.shape[1], *(v.reshape(len(v), -1) for v in (cross, power)))
    return cross, power


def edge_products(neighbours: Array, a: Array, b: Array, factors: Array, together: bool) -> tuple[Array, Array]:
    """Products as in `pixel_products`, of the differences along the edges of a graph.

    Parameters
    ----------
    neighbours : int32 array, shape (K, size)
        Flat numbers of pixels.
    a, b, factors
        As for `pixel_products`.
    together : bool
        Whether all edges of a pixel are added up.

    Returns
    -------
    cross, power : real arrays, shape (K, ky, kx), or (1, ky, kx) of their sums
    """
    shape = (1 if together else len(neighbours), *a.shape)
    power = np.empty(shape, dtype=a.real.dtype)
    cross = power if b is a else np.empty_like(power)
    sums = tuple(v.reshape(len(v), -1) for v in (cross, power))
    if b is a:
        _edge_powers(neighbours, *flat_numbers(b), factors.reshape(-1), sums[1])
    else:
        _edges(neighbours, *flat_numbers(a, b), np.empty((a.size, 4), dtype=a.real.dtype), factors.reshape(-1), *sums)
    return cross, power


@compiled
def _pixels(a, b, factors, cross, power):
    for i in range(factors.size):
        re, im, f = b[2 * i], b[2 * i + 1], factors[i]
        cross[i] = a[2 * i] * re + f * (a[2 * i + 1] * im)
        power[i] = re * re + f * (im * im)


@compiled
def _differences(a, b, factors, n_columns, cross, power):
    """Row by row; the last column is taken by itself, because its neighbour is the first."""
    together = cross.shape[0] == 1
    n_rows = factors.size // n_columns
    for y in range(n_rows):
        here, below = y * n_columns, (y + 1) % n_rows * n_columns
        f = factors[here : here + n_columns]
        c, p = cross[0, here : here + n_columns], power[0, here : here + n_columns]
        a0, b0 = a[2 * here : 2 * (here + n_columns)], b[2 * here : 2 * (here + n_columns)]
        a1, b1 = a[2 * below : 2 * (below + n_columns)], b[2 * below : 2 * (below + n_columns)]
        for x in range(n_columns):
            re, im = b1[2 * x] - b0[2 * x], b1[2 * x + 1] - b0[2 * x + 1]
            c[x] = (a1[2 * x] - a0[2 * x]) * re + f[x] * ((a1[2 * x + 1] - a0[2 * x + 1]) * im)
            p[x] = re * re + f[x] * (im * im)
        row = 0 if together else 1
        d, q = cross[row, here : here + n_columns], power[row, here : here + n_columns]
        if not together:
            d[:] = 0
            q[:] = 0
        for x in range(n_columns - 1):
            re, im = b0[2 * x + 2] - b0[2 * x], b0[2 * x + 3] - b0[2 * x + 1]
            d[x] += (a0[2 * x + 2] - a0[2 * x]) * re + f[x] * ((a0[2 * x + 3] - a0[2 * x + 1]) * im)
            q[x] += re * re + f[x] * (im * im)
        x = n_columns - 1
        re, im = b0[0] - b0[2 * x], b0[1] - b0[2 * x + 1]
        d[x] += (a0[0] - a0[2 * x]) * re + f[x] * ((a0[1] - a0[2 * x + 1]) * im)
        q[x] += re * re + f[x] * (im * im)


@compiled
def _edges(neighbours, a, b, pairs, factors, cross, power):
    """Numbers of both images lie side by side in ``pairs``: those of a neighbour are somewhere else, but together."""
    for i in range(factors.size):
        pairs[i, 0], pairs[i, 1], pairs[i, 2], pairs[i, 3] = a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]
    several = cross.shape[0] > 1
    for i in range(factors.size):
        re_a, im_a, re_b, im_b, f = pairs[i, 0], pairs[i, 1], pairs[i, 2], pairs[i, 3], factors[i]
        both = own = factors.dtype.type(0)
        for k in range(neighbours.shape[0]):
            j = neighbours[k, i]
            re, im = pairs[j, 2] - re_b, pairs[j, 3] - im_b
            both += (pairs[j, 0] - re_a) * re + f * ((pairs[j, 1] - im_a) * im)
            own += re * re + f * (im * im)
            if several:
                cross[k, i], power[k, i] = both, own
                both = own = factors.dtype.type(0)
        if not several:
            cross[0, i], power[0, i] = both, own


@compiled
def _edge_powers(neighbours, b, factors, power):
    several = power.shape[0] > 1
    for i in range(factors.size):
        here, beside, f = b[2 * i], b[2 * i + 1], factors[i]
        own = factors.dtype.type(0)
        for k in range(neighbours.shape[0]):
            j = 2 * neighbours[k, i]
            re, im = b[j] - here, b[j + 1] - beside
            own += re * re + f * (im * im)
            if several:
                power[k, i] = own
                own = factors.dtype.type(0)
        if not several:
            power[0, i] = own


def laplace_along(
    powers: tuple[Array, Array, Array], z: Array, rate: Array, length: float, least: float
) -> tuple[float, float]:
    """Sums over sites of pi (c + t p) and of pi p, where x = x0 + 2 t c + t^2 p and pi = tau / sqrt(x + z).

    Parameters
    ----------
    powers : three contiguous real arrays of one shape and precision
        x0, c and p; x is kept from falling below zero.
    z, rate : contiguous arrays of that shape and precision
        z and tau.
    length : float
        t.
    least : float
        What x + z is at least taken to be in pi.
    """
    x, cross, power = powers
    real = x.dtype.type
    flat = (array.reshape(-1) for array in (x, cross, power, z, rate))
    slope, curvature = _laplace_along(*flat, real(length), real(least))
    return float(slope), float(curvature)


@compiled
def _laplace_along(x, cross, power, z, rate, t, least):
    slope = curvature = 0.0
    for first in range(0, x.size, BLOCK):
        last = first + BLOCK
        of_block = _laplace_block(
            x[first:last], cross[first:last], power[first:last], z[first:last], rate[first:last], t, least
        )
        slope += of_block[0]
        curvature += of_block[1]
    return slope, curvature


@summing
def _laplace_block(x, cross, power, z, rate, t, least):
    zero = slope = curvature = t - t
    for i in range(x.size):
        along = cross[i] + t * power[i]
        s = max(x[i] + t * (cross[i] + along), zero) + z[i]
        pi = rate[i] / np.sqrt(max(s, least))
        slope += pi * along
        curvature += pi * power[i]
    return slope, curvature


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
        np.empty((4, BLOCK), dtype=real),
        out.reshape(-1),
    )
    return out


@compiled
def _threshold(level, epsilon, power, unit, limits, iterations, work, out):
    """``limits``: accuracy of the solution, smallest normal number, rounding of one."""
    levels, rounding = work[0], work[1]
    one = unit / unit
    for first in range(0, power.size, BLOCK):
        last = min(first + BLOCK, power.size)
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

    If m is tiny relative to the root of epsilon, x is known, and m is taken to be no smaller than its rounding.
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
    _relax(*numbers, real.type(relaxation), real.type(1 - relaxation), powers.reshape(-1))
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
        Squared norms of given - copies, of the change of the copies, and of given, copies and scaled, with
        ``given`` as it was before.
    """
    sums = np.zeros(5)
    _split(*flat_numbers(given, copies, scaled), factor.reshape(-1), scaled.real.dtype.type(weight), sums)
    return tuple(sums.tolist())


@compiled
def _relax(given, copies, scaled, weight, rest, powers):
    if powers.size == scaled.size:
        for i in range(powers.size):
            scaled[i] += weight * given[i] + rest * copies[i]
            powers[i] = scaled[i] * scaled[i]
    else:
        for i in range(powers.size):
            re = scaled[2 * i] + (weight * given[2 * i] + rest * copies[2 * i])
            im = scaled[2 * i + 1] + (weight * given[2 * i + 1] + rest * copies[2 * i + 1])
            scaled[2 * i], scaled[2 * i + 1] = re, im
            powers[i] = re * re + im * im


@compiled
def _pulled(copies, scaled, out, weight):
    for i in range(out.size):
        out[i] = weight * (copies[i] - scaled[i])


@compiled
def _split(given, copies, scaled, factor, weight, sums):
    """Block by block, whose squares are added up in their own precision before sums go on in double."""
    parts = scaled.size // factor.size
    each = np.empty(BLOCK, dtype=factor.dtype)
    for first in range(0, scaled.size, BLOCK):
        last = min(first + BLOCK, scaled.size)
        if parts == 2:
            for i in range((last - first) // 2):
                each[2 * i] = each[2 * i + 1] = factor[first // 2 + i]
        else:
            each[: last - first] = factor[first:last]
        for k, total in enumerate(
            _split_block(given[first:last], copies[first:last], scaled[first:last], each, weight)
        ):
            sums[k] += total


@summing
def _split_block(given, copies, scaled, factor, weight):
    missed = moved = of_given = of_copies = of_scaled = weight - weight
    for i in range(given.size):
        a, s, new = given[i], copies[i], factor[i] * scaled[i]
        rest = scaled[i] - new
        copies[i], scaled[i], given[i] = new, rest, weight * (new - rest)
        missed += (a - new) * (a - new)
        moved += (s - new) * (s - new)
        of_given += a * a
        of_copies += new * new
        of_scaled += rest * rest
    return missed, moved, of_given, of_copies, of_scaled


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
    _add_powers(*flat_numbers(s, t), group, s.shape[1], size, parts, sums, totals.reshape(groups, 3, -1))


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
    shares, means = (array.reshape(len(array), -1) for array in (share, known))
    flat = (array.reshape(len(known), -1) for array in out)
    _compared(*flat_numbers(s, t), group, shares, means, parts, BLOCK * parts, *flat)
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
