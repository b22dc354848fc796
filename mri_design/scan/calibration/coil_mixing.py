"""Linear combinations of coils."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["inverse_root", "maps_before_mixing", "mix_coils"]

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


def maps_before_mixing(
    matrix: NDArray[np.complex128] | None, maps: NDArray[np.complex64] | None
) -> NDArray[np.complex64] | None:
    """Coil maps (slice, coil, ...) of the coils from which ``matrix`` (None is the identity) made those of ``maps``.

    Their root-sum-of-squares is 1 at every pixel, and 0 where that of ``maps`` is. None where there are no maps, or
    those of one coil.
    """
    if maps is None or maps.shape[1] == 1:
        return None
    if matrix is None:
        return maps
    seen = mix_coils(np.asarray(np.linalg.inv(matrix), dtype=np.complex128), maps)
    strength = np.linalg.norm(seen.astype(np.complex128), axis=1, keepdims=True)
    return (seen / np.where(strength > 0, strength, 1)).astype(np.complex64)
