"""The package's centred orthonormal Fourier transform, for whole stacks at once.

NumPy's transforms: to import SciPy's takes longer than to describe a scan."""

from __future__ import annotations

from typing import Any

from numpy import fft
from numpy.typing import NDArray


def to_image(kspace: NDArray[Any]) -> NDArray[Any]:
    """Images (..., ky, kx) of k-space (..., ky, kx), DC at ``N // 2`` in both."""
    spread = fft.ifftshift(kspace, axes=(-2, -1))
    return fft.fftshift(fft.ifft2(spread, norm="ortho"), axes=(-2, -1))


def to_kspace(image: NDArray[Any]) -> NDArray[Any]:
    """K-space (..., ky, kx) of images (..., ky, kx), DC at ``N // 2`` in both."""
    spread = fft.ifftshift(image, axes=(-2, -1))
    return fft.fftshift(fft.fft2(spread, norm="ortho"), axes=(-2, -1))


def to_readout_profiles(kspace: NDArray[Any]) -> NDArray[Any]:
    """Profiles (..., ky, x) of k-space (..., ky, kx): transformed along the readout alone."""
    spread = fft.ifftshift(kspace, axes=-1)
    return fft.fftshift(fft.ifft(spread, axis=-1, norm="ortho"), axes=-1)
