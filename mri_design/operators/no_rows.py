"""The measurement of nothing: an operator without rows."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array, LinearOperator, Shape


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
