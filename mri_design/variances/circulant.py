"""Closed forms of a circulant P beside A: what is known exactly of t = B P b for b ~ N(0, A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.fft

from mri_design.model.circulant_inverse import circulant_inverse
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
        """diag(B P B^H) and, where it is known, diag(B P A P B^H) per real component; None where neither is."""
        first, bands = analysis.row_powers(self.inverse), analysis.filter_bands()
        if first is None or bands is None or self.sites is None or self.gram is None:
            return None if first is None else (first, None)
        second, measured = np.empty(analysis.out_shape), self.inverse**2 * self.gram
        for filters in bands:
            correlated = self._correlations(filters.response * self.inverse)
            second[filters.band] = filters.mean_power(measured) + correlated[:: filters.stride, :: filters.stride]
        return first, second

    @property
    def whole_gram(self) -> bool:
        """Whether X^H X is circulant itself, so that P explains most of a draw."""
        return self.gram is not None

    @cached_property
    def _spread_sites(self) -> list[tuple[Array, Array]]:
        """Per band the conjugate response and the transform of its weights, in the precision of the weights."""
        spread = []
        for filters, weights in self.sites or ():
            full = np.zeros(self.inverse.shape, dtype=weights.dtype)
            full[:: filters.stride, :: filters.stride] = weights
            adjoint = np.conj(filters.response).astype(np.result_type(weights.dtype, np.complex64))
            spread.append((adjoint, np.asarray(scipy.fft.rfft2(full))))
        return spread

    def _correlations(self, filtered: Array) -> Array:
        """Sum over bands g and grid points x' of pi_g(x') |k(x - x')|^2, for every x."""
        total = np.zeros((filtered.shape[0], filtered.shape[1] // 2 + 1), dtype=complex)
        for adjoint, weights in self._spread_sites:
            filtered = filtered.astype(adjoint.dtype, copy=False)
            kernel = scipy.fft.ifft2(filtered * adjoint, overwrite_x=True)
            total += weights * scipy.fft.rfft2(kernel.real**2 + kernel.imag**2)
        return np.asarray(scipy.fft.irfft2(total, s=self.inverse.shape))
