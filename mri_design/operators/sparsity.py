"""Sparsifying transforms: differences along both axes or between pixels that look alike, and wavelets."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
import pywt
import scipy  # whose parts are loaded when they are first used

from mri_design.errors import InputError, described, require_counts, require_grid
from mri_design.operators import kernels
from mri_design.operators.base import Array, FilterBand, LinearOperator
from mri_design.operators.conventions import compilable, laid_out


class InPlace(LinearOperator):
    """An operator whose `weighted_gram` is computed by `add_weighted_gram`."""

    @abstractmethod
    def add_in_place(self, weights: Array, u: Array, total: Array) -> None:
        """`add_weighted_gram` where arrays are `compilable`, for weights that all images of a batch share."""

    def add_weighted_gram(self, weights: Array, u: Array, total: Array) -> None:
        if compilable(u, total) and np.ndim(weights) <= len(self.out_shape):
            self.add_in_place(weights, u, total)
        else:
            total += self._adjoint(weights * self._apply(u))

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        total = np.zeros(u.shape, dtype=np.result_type(weights, u))
        self.add_weighted_gram(weights, u.astype(total.dtype, copy=False), total)
        return total


class FiniteDifferences(InPlace):
    """Image (ky, kx) -> (2, ky, kx): u[i+1] - u[i] along ky, then along kx, wrapped around at the edges.

    Raises
    ------
    InputError
        For a shape that is not two positive whole numbers.
    """

    def __init__(self, shape: tuple[int, int], *, is_complex: bool = True) -> None:
        shape = _image_shape(shape)
        super().__init__(shape, (2, *shape), in_complex=is_complex, out_complex=is_complex)

    def _apply(self, u: Array) -> Array:
        return kernels.differences.differences(_plain(u))

    def _adjoint(self, v: Array) -> Array:
        return kernels.differences.differences_adjoint(_plain(v))

    def add_in_place(self, weights: Array, u: Array, total: Array, pixels: Array | None = None) -> None:
        """As in the base class; with ``pixels * u`` added in the same pass where those weights are given."""
        along_y, along_x = laid_out(weights, self.out_shape, u)
        on_pixels = None if pixels is None else laid_out(pixels, self.in_shape, u)
        kernels.differences.add_weighted_differences(along_y, along_x, u, total, on_pixels)

    def add_weighted_parts(self, weights: Array, u: Array, total: Array, pixels: Array | None = None) -> None:
        """`add_weighted_gram` with separate weights of real and imaginary parts, (2, ky, kx, 2), on the last axis.

        ``pixels``, (ky, kx, 2), too. All arrays are contiguous and of one precision, ``u`` and ``total`` complex.
        """
        if len(weights) == 1:
            weights = np.broadcast_to(weights, (2, *weights.shape[1:]))  # each of them is contiguous
        kernels.differences.add_weighted_differences(weights[0], weights[1], u, total, pixels)

    def site_products(self, a: Array, b: Array, factors: Array, together: bool) -> tuple[Array, Array] | None:
        return kernels.pixels.difference_products(a, b, factors, together)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        weights = np.asarray(weights)
        if weights.ndim > 0:
            weights = np.broadcast_to(weights, self.out_shape).mean(axis=(-2, -1), dtype=float)
        along_y, along_x = np.broadcast_to(weights, 2)
        power_y, power_x = (4 * np.sin(np.pi * np.fft.fftfreq(n)) ** 2 for n in self.in_shape)
        return np.asarray(along_y * power_y[:, None] + along_x * power_x[None, :])

    def gram_spectrum(self) -> Array | None:
        return self.circulant_spectrum()

    def gram_diagonal(self, weights: Array) -> Array | None:
        each = np.broadcast_to(weights, self.out_shape)
        ends = (w + np.roll(w, 1, axis) for axis, w in enumerate(each) if self.in_shape[axis] > 1)
        return np.asarray(sum(ends, np.zeros(self.in_shape, dtype=each.dtype)))

    def scaled_weights(self, weights: Array, scale: Array) -> Array:
        return np.asarray(weights * (scale * self._next(scale)))

    def _next(self, image: Array) -> Array:
        """The pixel after each, along ky and along kx."""
        return np.stack([np.roll(image, -1, 0), np.roll(image, -1, 1)])

    def row_powers(self, spectrum: Array, scale: Array | None = None) -> Array | None:
        if scale is None:
            return super().row_powers(spectrum)
        kernel, following = np.fft.ifft2(spectrum).real, self._next(scale)
        neighbours = np.array([kernel[1 % self.in_shape[0], 0], kernel[0, 1 % self.in_shape[1]]])[:, None, None]
        return np.asarray((scale**2 + following**2) * kernel[0, 0] - 2 * neighbours * scale * following)

    def filter_bands(self) -> tuple[FilterBand, ...] | None:
        along_y, along_x = (np.exp(2j * np.pi * np.fft.fftfreq(n)) - 1 for n in self.in_shape)
        return FilterBand((0,), along_y, np.ones_like(along_x)), FilterBand((1,), np.ones_like(along_y), along_x)


def _image_shape(shape: tuple[int, int]) -> tuple[int, int]:
    lengths = require_grid("shape", shape)
    if len(lengths) != 2:
        raise InputError(
            "shape", str(lengths), "an image (ky, kx)", "A SparseMatrix of the differences serves signals and volumes."
        )
    return lengths[0], lengths[1]


class GraphDifferences(InPlace):
    """Image (ky, kx) -> (K, ky, kx): u[i] - u[j] for every pixel i and each of its K neighbours j.

    Parameters
    ----------
    neighbours : int array, shape (K, ky, kx)
        Flat numbers (row times kx plus column) of the neighbours. A pixel may be the neighbour of many, of none, or
        its own, which makes a row of zeros.
    is_complex : bool
        Whether images are complex.

    Raises
    ------
    InputError
        For anything but whole numbers of pixels of the grid.

    Notes
    -----
    No two rows need be shifts of each other, so there are no `filter_bands`. A row and its weight w add
    w |1 - exp(i k d)|^2 to the spectrum of the nearest circulant, averaged over the image, d being the way from the
    pixel to its neighbour on the periodic grid; so it takes one Fourier transform of the weights' histogram over d.
    """

    def __init__(self, neighbours: Array, *, is_complex: bool = True) -> None:
        given = np.asarray(neighbours)
        if given.ndim != 3 or given.dtype.kind not in "iu" or given.size == 0:
            raise InputError("neighbours", f"{given.dtype} {given.shape}", "whole numbers, shape (K, ky, kx)")
        size = given.shape[1] * given.shape[2]
        if given.min() < 0 or given.max() >= size:
            raise InputError(
                "neighbours", f"numbers from {given.min()} to {given.max()}", f"pixels of the grid, 0 to {size - 1}"
            )
        super().__init__(given.shape[1:], given.shape, in_complex=is_complex, out_complex=is_complex)
        self.neighbours = np.ascontiguousarray(given, dtype=np.int32)
        flat = self.neighbours.reshape(len(given), size)
        self._flat = flat
        rows, columns = np.divmod(flat, given.shape[2])
        own_rows, own_columns = np.divmod(np.arange(size), given.shape[2])
        down, right = (rows - own_rows) % given.shape[1], (columns - own_columns) % given.shape[2]
        self._steps = (down * given.shape[2] + right).ravel()

    def _apply(self, u: Array) -> Array:
        images = _plain(u).reshape(-1, self._flat.shape[1])
        return kernels.differences.along_edges(self._flat, images).reshape(*u.shape[:-2], *self.out_shape)

    def _adjoint(self, v: Array) -> Array:
        coefficients = _plain(v).reshape(-1, *self._flat.shape)
        return kernels.differences.back_from_edges(self._flat, coefficients).reshape(*v.shape[:-3], *self.in_shape)

    def add_in_place(self, weights: Array, u: Array, total: Array) -> None:
        shared = np.ndim(weights) < 3 or np.shape(weights)[0] == 1
        each = laid_out(weights, (1, *self.in_shape) if shared else self.out_shape, u)
        self._add(each[..., None], u, total)

    def add_weighted_parts(self, weights: Array, u: Array, total: Array) -> None:
        """`add_weighted_gram` with weights (K, ky, kx, 2) that real and imaginary parts have of their own.

        All arrays contiguous and of one precision, ``u`` and ``total`` complex.
        """
        self._add(weights, u, total)

    def site_products(self, a: Array, b: Array, factors: Array, together: bool) -> tuple[Array, Array] | None:
        return kernels.pixels.edge_products(self._flat, a, b, factors, together)

    def _add(self, weights: Array, u: Array, total: Array) -> None:
        size = self._flat.shape[1]
        by_edge = weights.reshape(weights.shape[0], size, weights.shape[-1])
        kernels.differences.add_weighted_edges(self._flat, by_edge, u.reshape(-1, size), total.reshape(-1, size))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        each = np.broadcast_to(np.asarray(weights, dtype=float), self.out_shape)
        size = self._flat.shape[1]
        over_steps = np.bincount(self._steps, each.ravel(), minlength=size).reshape(self.in_shape) / size
        return np.asarray(2 * (over_steps.sum() - scipy.fft.fft2(over_steps).real))

    def gram_diagonal(self, weights: Array) -> Array | None:
        each = np.broadcast_to(weights, self.out_shape).reshape(self._flat.shape)
        ends = [np.bincount(ends, of, minlength=each[0].size) for ends, of in zip(self._flat, each, strict=True)]
        return np.asarray(each.sum(axis=0) + np.sum(ends, axis=0)).reshape(self.in_shape)

    def scaled_weights(self, weights: Array, scale: Array) -> Array:
        return np.asarray(weights * (scale * scale.ravel()[self.neighbours]))

    def row_powers(self, spectrum: Array, scale: Array | None = None) -> Array | None:
        kernel, v = scipy.fft.ifft2(spectrum).real.ravel(), np.ones(self.in_shape) if scale is None else scale
        ends, steps = v.ravel()[self.neighbours], kernel[self._steps].reshape(self.out_shape)
        return np.asarray((v**2 + ends**2) * kernel[0] - 2 * steps * v * ends)


def _plain(array: Array) -> Array:
    """Contiguous, in single or double precision."""
    return np.ascontiguousarray(_floating(array))


class Wavelet(InPlace):
    """Image (ky, kx) -> wavelet coefficients in the usual nested layout, an isometry (A^H A = I).

    Sizes that the number of levels does not divide are first padded with zeros, so the coefficient array may be
    larger than the image. Only ``mode="periodization"`` of PyWavelets is orthonormal; it is the one used.

    Parameters
    ----------
    shape : tuple of int
        Image grid.
    wavelet : str
        A PyWavelets name of an orthogonal family, for example ``"db4"``.
    levels : int
        Decomposition levels.

    Raises
    ------
    InputError
        For a shape that is not two positive whole numbers, a wavelet that is unknown or not orthogonal, or no level.
    """

    def __init__(
        self, shape: tuple[int, int], wavelet: str = "db4", levels: int = 3, *, is_complex: bool = True
    ) -> None:
        grid = require_grid("shape", shape, axes=2)
        shape = (grid[0], grid[1])
        if wavelet not in pywt.wavelist(kind="discrete") or not pywt.Wavelet(wavelet).orthogonal:
            raise InputError("wavelet", described(wavelet), "an orthogonal PyWavelets family, as 'db4'")
        require_counts(least=1, most=int(np.log2(min(shape))), **{"wavelet levels": levels})
        unit = 2**levels
        padded = (-(-shape[0] // unit) * unit, -(-shape[1] // unit) * unit)
        super().__init__(shape, padded, in_complex=is_complex, out_complex=is_complex)
        self.wavelet = wavelet
        self.levels = levels
        # Level (1 the finest) and place of every band: the coarse one, then details along ky, along kx and along both.
        self._bands = [(levels, (slice(0, padded[0] >> levels), slice(0, padded[1] >> levels)))]
        for level in range(levels, 0, -1):
            (y, high_y), (x, high_x) = ((slice(0, n >> level), slice(n >> level, n >> level - 1)) for n in padded)
            self._bands += [(level, (high_y, x)), (level, (y, high_x)), (level, (high_y, high_x))]

    def _apply(self, u: Array) -> Array:
        return kernels.wavelet.analysis(_floating(u), self.out_shape, self.wavelet, self.levels)

    def _adjoint(self, v: Array) -> Array:
        return self._synthesis(v)[..., : self.in_shape[0], : self.in_shape[1]]

    def _synthesis(self, v: Array) -> Array:
        """The image on the padded grid."""
        return kernels.wavelet.synthesis(_floating(v), self.wavelet, self.levels)

    def add_in_place(self, weights: Array, u: Array, total: Array) -> None:
        kernels.wavelet.add_weighted_bands(laid_out(weights, self.out_shape, u), u, total, self.wavelet, self.levels)

    def level_map(self) -> Array:
        """Integer array of the coefficients' levels: 0 coarse approximation, then 1 (coarsest) to ``levels``."""
        numbers = np.zeros(self.out_shape, dtype=int)
        for level, band in self._bands[1:]:
            numbers[band] = self.levels - level + 1
        return numbers

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        """As in the base class; near, not nearest, on a padded grid, whose shifts end at the image's edge."""
        weights = np.broadcast_to(weights, self.out_shape)
        totals = [float(np.sum(weights[band])) for _, band in self._bands]
        return np.asarray(np.tensordot(totals, self._band_power, axes=1))

    def gram_spectrum(self) -> Array | None:
        return np.ones(self.in_shape)

    def _first_of(self, band: tuple[slice, slice]) -> Array:
        """The first wavelet of a band, whose shifts the others are, on the padded grid."""
        unit = np.zeros(self.out_shape)
        unit[band][0, 0] = 1
        return self._synthesis(unit)

    @cached_property
    def _band_power(self) -> Array:
        """Power spectrum (band, ky, kx) of one wavelet of each subband."""
        # A padded grid has other frequencies than the image: take the nearest.
        nearest = [
            np.rint(np.arange(n) * m / n).astype(int) % m for n, m in zip(self.in_shape, self.out_shape, strict=True)
        ]
        spectra = (np.fft.fft2(self._first_of(band), norm="ortho") for _, band in self._bands)
        return np.stack([(np.abs(spectrum) ** 2)[np.ix_(*nearest)] for spectrum in spectra])

    def filter_bands(self) -> tuple[FilterBand, ...] | None:
        """Shifted filters of the bands; None on a padded grid."""
        return self._filter_bands if self.out_shape == self.in_shape else None

    @cached_property
    def _filter_bands(self) -> tuple[FilterBand, ...]:
        bands = []
        for level, band in self._bands:
            filters = self._first_of(band)  # the outer product of one along y and one along x
            y, x = np.unravel_index(np.argmax(np.abs(filters)), filters.shape)
            along_y, along_x = (np.conj(np.fft.fft(f)) for f in (filters[:, x] / filters[y, x], filters[y]))
            bands.append(FilterBand(band, along_y, along_x, 2**level))
        return tuple(bands)


def _floating(u: Array) -> Array:
    """Single and double precision as they are, anything else in double."""
    if u.dtype.char in "fdFD":
        return u
    return u.astype(np.complex128 if np.iscomplexobj(u) else np.float64)
