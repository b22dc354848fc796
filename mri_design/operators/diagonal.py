"""Pointwise multiplication, and the identity (pixels as coefficients)."""

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
        diagonal = number_array("diagonal", diagonal)
        if not np.isfinite(diagonal).all():
            raise InputError("diagonal", "NaN or infinite values", "finite numbers")
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
