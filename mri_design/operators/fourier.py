"""The centred, orthonormal discrete Fourier transform over the last two axes.

Image and k-space both have their origin at index ``N // 2`` (odd N too), as in SigPy, ``bart fft -u`` and fastMRI.

Two libraries stand behind one call. ``scipy`` is the default because its results are the same bits in every
process, so a design is reproducible. ``pyfftw`` (measured plans, cached per shape) is faster for some sizes, but
its plans, and with them the last bits, differ between processes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy.fft

from mri_design.errors import InputError
from mri_design.operators.base import Array, LinearOperator

FourierLibrary = Literal["scipy", "pyfftw"]
Axes = tuple[int, ...]


def transform(u: Array, axes: Axes, *, inverse: bool = False, library: FourierLibrary = "scipy") -> Array:
    """Orthonormal, uncentred FFT of ``u`` over ``axes``; single precision stays single.

    Parameters
    ----------
    u : complex array
        Any shape.
    axes : tuple of int
        Negative axes to transform.
    inverse : bool
        The inverse transform.
    library : {"scipy", "pyfftw"}
        Who computes it.

    Raises
    ------
    InputError
        For an unknown library.
    """
    if library == "scipy":
        function = scipy.fft.ifftn if inverse else scipy.fft.fftn
        return np.asarray(function(u, axes=axes, norm="ortho"))
    if library == "pyfftw":
        dtype = np.dtype(np.complex64 if u.dtype in (np.complex64, np.float32) else np.complex128)
        return _pyfftw_plan(u.shape, dtype.char, axes, inverse)(u)
    raise InputError("FFT library", repr(library), "'scipy' or 'pyfftw'")


@lru_cache(maxsize=64)
def _pyfftw_plan(shape: tuple[int, ...], dtype: str, axes: Axes, inverse: bool) -> Callable[[Array], Array]:
    """A measured plan with buffers of its own: planning destroys its input, and outputs are reused."""
    import pyfftw  # here, because the import takes a third of a second, and few recipes ask for it

    source = pyfftw.empty_aligned(shape, dtype)
    target = pyfftw.empty_aligned(shape, dtype)
    direction = "FFTW_BACKWARD" if inverse else "FFTW_FORWARD"
    plan = pyfftw.FFTW(source, target, axes=axes, direction=direction, flags=("FFTW_MEASURE",), threads=1)
    scale = source.real.dtype.type(1 / np.sqrt(np.prod([shape[a] for a in axes])))

    def run(u: Array) -> Array:
        source[...] = u
        plan.execute()
        return target * scale

    return run


class CentredFFT(LinearOperator):
    """Image (ky, kx) -> k-space (ky, kx), unitary."""

    def __init__(self, shape: tuple[int, int], library: FourierLibrary = "scipy") -> None:
        super().__init__(shape, shape)
        self.library: FourierLibrary = library

    def _apply(self, u: Array) -> Array:
        return self.centred(u)

    def _adjoint(self, v: Array) -> Array:
        return self.centred(v, inverse=True)

    def centred(self, u: Array, axes: Axes = (-2, -1), *, inverse: bool = False) -> Array:
        """The transform, or its inverse, over both axes or one of them."""
        shifted = scipy.fft.ifftshift(u, axes=axes)
        return np.asarray(
            scipy.fft.fftshift(transform(shifted, axes, inverse=inverse, library=self.library), axes=axes)
        )

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        spectrum = np.broadcast_to(np.asarray(weights, dtype=float), self.in_shape)
        return np.asarray(scipy.fft.ifftshift(spectrum, axes=(-2, -1)))

    def gram_spectrum(self) -> Array | None:
        return np.ones(self.in_shape)
