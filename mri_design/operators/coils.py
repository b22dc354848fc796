"""Receive coils: one image seen through several sensitivity maps, as in SENSE; and whitening of their noise."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError, number_array
from mri_design.operators.base import Array, LinearOperator, Shape


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
        maps = number_array(
            "coil maps",
            maps,
            wanted="finite numbers (coil, ky, kx)",
            cure="Estimate maps without cropping, or put zeros where there is no signal.",
            shape=(None, None, None),
            kind="finite",
        )
        super().__init__(maps.shape[1:], maps.shape)
        self.maps = maps

    def _apply(self, u: Array) -> Array:
        return self.maps * u[..., None, :, :]

    def _adjoint(self, v: Array) -> Array:
        return np.einsum("cyx,...cyx->...yx", np.conj(self.maps), v)


class CoilMixing(LinearOperator):
    """y -> M y along the first axis of the data, one matrix for all samples."""

    def __init__(self, matrix: Array, shape: Shape, *, is_complex: bool = True) -> None:
        if matrix.shape != (shape[0], shape[0]):
            raise InputError("coil matrix", f"shape {matrix.shape}", f"({shape[0]}, {shape[0]})")
        super().__init__(shape, shape, in_complex=is_complex, out_complex=is_complex)
        self.matrix = matrix

    def _mixed(self, matrix: Array, y: Array) -> Array:
        axis = y.ndim - len(self.in_shape)
        matrix = matrix if np.iscomplexobj(y) else matrix.real
        mixed = np.tensordot(matrix.astype(np.result_type(matrix.real.dtype, y.dtype)), y, axes=(1, axis))
        return np.moveaxis(mixed, 0, axis).astype(y.dtype, copy=False)

    def _apply(self, u: Array) -> Array:
        return self._mixed(self.matrix, u)

    def _adjoint(self, v: Array) -> Array:
        return self._mixed(self.matrix.conj().T, v)


class RealMatrix(LinearOperator):
    """y -> M y on (real parts, imaginary parts) of the data, or on the data themselves where they are real."""

    def __init__(self, matrix: Array, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(shape, shape, in_complex=is_complex, out_complex=is_complex, complex_linear=not is_complex)
        if matrix.shape != (self.in_size, self.in_size):
            raise InputError("matrix", f"shape {matrix.shape}", f"({self.in_size}, {self.in_size})")
        self.matrix = matrix

    def _multiplied(self, matrix: Array, y: Array) -> Array:
        flat = y.reshape(*y.shape[: y.ndim - len(self.in_shape)], -1)
        real = np.concatenate([flat.real, flat.imag], axis=-1) if self.in_complex else flat
        moved = (real @ matrix.T).astype(y.real.dtype, copy=False)
        half = moved.shape[-1] // 2
        return (moved[..., :half] + 1j * moved[..., half:] if self.in_complex else moved).reshape(y.shape)

    def _apply(self, u: Array) -> Array:
        return self._multiplied(self.matrix, u)

    def _adjoint(self, v: Array) -> Array:
        return self._multiplied(self.matrix.T, v)
