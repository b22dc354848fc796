"""Scenes of ellipses and of ellipsoids, whose k-space is known in closed form, on a grid and between its points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, require_counts
from mri_design.operators.trajectory import checked_trajectory
from mri_design.scan.simulation.fields import TrigonometricSeries, checked_shape, convolved, pixel_positions

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
        self, shape: int | tuple[int, int], modulations: Sequence[TrigonometricSeries] = (_CONSTANT,)
    ) -> NDArray[np.complex128]:
        """Samples of the spectrum on a Cartesian grid, scaled as the centred orthonormal FFT scales.

        The inverse FFT of the result is the scene's Fourier series cut at the grid's frequencies: it rings at
        edges, as a scan does. It is NOT the FFT of `image`, which has aliased and attenuated frequencies.

        Parameters
        ----------
        shape : int or (int, int)
            Grid (ky, kx), DC at ``N // 2``.
        modulations : sequence of TrigonometricSeries
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
        margins = [max(one.half_widths[axis] for one in modulations) for axis in (0, 1)]
        ky, kx = (
            np.arange(-2 * (n // 2) - more, -2 * (n // 2) + more + 2 * (n - 1) + 1) / 2
            for n, more in zip(sides, margins, strict=True)
        )
        fine = np.sqrt(sides[0] * sides[1]) * self.spectrum(ky[:, None], kx)
        made = []
        for one in modulations:  # the sum over its waves of coefficient times shifted spectrum, at whole cycles
            rows, columns = (
                slice(more - half, side - more + half)
                for more, half, side in zip(margins, one.half_widths, fine.shape, strict=True)
            )
            window, (n, m) = fine[rows, columns], one.coefficients.shape
            sums = convolved(window, one.coefficients)
            made.append(sums[n - 1 : len(window) : 2, m - 1 : window.shape[1] : 2])
        return np.stack(made)

    def samples(
        self,
        trajectory: ArrayLike,
        shape: int | tuple[int, int],
        modulations: Sequence[TrigonometricSeries] = (_CONSTANT,),
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
        modulations : sequence of TrigonometricSeries
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


def _joint_waves(series: Sequence[TrigonometricSeries]) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    """Frequencies (wave, 2) in cycles per field of view that any of the series has, and all coefficients on them."""
    half_y, half_x = (max(s.half_widths[axis] for s in series) for axis in (0, 1))
    joint = np.zeros((len(series), 2 * half_y + 1, 2 * half_x + 1), np.complex128)
    for row, s in zip(joint, series, strict=True):
        (y, x), (n, m) = (half_y - s.half_widths[0], half_x - s.half_widths[1]), s.coefficients.shape
        row[y : y + n, x : x + m] = s.coefficients
    sizes = np.abs(joint).max(axis=0)
    kept = np.argwhere(sizes > _NEGLIGIBLE * sizes.max())
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
