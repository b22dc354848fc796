"""Smooth functions of space: phase and coil sensitivities, as short trigonometric series and as maps on a grid.

A product of an object with ``exp(2 pi i m.r)`` has the object's spectrum moved by ``m``, for fractional ``m`` too. A
phase or a coil sensitivity written as a sum of such waves therefore keeps k-space in closed form. The idea is that of
Guerquin-Kern et al., IEEE Trans. Med. Imaging 31(3):626-636, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, require_counts, require_numbers, require_random

MOST_COILS = 128
_SMALLEST_SIDE, _LARGEST_SIDE = 4, 4096
_SMALLEST_KEPT = 1e-8  # of the largest coefficient: far below complex64 k-space
_BESSEL_ORDERS = 24  # J_n(pi) falls under 1e-16 well before this order
_DIRECTIONS = ((1, 0), (0, 1), (1, 1), (1, -1))
_HALF_WIDTH = 4  # waves up to two cycles per field of view
_FIT_POINTS = 40
_RING_RADIUS = 0.8  # fields of view: outside the corners, where a loop's field would be singular
_LOOP_SEGMENTS = 48
_RIDGE = 1e-7
_BUMPS, _HIGHEST_BUMP = 12, np.pi / 2


def pixel_positions(n: int) -> NDArray[np.float64]:
    """Centres of ``n`` pixels along one axis, in fields of view; pixel ``n // 2`` lies at zero.

    With these positions the centred orthonormal FFT of ``n`` samples is exactly the Riemann sum of the
    Fourier integral at whole cycles per field of view, for even and odd ``n`` alike.
    """
    return (np.arange(n) - n // 2) / n


def checked_shape(shape: object, field: str = "shape") -> tuple[int, int]:
    """Grid (ky, kx) as two ints; one number means a square grid.

    Raises
    ------
    InputError
        Where it is not one or two whole numbers from 4 to 4096.
    """
    sides = tuple(shape) if isinstance(shape, tuple | list) else (shape, shape)
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in sides)
    if len(sides) != 2 or not whole or not all(_SMALLEST_SIDE <= n <= _LARGEST_SIDE for n in sides):
        wanted = f"one or two whole numbers from {_SMALLEST_SIDE} to {_LARGEST_SIDE}, (ky, kx)"
        raise InputError(field, repr(shape), wanted)
    return int(sides[0]), int(sides[1])


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
        product = convolved(self.coefficients, other.coefficients)
        size, inner = np.abs(product), list[slice]()
        for axis in (0, 1):
            largest = size.max(axis=1 - axis)
            half = len(largest) // 2
            both_sides = np.maximum(largest[half::-1], largest[half:])  # by distance from the centre
            kept = int(np.flatnonzero(both_sides >= _SMALLEST_KEPT * size.max())[-1])
            inner.append(slice(half - kept, half + kept + 1))
        return TrigonometricSeries(product[tuple(inner)])


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
        factor = 1j**orders * scipy.special.jv(orders, amplitude * share) * np.exp(1j * orders * offset)
        laid = np.diag(factor) if column == row else np.diag(factor)[:, ::-1]  # along the lattice direction
        if 0 in (row, column):
            laid = factor[np.newaxis, :] if row == 0 else factor[:, np.newaxis]
        series = series * TrigonometricSeries(laid)
    return series


def smooth_phase(
    shape: int | tuple[int, int], rng: np.random.Generator, *, amplitude: float = np.pi / 2, degree: int = 3
) -> NDArray[np.float64]:
    """Draw a polynomial phase over the field of view, as an imperfect shim and a delay leave it.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx).
    rng : numpy Generator
        Source of the coefficients: normal, so every monomial up to ``degree`` takes part.
    amplitude : float
        Largest absolute phase on the grid, in radians.
    degree : int, 1 to 8
        Total degree of the polynomial.

    Returns
    -------
    float64 array, shape (ky, kx)
        Phase in radians, between -amplitude and +amplitude.

    Raises
    ------
    InputError
        On a wrong shape, amplitude or degree.

    Notes
    -----
    Results on images with such a phase flatter every method that models phase: real phase has local
    exceptions. Use `rough_phase`, or complex images with their own phase, before believing them.
    """
    rows, columns = checked_shape(shape)
    require_numbers(amplitude=amplitude)
    require_counts(least=1, most=8, degree=degree)
    y, x = 2 * pixel_positions(rows), 2 * pixel_positions(columns)
    coefficients = rng.standard_normal((degree + 1, degree + 1))
    power = np.add.outer(np.arange(degree + 1), np.arange(degree + 1))
    coefficients[power > degree] = 0
    phase = np.polynomial.polynomial.polygrid2d(y, x, coefficients)
    return amplitude * phase / np.abs(phase).max()


def rough_phase(
    shape: int | tuple[int, int], rng: np.random.Generator, *, amplitude: float = np.pi / 2
) -> NDArray[np.float64]:
    """Draw a smooth phase with local exceptions, as air, vessels and iron make them.

    The exceptions are twelve Gaussian bumps of either sign, up to half pi high, scattered over the middle 80 % of the
    field of view, with standard deviations from 0.01 to 0.06 fields of view.

    Parameters
    ----------
    shape, rng, amplitude
        As for `smooth_phase`, which gives the slow part.

    Returns
    -------
    float64 array, shape (ky, kx)
        Phase in radians; not wrapped.

    Raises
    ------
    InputError
        On a wrong shape or amplitude.
    """
    phase = smooth_phase(shape, rng, amplitude=amplitude)
    y, x = pixel_positions(phase.shape[0]), pixel_positions(phase.shape[1])
    for _ in range(_BUMPS):
        centre_y, centre_x = rng.uniform(-0.4, 0.4, 2)
        width_y, width_x = np.exp(rng.uniform(np.log(0.01), np.log(0.06), 2))
        height = rng.uniform(-_HIGHEST_BUMP, _HIGHEST_BUMP)
        bump_y = np.exp(-0.5 * ((y - centre_y) / width_y) ** 2)
        bump_x = np.exp(-0.5 * ((x - centre_x) / width_x) ** 2)
        phase += height * np.outer(bump_y, bump_x)
    return phase


def coil_series(n_coils: int, rng: np.random.Generator) -> tuple[TrigonometricSeries, ...]:
    """Draw the complex sensitivities of a ring of coils, each as a short trigonometric series.

    Circular loops stand on a ring around the field of view, facing inwards, with jittered places and a random
    constant phase. Each sensitivity is the loop's transverse field (law of Biot and Savart) divided by the
    ring's root-sum-of-squares, then fitted by waves of up to two cycles per field of view.

    Parameters
    ----------
    n_coils : int
        1 to 128. One coil has the constant sensitivity 1.
    rng : numpy Generator
        Source of the jitter and the phases.

    Returns
    -------
    tuple of TrigonometricSeries
        One per coil. Their root-sum-of-squares is one only to within a per cent (it is what the fit leaves):
        see `root_sum_of_squares`.

    Raises
    ------
    InputError
        On a wrong number of coils.

    Notes
    -----
    No coupling, no loading, no dependence on the object. The form is of the kind used by Guerquin-Kern et
    al., IEEE Trans. Med. Imaging 31(3):626-636, 2012.
    """
    require_counts(least=1, most=MOST_COILS, n_coils=n_coils)
    if n_coils == 1:
        return (TrigonometricSeries(np.ones((1, 1), np.complex128)),)
    points = (np.arange(_FIT_POINTS) + 0.5) / _FIT_POINTS - 0.5
    start = rng.uniform(0, 2 * np.pi)
    spacing = 2 * np.pi / n_coils
    places = start + spacing * (np.arange(n_coils) + rng.uniform(-0.1, 0.1, n_coils))
    loop_radius = min(max(1.2 * _RING_RADIUS * np.sin(spacing / 2), 0.2), 0.45)
    fields = np.stack([_loop_field(place, loop_radius, points) for place in places])
    fields *= np.exp(1j * rng.uniform(-np.pi, np.pi, n_coils))[:, None, None]
    fields /= np.sqrt((np.abs(fields) ** 2).sum(axis=0))
    # A ridge fit by waves is separable, so that one small pseudo-inverse serves both axes.
    waves = np.exp(1j * np.pi * np.outer(points, np.arange(-_HALF_WIDTH, _HALF_WIDTH + 1)))
    gram = waves.conj().T @ waves
    solver = np.linalg.solve(gram + _RIDGE * points.size * np.eye(gram.shape[0]), waves.conj().T)
    return tuple(TrigonometricSeries(solver @ field @ solver.T) for field in fields)


def root_sum_of_squares(
    series: tuple[TrigonometricSeries, ...], y: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Root-sum-of-squares over coils on the rectangle of positions ``y`` by ``x`` (fields of view)."""
    return np.sqrt(sum(np.abs(s.values(y, x)) ** 2 for s in series))


