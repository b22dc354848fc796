"""Smooth complex functions of space as short trigonometric series: multiplying by one shifts k-space.

A product of an object with ``exp(2 pi i m.r)`` has the object's spectrum moved by ``m``, for fractional ``m``
too. A phase or a coil sensitivity written as a sum of such waves therefore keeps k-space in closed form.
The idea is that of Guerquin-Kern et al., IEEE Trans. Med. Imaging 31(3):626-636, 2012."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError
from mri_design.operators.trajectory import checked_trajectory
from mri_design.scan.simulation.settings import checked_shape, pixel_positions

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
        factor = 1j**orders * scipy.special.jv(orders, amplitude * share) * np.exp(1j * orders * offset)
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
    """Coefficients without outer rows and columns that are negligible on both sides."""
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


Weight = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.complex128]]
"""A function of the positions ``y`` and ``x`` (1-D, fields of view) that returns a (len(y), len(x)) array."""

_MOST_SUBPIXELS = 64
_BAND_SAMPLES = 1 << 19  # subpixels rasterised at once, to bound the memory
_MOST_AT_ONCE = 1 << 17  # positions times waves, to stay in the cache
_NEGLIGIBLE = 1e-8  # coefficient of a wave over the largest: far below complex64 k-space
_CONSTANT = TrigonometricSeries(np.ones((1, 1), np.complex128))


@dataclass(frozen=True)
class EllipsePhantom:
    """Sum of ellipses of constant intensity; overlapping ellipses add.

    Lengths are in fields of view, so the field of view is the square ``[-1/2, 1/2)^2`` whatever the grid;
    ``y`` runs down the rows (phase encode), ``x`` along the columns.

    Parameters
    ----------
    centres : float array, shape (ellipse, 2)
        Centre (y, x).
    semi_axes : float array, shape (ellipse, 2)
        First and second semi-axis, positive.
    angles : float array, shape (ellipse,)
        Direction of the first semi-axis in radians: 0 along +x, pi/2 along +y (downwards).
    intensities : float or complex array, shape (ellipse,)
        What each ellipse adds.
    name : str
        Short name for tables and figures.

    Raises
    ------
    InputError
        On sizes that disagree, non-finite entries, or a semi-axis that is not positive.

    Notes
    -----
    Parts outside the field of view are not refused: `image` cuts them off, `kspace` wraps them around as a
    scanner does, and `samples` between whole frequencies tell them from what they would wrap onto. The closed
    form is in Koay, Sarlls & Ozarslan, Magn. Reson. Med. 58:430-436, 2007.
    """

    centres: NDArray[np.float64]
    semi_axes: NDArray[np.float64]
    angles: NDArray[np.float64]
    intensities: NDArray[np.float64] | NDArray[np.complex128]
    name: str = "ellipses"

    def __post_init__(self) -> None:
        n = np.shape(self.intensities)[0] if np.ndim(self.intensities) == 1 else 0
        if n == 0:
            raise InputError(
                field="intensities", got=f"shape {np.shape(self.intensities)}", wanted="one number per ellipse"
            )
        shapes = {"centres": (n, 2), "semi_axes": (n, 2), "angles": (n,), "intensities": (n,)}
        for field, wanted in shapes.items():
            array = np.asarray(getattr(self, field))
            if array.shape != wanted:
                raise InputError(field=field, got=f"shape {array.shape}", wanted=f"shape {wanted}")
            if not np.isfinite(array).all():
                raise InputError(field=field, got="a NaN or infinite value", wanted="finite numbers")
            kind = np.complex128 if np.iscomplexobj(array) else np.float64
            object.__setattr__(self, field, array.astype(kind))
        if not (self.semi_axes > 0).all():
            worst = int(np.argmin(self.semi_axes.min(axis=1)))
            raise InputError(
                field="semi_axes", got=f"{self.semi_axes[worst]} in ellipse {worst}", wanted="positive lengths"
            )

    def image(
        self, shape: int | tuple[int, int], *, supersampling: int = 8, weight: Weight | None = None
    ) -> NDArray[Any]:
        """Average of the scene (times ``weight``) over each pixel, from a grid of points inside the pixel.

        Parameters
        ----------
        shape : int or (int, int)
            Grid (ky, kx); pixel ``N // 2`` is centred on the origin.
        supersampling : int, 1 to 64
            Points per pixel and axis; 1 samples the pixel's centre.
        weight : callable, optional
            Smooth function that multiplies the scene before averaging (phase, sensitivities).

        Returns
        -------
        float64 or complex128 array, shape (ky, kx)
            Complex where the intensities or the weight are.

        Raises
        ------
        InputError
            On a wrong shape or supersampling.
        """
        rows, columns = checked_shape(shape)
        if not isinstance(supersampling, (int, np.integer)) or not 1 <= supersampling <= _MOST_SUBPIXELS:
            raise InputError(
                field="supersampling", got=repr(supersampling), wanted=f"a whole number, 1 to {_MOST_SUBPIXELS}"
            )
        s = int(supersampling)
        y, x = _subpixel_positions(rows, s), _subpixel_positions(columns, s)
        band = max(1, _BAND_SAMPLES // (s * s * columns))
        strips = []
        for start in range(0, rows, band):
            y_band = y[start * s : (start + band) * s]
            fine = self._points(y_band, x)
            if weight is not None:
                fine = fine * weight(y_band, x)
            strips.append(fine.reshape(-1, s, columns, s).mean(axis=(1, 3)))
        return np.concatenate(strips)

    def _points(self, y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[Any]:
        """Value of the scene at the points of the rectangle y by x (both ascending)."""
        scene = np.zeros((y.size, x.size), self.intensities.dtype)
        for centre, axes, angle, intensity in self._ellipses():
            cosine, sine = np.cos(angle), np.sin(angle)
            reach_y = np.hypot(axes[0] * sine, axes[1] * cosine)
            reach_x = np.hypot(axes[0] * cosine, axes[1] * sine)
            rows = slice(*np.searchsorted(y, [centre[0] - reach_y, centre[0] + reach_y]))
            columns = slice(*np.searchsorted(x, [centre[1] - reach_x, centre[1] + reach_x]))
            dy, dx = y[rows, None] - centre[0], x[None, columns] - centre[1]
            first = (cosine * dx + sine * dy) / axes[0]
            second = (cosine * dy - sine * dx) / axes[1]
            scene[rows, columns] += intensity * (first * first + second * second <= 1)
        return scene

    def spectrum(self, ky: ArrayLike, kx: ArrayLike) -> NDArray[np.complex128]:
        """Fourier integral of the scene, ``integral f(r) exp(-2 pi i k.r) dr``, in closed form.

        An ellipse with semi-axes a, b at centre c has ``a b J1(2 pi q) / q exp(-2 pi i k.c)``, q being the
        length of the frequency in the ellipse's own axes, each scaled by its semi-axis.

        Parameters
        ----------
        ky, kx : float arrays that broadcast
            Frequencies in cycles per field of view; any, not only whole ones.

        Returns
        -------
        complex128 array
            Shape of the broadcast frequencies; at (0, 0) the sum of intensity times area.
        """
        ky, kx = np.asarray(ky, np.float64), np.asarray(kx, np.float64)
        total = np.zeros(np.broadcast_shapes(ky.shape, kx.shape), np.complex128)
        for centre, axes, angle, intensity in self._ellipses():
            jinc = _jinc(ky, kx, axes, angle)
            # the shift is a product of two short exponentials where ky and kx are a column and a row
            shift = np.exp(-2j * np.pi * centre[0] * ky) * np.exp(-2j * np.pi * centre[1] * kx)
            total += (intensity * np.pi * axes[0] * axes[1]) * jinc * shift
        return total

    def kspace(
        self, shape: int | tuple[int, int], *, modulation: TrigonometricSeries | None = None
    ) -> NDArray[np.complex128]:
        """Samples of the spectrum on a Cartesian grid, scaled as the centred orthonormal FFT scales.

        The inverse FFT of the result is the scene's Fourier series cut at the grid's frequencies: it rings at
        edges, as a scan does. It is NOT the FFT of `image`, which has aliased and attenuated frequencies.

        Parameters
        ----------
        shape : int or (int, int)
            Grid (ky, kx), DC at ``N // 2``.
        modulation : TrigonometricSeries, optional
            Multiplies the scene (phase, coil sensitivity); its waves shift the spectrum by half cycles.

        Returns
        -------
        complex128 array, shape (ky, kx)

        Raises
        ------
        InputError
            On a wrong shape.
        """
        return self.kspace_of_products(shape, (modulation,))[0]

    def kspace_of_products(
        self, shape: int | tuple[int, int], modulations: tuple[TrigonometricSeries | None, ...]
    ) -> list[NDArray[np.complex128]]:
        """`kspace` for several modulations at once (the coils of one scan), sharing the Bessel functions.

        Raises
        ------
        InputError
            On a wrong shape.
        """
        rows, columns = checked_shape(shape)
        scale = np.sqrt(rows * columns)
        waves = [m for m in modulations if m is not None]
        if not waves:
            plain = scale * self.spectrum(_frequencies(rows)[:, None], _frequencies(columns))
            return [plain.copy() for _ in modulations]
        margin_y = max(m.half_widths[0] for m in waves)
        margin_x = max(m.half_widths[1] for m in waves)
        fine = scale * self.spectrum(_half_frequencies(rows, margin_y)[:, None], _half_frequencies(columns, margin_x))
        return [_shifted_sum(fine, m or _CONSTANT, (margin_y, margin_x)) for m in modulations]

    def samples(
        self, trajectory: ArrayLike, shape: int | tuple[int, int], modulations: tuple[TrigonometricSeries | None, ...]
    ) -> NDArray[np.complex128]:
        """Samples of the spectrum anywhere, scaled as those of `kspace`.

        At the grid's own positions they are those of `kspace_of_products`: both read off the same Fourier integral, and
        neither folds anything. Between these positions no image on the grid explains them exactly: what lies beyond the
        grid's frequencies leaks in, most of all near its rim. A reconstruction from them commits no inverse crime.

        Parameters
        ----------
        trajectory : float array, shape (sample, 2)
            Columns (ky, kx) in cycles per field of view.
        shape : int or (int, int)
            Grid (ky, kx) whose orthonormal FFT sets the scale; samples may lie beyond it.
        modulations : tuple of TrigonometricSeries or None
            What multiplies the scene, one for each coil; None is 1.

        Returns
        -------
        complex128 array, shape (modulation, sample)

        Raises
        ------
        InputError
            On a wrong shape or trajectory.
        """
        scale = np.sqrt(np.prod(checked_shape(shape)))
        k = checked_trajectory(trajectory)
        if k.ndim != 2:
            raise InputError(field="trajectory", got=f"shape {k.shape}", wanted="(sample, 2)")
        frequencies, coefficients = _joint_waves(tuple(m or _CONSTANT for m in modulations))
        few = max(1, _MOST_AT_ONCE // len(frequencies))
        strips = []
        for start in range(0, len(k), few):
            now = k[start : start + few]
            ky, kx = (now[:, axis] - frequencies[:, axis, np.newaxis] for axis in (0, 1))
            total = np.zeros((len(coefficients), len(now)), np.complex128)
            for centre, axes, angle, intensity in self._ellipses():
                # a wave's own shift to the centre goes with its coefficient, so that the table of jincs stays real
                weights = coefficients * np.exp(2j * np.pi * frequencies @ centre)
                inside = (weights.real @ (jinc := _jinc(ky, kx, axes, angle))) + 1j * (weights.imag @ jinc)
                total += intensity * np.pi * axes[0] * axes[1] * np.exp(-2j * np.pi * now @ centre) * inside
            strips.append(total)
        return np.asarray(scale * np.concatenate(strips, axis=1))

    def _ellipses(self) -> zip[tuple[NDArray[np.float64], NDArray[np.float64], float, complex]]:
        return zip(self.centres, self.semi_axes, self.angles, self.intensities, strict=True)


def _subpixel_positions(n: int, supersampling: int) -> NDArray[np.float64]:
    """Positions (fields of view) of ``supersampling`` points spread evenly inside each of ``n`` pixels."""
    inside = (np.arange(supersampling) + 0.5) / supersampling - 0.5
    return ((np.arange(n)[:, None] - n // 2 + inside) / n).ravel()


def _frequencies(n: int) -> NDArray[np.float64]:
    """Whole cycles per field of view of a centred grid of ``n`` samples."""
    return np.arange(n, dtype=np.float64) - n // 2


def _half_frequencies(n: int, margin: int) -> NDArray[np.float64]:
    """`_frequencies` at steps of half a cycle, with ``margin`` more half cycles on each side."""
    lowest = -2 * (n // 2) - margin
    return np.arange(lowest, lowest + 2 * (n - 1) + 2 * margin + 1) / 2


def _jinc(
    ky: NDArray[np.float64], kx: NDArray[np.float64], axes: NDArray[np.float64], angle: float
) -> NDArray[np.float64]:
    """Fourier integral of a centred ellipse over its area: 2 J1(z) / z, which is 1 at z = 0."""
    cosine, sine = np.cos(angle), np.sin(angle)
    z = 2 * np.pi * np.hypot(axes[0] * (cosine * kx + sine * ky), axes[1] * (cosine * ky - sine * kx))
    return np.divide(2 * scipy.special.j1(z), z, out=np.ones_like(z), where=z > 1e-12)


def _joint_waves(series: tuple[TrigonometricSeries, ...]) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Frequencies (wave, 2) in cycles per field of view that any of the series has, and all coefficients on them."""
    half_y, half_x = (max(s.half_widths[axis] for s in series) for axis in (0, 1))
    joint = np.zeros((len(series), 2 * half_y + 1, 2 * half_x + 1), np.complex128)
    for row, s in zip(joint, series, strict=True):
        (y, x), (n, m) = (half_y - s.half_widths[0], half_x - s.half_widths[1]), s.coefficients.shape
        row[y : y + n, x : x + m] = s.coefficients
    sizes = np.abs(joint).max(axis=0)
    kept = np.argwhere(sizes > _NEGLIGIBLE * sizes.max())
    return (kept - [half_y, half_x]) / 2, joint[:, kept[:, 0], kept[:, 1]]


