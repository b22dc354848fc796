"""X by name: what the scanner measures of an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft

from mri_design.errors import InputError, number_array, require_grid
from mri_design.operators.base import Array, LinearOperator, Shape
from mri_design.operators.coils import Coils
from mri_design.operators.fourier import CentredFFT, FourierLibrary, transform
from mri_design.operators.selection import LineSampling, SampleSelection

_ROUNDING = 1e-4
"""Cycles by which a position may lie beyond the grid: what single precision leaves of an exact N / 2."""


class _CartesianEncoding(LinearOperator):
    """Samples of the centred FFT of every coil image: what lines and masks have in common."""

    def __init__(
        self, sampling: LineSampling | SampleSelection, grid: Shape, maps: Array | None, library: FourierLibrary
    ) -> None:
        self._coils = None if maps is None else Coils(maps)
        self._fft = CentredFFT((grid[0], grid[1]), library)
        self._chosen = sampling
        super().__init__(grid, sampling.out_shape)
        self.grid = (grid[0], grid[1])
        self.maps = maps
        self.library: FourierLibrary = library

    def _apply(self, u: Array) -> Array:
        coil_images = u[..., None, :, :] if self._coils is None else self._coils._apply(u)
        return self._chosen._apply(self._fft._apply(coil_images))

    def _adjoint(self, v: Array) -> Array:
        coil_images = self._fft._adjoint(self._chosen._adjoint(v))
        return coil_images[..., 0, :, :] if self._coils is None else self._coils._adjoint(coil_images)

    def unit_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """As in the base class; the noise of a sample is the same whichever others are measured."""
        noise = np.empty((count, *self.out_shape), dtype=np.result_type(real, np.complex64))
        for coil in range(self.out_shape[0]):
            noise[:, coil] = self._chosen._apply(self._fft.unit_noise(rng, count, real))
        return noise

    @property
    def noise_shape(self) -> Shape:
        return (self.out_shape[0], *self.grid)

    def shared_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """That of all samples of the grid."""
        noise = np.empty((count, *self.noise_shape), dtype=np.result_type(real, np.complex64))
        for coil in range(self.noise_shape[0]):
            noise[:, coil] = self._fft.unit_noise(rng, count, real)
        return noise

    def adjoint_of_noise(self, shared: Array) -> Array:
        return self._adjoint(self._chosen._apply(shared))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        if np.ndim(weights) == 0:
            return self._unweighted_spectrum * float(weights)
        return self._spectrum_of(np.asarray(weights, dtype=float))

    @cached_property
    def _unweighted_spectrum(self) -> Array:
        return self._spectrum_of(np.asarray(1.0))

    def _spectrum_of(self, weights: Array) -> Array:
        mask = self._chosen._adjoint(np.broadcast_to(weights, self._weight_shape(weights)))
        mask = scipy.fft.ifftshift(mask, axes=(-2, -1))
        if self.maps is None:
            return np.asarray(mask[0])
        # Sample k' picks up frequency k through its coil's power at k' - k.
        spectrum = scipy.fft.irfft2((scipy.fft.rfft2(mask) * self._coil_spread).sum(axis=0), s=self.grid)
        return np.maximum(spectrum, 0)

    def _weight_shape(self, weights: Array) -> Shape:
        """Of the weights of all samples, of one coil where they are the same for all."""
        full = self.out_shape
        return (weights.shape[0] if weights.ndim == len(full) else 1, *full[1:])

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
    lines : sequence of int
        Phase-encode lines in acquisition order.
    shape : tuple of int
        Image grid (ky, kx).
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities; None is one coil of uniform sensitivity 1.
    library : {"scipy", "pyfftw"}
        FFT library, see `operators.fourier`.

    Raises
    ------
    InputError
        For lines outside the grid or named twice, a shape that is not two whole numbers, and maps on another grid or
        not finite.
    """

    def __init__(
        self,
        lines: Sequence[int],
        shape: tuple[int, int],
        maps: Array | None = None,
        library: FourierLibrary = "scipy",
    ) -> None:
        grid = require_grid("shape", shape, axes=2)
        shape = (grid[0], grid[1])
        maps = _as_maps(maps)
        self._sampling = LineSampling(lines, _coil_grid(shape, maps))
        super().__init__(self._sampling, shape, maps, library)

    @property
    def lines(self) -> Array:
        """Measured lines in acquisition order."""
        return self._sampling.lines

    @property
    def mask(self) -> Array:
        """Bool (ky,), true where measured."""
        return self._sampling.mask

    def single_coils(self) -> Iterator[CartesianLines]:
        """The same lines seen by one coil after the other."""
        if self.maps is None:
            yield self
            return
        for sensitivity in self.maps:
            yield CartesianLines(self.lines.tolist(), self.grid, sensitivity[None], self.library)

    def of_uniform_coil(self) -> CartesianLines:
        """The same lines seen by one coil of sensitivity 1."""
        return type(self)(self.lines.tolist(), self.grid, None, self.library)

    def columns(self, u: Array) -> Array:
        """X u with readouts transformed back, (..., coil, line, x): what a line says of each column of the image.

        Parameters
        ----------
        u : complex array, shape (..., ky, kx)
            Images.
        """
        from mri_design.operators.kernels.fft.lines import images_to_lines, suits

        if u.ndim == 3 and suits(self.grid, u.dtype):
            return images_to_lines(u, self.lines, self.gram.strips(u.dtype))
        coil_images = u[..., None, :, :] if self._coils is None else self._coils._apply(u)
        return self._chosen._apply(self._fft.centred(coil_images, (-2,)))

    def shared_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """That of all lines of the grid, their readouts transformed back: (count, coil, ky, x)."""
        noise = super().shared_noise(rng, count, real)
        for of_one_coil in noise.swapaxes(0, 1):
            of_one_coil[...] = self._fft.centred(of_one_coil, (-1,), inverse=True)
        return noise

    def adjoint_of_noise(self, shared: Array) -> Array:
        from mri_design.operators.kernels.fft.lines import lines_to_images, suits

        if suits(self.grid, shared.dtype):
            return lines_to_images(shared, self.mask, self.gram.strips(shared.dtype))
        coil_images = self._fft.centred(shared * self.mask[:, None], (-2,), inverse=True)
        return coil_images[..., 0, :, :] if self._coils is None else self._coils._adjoint(coil_images)

    def rotated(self, data: Array) -> tuple[LinearOperator, Array]:
        """`LineColumns` of the same lines, and the data with their readouts transformed back."""
        other = LineColumns(self.lines.tolist(), self.grid, self.maps, self.library)
        other.gram = self.gram  # with the coil maps in the order that its loops read
        return other, self._fft.centred(data, (-1,), inverse=True)

    @cached_property
    def gram(self) -> _LineGram:
        """X^H X, made once: it keeps the coil maps in the order that its loops read."""
        return _LineGram(self.mask, self.grid, self.maps, self.library)

    @property
    def couples_columns(self) -> bool:
        return False

    def column_gram(self) -> Array | None:
        kernel = scipy.fft.ifft(scipy.fft.ifftshift(self.mask).astype(float))
        y = np.arange(self.grid[0])
        aliasing = kernel[y[:, None] - y]
        if self.maps is None:
            return np.broadcast_to(aliasing, (self.grid[1], *aliasing.shape))
        maps = self.maps.astype(np.complex128).transpose(2, 1, 0)  # (kx, ky, coil)
        return np.asarray(aliasing * (maps.conj() @ maps.transpose(0, 2, 1)))


