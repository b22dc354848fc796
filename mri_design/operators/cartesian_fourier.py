"""Measurements X of Cartesian scans: lines or samples of the centred, orthonormal FFT of every coil image.

Image and k-space both have their origin at index ``N // 2`` (odd N too), as in SigPy, ``bart fft -u`` and fastMRI.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.errors import InputError, described, number_array, require_grid
from mri_design.operators.base import Array, GramOfImages, LinearOperator, Shape, squared_modulus
from mri_design.operators.conventions import Chosen, chosen_numbers
from mri_design.operators.elementary import Coils
from mri_design.operators.fourier import LineTransform, SpectralFilter, centred, over_coils


class CentredFFT(LinearOperator):
    """Image (ky, kx) -> k-space (ky, kx): the centred, orthonormal Fourier transform, a unitary operator.

    Parameters
    ----------
    shape : tuple of int
        Grid (ky, kx); the origin of image and k-space is at index ``N // 2``.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__(shape, shape)

    def _apply(self, u: Array) -> Array:
        return centred(u)

    def _adjoint(self, v: Array) -> Array:
        return centred(v, inverse=True)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        spectrum = np.broadcast_to(np.asarray(weights, dtype=float), self.in_shape)
        return np.asarray(scipy.fft.ifftshift(spectrum, axes=(-2, -1)))

    def gram_spectrum(self) -> Array | None:
        return np.ones(self.in_shape)


class _CartesianEncoding(LinearOperator):
    """Samples of the centred FFT of every coil image: what lines and masks have in common."""

    def __init__(self, chosen: Shape, coils: Coils) -> None:
        self.grid = (coils.in_shape[0], coils.in_shape[1])
        self._coils, self._fft = coils, CentredFFT(self.grid)
        super().__init__(self.grid, (coils.out_shape[0], *chosen))
        self.maps = coils.maps

    @abstractmethod
    def _taken(self, spectra: Array) -> Array:
        """What is measured of spectra (..., ky, kx)."""

    @abstractmethod
    def placed(self, samples: Array) -> Array:
        """Spectra (..., ky, kx) that are zero where nothing is measured."""

    def _apply(self, u: Array) -> Array:
        return self._taken(self._fft._apply(self._coils._apply(u)))

    def _adjoint(self, v: Array) -> Array:
        return self._coils._adjoint(self._fft._adjoint(self.placed(v)))

    def unit_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """As in the base class; the noise of a sample is the same whichever others are measured."""
        noise = np.empty((count, *self.out_shape), dtype=np.result_type(real, np.complex64))
        for coil in range(self.out_shape[0]):
            noise[:, coil] = self._taken(self._fft.unit_noise(rng, count, real))
        return noise

    @property
    def noise_shape(self) -> Shape:
        return (self.out_shape[0], *self.grid)

    def shared_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """Shape of the noise of all samples of the grid, (coil, ky, kx)."""
        noise = np.empty((count, *self.noise_shape), dtype=np.result_type(real, np.complex64))
        for coil in range(self.noise_shape[0]):
            noise[:, coil] = self._fft.unit_noise(rng, count, real)
        return noise

    def adjoint_of_noise(self, shared: Array) -> Array:
        return self._adjoint(self._taken(shared))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        if np.ndim(weights) == 0:
            return self._unweighted_spectrum * float(weights)
        return self._spectrum_of(np.asarray(weights, dtype=float))

    @cached_property
    def _unweighted_spectrum(self) -> Array:
        return self._spectrum_of(np.asarray(1.0))

    def _spectrum_of(self, weights: Array) -> Array:
        coils = weights.shape[0] if weights.ndim == len(self.out_shape) else 1  # 1: the same for all coils
        mask = self.placed(np.broadcast_to(weights, (coils, *self.out_shape[1:])))
        mask = scipy.fft.ifftshift(mask, axes=(-2, -1))
        if self.maps is None:
            return np.asarray(mask[0])
        # Sample k' picks up frequency k through its coil's power at k' - k.
        spectrum = scipy.fft.irfft2((scipy.fft.rfft2(mask) * self._coil_spread).sum(axis=0), s=self.grid)
        return np.maximum(spectrum, 0)

    def gram_spectrum(self) -> Array | None:
        return self.circulant_spectrum() if self.maps is None else None

    @cached_property
    def _coil_spread(self) -> Array:
        """Per coil the transform that correlates with |FFT of its map|^2."""
        assert self.maps is not None
        power = np.abs(scipy.fft.fft2(self.maps)) ** 2 / np.prod(self.grid) ** 2
        return np.asarray(np.conj(scipy.fft.rfft2(power)))


