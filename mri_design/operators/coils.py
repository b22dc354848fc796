"""Receive coils: one image seen through several sensitivities."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.base import Array, LinearOperator

__all__ = ["Coils"]


class Coils(LinearOperator):
    """Image (ky, kx) -> coil images (coil, ky, kx).

    Parameters
    ----------
    maps : complex array, shape (coil, ky, kx)
        Sensitivities; with unit root-sum-of-squares A^H A is the identity.
    """

    def __init__(self, maps: Array) -> None:
        if maps.ndim != 3:
            raise InputError(field="coil maps", got=f"shape {maps.shape}", wanted="(coil, ky, kx)")
        super().__init__(maps.shape[1:], maps.shape)
        self.maps = maps

    def _apply(self, u: Array) -> Array:
        return self.maps * u[..., None, :, :]

    def _adjoint(self, v: Array) -> Array:
        return np.einsum("cyx,...cyx->...yx", np.conj(self.maps), v)
