"""Orthonormal multiscale wavelets (PyWavelets filters, periodised)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pywt

from mri_design.errors import InputError
from mri_design.operators.base import Array, LinearOperator

__all__ = ["Wavelet"]


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
        For a wavelet that is unknown or not orthogonal, or no level.
    """

    def __init__(
        self, shape: tuple[int, int], wavelet: str = "db4", levels: int = 3, *, is_complex: bool = True
    ) -> None:
        if wavelet not in pywt.wavelist(kind="discrete") or not pywt.Wavelet(wavelet).orthogonal:
            raise InputError(field="wavelet", got=repr(wavelet), wanted="an orthogonal PyWavelets family, as 'db4'")
        if levels < 1 or 2**levels > min(shape):
            raise InputError(field="wavelet levels", got=str(levels), wanted=f"1 to {int(np.log2(min(shape)))}")
        unit = 2**levels
        padded = (-(-shape[0] // unit) * unit, -(-shape[1] // unit) * unit)
        super().__init__(shape, padded, in_complex=is_complex, out_complex=is_complex)
        self.wavelet = wavelet
        self.levels = levels
        template = pywt.wavedec2(np.zeros(padded), wavelet, mode="periodization", level=levels)
        self._slices = pywt.coeffs_to_array(template)[1]

    def _apply(self, u: Array) -> Array:
        if self.out_shape != self.in_shape:
            widths = [(0, o - i) for o, i in zip(self.out_shape, self.in_shape, strict=True)]
            u = np.pad(u, [(0, 0)] * (u.ndim - 2) + widths)
        with np.errstate(all="ignore"):
            bands = pywt.wavedec2(u, self.wavelet, mode="periodization", level=self.levels, axes=(-2, -1))
        return np.asarray(pywt.coeffs_to_array(bands, axes=(-2, -1))[0])

    def _adjoint(self, v: Array) -> Array:
        lead = (slice(None),) * (v.ndim - 2)
        bands: list[Any] = [v[(*lead, *self._slices[0])]]
        bands += [tuple(v[(*lead, *self._slices[j][key])] for key in ("da", "ad", "dd")) for j in self._detail_levels]
        u = pywt.waverec2(bands, self.wavelet, mode="periodization", axes=(-2, -1))
        return np.asarray(u[..., : self.in_shape[0], : self.in_shape[1]])

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
        if self.out_shape != self.in_shape:  # A^H A = I still holds, the subbands' spectra do not.
            return np.full(self.in_shape, float(np.mean(weights)))
        weights = np.broadcast_to(weights, self.out_shape)
        spectrum = np.zeros(self.in_shape)
        bands = [self._slices[0]] + [band for j in self._detail_levels for band in self._slices[j].values()]
        for band in bands:
            unit = np.zeros(self.out_shape)
            unit[band][0, 0] = 1  # all wavelets of a subband are shifts of this one
            power = np.abs(np.fft.fft2(self._adjoint(unit), norm="ortho")) ** 2
            spectrum += float(np.sum(weights[band])) * power
        return spectrum
