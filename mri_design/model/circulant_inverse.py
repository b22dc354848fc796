"""Inverses of circulants, and what stands in for the inverse of a matrix that is nearly one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

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
        from mri_design.operators.kernels.fft.circulant import filter_parts, in_groups, suits_both

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
