"""Smooth complex functions of space as short trigonometric series: multiplying by one shifts k-space.

A product of an object with ``exp(2 pi i m.r)`` has the object's spectrum moved by ``m``, for fractional ``m``
too. A phase or a coil sensitivity written as a sum of such waves therefore keeps k-space in closed form.
The idea is that of Guerquin-Kern et al., IEEE Trans. Med. Imaging 31(3):626-636, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.special import jv

_SMALLEST_KEPT = 1e-8  # of the largest coefficient: far below complex64 k-space
_BESSEL_ORDERS = 24  # J_n(pi) falls under 1e-16 well before this order
_DIRECTIONS = ((1, 0), (0, 1), (1, 1), (1, -1))


@dataclass(frozen=True)
class TrigonometricSeries:
    """Sum of plane waves whose frequencies are whole multiples of HALF a cycle per field of view.

    The half cycle makes the series periodic over two fields of view, so that it need not take equal values
    on opposite edges of the image.

    Parameters
    ----------
    coefficients : complex128 array, shape (2 P + 1, 2 Q + 1)
        Entry ``[P + i, Q + j]`` multiplies ``exp(pi i (i y + j x))``, y and x in fields of view.
    """

    coefficients: NDArray[np.complex128]

    @property
    def half_widths(self) -> tuple[int, int]:
        """Largest index (P, Q) along y and x, in half cycles per field of view."""
        return self.coefficients.shape[0] // 2, self.coefficients.shape[1] // 2

    def values(self, y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.complex128]:
        """Values at the positions ``y`` by ``x`` (fields of view): shape (len(y), len(x))."""
        rows, columns = self.half_widths
        waves_y = np.exp(1j * np.pi * np.outer(y, np.arange(-rows, rows + 1)))
        waves_x = np.exp(1j * np.pi * np.outer(np.arange(-columns, columns + 1), x))
        values: NDArray[np.complex128] = waves_y @ self.coefficients @ waves_x
        return values

    def __mul__(self, other: TrigonometricSeries) -> TrigonometricSeries:
        """Product of the two functions; coefficients convolve and negligible rims are dropped."""
        return TrigonometricSeries(_without_rim(convolved(self.coefficients, other.coefficients)))


def convolved(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Full convolution over both axes, by FFT: (n, m) with (k, l) gives (n + k - 1, m + l - 1).

    Written out, because importing SciPy's signal processing takes a second.
    """
    shape = [n + k - 1 for n, k in zip(one.shape, other.shape, strict=True)]
    padded = [scipy.fft.next_fast_len(n) for n in shape]
    product = scipy.fft.fft2(one, padded) * scipy.fft.fft2(other, padded)
    return np.asarray(scipy.fft.ifft2(product)[: shape[0], : shape[1]])


def phase_series(rng: np.random.Generator, amplitude: float = np.pi / 2) -> TrigonometricSeries:
    """Draw ``exp(i phi)`` with a smooth phase ``phi`` as a series: constant plus four slow cosines.

    The cosines have half a cycle per field of view along y, x and the diagonals. Each factor
    ``exp(i a cos t) = sum_n i^n J_n(a) exp(i n t)`` (Jacobi-Anger) is cut where J_n vanishes, so the
    modulus is one to better than 1e-6 everywhere.

    Parameters
    ----------
    rng : numpy Generator
        Source of the constant, the amplitudes and the offsets.
    amplitude : float
        Sum of the cosines' amplitudes in radians: the phase stays within +-amplitude of its constant.

    Returns
    -------
    TrigonometricSeries

    Notes
    -----
    No local phase: rough, object-like phase has no short series. Smooth phase is the easy case for any
    phase-aware reconstruction and no evidence that one works on scans.
    """
    constant = np.exp(1j * rng.uniform(-np.pi, np.pi))
    series = TrigonometricSeries(np.array([[constant]]))
    shares = rng.dirichlet(np.ones(len(_DIRECTIONS)))
    offsets = rng.uniform(-np.pi, np.pi, len(_DIRECTIONS))
    orders = np.arange(-_BESSEL_ORDERS, _BESSEL_ORDERS + 1)
    for (row, column), share, offset in zip(_DIRECTIONS, shares, offsets, strict=True):
        factor = 1j**orders * jv(orders, amplitude * share) * np.exp(1j * orders * offset)
        series = series * TrigonometricSeries(_along(factor, row, column))
    return series


def _along(factor: NDArray[np.complex128], row: int, column: int) -> NDArray[np.complex128]:
    """One-dimensional coefficients laid along the lattice direction (row, column)."""
    if row == 0:
        return factor[None, :]
    if column == 0:
        return factor[:, None]
    diagonal = np.diag(factor)
    return diagonal if column == row else diagonal[:, ::-1]


def _without_rim(coefficients: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """The same coefficients without outer rows and columns that are negligible on both sides."""
    size = np.abs(coefficients)
    threshold = _SMALLEST_KEPT * size.max()
    cuts = []
    for axis in (0, 1):
        largest = size.max(axis=1 - axis)
        half = largest.size // 2
        both_sides = np.maximum(largest[half::-1], largest[half:])  # by distance from the centre
        cuts.append(half - int(np.flatnonzero(both_sides >= threshold)[-1]))
    rows, columns = coefficients.shape
    return coefficients[cuts[0] : rows - cuts[0], cuts[1] : columns - cuts[1]]
