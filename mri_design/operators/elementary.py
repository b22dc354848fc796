"""Elementary operators: products by pixel, real and imaginary parts of images, and the measurement of nothing."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError, number_array, require_grid
from mri_design.operators.base import Array, LinearOperator, ScalarOperator, Shape
from mri_design.operators.kernels.suitable import compilable, laid_out


class Identity(ScalarOperator):
    """u -> u: the image's own pixels as coefficients.

    Raises
    ------
    InputError
        For a shape that is not a tuple of positive whole numbers.
    """

    def __init__(self, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(1.0, require_grid("shape", shape), is_complex=is_complex)

    def add_weighted_gram(self, weights: Array, u: Array, total: Array) -> None:
        if not compilable(u, total) or np.ndim(weights) > len(self.in_shape):
            total += weights * u
            return
        from mri_design.operators.kernels.pointwise import add_product

        add_product(laid_out(weights, self.in_shape, u).reshape(-1), u, total)


class Diagonal(LinearOperator):
    """u -> d * u for an array ``d`` of the shape of one input.

    Raises
    ------
    InputError
        For anything that is not an array of finite numbers, or complex ones in a real operator.
    """

    def __init__(self, diagonal: Array, *, is_complex: bool = True) -> None:
        diagonal = number_array("diagonal", diagonal, wanted="finite numbers", kind="finite")
        if not is_complex and np.iscomplexobj(diagonal):
            raise InputError("diagonal", "complex entries", "real entries for a real operator")
        super().__init__(diagonal.shape, diagonal.shape, in_complex=is_complex, out_complex=is_complex)
        self.diagonal = diagonal

    def _apply(self, u: Array) -> Array:
        return self.diagonal * u

    def _adjoint(self, v: Array) -> Array:
        return np.conj(self.diagonal) * v

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        return (np.abs(self.diagonal) ** 2 * weights) * u

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        return np.full(self.in_shape, float(np.mean(np.abs(self.diagonal) ** 2 * weights)))


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


class NoRows(LinearOperator):
    """u -> nothing, an array of length zero: X of a model without a Gaussian factor."""

    def __init__(self, shape: Shape, *, is_complex: bool = True) -> None:
        super().__init__(shape, (0,), in_complex=is_complex, out_complex=is_complex)

    def _apply(self, u: Array) -> Array:
        return np.empty((*u.shape[: u.ndim - len(self.in_shape)], 0), dtype=u.dtype)

    def _adjoint(self, v: Array) -> Array:
        return np.zeros((*v.shape[:-1], *self.in_shape), dtype=v.dtype)

    @property
    def gram(self) -> LinearOperator:
        return _Zero(self.in_shape, is_complex=self.in_complex)

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        return np.zeros_like(u)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        return np.zeros(self.in_shape) if len(self.in_shape) == 2 else None

    def gram_spectrum(self) -> Array | None:
        return self.circulant_spectrum()

    def to_dense(self, limit: int = 5000) -> Array:
        return np.zeros((0, int(np.prod(self.in_shape))), dtype=complex if self.in_complex else float)

    def to_dense_real(self, limit: int = 5000) -> Array:
        return np.zeros((0, self.in_size))


class _Zero(LinearOperator):
    def __init__(self, shape: Shape, *, is_complex: bool) -> None:
        super().__init__(shape, shape, in_complex=is_complex, out_complex=is_complex)

    def _apply(self, u: Array) -> Array:
        return np.zeros_like(u)

    def _adjoint(self, v: Array) -> Array:
        return np.zeros_like(v)
