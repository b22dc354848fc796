"""Orthonormal multiscale wavelets (PyWavelets filters, periodised)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pywt

from mri_design.errors import InputError, described, require_counts, require_grid
from mri_design.operators.base import Array, FilterBand, LinearOperator
from mri_design.operators.kernels.suitable import compilable, laid_out


class Wavelet(LinearOperator):
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
        coarse = tuple(slice(0, n >> levels) for n in padded)
        self._slices: list[Any] = [coarse, *(_details(padded, level) for level in range(levels, 0, -1))]

    def _apply(self, u: Array) -> Array:
        from mri_design.operators.kernels.wavelet import analysis

        return analysis(_floating(u), self.out_shape, self.wavelet, self.levels)

    def _adjoint(self, v: Array) -> Array:
        return self._synthesis(v)[..., : self.in_shape[0], : self.in_shape[1]]

    def _synthesis(self, v: Array) -> Array:
        """The image on the padded grid."""
        from mri_design.operators.kernels.wavelet import synthesis

        return synthesis(_floating(v), self.wavelet, self.levels)

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        total = np.zeros(u.shape, dtype=np.result_type(weights, u))
        self.add_weighted_gram(weights, u.astype(total.dtype, copy=False), total)
        return total

    def add_weighted_gram(self, weights: Array, u: Array, total: Array) -> None:
        if not compilable(u, total) or np.ndim(weights) > 2:
            total += self._adjoint(weights * self._apply(u))
            return
        from mri_design.operators.kernels.wavelet import add_weighted_bands

        add_weighted_bands(laid_out(weights, self.out_shape, u), u, total, self.wavelet, self.levels)

    @property
    def _detail_levels(self) -> range:
        return range(1, self.levels + 1)

    def level_map(self) -> Array:
        """Integer array of the coefficients' levels: 0 coarse approximation, then 1 (coarsest) to ``levels``."""
        level = np.zeros(self.out_shape, dtype=int)
        for j in self._detail_levels:
            for band in self._slices[j].values():
                level[band] = j
        return level

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        """As in the base class; near, not nearest, on a padded grid, whose shifts end at the image's edge."""
        weights = np.broadcast_to(weights, self.out_shape)
        totals = [float(np.sum(weights[band])) for band in self._bands_in_layout]
        return np.asarray(np.tensordot(totals, self._band_power, axes=1))

    def gram_spectrum(self) -> Array | None:
        return np.ones(self.in_shape)

    @property
    def _bands_in_layout(self) -> list[tuple[slice, ...]]:
        return [self._slices[0], *(band for j in self._detail_levels for band in self._slices[j].values())]

    @cached_property
    def _band_power(self) -> Array:
        """Power spectrum (band, ky, kx) of one wavelet of each subband; the others are its shifts."""
        power = np.empty((len(self._bands_in_layout), *self.in_shape))
        # A padded grid has other frequencies than the image: take the nearest.
        nearest = [
            np.rint(np.arange(n) * m / n).astype(int) % m for n, m in zip(self.in_shape, self.out_shape, strict=True)
        ]
        for band_power, band in zip(power, self._bands_in_layout, strict=True):
            unit = np.zeros(self.out_shape)
            unit[band][0, 0] = 1
            band_power[...] = (np.abs(np.fft.fft2(self._synthesis(unit), norm="ortho")) ** 2)[np.ix_(*nearest)]
        return power

    def filter_bands(self) -> tuple[FilterBand, ...] | None:
        """Shifted filters of the bands; None on a padded grid."""
        return self._filter_bands if self.out_shape == self.in_shape else None

    @cached_property
    def _filter_bands(self) -> tuple[FilterBand, ...]:
        levels = [self.levels, *(self.levels - j + 1 for j in self._detail_levels for _ in self._slices[j])]
        bands = []
        for band, level in zip(self._bands_in_layout, levels, strict=True):
            unit = np.zeros(self.out_shape)
            unit[band][0, 0] = 1
            filters = self._synthesis(unit)  # the outer product of one along y and one along x
            y, x = np.unravel_index(np.argmax(np.abs(filters)), filters.shape)
            along_y, along_x = (np.conj(np.fft.fft(f)) for f in (filters[:, x] / filters[y, x], filters[y]))
            bands.append(FilterBand(band, along_y, along_x, 2**level))
        return tuple(bands)


def _details(shape: tuple[int, int], level: int) -> dict[str, tuple[slice, slice]]:
    """Where the details of a level (1 the finest) lie: names say what was taken along ky and kx, (a)verage or (d)."""
    spans = [{"a": slice(0, n >> level), "d": slice(n >> level, n >> (level - 1))} for n in shape]
    return {y + x: (spans[0][y], spans[1][x]) for y, x in ("da", "ad", "dd")}


def _floating(u: Array) -> Array:
    """Single and double precision as they are, anything else in double."""
    if u.dtype.char in "fdFD":
        return u
    return u.astype(np.complex128 if np.iscomplexobj(u) else np.float64)
