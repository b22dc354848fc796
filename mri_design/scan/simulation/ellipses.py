"""Scenes of ellipses, whose image and whose k-space are both known exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import j1

from mri_design.errors import InputError
from mri_design.operators.trajectory import checked_trajectory
from mri_design.scan.simulation.series import TrigonometricSeries, convolved
from mri_design.scan.simulation.settings import checked_shape

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
                field="intensities",
                got=f"shape {np.shape(self.intensities)}",
                wanted="one number per ellipse",
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
                field="semi_axes",
                got=f"{self.semi_axes[worst]} in ellipse {worst}",
                wanted="positive lengths",
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
                field="supersampling",
                got=repr(supersampling),
                wanted=f"a whole number, 1 to {_MOST_SUBPIXELS}",
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
    return np.divide(2 * j1(z), z, out=np.ones_like(z), where=z > 1e-12)


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
