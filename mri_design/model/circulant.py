"""Circulants near the posterior's precision A, whose inverses precondition iterations and control draws.

A is far from a circulant in two ways that are known. Its sites are far stiffer where nothing is to be seen than at
edges, and sites that know a phase hold the imaginary part behind that phase tighter than the real one. So a circulant
stands between two diagonals: A is near T^-H C T^-1 with T = diag(e^{i phi} v), where v evens out the sites' precisions,
and C is the circulant nearest to T^H A T, with one of its own for real and for imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array, LinearOperator, mean_of_parts
from mri_design.operators.elementary import Identity, PhasedParts
from mri_design.operators.fourier import SpectralFilter


def circulant_inverse(spectrum: NDArray[np.floating]) -> Callable[[Array], Array]:
    """r -> C^-1 r for the circulant C with positive eigenvalues ``spectrum`` (FFT order) over the last two axes.

    Parameters
    ----------
    spectrum : float array, shape (ky, kx)
        Eigenvalues of C, in A's own units.

    Notes
    -----
    Circulants commute with shifts, so uncentred FFTs serve. Real vectors stay real: the real part is the circulant
    whose spectrum is made symmetric under k -> -k, as that of a real C is.
    """
    return SpectralFilter(1 / spectrum)


@dataclass(frozen=True)
class ScaledCirculantInverse:
    """P = V R C^-1 R^H V, where C acts on a + i b as a circulant that both share, and one of its own on each of them.

    Parameters
    ----------
    own : float array, shape (ky, kx)
        Of C^-1 in FFT order: on Fourier coefficients w it gives ``own(k) w(k) + other(k) conj(w(-k))``.
    other : float array of that shape, optional
        None where real and imaginary parts have the same circulant.
    rotation : complex array of that shape, optional
        R, of modulus one.
    scale : float array of that shape, optional
        V, positive.

    Notes
    -----
    With ``other`` it is only real-linear, and symmetric with respect to Re<., .>.
    """

    own: Array
    other: Array | None = None
    rotation: Array | None = None
    scale: Array | None = None

    @classmethod
    def of(
        cls,
        shared: NDArray[np.floating],
        real: NDArray[np.floating],
        imaginary: NDArray[np.floating],
        rotation: Array,
        scale: Array | None = None,
    ) -> ScaledCirculantInverse:
        """From the eigenvalues of the circulants: C is ``shared`` + (``real`` on a, ``imaginary`` on b).

        Parameters
        ----------
        shared, real, imaginary : float arrays, shape (ky, kx)
            In FFT order; the last two symmetric under k -> -k (real filters), and with the first positive.
        rotation, scale : arrays, shape (ky, kx)
            R and V.

        Notes
        -----
        C leaves pairs (w(k), conj w(-k)) of Fourier coefficients to themselves: on each it is the matrix
        ((shared(k) + m, d), (d, shared(-k) + m)) with m = (real + imaginary) / 2 and d = (real - imaginary) / 2, whose
        inverse is written down.
        """
        m, d = (real + imaginary) / 2, (real - imaginary) / 2
        here, opposite = shared + m, mirrored(shared) + m
        determinant = here * opposite - d**2
        return cls(opposite / determinant, -d / determinant, rotation, scale)

    def __call__(self, r: Array) -> Array:
        """P r, for one image or a batch, in the precision of r; real images stay real where there is no phase."""
        return self._filter(r)

    @property
    def log_volume(self) -> float:
        """log det P over complex unknowns."""
        of_pairs = self.own * mirrored(self.own) - (0 if self.other is None else self.other**2)
        of_scale = 0.0 if self.scale is None else 2 * np.sum(np.log(self.scale))
        return float(np.sum(np.log(of_pairs)) / 2 + of_scale)

    @property
    def turn(self) -> Array | None:
        """V R."""
        if self.scale is None or self.rotation is None:
            return self.rotation if self.scale is None else self.scale
        return self.scale * self.rotation

    @cached_property
    def _filter(self) -> SpectralFilter:
        return SpectralFilter(self.own, self.other, self.turn)

    def row_powers(self, analysis: LinearOperator) -> Array | None:
        """diag(B P B^T) of the coefficients B u, per real component; None where it is not known.

        On a real image C^-1 is the circulant of ``own + other``, on an imaginary one that of ``own - other``, and in
        each case the mean over pixels of what a real filter makes of it is that of the circulant's symmetric part.
        """
        if self.other is None:
            return analysis.row_powers(self.own, self.scale)
        if isinstance(analysis, Identity):  # half of the power of a pixel, whatever its phase
            return analysis.row_powers(self.own, self.scale)
        if not isinstance(analysis, PhasedParts) or analysis.rotation is not self.rotation:
            return None
        each = (self.own + self.other, self.own - self.other)
        real, imaginary = (analysis.analysis.row_powers(spectrum, self.scale) for spectrum in each)
        if real is None or imaginary is None:
            return None
        return analysis.part_weights(np.stack([real, imaginary], axis=-1))


def mirrored(spectrum: Array) -> Array:
    """Values at -k, FFT order, over the last two axes."""
    return np.roll(spectrum[..., ::-1, ::-1], (1, 1), axis=(-2, -1))


EVENED = 0.3
"""Power of a pixel's site precisions in its scale: 1/4 takes the fewest iterations in inference, 3/8 at a MAP image."""
ONCE = 1.01
"""How often a wave is measured at most where each is measured once, but for rounding."""
FLOOR = float(np.finfo(np.float32).tiny)