def _shifted_sum(
    fine: NDArray[np.complex128], series: TrigonometricSeries, margin: tuple[int, int]
) -> NDArray[np.complex128]:
    """Sum over waves of coefficient times the spectrum at (k minus the wave's frequency), at whole k."""
    cut_y, cut_x = margin[0] - series.half_widths[0], margin[1] - series.half_widths[1]
    window = fine[cut_y : fine.shape[0] - cut_y, cut_x : fine.shape[1] - cut_x]
    rows, columns = series.coefficients.shape
    return convolved(window, series.coefficients)[rows - 1 : len(window) : 2, columns - 1 : window.shape[1] : 2]


_NEAR_ZERO = 1e-3
"""Frequencies, in the ellipsoid's own scale, below which the closed form loses digits and its series is taken."""


@dataclass(frozen=True)
class EllipsoidPhantom:
    """Sum of ellipsoids of constant intensity with axes along x, y and z; overlapping ellipsoids add.

    Lengths are in fields of view: the field of view is the cube ``[-1/2, 1/2)^3``. ``x`` is the readout, ``y`` and
    ``z`` are the two phase encodes.

    Parameters
    ----------
    centres, semi_axes : float arrays, shape (ellipsoid, 3)
        Along (x, y, z); semi-axes are positive.
    intensities : float or complex array, shape (ellipsoid,)
        What each ellipsoid adds.
    name : str
        Short name for tables and figures.

    Raises
    ------
    InputError
        On sizes that disagree, entries that are not finite, or a semi-axis that is not positive.
    """

    centres: NDArray[np.float64]
    semi_axes: NDArray[np.float64]
    intensities: NDArray[Any]
    name: str = "ellipsoids"

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.intensities))
        for field, wanted in {"centres": (n, 3), "semi_axes": (n, 3), "intensities": (n,)}.items():
            array = np.asarray(getattr(self, field))
            if array.shape != wanted or n == 0 or not np.isfinite(array).all():
                got = f"shape {array.shape}" if array.shape != wanted or n == 0 else "a NaN or infinite value"
                raise InputError(field=field, got=got, wanted=f"finite numbers of shape {wanted}")
            object.__setattr__(self, field, array.astype(np.complex128 if np.iscomplexobj(array) else np.float64))
        if not (self.semi_axes > 0).all():
            raise InputError(field="semi_axes", got=f"{self.semi_axes.min():g}", wanted="positive lengths")

    def spectrum(self, kx: ArrayLike, ky: ArrayLike, kz: ArrayLike) -> NDArray[np.complex128]:
        """Fourier integral of the scene, ``integral f(r) exp(-2 pi i k.r) dr``, in closed form.

        An ellipsoid with semi-axes a, b, c at centre r has ``a b c (sin t - t cos t) / (t^3 / 4 pi) exp(-2 pi i k.r)``
        with ``t = 2 pi |(a kx, b ky, c kz)|`` (Koay, Sarlls & Ozarslan, Magn. Reson. Med. 58:430-436, 2007).

        Parameters
        ----------
        kx, ky, kz : float arrays that broadcast
            Frequencies in cycles per field of view; any, not only whole ones.

        Returns
        -------
        complex128 array
            Shape of the broadcast frequencies; at zero the sum of intensity times volume.
        """
        k = [np.asarray(axis, np.float64) for axis in (kx, ky, kz)]
        total = np.zeros(np.broadcast_shapes(*(axis.shape for axis in k)), np.complex128)
        for centre, axes, intensity in zip(self.centres, self.semi_axes, self.intensities, strict=True):
            squared = sum(np.square(length * axis) for length, axis in zip(axes, k, strict=True))
            t = 2 * np.pi * np.sqrt(np.asarray(squared, np.float64))
            far = np.maximum(t, _NEAR_ZERO)
            ball = np.where(t < _NEAR_ZERO, 1 / 3 - t**2 / 30, (np.sin(far) - far * np.cos(far)) / far**3)
            shift = np.ones((), np.complex128)
            for place, axis in zip(centre, k, strict=True):
                shift = shift * np.exp(-2j * np.pi * place * axis)
            total += intensity * 4 * np.pi * np.prod(axes) * ball * shift
        return total

    def planes(self, positions: int, shape: tuple[int, int]) -> NDArray[np.complex128]:
        """K-space of planes at every readout position, after the inverse Fourier transform along the readout.

        Parameters
        ----------
        positions : int
            Readout samples, and positions.
        shape : (int, int)
            Grid (ky, kz) of every plane.

        Returns
        -------
        complex128 array, shape (positions, ky, kz)
            Scaled as the centred orthonormal FFT of three axes scales; all frequencies of the readout are exact.
        """
        kx, ky, kz = (np.arange(n) - n // 2 for n in (positions, *shape))
        whole = self.spectrum(kx[:, None, None], ky[:, None], kz) * np.sqrt(positions * np.prod(shape))
        spread = np.fft.ifft(np.fft.ifftshift(whole, axes=0), axis=0, norm="ortho")
        return np.asarray(np.fft.fftshift(spread, axes=0))

    def image(self, positions: int, shape: tuple[int, int], *, supersampling: int = 3) -> NDArray[Any]:
        """Average of the scene over each voxel, (positions, ky, kz), from a grid of points inside the voxel."""
        steps = (np.arange(supersampling) + 0.5) / supersampling - 0.5
        places = [(pixel_positions(n)[:, None] + steps / n).ravel() for n in (positions, *shape)]
        scene = np.zeros((positions, *shape), self.intensities.dtype)
        for centre, axes, intensity in zip(self.centres, self.semi_axes, self.intensities, strict=True):
            x, y, z = (np.square((at - c) / a) for at, c, a in zip(places, centre, axes, strict=True))
            for number in range(positions):  # one position at a time, to bound the memory
                few = x[number * supersampling : (number + 1) * supersampling]
                inside = few[:, None, None] + y[:, None] + z <= 1
                parts = inside.reshape(supersampling, shape[0], supersampling, shape[1], supersampling)
                scene[number] += intensity * parts.mean(axis=(0, 2, 4))
        return scene
