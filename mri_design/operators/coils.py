"""Receive coils: one image seen through several sensitivities."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError, number_array
from mri_design.operators.base import Array, LinearOperator


class Coils(LinearOperator):
    """Image (ky, kx) -> coil images (coil, ky, kx).

    Parameters
    ----------
    maps : complex array, shape (coil, ky, kx)
        Sensitivities; with unit root-sum-of-squares A^H A is the identity.

    Raises
    ------
    InputError
        For maps that are not three-dimensional or not finite numbers.
    """

    def __init__(self, maps: Array) -> None:
        maps = number_array("coil maps", maps, wanted="finite numbers (coil, ky, kx)")
        if maps.ndim != 3:
            raise InputError("coil maps", f"shape {maps.shape}", "(coil, ky, kx)")
        if not np.isfinite(maps).all():
            raise InputError(
                "coil maps",
                "NaN or infinite values",
                "finite numbers (coil, ky, kx)",
                "Estimate maps without cropping, or put zeros where there is no signal.",
            )
        super().__init__(maps.shape[1:], maps.shape)
        self.maps = maps

    def _apply(self, u: Array) -> Array:
        return self.maps * u[..., None, :, :]

    def _adjoint(self, v: Array) -> Array:
        return np.einsum("cyx,...cyx->...yx", np.conj(self.maps), v)
