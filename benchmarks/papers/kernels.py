"""A Gaussian kernel on sparse cases, and its factor by incomplete Cholesky decomposition with pivots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

from .data import Rows

Values = NDArray[np.float64]
TWICE_VARIANCE = 10.0
"""2 sigma^2 of Smola, Vishwanathan and Eskin 2003, section 5."""


def squares_of(rows: Rows) -> Values:
    """|x|^2 of every case."""
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def kernel_column(rows: Rows, squares: Values, case: int) -> Values:
    """exp(-|x - x'|^2 / (2 sigma^2)) between all cases and one."""
    entry = slice(rows.indptr[case], rows.indptr[case + 1])
    dense = np.zeros(rows.shape[1])
    dense[rows.indices[entry]] = rows.data[entry]
    return np.exp(-np.maximum(squares + squares[case] - 2 * (rows @ dense), 0.0) / TWICE_VARIANCE)


def incomplete_cholesky(rows: Rows, rank: int, tolerance: float = 1e-6) -> tuple[Values, Values]:
    """F with F F^T near the kernel matrix, and diag(K - F F^T), not negative.

    Parameters
    ----------
    rows : csr_array, shape (cases, features)
        x.
    rank : int
        Columns of F at most.
    tolerance : float
        Stop where the trace left is below this share of the whole.

    Raises
    ------
    InputError
        For a rank above the number of cases.

    Notes
    -----
    The pivot is the case with the largest rest (Fine and Scheinberg 2001).
    """
    cases = rows.shape[0]
    if not 1 <= rank <= cases:
        raise InputError("rank", rank, f"1 to {cases}, the number of cases")
    squares, left = squares_of(rows), np.ones(cases)
    F = np.zeros((cases, rank), order="F")
    for column in range(rank):
        pivot = int(np.argmax(left))
        if left.sum() <= tolerance * cases or left[pivot] <= 1e-12:
            return F[:, :column].copy(), left
        fresh = kernel_column(rows, squares, pivot) - F[:, :column] @ F[pivot, :column]
        F[:, column] = fresh / np.sqrt(left[pivot])
        left = np.maximum(left - F[:, column] ** 2, 0.0)
    return np.ascontiguousarray(F), left
