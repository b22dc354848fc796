"""Linear combinations of coils."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["inverse_root", "mix_coils"]


def mix_coils(matrix: NDArray[np.complex128], coils: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """``matrix`` applied over the coil axis of (slice, coil, ky, kx), slice by slice to bound the memory."""
    mixed = np.empty_like(coils)
    for index, stack in enumerate(coils):
        mixed[index] = (matrix @ stack.reshape(len(stack), -1)).reshape(stack.shape)
    return mixed


def inverse_root(covariance: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Hermitian inverse square root of a positive definite matrix."""
    power, directions = np.linalg.eigh(covariance)
    return np.asarray((directions / np.sqrt(power)) @ directions.conj().T)
