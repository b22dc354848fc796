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
    Circulants commute with shifts, so uncentred FFTs serve. Real vectors stay real: the real part is the circulant
    whose spectrum is made symmetric under k -> -k, as that of a real C is.
    """
    inverse = 1 / spectrum

    def precondition(r: Array) -> Array:
        solution = np.asarray(scipy.fft.ifft2(inverse.astype(r.real.dtype) * scipy.fft.fft2(r)))
        return solution if np.iscomplexobj(r) else solution.real

    return precondition
