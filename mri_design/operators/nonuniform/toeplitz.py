"""Block Toeplitz matrices of an image: products by FFTs on twice the grid, and the nearest circulant."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from mri_design.operators.base import Array, LinearOperator


class ToeplitzGram(LinearOperator):
    """Image (ky, kx) -> sum over coils of conj(S) (q * S u): X^H W X, where X samples k-space at any points.

    The convolution with the point-spread function q is linear, not periodic, so it takes FFTs of twice the length.

    Parameters
    ----------
    spread : complex array, shape (1 or coil, 2 ky, 2 kx)
        q at all differences of two pixels, in FFT order (difference 0 first); that at the difference -N does not
        matter. One for all coils, or one for each.
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities S; None is one coil of uniform sensitivity 1.

    Notes
    -----
    Fessler, Lee, Olafsson, Shi & Noll, IEEE Trans. Signal Process. 53 (2005).
    """

    def __init__(self, spread: Array, maps: Array | None) -> None:
        grid = (spread.shape[-2] // 2, spread.shape[-1] // 2)
        super().__init__(grid, grid)
        symmetric = spread.astype(np.complex128)
        symmetric[:, grid[0]] = 0
        symmetric[:, :, grid[1]] = 0
        self._spectra = scipy.fft.fft2(symmetric).real
        self._maps = maps
        self._in_precision: dict[np.dtype[Any], tuple[Array, Array | None]] = {}

    def _apply(self, u: Array) -> Array:
        u = u.astype(np.result_type(u.dtype, np.complex64), copy=False)
        spectra, maps = self._prepared(u.dtype)
        if maps is None:
            return self._convolved(u, spectra[0])
        total = np.zeros_like(u)
        for coil, sensitivity in enumerate(maps):  # one coil at a time: batch x coils would not fit the cache
            seen = self._convolved(sensitivity * u, spectra[min(coil, len(spectra) - 1)])
            seen *= np.conj(sensitivity)
            total += seen
        return total

    def _adjoint(self, v: Array) -> Array:
        return self._apply(v)

    def _convolved(self, u: Array, spectrum: Array) -> Array:
        """Rows first, so that the transforms along kx skip the half that is zero, or is not asked for."""
        from mri_design.operators.kernels.fft.circulant import filter_images

        rows, columns = self.in_shape
        if self._compiled(u.dtype):
            return filter_images(u, spectrum, (2 * rows, 2 * columns))
        wide = scipy.fft.fft(u, 2 * columns, axis=-1)
        wide = scipy.fft.fft(wide, 2 * rows, axis=-2, overwrite_x=True)
        wide *= spectrum
        wide = scipy.fft.ifft(wide, axis=-2, overwrite_x=True)[..., :rows, :]
        return np.ascontiguousarray(scipy.fft.ifft(wide, axis=-1)[..., :columns])

    def _prepared(self, dtype: np.dtype[Any]) -> tuple[Array, Array | None]:
        """Spectra, in the order of the compiled loops where these suit, and maps, in the precision of the image."""
        from mri_design.operators.kernels.fft.circulant import in_groups

        if dtype not in self._in_precision:
            maps = None if self._maps is None else self._maps.astype(dtype)
            spectra = self._spectra.astype(np.zeros(0, dtype).real.dtype)
            if self._compiled(dtype):
                spectra = np.stack([in_groups(spectrum, dtype) for spectrum in self._spectra])
            self._in_precision[dtype] = spectra, maps
        return self._in_precision[dtype]

    def _compiled(self, dtype: np.dtype[Any]) -> bool:
        """Whether the compiled loops know images of this grid and of twice its sides."""
        from mri_design.operators.kernels.fft.circulant import suits_both

        rows, columns = self.in_shape
        return suits_both((rows, columns), dtype) and suits_both((2 * rows, 2 * columns), dtype)


def chan_spectrum(spread: Array, maps: Array | None) -> Array:
    """Eigenvalues of the circulant nearest (Frobenius) to the matrix of `ToeplitzGram`.

    Its entry for a periodic difference is the mean of the matrix over all pairs of pixels that far apart: q times how
    many pairs there are, which for one coil is a triangle, and for several the autocorrelation of their maps.

    Parameters
    ----------
    spread, maps : arrays
        As for `ToeplitzGram`.

    Returns
    -------
    float64 array, shape (ky, kx)
        In FFT order, not negative.

    Notes
    -----
    T. Chan, SIAM J. Sci. Stat. Comput. 9 (1988).
    """
    rows, columns = spread.shape[-2] // 2, spread.shape[-1] // 2
    seen = np.ones((1, rows, columns)) if maps is None else maps
    power = np.abs(scipy.fft.fft2(seen, s=spread.shape[-2:])) ** 2
    pairs = scipy.fft.ifft2(power).conj()
    weighted = np.sum(spread * pairs, axis=0)
    periodic = weighted.reshape(2, rows, 2, columns).sum(axis=(0, 2)) / (rows * columns)
    return np.asarray(np.maximum(scipy.fft.fft2(periodic).real, 0))
