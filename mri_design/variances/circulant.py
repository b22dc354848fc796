"""Closed forms of a circulant P beside A: what is known exactly of t = B P b for b ~ N(0, A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.fft

from mri_design.krylov.preconditioners import circulant_inverse
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, FilterBand, LinearOperator
from mri_design.variances.base import not_positive_definite

__all__ = ["CirculantControl"]


@dataclass(frozen=True)
class CirculantControl:
    """t = B P b with P the inverse of the circulant nearest to A, and the two moments that make it a control.

    Parameters
    ----------
    inverse : float array, shape (ky, kx)
        Eigenvalues of P, in FFT order.
    gram : float array, shape (ky, kx)
        Eigenvalues of X^H X, which must be circulant itself (one coil, any mask).
    sites : tuple of (FilterBand, float array)
        Every band of filters in B with its site precisions.

    Notes
    -----
    For a row f of B, diag(B P B^H) is the mean of P |f|^2 over frequencies, equal for all shifts of f. In
    diag(B P A P B^H) the sites of a band g add sum_x' pi_g(x') |k(x - x')|^2 with the kernel k of f P g^H: one
    correlation by FFT for each pair of bands. Rows on coarse grids (wavelets) are shifts too, so pi is spread with
    zeros between its entries.
    """

    inverse: Array
    gram: Array
    sites: tuple[tuple[FilterBand, Array], ...]

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> CirculantControl | None:
        """The control of a precision; None where X^H X is not circulant or B has rows that are no shifted filters.

        Raises
        ------
        InputError
            Where A is seen not to be positive definite.
        """
        gram, spectrum = precision.measurement.gram_spectrum(), precision.circulant_spectrum
        if gram is None or spectrum is None or not precision.complex_linear:
            return None
        if spectrum.min() <= np.finfo(float).eps * spectrum.max():  # a wave w with w^H A w = 0
            raise not_positive_definite()
        sites: list[tuple[FilterBand, Array]] = []
        for block, pi in zip(precision.blocks, precision.site_precisions, strict=True):
            bands = block.analysis.filter_bands()
            if bands is None:
                return None
            weights = np.broadcast_to(pi, block.analysis.out_shape)
            sites += [(filters, weights[filters.band]) for filters in bands]
        return cls(1 / spectrum, gram, tuple(sites))

    def image(self, b: Array) -> Array:
        """P b."""
        return self._filter(b)

    @cached_property
    def _filter(self) -> Callable[[Array], Array]:
        return circulant_inverse(1 / self.inverse)

    def moments(self, analysis: LinearOperator) -> tuple[Array, Array] | None:
        """diag(B P B^H) and diag(B P A P B^H) per real component; None where the rows are no shifted filters."""
        bands = analysis.filter_bands()
        if bands is None:
            return None
        first, second = np.empty(analysis.out_shape), np.empty(analysis.out_shape)
        for filters in bands:
            filtered = filters.response * self.inverse
            first[filters.band] = np.mean(np.real(filtered * np.conj(filters.response)))
            measured = np.mean(np.abs(filtered) ** 2 * self.gram)
            correlated = self._correlations(filtered)
            second[filters.band] = measured + correlated[:: filters.stride, :: filters.stride]
        return first, second

    @cached_property
    def _spread_sites(self) -> list[tuple[Array, Array]]:
        """Per band the conjugate response and the transform of its weights, in the precision of the weights."""
        spread = []
        for filters, weights in self.sites:
            full = np.zeros(self.inverse.shape, dtype=weights.dtype)
            full[:: filters.stride, :: filters.stride] = weights
            adjoint = np.conj(filters.response).astype(np.result_type(weights.dtype, np.complex64))
            spread.append((adjoint, np.asarray(scipy.fft.rfft2(full))))
        return spread

    def _correlations(self, filtered: Array) -> Array:
        """Sum over bands g and grid points x' of pi_g(x') |k(x - x')|^2, for every x."""
        total = np.zeros((filtered.shape[0], filtered.shape[1] // 2 + 1), dtype=complex)
        for adjoint, weights in self._spread_sites:
            kernel = scipy.fft.ifft2(filtered.astype(adjoint.dtype) * adjoint, overwrite_x=True)
            total += weights * scipy.fft.rfft2(kernel.real**2 + kernel.imag**2)
        return np.asarray(scipy.fft.irfft2(total, s=self.inverse.shape))
