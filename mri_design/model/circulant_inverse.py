"""Inverses of circulants, and what stands in for the inverse of a matrix that is nearly one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

__all__ = ["circulant_inverse", "mirrored", "phased_circulant_inverse"]

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
    from mri_design.operators.kernels.fft.circulant import filter_images, in_groups, suits_both

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


def phased_circulant_inverse(
    shared: NDArray[np.floating], real: NDArray[np.floating], imaginary: NDArray[np.floating], rotation: Array
) -> Callable[[Array], Array]:
    """r -> R G^-1 R^H r, where G acts on a + i b as ``shared`` + (``real`` on a, ``imaginary`` on b).

    Parameters
    ----------
    shared, real, imaginary : float arrays, shape (ky, kx)
        Eigenvalues of circulants in FFT order; the last two symmetric under k -> -k (real filters), and with the first
        positive.
    rotation : complex array, shape (ky, kx)
        R, of modulus one.

    Notes
    -----
    G leaves pairs (w(k), conj w(-k)) of Fourier coefficients to themselves: on each it is the matrix
    ((shared(k) + m, d), (d, shared(-k) + m)) with m = (real + imaginary) / 2 and d = (real - imaginary) / 2, whose
    inverse is written down. Only real-linear, and symmetric with respect to Re<., .>.
    """
    m, d = (real + imaginary) / 2, (real - imaginary) / 2
    here, opposite = shared + m, mirrored(shared) + m
    determinant = here * opposite - d**2
    own, other = opposite / determinant, -d / determinant

    kept: dict[np.dtype[Any], tuple[Array, Array, Array, Array]] = {}

    def precondition(r: Array) -> Array:
        if r.dtype not in kept:
            turn, part = rotation.astype(r.dtype), r.real.dtype
            kept[r.dtype] = turn, np.conj(turn), own.astype(part), other.astype(part)
        turn, back, on_own, on_other = kept[r.dtype]
        w = scipy.fft.fft2(back * r, overwrite_x=True)
        opposite = mirrored(w)
        np.conj(opposite, out=opposite)
        np.multiply(on_other, opposite, out=opposite)
        opposite += np.multiply(on_own, w, out=w)
        solution = np.asarray(scipy.fft.ifft2(opposite, overwrite_x=True))
        return np.multiply(turn, solution, out=solution)

    return precondition


def mirrored(spectrum: Array) -> Array:
    """Values at -k, FFT order, over the last two axes."""
    return np.roll(spectrum[..., ::-1, ::-1], (1, 1), axis=(-2, -1))
