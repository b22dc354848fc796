"""A matrix as a linear operator (generalized linear models, small references)."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.base import Array, LinearOperator

__all__ = ["Dense"]


class Dense(LinearOperator):
    """u -> M u for a matrix of shape (rows, columns); real matrices act on real vectors."""

    def __init__(self, matrix: Array) -> None:
        if matrix.ndim != 2 or not np.isfinite(matrix).all():
            raise InputError(field="matrix", got=f"shape {matrix.shape}", wanted="a finite matrix (rows, columns)")
        is_complex = np.iscomplexobj(matrix)
        super().__init__(matrix.shape[1:], matrix.shape[:1], in_complex=is_complex, out_complex=is_complex)
        self.matrix = matrix

    def _apply(self, u: Array) -> Array:
        return u @ self.matrix.T

    def _adjoint(self, v: Array) -> Array:
        return v @ self.matrix.conj()
