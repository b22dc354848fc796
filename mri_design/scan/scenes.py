"""Objects to simulate scans of: ellipses and ellipsoids in closed form, their phase and coils, and random heads.

Phase and coil sensitivities are short trigonometric series. A product of an object with ``exp(2 pi i m.r)`` has the
object's spectrum moved by ``m``, for fractional ``m`` too. A phase or a coil sensitivity written as a sum of such waves
therefore keeps k-space in closed form, on a grid and between its points. The idea is that of Guerquin-Kern et al., IEEE
Trans. Med. Imaging 31(3):626-636, 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, require_choice, require_counts, require_numbers, require_random
from mri_design.operators.trajectory import checked_trajectory

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
_CONSTANT = np.ones((1, 1), np.complex128)


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


Series = NDArray[np.complex128]
"""Coefficients (2 P + 1, 2 Q + 1) of a sum of plane waves: entry [P + i, Q + j] multiplies ``exp(pi i (i y + j x))``.

y and x are in fields of view, so frequencies are whole multiples of HALF a cycle per field of view: the series is
periodic over two fields of view, and need not take equal values on opposite edges of the image.
"""


def series_values(series: Series, y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Values of a series at the positions ``y`` by ``x`` (fields of view): shape (len(y), len(x))."""
    rows, columns = (side // 2 for side in series.shape)
    waves_y = np.exp(1j * np.pi * np.outer(y, np.arange(-rows, rows + 1)))
    waves_x = np.exp(1j * np.pi * np.outer(np.arange(-columns, columns + 1), x))
    return np.asarray(waves_y @ series @ waves_x)


def series_product(one: Series, other: Series) -> Series:
    """Product of two series as functions; coefficients convolve and negligible rims are dropped."""
    product = convolved(one, other)
    size, inner = np.abs(product), list[slice]()
    for axis in (0, 1):
        largest = size.max(axis=1 - axis)
        half = len(largest) // 2
        both_sides = np.maximum(largest[half::-1], largest[half:])  # by distance from the centre
        kept = int(np.flatnonzero(both_sides >= _SMALLEST_KEPT * size.max())[-1])
        inner.append(slice(half - kept, half + kept + 1))
    return product[tuple(inner)]


def convolved(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Full convolution over both axes, by FFT: (n, m) with (k, l) gives (n + k - 1, m + l - 1).

    Written out, because importing SciPy's signal processing takes a second.
    """
    shape = [n + k - 1 for n, k in zip(one.shape, other.shape, strict=True)]
    padded = [scipy.fft.next_fast_len(n) for n in shape]
    product = scipy.fft.fft2(one, padded) * scipy.fft.fft2(other, padded)
    return np.asarray(scipy.fft.ifft2(product)[: shape[0], : shape[1]])


def phase_series(rng: np.random.Generator, amplitude: float = np.pi / 2) -> Series:
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

    Notes
    -----
    No local phase: rough, object-like phase has no short series. Smooth phase is the easy case for any
    phase-aware reconstruction and no evidence that one works on scans.
    """
    constant = np.exp(1j * rng.uniform(-np.pi, np.pi))
    series = np.array([[constant]])
    shares = rng.dirichlet(np.ones(len(_DIRECTIONS)))
    offsets = rng.uniform(-np.pi, np.pi, len(_DIRECTIONS))
    orders = np.arange(-_BESSEL_ORDERS, _BESSEL_ORDERS + 1)
    for (row, column), share, offset in zip(_DIRECTIONS, shares, offsets, strict=True):
        factor = 1j**orders * scipy.special.jv(orders, amplitude * share) * np.exp(1j * orders * offset)
        laid = np.diag(factor) if column == row else np.diag(factor)[:, ::-1]  # along the lattice direction
        if 0 in (row, column):
            laid = factor[np.newaxis, :] if row == 0 else factor[:, np.newaxis]
        series = series_product(series, laid)
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


def rough_phase(shape: int | tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a smooth phase with local exceptions, as air, vessels and iron make them.

    The exceptions are twelve Gaussian bumps of either sign, up to half pi high, scattered over the middle 80 % of the
    field of view, with standard deviations from 0.01 to 0.06 fields of view.

    Parameters
    ----------
    shape, rng
        As for `smooth_phase`, which gives the slow part.

    Returns
    -------
    float64 array, shape (ky, kx)
        Phase in radians; not wrapped.

    Raises
    ------
    InputError
        On a wrong shape.
    """
    phase = smooth_phase(shape, rng)
    y, x = pixel_positions(phase.shape[0]), pixel_positions(phase.shape[1])
    for _ in range(_BUMPS):
        centre_y, centre_x = rng.uniform(-0.4, 0.4, 2)
        width_y, width_x = np.exp(rng.uniform(np.log(0.01), np.log(0.06), 2))
        height = rng.uniform(-_HIGHEST_BUMP, _HIGHEST_BUMP)
        bump_y = np.exp(-0.5 * ((y - centre_y) / width_y) ** 2)
        bump_x = np.exp(-0.5 * ((x - centre_x) / width_x) ** 2)
        phase += height * np.outer(bump_y, bump_x)
    return phase


def coil_series(n_coils: int, rng: np.random.Generator) -> tuple[Series, ...]:
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
    tuple of Series
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
        return (_CONSTANT,)
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
    return tuple(solver @ field @ solver.T for field in fields)


def root_sum_of_squares(
    series: tuple[Series, ...], y: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Root-sum-of-squares over coils on the rectangle of positions ``y`` by ``x`` (fields of view)."""
    return np.sqrt(sum(np.abs(series_values(one, y, x)) ** 2 for one in series))


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


def normalised_maps(series: tuple[Series, ...], shape: tuple[int, int]) -> NDArray[np.complex64]:
    """The series at the pixels' centres, divided by their root-sum-of-squares: (coil, ky, kx)."""
    y, x = pixel_positions(shape[0]), pixel_positions(shape[1])
    maps = np.stack([series_values(one, y, x) for one in series])
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


Weight = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.complex128]]
"""A function of the positions ``y`` and ``x`` (1-D, fields of view) that returns a (len(y), len(x)) array."""

_MOST_SUBPIXELS = 64
_BAND_SAMPLES = 1 << 19  # subpixels rasterised at once, to bound the memory
_MOST_AT_ONCE = 1 << 17  # positions times waves, to stay in the cache


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
        _check_scene(self, {"centres": (2,), "semi_axes": (2,), "angles": ()})

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
        require_counts(least=1, most=_MOST_SUBPIXELS, supersampling=supersampling)
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
        self, shape: int | tuple[int, int], modulations: Sequence[Series] = (_CONSTANT,)
    ) -> NDArray[np.complex128]:
        """Samples of the spectrum on a Cartesian grid, scaled as the centred orthonormal FFT scales.

        The inverse FFT of the result is the scene's Fourier series cut at the grid's frequencies: it rings at
        edges, as a scan does. It is NOT the FFT of `image`, which has aliased and attenuated frequencies.

        Parameters
        ----------
        shape : int or (int, int)
            Grid (ky, kx), DC at ``N // 2``.
        modulations : sequence of Series
            Each multiplies the scene (phase, sensitivity of a coil); their waves shift the spectrum by half cycles.

        Returns
        -------
        complex128 array, shape (modulation, ky, kx)

        Raises
        ------
        InputError
            On a wrong shape.
        """
        sides = checked_shape(shape)
        # The spectrum at every half cycle, with as many beyond the grid as waves shift it by.
        margins = [max(one.shape[axis] // 2 for one in modulations) for axis in (0, 1)]
        ky, kx = (
            np.arange(-2 * (n // 2) - more, -2 * (n // 2) + more + 2 * (n - 1) + 1) / 2
            for n, more in zip(sides, margins, strict=True)
        )
        fine = np.sqrt(sides[0] * sides[1]) * self.spectrum(ky[:, None], kx)
        made = []
        for one in modulations:  # the sum over its waves of coefficient times shifted spectrum, at whole cycles
            rows, columns = (
                slice(more - size // 2, side - more + size // 2)
                for more, size, side in zip(margins, one.shape, fine.shape, strict=True)
            )
            window, (n, m) = fine[rows, columns], one.shape
            sums = convolved(window, one)
            made.append(sums[n - 1 : len(window) : 2, m - 1 : window.shape[1] : 2])
        return np.stack(made)

    def samples(
        self,
        trajectory: ArrayLike,
        shape: int | tuple[int, int],
        modulations: Sequence[Series] = (_CONSTANT,),
    ) -> NDArray[np.complex128]:
        """Samples of the spectrum anywhere, scaled as those of `kspace`.

        At the grid's own positions they are those of `kspace`: both read off the same Fourier integral, and
        neither folds anything. Between these positions no image on the grid explains them exactly: what lies beyond the
        grid's frequencies leaks in, most of all near its rim. A reconstruction from them commits no inverse crime.

        Parameters
        ----------
        trajectory : float array, shape (sample, 2)
            Columns (ky, kx) in cycles per field of view.
        shape : int or (int, int)
            Grid (ky, kx) whose orthonormal FFT sets the scale; samples may lie beyond it.
        modulations : sequence of Series
            What multiplies the scene, one for each coil.

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
            raise InputError("trajectory", f"shape {k.shape}", "(sample, 2)")
        frequencies, coefficients = _joint_waves(modulations)
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


def _check_scene(scene: EllipsePhantom | EllipsoidPhantom, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse what is no scene: ``shapes`` are those of an array's entry for one of its parts; arrays become floats."""
    n = len(scene.intensities) if np.ndim(scene.intensities) == 1 else 0
    for field, shape in {"intensities": (), **shapes}.items():
        array, wanted = np.asarray(getattr(scene, field)), (n, *shape)
        if array.shape != wanted or not n:
            raise InputError(field, f"shape {array.shape}", f"shape {wanted}, one entry at least")
        if not np.isfinite(array).all():
            raise InputError(field, "a NaN or infinite value", "finite numbers")
        object.__setattr__(scene, field, array.astype(np.complex128 if np.iscomplexobj(array) else np.float64))
    if not (scene.semi_axes > 0).all():
        raise InputError("semi_axes", f"{scene.semi_axes.min():g}", "positive lengths")


def _subpixel_positions(n: int, supersampling: int) -> NDArray[np.float64]:
    """Positions (fields of view) of ``supersampling`` points spread evenly inside each of ``n`` pixels."""
    inside = (np.arange(supersampling) + 0.5) / supersampling - 0.5
    return ((np.arange(n)[:, None] - n // 2 + inside) / n).ravel()


def _jinc(
    ky: NDArray[np.float64], kx: NDArray[np.float64], axes: NDArray[np.float64], angle: float
) -> NDArray[np.float64]:
    """Fourier integral of a centred ellipse over its area: 2 J1(z) / z, which is 1 at z = 0."""
    cosine, sine = np.cos(angle), np.sin(angle)
    z = 2 * np.pi * np.hypot(axes[0] * (cosine * kx + sine * ky), axes[1] * (cosine * ky - sine * kx))
    return np.divide(2 * scipy.special.j1(z), z, out=np.ones_like(z), where=z > 1e-12)


def _joint_waves(series: Sequence[Series]) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Frequencies (wave, 2) in cycles per field of view that any of the series has, and all coefficients on them."""
    half_y, half_x = (max(one.shape[axis] // 2 for one in series) for axis in (0, 1))
    joint = np.zeros((len(series), 2 * half_y + 1, 2 * half_x + 1), np.complex128)
    for row, one in zip(joint, series, strict=True):
        n, m = one.shape
        row[half_y - n // 2 : half_y + n // 2 + 1, half_x - m // 2 : half_x + m // 2 + 1] = one
    sizes = np.abs(joint).max(axis=0)
    kept = np.argwhere(sizes > _SMALLEST_KEPT * sizes.max())
    return (kept - [half_y, half_x]) / 2, joint[:, kept[:, 0], kept[:, 1]]


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
        _check_scene(self, {"centres": (3,), "semi_axes": (3,)})

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


Values = NDArray[np.float64]
HeadPhase = Literal["any", "flat", "smooth", "rough"]

_KINDS: tuple[HeadPhase, ...] = ("flat", "smooth", "rough")
_SHARES = (0.45, 0.25, 0.3)
_SMALLEST, _LARGEST = 0.012, 0.25
"""Radii of the leaves, in fields of view."""
_SIZE_POWER = 2.2
"""Leaves larger than r are as many as r to minus this."""
_UNEVENNESS = 0.2
"""Nats in amplitude between the centre of k-space and its edge, standard deviation: relaxation along an echo train."""


def random_head(
    shape: int | tuple[int, int], rng: np.random.Generator, *, phase: HeadPhase = "any"
) -> NDArray[np.complex128]:
    """Draw a head with the spectrum, the dark surroundings and the phase of real ones, without any real image.

    A ring (scalp and skull) around a brain of random ellipses with sizes from a power law (the dead leaves of Lee,
    Mumford & Huang 2001) and folded bands; texture in the tissue; a phase that is flat with local exceptions, smooth,
    or rough; one side of k-space a little brighter than the other. How spectra fall and how their sides differ was
    compared with training images. Strategies that learn before they see a scan learn from these heads.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx).
    rng : numpy Generator
        Source of all random numbers of the head.
    phase : {"any", "flat", "smooth", "rough"}
        What is left in the image: nearly constant with local exceptions (coil-combined spin echoes), a polynomial, or
        `rough_phase`; "any" draws one of them.

    Returns
    -------
    complex128 array, shape (ky, kx)
        Complex image, scaled so that the 99.5th percentile of its magnitude is 1. It contains no noise. Its
        resolution is that of the grid: it is drawn at twice that, and k-space is cropped.

    Raises
    ------
    InputError
        On a wrong shape, phase or generator.
    """
    require_random(rng)
    require_choice(get_args(HeadPhase), phase=phase)
    rows, columns = checked_shape(shape)
    y, x = np.meshgrid(pixel_positions(2 * rows), pixel_positions(2 * columns), indexing="ij")
    magnitude, tissue = _magnitude(y, x, rng)
    cropped = np.abs(_cropped(magnitude))
    tissue = tissue[::2, ::2]
    noise_like = rng.uniform(0.002, 0.012) * np.percentile(cropped, 99.5) * rng.standard_normal(cropped.shape)
    image = np.abs(cropped + noise_like * tissue) * np.exp(1j * _phase((rows, columns), rng, phase))
    image = _uneven(image, rng)
    echo_off_centre = np.exp(2j * np.pi * rng.uniform(-0.4, 0.4) * pixel_positions(rows))[:, None]
    return np.asarray(image * echo_off_centre / np.percentile(np.abs(image), 99.5))


def _magnitude(y: Values, x: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Ring and brain at the grid of ``y`` and ``x``; and where there is anything."""
    radii, turn, centre = rng.uniform((0.33, 0.27), (0.48, 0.45)), 0.2 * rng.normal(), rng.normal(0, 0.02, 2)
    thickness = rng.uniform(0.015, 0.04)
    ellipses = [_ellipse(y, x, centre, radii - i * thickness, turn) for i in range(3)]
    outside, bone, brain = ellipses
    scene = outside * rng.uniform(0.3, 1.5)
    scene = scene * (1 - bone) + bone * rng.uniform(0, 0.2)
    scene = scene * (1 - brain) + brain * np.maximum(_tissue(y, x, rng), 0)
    fine = _band(y.shape, 1.2, rng)
    scene = scene * (1 + rng.uniform(0, 0.08) * fine) * np.exp(0.6 * (rng.normal() * y + rng.normal() * x))
    return np.asarray(scipy.ndimage.gaussian_filter(scene, rng.uniform(0.2, 0.7))), outside


def _tissue(y: Values, x: Values, rng: np.random.Generator) -> Values:
    """Dead leaves, and bands folded like a cortex over them."""
    background = rng.uniform(0.4, 0.8)
    tissue = np.full(y.shape, background)
    for _ in range(rng.integers(40, 160)):
        radius = min(_SMALLEST * (1 - rng.uniform(0, 0.998)) ** (-1 / _SIZE_POWER), _LARGEST)
        place, turn = rng.uniform(-0.45, 0.45, 2), rng.uniform(0, np.pi)
        leaf = _ellipse(y, x, place, radius * np.array([1.0, rng.uniform(0.3, 1)]), turn)
        tissue = tissue * (1 - leaf) + leaf * np.clip(rng.normal(background, 0.3), 0, 1.3)
    folds = np.tanh(3 * _band(y.shape, y.shape[0] * rng.uniform(0.008, 0.02), rng))
    return np.asarray(tissue + rng.uniform(0, 0.25) * folds * (rng.uniform() < 0.8))


def _ellipse(y: Values, x: Values, centre: Values, radii: Values, turn: float) -> Values:
    """1 inside, 0 outside, with an edge one pixel wide."""
    across, along = y - centre[0], x - centre[1]
    u = (across * np.cos(turn) + along * np.sin(turn)) / radii[0]
    v = (along * np.cos(turn) - across * np.sin(turn)) / radii[1]
    return np.asarray(np.clip((1 - np.hypot(u, v)) * radii.min() * len(y) + 0.5, 0, 1))


def _band(shape: tuple[int, ...], width: float, rng: np.random.Generator) -> Values:
    """Noise smoothed to ``width`` pixels, of unit variance."""
    smooth = scipy.ndimage.gaussian_filter(rng.standard_normal(shape), width, mode="wrap")
    return np.asarray(smooth / smooth.std())


def _cropped(image: Values) -> NDArray[np.complex128]:
    """The middle half of k-space, as an image at the same brightness."""
    rows, columns = (side // 2 for side in image.shape)
    spectrum = scipy.fft.fftshift(scipy.fft.fft2(scipy.fft.ifftshift(image)))
    middle = spectrum[(rows + 1) // 2 :, (columns + 1) // 2 :][:rows, :columns]
    return np.asarray(scipy.fft.fftshift(scipy.fft.ifft2(scipy.fft.ifftshift(middle))) / 4)


def _uneven(image: NDArray[np.complex128], rng: np.random.Generator) -> NDArray[np.complex128]:
    """One side of k-space brighter than the other, as it is in real scans (results/benchmarks/measured-once.md)."""
    k = 2 * pixel_positions(len(image))
    log_weight = rng.normal(0, _UNEVENNESS) * np.sign(k) * np.abs(k) ** rng.uniform(0.3, 1)
    spectrum = scipy.fft.fftshift(scipy.fft.fft(image, axis=0), axes=0) * np.exp(log_weight)[:, None]
    return np.asarray(scipy.fft.ifft(scipy.fft.ifftshift(spectrum, axes=0), axis=0))


def _phase(shape: tuple[int, int], rng: np.random.Generator, phase: HeadPhase) -> Values:
    kind = rng.choice(_KINDS, p=_SHARES) if phase == "any" else phase
    if kind == "smooth":
        return smooth_phase(shape, rng, amplitude=rng.uniform(0.3, np.pi))
    if kind == "rough":
        return rough_phase(shape, rng)
    uneven = _band(shape, rng.uniform(2, 5), rng)
    exceptions = np.where(np.abs(uneven) > 2.3, np.sign(uneven), 0)
    slow = smooth_phase(shape, rng)
    return rng.uniform(0.03, 0.2) * uneven + rng.uniform(0, 1.5) * exceptions + rng.uniform(0, 0.3) * slow
