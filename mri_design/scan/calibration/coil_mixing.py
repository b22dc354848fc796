"""Linear combinations of coils."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["inverse_root", "mix_coils"]

_AT_ONCE = 1 << 14


def mix_coils(matrix: NDArray[np.complex128], coils: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """``matrix`` applied over the coil axis of (slice, coil, ...), some samples at a time to bound the memory."""
    mixed = np.empty(coils.shape, coils.dtype)
    flat = mixed.reshape(*coils.shape[:2], -1)
    for index, stack in enumerate(coils.reshape(flat.shape)):
        for start in range(0, flat.shape[-1], _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            flat[index, :, some] = matrix @ stack[:, some]
    return mixed


def inverse_root(covariance: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Hermitian inverse square root of a positive definite matrix."""
    power, directions = np.linalg.eigh(covariance)
    return np.asarray((directions / np.sqrt(power)) @ directions.conj().T)