class CartesianLines(_CartesianEncoding):
    """Image (ky, kx) -> k-space lines (coil, line, kx): lines of the centred FFT of every coil image.

    Its Gram operator needs only FFTs along ky, since readouts are fully sampled and their FFTs cancel.

    Parameters
    ----------
    lines : sequence of int, or bool array (ky,)
        Phase-encode lines in acquisition order, or a mask that is true for them.
    shape : tuple of int
        Image grid (ky, kx).
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities; None is one coil of uniform sensitivity 1.

    Raises
    ------
    InputError
        For lines outside the grid or named twice, a shape that is not two whole numbers, and maps on another grid or
        not finite.
    """

    def __init__(self, lines: Chosen, shape: tuple[int, int], maps: Array | None = None) -> None:
        rows, columns = require_grid("shape", shape, axes=2)
        wanted = f"line numbers from 0 to {rows - 1}"
        given = number_array("lines", chosen_numbers(lines, (rows,), "line"), wanted=wanted)
        if given.dtype.kind == "b" or given.ndim != 1:
            got = described(given) if given.ndim else described(lines)
            raise InputError("lines", got, f"a list of {wanted}, or a mask")
        if not np.all((given.real >= 0) & (given.real < rows) & (given == np.floor(given.real))):
            raise InputError("lines", str(given.tolist()), wanted)
        self.lines = given.real.astype(np.intp)  # in acquisition order
        if len(np.unique(self.lines)) != len(self.lines):
            raise InputError("lines", str(given.tolist()), "every line at most once")
        super().__init__((len(self.lines), columns), Coils(maps, (rows, columns)))

    def _taken(self, spectra: Array) -> Array:
        return spectra[..., self.lines, :]

    def placed(self, samples: Array) -> Array:
        full = np.zeros((*samples.shape[:-2], *self.grid), dtype=samples.dtype)
        full[..., self.lines, :] = samples
        return full

    @property
    def mask(self) -> Array:
        """Bool (ky,), true where measured."""
        flags = np.zeros(self.grid[0], dtype=bool)
        flags[self.lines] = True
        return flags

    def columns(self, u: Array) -> Array:
        """X u with readouts transformed back, (..., coil, line, x): the samples of every column of the image.

        Parameters
        ----------
        u : complex array, shape (..., ky, kx)
            Images.
        """
        lines = self._along_ky.lines(u.reshape(-1, *self.grid), self.lines)
        return np.reshape(lines, (*u.shape[:-2], *self.out_shape))

    @cached_property
    def _along_ky(self) -> LineTransform:
        return LineTransform(self._coils)

    def shared_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """Noise of all lines of the grid, their readouts transformed back: (count, coil, ky, x)."""
        noise = super().shared_noise(rng, count, real)
        for of_one_coil in noise.swapaxes(0, 1):
            of_one_coil[...] = centred(of_one_coil, (-1,), inverse=True)
        return noise

    def adjoint_of_noise(self, shared: Array) -> Array:
        return self._along_ky.images(shared, self.mask)

    def rotated(self, data: Array) -> tuple[LinearOperator, Array]:
        """`LineColumns` of the same lines, and the data with their readouts transformed back."""
        other = LineColumns(self.lines.tolist(), self.grid, self.maps)
        other._along_ky, other.gram = self._along_ky, self.gram
        return other, centred(data, (-1,), inverse=True)

    @cached_property
    def gram(self) -> LinearOperator:
        """X^H X, computed once."""
        mask = scipy.fft.ifftshift(self.mask).astype(float)
        return GramOfImages(self.grid, lambda u: self._along_ky.filtered(u, mask))

    @cached_property
    def _unweighted_spectrum(self) -> Array:
        """As of samples; lines are measured whole, so that the spectrum is the same along kx and one-dimensional."""
        mask = scipy.fft.ifftshift(self.mask).astype(float)
        if self.maps is not None:
            along_ky = squared_modulus(scipy.fft.fft(self.maps, axis=1))
            power = np.sum(along_ky, axis=(0, 2), dtype=np.float64) / (self.grid[0] ** 2 * self.grid[1])
            mask = scipy.fft.irfft(scipy.fft.rfft(mask) * np.conj(scipy.fft.rfft(power)), n=self.grid[0])
        return np.broadcast_to(np.maximum(mask, 0)[:, np.newaxis], self.grid)

    @property
    def couples_columns(self) -> bool:
        return False

    def column_gram(self) -> Array | None:
        aliasing = aliasing_of(self.mask)
        if self.maps is None:
            return np.broadcast_to(aliasing, (self.grid[1], *aliasing.shape))
        maps = self.maps.astype(np.complex128).transpose(2, 1, 0)  # (kx, ky, coil)
        return np.asarray(aliasing * (maps.conj() @ maps.transpose(0, 2, 1)))