class LineColumns(CartesianLines):
    """`CartesianLines` with readouts transformed back, image (ky, kx) -> (coil, line, x): only FFTs along ky are left.

    The transform of fully sampled readouts is unitary, so that distances of data and the Gram operator are the same.
    """

    def _apply(self, u: Array) -> Array:
        lines = self.columns(u.reshape(-1, *self.grid))
        return np.reshape(lines, (*u.shape[:-2], *self.out_shape))

    def _adjoint(self, v: Array) -> Array:
        full = np.zeros((*v.shape[:-2], *self.grid), dtype=np.result_type(v.dtype, np.complex64))
        full[..., self.lines, :] = v
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
    library : {"scipy", "pyfftw"}
        FFT library, see `operators.fourier`.

    Raises
    ------
    InputError
        For a mask that is not two-dimensional or empty, or maps on another grid.
    """

    def __init__(self, mask: Array, maps: Array | None = None, library: FourierLibrary = "scipy") -> None:
        mask, maps = number_array("sample mask", mask, wanted="bool (ky, kx)"), _as_maps(maps)
        if mask.ndim != 2:
            raise InputError("sample mask", f"shape {mask.shape}", "(ky, kx)")
        grid = (int(mask.shape[0]), int(mask.shape[1]))
        super().__init__(SampleSelection(mask, _coil_grid(grid, maps)), grid, maps, library)
        self.mask = mask

    @cached_property
    def gram(self) -> LinearOperator:
        """X^H X: the FFTs of coil images without their centring, which cancels."""
        return _CartesianGram(self.mask, self.grid, self.maps, self.library)


class DirectFourier(LinearOperator):
    """Image (ky, kx) -> samples (coil, sample) anywhere in k-space, by sums over all pixels: the reference for them.

    sum_r u(r) exp(-2 pi i k.r) / sqrt(N_y N_x) of every coil image u, with r = (n - N // 2) / N. At whole k these are
    the samples of `CentredFFT`. The cost is samples times pixels; few samples and small grids need nothing faster.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view, between -N / 2 and N / 2.
    grid : (int, int)
        Of the image.
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities; None is one coil of uniform sensitivity 1.

    Raises
    ------
    InputError
        For positions that are no finite numbers (sample, 2) or lie beyond the grid, and maps on another grid.
    """

    def __init__(self, trajectory: Array, grid: tuple[int, int], maps: Array | None = None) -> None:
        rows, columns = require_grid("grid", grid, axes=2)
        wanted = f"finite numbers (sample, 2), ky and kx, up to {rows / 2:g} and {columns / 2:g}"
        k = number_array("trajectory", trajectory, wanted=wanted)
        if k.ndim != 2 or k.shape[1] != 2 or not len(k) or np.iscomplexobj(k):
            raise InputError("trajectory", f"{k.dtype} {k.shape}", wanted)
        if not (np.abs(k) <= np.array([rows, columns]) / 2 + _ROUNDING).all():
            raise InputError("trajectory", f"values up to {np.abs(k).max():g}", wanted)
        self._coils = None if maps is None else Coils(maps)
        super().__init__((rows, columns), (_coil_grid((rows, columns), _as_maps(maps))[0], len(k)))
        self.trajectory, self.grid, self.maps = k.astype(np.float64), (rows, columns), maps
        self._waves = tuple(
            np.exp(-2j * np.pi / n * np.outer(column, np.arange(n) - n // 2)) / np.sqrt(n)
            for column, n in zip(self.trajectory.T, self.grid, strict=True)
        )

    def _apply(self, u: Array) -> Array:
        coil_images = u[..., None, :, :] if self._coils is None else self._coils._apply(u)
        along_y, along_x = self._waves
        return np.asarray(((along_y @ coil_images) * along_x).sum(axis=-1), dtype=np.result_type(u, np.complex64))

    def _adjoint(self, v: Array) -> Array:
        along_y, along_x = self._waves
        coil_images = np.conj(along_y).T @ (v[..., None] * np.conj(along_x))
        image = coil_images[..., 0, :, :] if self._coils is None else self._coils._adjoint(coil_images)
        return np.asarray(image, dtype=np.result_type(v, np.complex64))


def _as_maps(maps: Array | None) -> Array | None:
    return None if maps is None else number_array("coil maps", maps, wanted="finite numbers (coil, ky, kx)")


def _coil_grid(shape: tuple[int, int], maps: Array | None) -> Shape:
    """(coil, ky, kx) of the k-space that is sampled."""
    if maps is not None and maps.shape[1:] != shape:
        raise InputError("coil maps", f"shape {maps.shape}", f"(coil, {shape[0]}, {shape[1]})")
    return (1 if maps is None else maps.shape[0], *shape)


class _CartesianGram(LinearOperator):
    """X^H X = sum over coils of conj(S) F^H M F S; circulant along its axes, so no centring is needed.

    Parameters
    ----------
    mask : bool array, shape (ky, 1) or (ky, kx)
        Whole lines, whose transforms along kx cancel, or single samples.
    grid, maps, library
        As for `CartesianLines`.
    """

    def __init__(self, mask: Array, grid: Shape, maps: Array | None, library: FourierLibrary) -> None:
        super().__init__(grid, grid)
        self._axes = (-2,) if mask.shape[1] == 1 < grid[1] else (-2, -1)
        self._mask = scipy.fft.ifftshift(mask, axes=self._axes).astype(float)
        self._maps = maps
        self._library: FourierLibrary = library
        self._groups: dict[np.dtype[Any], Array] = {}

    def _apply(self, u: Array) -> Array:
        u = u.astype(np.result_type(u.dtype, np.complex64), copy=False)
        if self._maps is None:
            return self._filtered(u)
        total = np.zeros_like(u)
        for sensitivity in self._maps:  # one coil at a time: batch x coils would not fit the cache
            total += np.conj(sensitivity) * self._filtered(sensitivity * u)
        return total

    def _filtered(self, u: Array) -> Array:
        from mri_design.operators.kernels.fft.circulant import filter_images, in_groups, suits_both

        if len(self._axes) == 2 and suits_both(u.shape, u.dtype):
            if u.dtype not in self._groups:
                self._groups[u.dtype] = in_groups(self._mask, u.dtype)
            return filter_images(u, self._groups[u.dtype])
        spectrum = transform(u, self._axes, library=self._library)
        spectrum *= self._mask.astype(u.real.dtype)
        return transform(spectrum, self._axes, inverse=True, library=self._library)

    def _adjoint(self, v: Array) -> Array:
        return self._apply(v)


class _LineGram(_CartesianGram):
    """That of whole lines; compiled for the usual sizes, by the FFT library where ky has a large prime factor."""

    def __init__(self, mask: Array, grid: Shape, maps: Array | None, library: FourierLibrary) -> None:
        super().__init__(mask[:, None], grid, maps, library)
        self._strips: dict[np.dtype[Any], Array] = {}

    def _apply(self, u: Array) -> Array:
        from mri_design.operators.kernels.fft.lines import filter_lines, suits

        u = u.astype(np.result_type(u.dtype, np.complex64), copy=False)
        if not suits((self.in_shape[0], self.in_shape[1]), u.dtype):
            return super()._apply(u)
        return filter_lines(u, self._mask[:, 0], self.strips(u.dtype))

    def strips(self, dtype: np.dtype[Any]) -> Array | None:
        """Coil maps in the order that compiled loops read, made once for a precision; None for one uniform coil."""
        from mri_design.operators.kernels.fft.lines import in_strips

        if self._maps is None:
            return None
        if dtype not in self._strips:
            self._strips[dtype] = in_strips(self._maps, dtype)
        return self._strips[dtype]


def cartesian(
    lines: Sequence[int], shape: tuple[int, int], maps: Array | None = None, library: FourierLibrary = "scipy"
) -> CartesianLines:
    """The measurement X of Cartesian lines: coil maps, then the centred FFT, then the measured lines."""
    return CartesianLines(lines, shape, maps, library)
