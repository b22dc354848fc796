"""Maps between real and complex arrays: real images with complex data, and sites on parts of a complex pair."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array, LinearOperator, Shape


class RealImage(LinearOperator):
    """A real image seen as a complex one; the adjoint takes the real part."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, shape, in_complex=False, out_complex=True)

    def _apply(self, u: Array) -> Array:
        return u.astype(np.result_type(u.dtype, np.complex64), copy=False)

    def _adjoint(self, v: Array) -> Array:
        return v.real


class RealAndImaginary(LinearOperator):
    """Complex s -> real array with a last axis (real part, imaginary part).

    Placed in front of a site it gives each part a site of its own; without it a site acts on the modulus.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, (*shape, 2), in_complex=True, out_complex=False)

    def _apply(self, u: Array) -> Array:
        return np.stack([u.real, u.imag], axis=-1)

    def _adjoint(self, v: Array) -> Array:
        return v[..., 0] + 1j * v[..., 1]
