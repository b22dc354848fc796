"""Closed forms of a circulant P beside A: what is known exactly of t = B P b for b ~ N(0, A)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.model.circulant_inverse import circulant_inverse
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, FilterBand, LinearOperator, squared_modulus
from mri_design.variances.base import not_positive_definite


@dataclass(frozen=True)
class CirculantControl:
    """t = B P b with P the inverse of the circulant nearest to A, and the two moments that make it a control.

    Parameters
    ----------
    inverse : float array, shape (ky, kx)
        Eigenvalues of P, in FFT order.
    gram : float array, shape (ky, kx), optional
        Eigenvalues of X^H X where it is circulant itself (one coil, any mask); None elsewhere (several coils, other
        trajectories), which leaves the second moment unknown.
    sites : tuple of (FilterBand, float array), optional
        Every band of filters in B with its site precisions; None where B has rows that are no shifted filters, which
        leaves the second moment unknown too, and where it is unknown already.

    Notes
    -----
    For a row f of B, diag(B P B^H) is the mean of P |f|^2 over frequencies, equal for all shifts of f. In
    diag(B P A P B^H) the sites of a band g add sum_x' pi_g(x') |k(x - x')|^2 with the kernel k of f P g^H: one
    correlation by FFT for each pair of bands. Rows on coarse grids (wavelets) are shifts too, so pi is spread with
    zeros between its entries.
    """

    inverse: Array
    gram: Array | None
    sites: tuple[tuple[FilterBand, Array], ...] | None

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> CirculantControl | None:
        """The control of a precision; None where the circulant nearest to A is not known.

        Raises
        ------
        InputError
            Where A is seen not to be positive definite.
        """
        gram, spectrum = precision.measurement.gram_spectrum(), precision.circulant_spectrum
        if spectrum is None or not precision.complex_linear:
            return None
        if spectrum.min() <= np.finfo(float).eps * spectrum.max():  # a wave w with w^H A w = 0
            raise not_positive_definite()
        if gram is None:
            return cls(1 / spectrum, None, None)
        sites: list[tuple[FilterBand, Array]] = []
        for block, pi in zip(precision.blocks, precision.site_precisions, strict=True):
            bands = block.analysis.filter_bands()
            if bands is None:
                return cls(1 / spectrum, gram, None)
            weights = np.broadcast_to(pi, block.analysis.out_shape)
            sites += [(filters, weights[filters.band]) for filters in bands]
        return cls(1 / spectrum, gram, tuple(sites))

    def image(self, b: Array) -> Array:
        """P b."""
        return self._filter(b)

    @cached_property
    def _filter(self) -> Callable[[Array], Array]:
        return circulant_inverse(1 / self.inverse)

    def moments(self, analysis: LinearOperator) -> tuple[Array, Array | None] | None:
        """diag(B P B^H) and, where it is known, diag(B P A P B^H) per real component; None where neither is.

        Both have the precision of the site precisions where both are known.
        """
        first, bands = analysis.row_powers(self.inverse), analysis.filter_bands()
        if first is None or bands is None or self.sites is None or self.gram is None:
            return None if first is None else (first, None)
        second = np.empty(analysis.out_shape, dtype=self.sites[0][1].dtype)
        measured = self.inverse**2 * self.gram
        for filters, correlated in zip(bands, self._correlations(analysis, bands), strict=True):
            second[filters.band] = filters.mean_power(measured) + correlated[:: filters.stride, :: filters.stride]
        return first.astype(second.dtype), second

    @property
    def whole_gram(self) -> bool:
        """Whether X^H X is circulant itself, so that P explains most of a draw."""
        return self.gram is not None

    @cached_property
    def _columns(self) -> list[tuple[Array, Array]]:
        """Per band g one column of P g^H, and the transform of its weights, in the precision of the weights."""
        columns = []
        for filters, weights in self.sites or ():
            full = np.zeros(self.inverse.shape, dtype=weights.dtype)
            full[:: filters.stride, :: filters.stride] = weights
            spectrum = self.inverse.astype(np.result_type(weights.dtype, np.complex64))
            for factor in (filters.along_y[:, np.newaxis], filters.along_x):
                spectrum *= np.conj(factor).astype(spectrum.dtype)
            columns.append((scipy.fft.ifft2(spectrum, overwrite_x=True), np.asarray(scipy.fft.rfft2(full))))
        return columns

    def _correlations(self, analysis: LinearOperator, bands: Sequence[FilterBand]) -> Array:
        """Per band f the sum over bands g and grid points x' of pi_g(x') |k(x - x')|^2, for every x."""
        total: Array | None = None
        for column, weights in self._columns:
            if all(filters.stride == 1 for filters in bands):
                rows = analysis(column)
                kernels = [rows[filters.band] for filters in bands]
            else:  # every place is needed, the operator has some
                spectrum = scipy.fft.fft2(column)
                kernels = [scipy.fft.ifft2(filters.response.astype(column.dtype) * spectrum) for filters in bands]
            spectra = np.stack([scipy.fft.rfft2(squared_modulus(kernel)) for kernel in kernels])
            spectra *= weights
            total = spectra if total is None else np.add(total, spectra, out=total)
        return np.asarray(scipy.fft.irfft2(total, s=self.inverse.shape))
