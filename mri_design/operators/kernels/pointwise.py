"""Loops over pixels or sites in one pass, without temporaries.

They add weights * u, square moduli, multiply the coefficients of two images and pool them over those of a site, and
sum over Laplace sites at a place along a line. Images are seen as pairs of numbers, (real, imaginary); ``factors`` are
those of the squares of imaginary parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import COUNT, compiled, load, load_pairs, store, weights_of

Array = NDArray[Any]


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
    parts = u.dtype.itemsize // real.itemsize
    _add_product(weights, u.reshape(-1).view(real), out.reshape(-1).view(real), parts, COUNT[real.itemsize])


def squares_of_moduli(u: Array) -> Array:
    """|u|^2 of a contiguous complex array, in its precision."""
    real = u.real.dtype
    out = np.empty(u.shape, dtype=real)
    _squares_of_moduli(u.reshape(-1).view(real), out.reshape(-1), COUNT[real.itemsize])
    return out


@compiled
def _squares_of_moduli(u, out, count):
    whole = out.size // count * count
    for x in range(0, whole, count):
        re, im = load_pairs(u, 2 * x)
        store(out, x, re * re + im * im)
    for x in range(whole, out.size):
        out[x] = u[2 * x] * u[2 * x] + u[2 * x + 1] * u[2 * x + 1]


@compiled
def _add_product(weights, u, out, parts, count):
    size = weights.size * parts  # x >> parts - 1 is x // parts, without a division
    whole = size // (2 * count) * 2 * count
    for image in range(0, u.size, size):
        for x in range(0, whole, 2 * count):
            at = image + x
            w0, w1 = weights_of(weights, x >> parts - 1, parts, count)
            store(out, at, load(out, at) + w0 * load(u, at))
            store(out, at + count, load(out, at + count) + w1 * load(u, at + count))
        for x in range(whole, size):
            out[image + x] += weights[x // parts] * u[image + x]


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
    _pixels(*_numbers(a, b), factors.reshape(-1), cross.reshape(-1), power.reshape(-1))
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
    _differences(*_numbers(a, b), factors.reshape(-1), a.shape[1], *(v.reshape(len(v), -1) for v in (cross, power)))
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
        _edge_powers(neighbours, *_numbers(b), factors.reshape(-1), sums[1])
    else:
        _edges(neighbours, *_numbers(a, b), np.empty((a.size, 4), dtype=a.real.dtype), factors.reshape(-1), *sums)
    return cross, power


def _numbers(*images: Array) -> tuple[Array, ...]:
    return tuple(image.reshape(-1).view(image.real.dtype) for image in images)


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


BLOCK = 512
"""Terms that are added up in their own precision, by halves, before sums go on in double."""


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
    sums, terms = np.zeros(2), np.zeros((2, BLOCK), dtype=x.dtype)
    flat = (array.reshape(-1) for array in (x, cross, power, z, rate))
    _laplace_along(*flat, real(length), real(least), terms, sums)
    slope, curvature = sums.tolist()
    return slope, curvature


@compiled
def _laplace_along(x, cross, power, z, rate, t, least, terms, sums):
    zero = x.dtype.type(0)
    for first in range(0, x.size, BLOCK):
        count = min(BLOCK, x.size - first)
        a, c, p = x[first : first + count], cross[first : first + count], power[first : first + count]
        v, tau = z[first : first + count], rate[first : first + count]
        slope, curvature = terms[0], terms[1]
        for i in range(count):
            along = c[i] + t * p[i]
            s = max(a[i] + t * (c[i] + along), zero) + v[i]
            pi = tau[i] / np.sqrt(max(s, least))
            slope[i] = pi * along
            curvature[i] = pi * p[i]
        terms[:, count:] = 0
        for k in range(2):
            half = BLOCK // 2
            while half > 0:
                for i in range(half):
                    terms[k, i] += terms[k, half + i]
                half //= 2
            sums[k] += terms[k, 0]
