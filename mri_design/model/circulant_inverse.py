"""Inverses of circulants, as preconditioners of matrices that are nearly circulant.

The preconditioner of a phase-aware model has circulants of the real and the imaginary part, between two turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import LinearOperator
from mri_design.operators.phased import PhasedParts

Array = NDArray[Any]


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
    from mri_design.operators.kernels.fft import filter_images, in_groups, suits_both

    inverse = 1 / spectrum
    weights: dict[np.dtype[Any], Array] = {}

    def precondition(r: Array) -> Array:
        compiled = suits_both(r.shape, r.dtype)
        if r.dtype not in weights:
            # In the order of the compiled loops, or one for the real part of a coefficient, one for the imaginary part.
            weights[r.dtype] = in_groups(inverse, r.dtype) if compiled else _twice(inverse, r.real.dtype)
        if compiled:
            return filter_images(r, weights[r.dtype])
        coefficients = scipy.fft.fft2(r)
        numbers = coefficients.view(r.real.dtype)
        numbers *= weights[r.dtype]
        solution = np.asarray(scipy.fft.ifft2(coefficients, overwrite_x=True))
        return solution if np.iscomplexobj(r) else solution.real

    return precondition


def _twice(response: Array, real: np.dtype[Any]) -> Array:
    return np.repeat(response, 2, axis=-1).astype(real)


@dataclass(frozen=True)
class PhasedCirculantInverse:
    """r -> R G^-1 R^H r, where G acts on a + i b as a circulant that both share, and one of its own on each of them.

    Parameters
    ----------
    own, other : float arrays, shape (ky, kx)
        G^-1 in FFT order: on Fourier coefficients w it gives ``own(k) w(k) + other(k) conj(w(-k))``.
    rotation : complex array, shape (ky, kx)
        R, of modulus one.

    Notes
    -----
    Only real-linear, and symmetric with respect to Re<., .>.
    """

    own: Array
    other: Array
    rotation: Array

    @classmethod
    def of(
        cls,
        shared: NDArray[np.floating],
        real: NDArray[np.floating],
        imaginary: NDArray[np.floating],
        rotation: Array,
    ) -> PhasedCirculantInverse:
        """From the eigenvalues of the circulants: G is ``shared`` + (``real`` on a, ``imaginary`` on b).

        Parameters
        ----------
        shared, real, imaginary : float arrays, shape (ky, kx)
            In FFT order; the last two symmetric under k -> -k (real filters), and with the first positive.
        rotation : complex array, shape (ky, kx)
            R.

        Notes
        -----
        G leaves pairs (w(k), conj w(-k)) of Fourier coefficients to themselves: on each it is the matrix
        ((shared(k) + m, d), (d, shared(-k) + m)) with m = (real + imaginary) / 2 and d = (real - imaginary) / 2, whose
        inverse is written down.
        """
        m, d = (real + imaginary) / 2, (real - imaginary) / 2
        here, opposite = shared + m, mirrored(shared) + m
        determinant = here * opposite - d**2
        return cls(opposite / determinant, -d / determinant, rotation)

    def __call__(self, r: Array) -> Array:
        """R G^-1 R^H r, for one image or a batch, in the precision of r."""
        from mri_design.operators.kernels.fft import filter_parts, in_groups, suits_both

        compiled = suits_both(r.shape, r.dtype)
        if r.dtype not in self._kept:
            turn, part = self.rotation.astype(r.dtype), r.real.dtype
            each = [in_groups(v, r.dtype) if compiled else v.astype(part) for v in (self.own, self.other)]
            self._kept[r.dtype] = turn, np.stack(each)
        turn, weights = self._kept[r.dtype]
        if compiled:
            return filter_parts(r, weights, turn)
        w = scipy.fft.fft2(np.conj(turn) * r, overwrite_x=True)
        opposite = mirrored(w)
        np.conj(opposite, out=opposite)
        np.multiply(weights[1], opposite, out=opposite)
        opposite += np.multiply(weights[0], w, out=w)
        solution = np.asarray(scipy.fft.ifft2(opposite, overwrite_x=True))
        return np.multiply(turn, solution, out=solution)

    @cached_property
    def _kept(self) -> dict[np.dtype[Any], tuple[Array, Array]]:
        return {}


def mirrored(spectrum: Array) -> Array:
    """Values at -k, FFT order, over the last two axes."""
    return np.roll(spectrum[..., ::-1, ::-1], (1, 1), axis=(-2, -1))


LARGEST_LEAK = 10.0
"""How many times stiffer than A a frequency may become by what the phase spreads to it."""


def phased_preconditioner(
    measurement: LinearOperator, blocks: Sequence[SiteBlock], site_precisions: Sequence[Array]
) -> PhasedCirculantInverse | None:
    """r -> (something near A)^-1 r where blocks know a phase; None where a circulant of the image itself serves better.

    That is where no block knows a phase, where a spectrum is not known, and where there is little noise.

    Notes
    -----
    In the image turned back, real and imaginary part each have the circulant nearest to their own sites' share of A.
    The measurement and sites on moduli treat real and imaginary parts alike, so that a circulant of the image itself
    approximates them; after division by the phase its spectrum is convolved with the power spectrum of exp(i phi).
    It pays where the imaginary part is held tighter than the real one; what it saves is said in
    results/benchmarks/measured-once.md.

    The convolution spreads some of what was measured to frequencies that were not. Where there is little noise, sites
    hold these by far less than that, and steps there would be too short to lead anywhere. A circulant of the image
    itself, the two parts' mean, is then exact on the data and off by the parts' ratio at most.
    """
    first = next((block.analysis for block in blocks if isinstance(block.analysis, PhasedParts)), None)
    straight = None if first is None else measurement.circulant_spectrum()
    if first is None or straight is None or len(measurement.in_shape) != 2:
        return None
    real, imaginary = np.zeros(straight.shape), np.zeros(straight.shape)
    for block, pi in zip(blocks, site_precisions, strict=True):
        operator = block.analysis
        if not (isinstance(operator, PhasedParts) and operator.rotation is first.rotation):
            spectrum = operator.circulant_spectrum(np.broadcast_to(pi, operator.out_shape))
            if spectrum is None:
                return None
            straight = straight + spectrum
            continue
        each = operator.part_weights(np.asarray(pi, dtype=float))
        pair = [operator.analysis.circulant_spectrum(each[..., k]) for k in (0, 1)]
        if pair[0] is None or pair[1] is None:
            return None
        real += pair[0]
        imaginary += pair[1]
    floor = np.finfo(np.float32).tiny
    turned = np.maximum(_convolved(straight, first.rotation), 0)
    mean = np.maximum((real + imaginary) / 2, floor)
    if np.any(turned + mean > LARGEST_LEAK * (straight + mean)):
        return None
    return PhasedCirculantInverse.of(turned, np.maximum(real, floor), np.maximum(imaginary, floor), first.rotation)


def _convolved(spectrum: Array, rotation: Array) -> Array:
    """Spectrum of the circulant nearest to R^H C R: at k the mean of C's at k + q, weighted by |FFT of R at q|^2."""
    power = np.abs(scipy.fft.fft2(rotation.astype(np.complex128))) ** 2 / rotation.size**2
    return np.asarray(scipy.fft.ifft2(scipy.fft.fft2(spectrum) * np.conj(scipy.fft.fft2(power))).real)