def aliasing_of(mask: Array) -> Array:
    """F^H diag(mask) F along y, (ky, ky): what some lines show of an image column, for one uniform coil."""
    kernel = scipy.fft.ifft(scipy.fft.ifftshift(mask).astype(float))
    y = np.arange(len(mask))
    return np.asarray(kernel[y[:, None] - y])


class LineColumns(CartesianLines):
    """`CartesianLines` with readouts transformed back, image (ky, kx) -> (coil, line, x): only FFTs along ky are left.

    The transform of fully sampled readouts is unitary, so that distances of data and the Gram operator are the same.
    """

    def _apply(self, u: Array) -> Array:
        return self.columns(u)

    def _adjoint(self, v: Array) -> Array:
        full = self.placed(v.astype(np.result_type(v.dtype, np.complex64), copy=False))
        images = self.adjoint_of_noise(full.reshape(-1, *full.shape[-3:]))
        return np.reshape(images, (*v.shape[:-3], *self.grid))

    def rotated(self, data: Array) -> tuple[LinearOperator, Array]:
        return self, data


class CartesianSamples(_CartesianEncoding):
    """Image (ky, kx) -> single k-space samples (coil, sample) of the centred FFT of every coil image.

    For lines that are not whole: partial echoes, elliptical shutters, masks over both directions.

    Parameters
    ----------
    mask : bool array, shape (ky, kx)
        Samples that were measured; they come row by row.
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities; None is one coil of uniform sensitivity 1.

    Raises
    ------
    InputError
        For a mask that is not two-dimensional or empty, or maps on another grid.
    """

    def __init__(self, mask: Array, maps: Array | None = None) -> None:
        mask = number_array("sample mask", mask, wanted="bool (ky, kx)", shape=(None, None))
        coils = Coils(maps, (int(mask.shape[0]), int(mask.shape[1])))
        if mask.dtype != np.bool_:
            raise InputError("sample mask", f"{mask.dtype} {mask.shape}", f"bool {mask.shape}")
        if not mask.any():
            raise InputError("sample mask", "no sample", "at least one")
        self.mask, self._chosen = mask, np.flatnonzero(mask)
        super().__init__((len(self._chosen),), coils)

    def _taken(self, spectra: Array) -> Array:
        return spectra.reshape(*spectra.shape[:-2], -1)[..., self._chosen]

    def placed(self, samples: Array) -> Array:
        full = np.zeros((*samples.shape[:-1], self.mask.size), dtype=samples.dtype)
        full[..., self._chosen] = samples
        return full.reshape(*samples.shape[:-1], *self.mask.shape)

    @cached_property
    def gram(self) -> LinearOperator:
        """X^H X: the FFTs of coil images without their centring, which cancels."""
        every_coil = [SpectralFilter(scipy.fft.ifftshift(self.mask).astype(float))]
        return GramOfImages(self.grid, lambda u: over_coils(u, self.maps, every_coil))


def cartesian(lines: Chosen, shape: tuple[int, int], maps: Array | None = None) -> CartesianLines:
    """The measurement X of Cartesian lines: coil maps, then the centred FFT, then the lines, by number or as a mask."""
    return CartesianLines(lines, shape, maps)
