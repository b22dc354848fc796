"""Approximate inverses for conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

__all__ = ["circulant_inverse"]

Array = NDArray[Any]


def circulant_inverse(spectrum: NDArray[np.floating]) -> Callable[[Array], Array]:
    """r -> C^-1 r for the circulant C with positive eigenvalues ``spectrum`` (FFT order) over the last two axes.

    Parameters
    ----------
    spectrum : float array, shape (ky, kx)
        Eigenvalues of C, in A's own units.

    Notes
    -----
    Circulants commute with shifts, so uncentred FFTs serve. Real vectors stay real: a real C has a spectrum that is
    symmetric under k -> -k, and it is made so here.
    """
    inverse = 1 / spectrum
    mirrored = np.roll(inverse[::-1, ::-1], (1, 1), axis=(0, 1))
    symmetric = 0.5 * (inverse + mirrored)

    def precondition(r: Array) -> Array:
        real = r.real.dtype
        if np.iscomplexobj(r):
            return np.asarray(scipy.fft.ifft2(inverse.astype(real) * scipy.fft.fft2(r)))
        return np.asarray(scipy.fft.ifft2(symmetric.astype(real) * scipy.fft.fft2(r)).real)

    return precondition
