"""Matrices as linear operators, dense, sparse or on disk, and single rows of any operator as numbers."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, require_counts
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
    def rows(self, index: Array) -> Array:
        """Rows of the matrix as an array, shape (len(index), columns)."""

    def spread(self, root: Array) -> Array:
        """diag(A R^T R A^T) of a real matrix for ``root`` R of shape (any, columns): one sum of squares per row."""
        columns = root.T if isinstance(self.matrix, np.ndarray) else np.ascontiguousarray(root.T)
        values = np.empty(self.matrix.shape[0])
        for start in range(0, len(values), CHUNK):
            rows = slice(start, start + CHUNK)
            projections = self.matrix[rows] @ columns
            values[rows] = np.einsum("ij,ij->i", projections, projections)
        return values

    def real_rows(self, index: Array) -> Array:
        return super().real_rows(index) if self.in_complex else np.asarray(self.rows(index), dtype=float)[:, None]


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
        wanted = "a finite matrix (rows, columns)"
        matrix = number_array("matrix", matrix, wanted=wanted, shape=(None, None), kind="finite")
        matrix = matrix if matrix.dtype.kind in "fc" else matrix.astype(np.float64)
        is_complex = np.iscomplexobj(matrix)
        super().__init__(matrix.shape[1:], matrix.shape[:1], in_complex=is_complex, out_complex=is_complex)
        self.matrix = matrix

    def _apply(self, u: Array) -> Array:
        return u @ self.matrix.T

    def _adjoint(self, v: Array) -> Array:
        return v @ self.matrix.conj()

    def rows(self, index: Array) -> Array:
        return np.asarray(self.matrix[index])

    def weighted_gram_matrix(self, weights: Array) -> Array:
        return np.asarray(self.matrix.T @ (weights[:, None] * self.matrix))


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
        return np.asarray(self.matrix[index].toarray())

    def weighted_gram_matrix(self, weights: Array) -> Array:
        scaled = self._transposed.copy()
        scaled.data *= np.asarray(weights, dtype=float)[scaled.indices]
        return np.asarray((scaled @ self.matrix).toarray())


def _products(matrix: scipy.sparse.csr_array, vectors: Array) -> Array:
    """The matrix times every vector on the last axis, in the vectors' own precision."""
    flat = vectors.reshape(-1, vectors.shape[-1])
    products = matrix @ flat[0] if len(flat) == 1 else (matrix @ flat.T).T
    return np.asarray(products, dtype=vectors.dtype).reshape(*vectors.shape[:-1], matrix.shape[0])


SLAB_ROWS = 1024


class RowsOnDisk(LinearOperator):
    """A real matrix that stays in a ``.npy`` file: products read it in slabs, `rows` reads what is asked for.

    Parameters
    ----------
    path : str or path
        A two-dimensional array of floating-point numbers in NumPy's own format.
    slab_rows : int
        How many rows products hold in memory.

    Raises
    ------
    InputError
        For a file that is not such an array, or numbers in it that are not finite.
    """

    def __init__(self, path: str | os.PathLike[str], slab_rows: int = SLAB_ROWS) -> None:
        require_counts(slab_rows=slab_rows, least=1)
        self.path = os.fspath(path)
        self.slab_rows = int(slab_rows)
        try:
            matrix = self._mapped()
        except (OSError, ValueError) as error:
            raise InputError(self.path, str(error), "a .npy file with a matrix") from error
        if matrix.ndim != 2 or matrix.dtype.kind != "f":
            raise InputError(self.path, f"{matrix.dtype} of shape {matrix.shape}", "a matrix of real numbers")
        super().__init__(matrix.shape[1:], matrix.shape[:1], in_complex=False, out_complex=False)
        for place, slab in self._slabs():
            if not np.isfinite(slab).all():
                raise InputError(self.path, f"NaN or infinite values after row {place.start}", "finite numbers")

    def _mapped(self) -> Array:
        return np.asanyarray(np.load(self.path, mmap_mode="r", allow_pickle=False))

    def _slabs(self) -> Iterator[tuple[slice, Array]]:
        matrix = self._mapped()
        for first in range(0, len(matrix), self.slab_rows):
            place = slice(first, min(first + self.slab_rows, len(matrix)))
            yield place, np.array(matrix[place])

    def rows(self, index: Array) -> Array:
        """Rows of the matrix, shape (len(index), columns); the map is closed again, so that nothing stays resident."""
        return np.array(self._mapped()[index])

    def real_rows(self, index: Array) -> Array:
        return np.asarray(self.rows(index), dtype=float)[:, None]

    def _apply(self, u: Array) -> Array:
        return np.concatenate([u @ slab.T for _, slab in self._slabs()], axis=-1)

    def _adjoint(self, v: Array) -> Array:
        total = np.zeros((*v.shape[:-1], *self.in_shape), dtype=v.dtype)
        for place, slab in self._slabs():
            total += v[..., place] @ slab
        return total