def scaled_circulant_inverse(
    measurement: LinearOperator, blocks: Sequence[SiteBlock], site_precisions: Sequence[Array], nearest: Array
) -> ScaledCirculantInverse:
    """r -> (something near A)^-1 r for images of two axes.

    Parameters
    ----------
    measurement : LinearOperator
        X.
    blocks : sequence of SiteBlock
        Blocks of B.
    site_precisions : sequence of float arrays
        pi per block.
    nearest : float array, shape (ky, kx)
        `PosteriorPrecision.circulant_spectrum`, which is known.

    Notes
    -----
    V is a negative power (`EVENED`) of the sum of the precisions of all sites that see a pixel, over its geometric
    mean. The sites' circulant is then that of evened precisions; the spectrum of the measurement, and of sites on
    moduli behind a phase, is convolved with the power spectrum of V exp(i phi).

    The convolution spreads some of what was measured to frequencies that were not. Where there is little noise, sites
    hold these by far less than that, and steps there would be too short to lead anywhere. So the circulant of the image
    itself is made, too, and the P of larger volume is taken. For the circulant nearest to T^H A T, which ours is near,
    tr(P A) is the number of unknowns; the larger det P, up to det A^-1, the nearer P A is to the identity (I. Kaporin,
    Numer. Linear Algebra Appl. 1 (1994) 179-210).
    """
    plain = ScaledCirculantInverse(1 / nearest)
    straight = measurement.circulant_spectrum()
    phased = (block.analysis.rotation for block in blocks if isinstance(block.analysis, PhasedParts))
    rotation = next(phased, None)
    terms = [_Term.of(block.analysis, pi, rotation) for block, pi in zip(blocks, site_precisions, strict=True)]
    scale = _evening_scale(terms)
    if straight is None or (scale is None and rotation is None):
        return plain
    nearer = _between_diagonals(straight, terms, scale, rotation)
    return nearer if nearer is not None and nearer.log_volume > plain.log_volume else plain


def _between_diagonals(
    straight: Array, terms: Sequence[_Term], scale: Array | None, rotation: Array | None
) -> ScaledCirculantInverse | None:
    """With a given scale or phase, of which there is one; None where the circulant of a block is not known."""
    sites = _site_spectra(terms, scale)
    if sites is None:
        return None
    alike, real, imaginary = sites
    shared = _convolved(straight, np.prod([factor for factor in (scale, rotation) if factor is not None], axis=0))
    if rotation is None:
        return ScaledCirculantInverse(1 / np.maximum(shared + alike, FLOOR), scale=scale)
    shared = shared + _convolved(alike, rotation)
    real, imaginary = np.maximum(real, FLOOR), np.maximum(imaginary, FLOOR)
    return ScaledCirculantInverse.of(np.maximum(shared, 0), real, imaginary, rotation, scale)


@dataclass(frozen=True)
class _Term:
    """Sites of one block: their filters, the weights of real and imaginary parts (one of both alike), and the phase."""

    operator: LinearOperator
    weights: tuple[Array, ...]
    rotation: Array | None

    @classmethod
    def of(cls, analysis: LinearOperator, pi: Array, rotation: Array | None) -> _Term:
        """Behind the phase of the first block that has one; sites behind another one count as sites on moduli."""
        if not isinstance(analysis, PhasedParts):
            return cls(analysis, (np.asarray(pi),), None)
        parts = analysis.part_weights(np.asarray(pi))
        if analysis.rotation is not rotation:
            return cls(analysis.analysis, (mean_of_parts(parts),), None)
        return cls(analysis.analysis, (parts[..., 0], parts[..., 1]), analysis.rotation)


def _evening_scale(terms: Sequence[_Term]) -> Array | None:
    """V; None where a block does not know the diagonal of its share of A, or where all pixels are alike."""
    total = np.zeros(())
    for term in terms:
        mean = np.asarray(sum(term.weights) / np.float32(len(term.weights)))
        diagonal = term.operator.gram_diagonal(mean)
        if diagonal is None:
            return None
        total = total + diagonal
    stiffness = np.maximum(total, 1e-6 * np.max(total))
    if not np.ptp(stiffness) > 0:
        return None
    return np.asarray((stiffness / np.exp(np.log(stiffness).mean(dtype=float))) ** -EVENED)


def _site_spectra(terms: Sequence[_Term], scale: Array | None) -> tuple[Array, Array, Array] | None:
    """Eigenvalues of the circulants nearest to V B^H diag(pi) B V: sites without phase, real and imaginary parts."""
    totals = [np.zeros(terms[0].operator.in_shape)] * 3 if terms else [np.zeros(())] * 3
    for term in terms:
        places = (0,) if term.rotation is None else (1, 2)
        for place, w in zip(places, term.weights, strict=True):
            weights = w if scale is None else term.operator.scaled_weights(w, scale)
            if weights is None:
                return None
            spectrum = term.operator.circulant_spectrum(np.broadcast_to(weights, term.operator.out_shape))
            if spectrum is None:
                return None
            totals[place] = totals[place] + spectrum
    return totals[0], totals[1], totals[2]


def _convolved(spectrum: Array, factor: Array) -> Array:
    """Spectrum of the circulant nearest to F^H C F, F diagonal: means of C's at k + q by |FFT of the factor at q|^2."""
    power = np.abs(scipy.fft.fft2(factor)) ** 2 / factor.size**2
    return np.asarray(scipy.fft.irfft2(scipy.fft.rfft2(spectrum) * np.conj(scipy.fft.rfft2(power)), s=spectrum.shape))
