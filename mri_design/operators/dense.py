"""A matrix as a linear operator, dense or sparse (generalized linear models, small references)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array
from mri_design.operators.base import Array, LinearOperator

CHUNK = 1024
"""Rows that `spread` looks at at once: their projections stay in the cache."""


class MatrixOperator(LinearOperator):
    """An operator whose rows lie in memory, so that dense algebra on few unknowns may take them as they are."""

    matrix: Any

    @abstractmethod
    def weighted_gram_matrix(self, weights: Array) -> Array:
        """A^T diag(weights) A of a real matrix, (columns, columns); one weight per row."""

    @abstractmethod
    def spread(self, root: Array) -> Array:
        """diag(A R^T R A^T) of a real matrix for ``root`` R of shape (any, columns): one sum of squares per row."""


class Dense(MatrixOperator):
    """u -> M u for a matrix of shape (rows, columns); real matrices act on real vectors.

    Parameters
    ----------
    matrix : array, or nested lists of numbers
        Single and double precision are kept, whole numbers and booleans become double.

    Raises
    ------
    InputError
        For anything that is not a matrix of finite numbers.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        matrix = number_array("matrix", matrix, wanted="a finite matrix (rows, columns)")
        if matrix.dtype.kind not in "fc":
            matrix = matrix.astype(np.float64)
        if matrix.ndim != 2:
            raise InputError("matrix", f"shape {matrix.shape}", "a finite matrix (rows, columns)")
        if not np.isfinite(matrix).all():
            raise InputError("matrix", "NaN or infinite values", "a finite matrix (rows, columns)")
        is_complex = np.iscomplexobj(matrix)
        super().__init__(matrix.shape[1:], matrix.shape[:1], in_complex=is_complex, out_complex=is_complex)
        self.matrix = matrix

    def _apply(self, u: Array) -> Array:
        return u @ self.matrix.T

    def _adjoint(self, v: Array) -> Array:
        return v @ self.matrix.conj()

    def rows(self, index: Array) -> Array:
        """Rows of the matrix, shape (len(index), columns)."""
        return np.asarray(self.matrix[index])

    def weighted_gram_matrix(self, weights: Array) -> Array:
        return np.asarray(self.matrix.T @ (weights[:, None] * self.matrix))

    def spread(self, root: Array) -> Array:
        values = np.empty(len(self.matrix))
        for start in range(0, len(self.matrix), CHUNK):
            rows = slice(start, start + CHUNK)
            projections = self.matrix[rows] @ root.T
            values[rows] = np.einsum("ij,ij->i", projections, projections)
        return values


class SparseMatrix(MatrixOperator):
    """u -> M u for a real `scipy.sparse` matrix or array of shape (rows, columns), duplicates added up.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        Copied to compressed rows in double precision.

    Raises
    ------
    InputError
        For anything that is not a sparse matrix of finite real numbers.
    """

    def __init__(self, matrix: scipy.sparse.spmatrix | scipy.sparse.sparray) -> None:
        if not scipy.sparse.issparse(matrix) or matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise InputError(
                "sparse matrix",
                f"{type(matrix).__name__} of {getattr(matrix, 'dtype', 'no numbers')}",
                "a scipy.sparse matrix (rows, columns) of real numbers",
                "Use Dense for arrays and complex matrices.",
            )
        rows = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        if not np.isfinite(rows.data).all():
            raise InputError("sparse matrix", "NaN or infinite values", "finite numbers")
        super().__init__(rows.shape[1:], rows.shape[:1], in_complex=False, out_complex=False)
        self.matrix = rows
        self._transposed = rows.T.tocsr()

    def _apply(self, u: Array) -> Array:
        return _products(self.matrix, u)

    def _adjoint(self, v: Array) -> Array:
        return _products(self._transposed, v)

    def rows(self, index: Array) -> Array:
        """Rows of the matrix, not sparse any more, shape (len(index), columns)."""
        return np.asarray(self.matrix[index].toarray())

    def weighted_gram_matrix(self, weights: Array) -> Array:
        scaled = self._transposed.copy()
        scaled.data *= np.asarray(weights, dtype=float)[scaled.indices]
        return np.asarray((scaled @ self.matrix).toarray())

    def spread(self, root: Array) -> Array:
        columns, values = np.ascontiguousarray(root.T), np.empty(self.matrix.shape[0])
        for start in range(0, len(values), CHUNK):
            rows = slice(start, start + CHUNK)
            projections = self.matrix[rows] @ columns
            values[rows] = np.einsum("ij,ij->i", projections, projections)
        return values


def _products(matrix: scipy.sparse.csr_array, vectors: Array) -> Array:
    """The matrix times every vector on the last axis, in the vectors' own precision."""
    flat = vectors.reshape(-1, vectors.shape[-1])
    products = matrix @ flat[0] if len(flat) == 1 else (matrix @ flat.T).T
    return np.asarray(products, dtype=vectors.dtype).reshape(*vectors.shape[:-1], matrix.shape[0])