def simulate_coil_maps(shape: int | tuple[int, int], n_coils: int, rng: np.random.Generator) -> NDArray[np.complex64]:
    """Draw coil sensitivity maps with unit root-sum-of-squares in every pixel.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx). The same generator state gives the same coils on every grid.
    n_coils : int
        1 to 128; one coil has the constant map 1.
    rng : numpy Generator
        Source of the coils' places and phases.

    Returns
    -------
    complex64 array, shape (coil, ky, kx)

    Raises
    ------
    InputError
        On a wrong shape or number of coils.
    """
    require_random(rng)
    rows, columns = checked_shape(shape)
    return normalised_maps(coil_series(n_coils, rng), (rows, columns))


def normalised_maps(series: tuple[TrigonometricSeries, ...], shape: tuple[int, int]) -> NDArray[np.complex64]:
    """The series at the pixels' centres, divided by their root-sum-of-squares: (coil, ky, kx)."""
    y, x = pixel_positions(shape[0]), pixel_positions(shape[1])
    maps = np.stack([s.values(y, x) for s in series])
    return (maps / root_sum_of_squares(series, y, x)).astype(np.complex64)


def _loop_field(place: float, radius: float, points: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Transverse field Bx - i By of a loop of unit current at angle ``place``, on the slice z = 0."""
    turn = 2 * np.pi * np.arange(_LOOP_SEGMENTS) / _LOOP_SEGMENTS
    outwards = np.array([np.cos(place), np.sin(place), 0.0])
    sideways = np.array([-np.sin(place), np.cos(place), 0.0])
    upwards = np.array([0.0, 0.0, 1.0])
    wire = _RING_RADIUS * outwards + radius * (np.cos(turn)[:, None] * sideways + np.sin(turn)[:, None] * upwards)
    current = np.cos(turn)[:, None] * upwards - np.sin(turn)[:, None] * sideways
    x, y = np.meshgrid(points, points)  # rows are y
    dx, dy = x[..., None] - wire[:, 0], y[..., None] - wire[:, 1]
    dz = -wire[:, 2]
    cube = (dx * dx + dy * dy + dz * dz) ** 1.5
    field_x = ((current[:, 1] * dz - current[:, 2] * dy) / cube).sum(axis=-1)
    field_y = ((current[:, 2] * dx - current[:, 0] * dz) / cube).sum(axis=-1)
    field: NDArray[np.complex128] = field_x - 1j * field_y
    return field
