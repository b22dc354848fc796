"""Sums over Laplace sites at a place along a line, where the power of a site's coefficients is quadratic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.kernels.compiling import compiled

Array = NDArray[Any]

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
