"""A Gaussian kernel, and its factor by incomplete Cholesky decomposition with pivots."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array

TWICE_VARIANCE = 10.0
"""2 sigma^2 of Smola, Vishwanathan & Eskin 2003, section 5."""


def gaussian_kernel(one: Array, other: Array, twice_variance: float = TWICE_VARIANCE) -> Array:
    """exp(-|x - x'|^2 / (2 sigma^2)) between the rows of two matrices."""
    squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1) - 2 * (one @ other.T)
    return np.exp(-np.maximum(squares, 0.0) / twice_variance)


def incomplete_cholesky(
    rows: Array, rank: int, tolerance: float = 1e-6, twice_variance: float = TWICE_VARIANCE
) -> tuple[Array, Array]:
    """F with F F^T near the kernel matrix, and what is left of its diagonal.

    Parameters
    ----------
    rows : array, shape (cases, features)
        x.
    rank : int
        Columns of F at most.
    tolerance : float
        Stop where the trace left is below this share of the whole.

    Returns
    -------
    F : array, shape (cases, columns)
    left : array, shape (cases,)
        diag(K - F F^T), not negative.

    Notes
    -----
    The pivot is the case with the largest rest (Fine & Scheinberg 2001).
    """
    F = np.zeros((len(rows), min(rank, len(rows))))
    left = np.ones(len(rows))
    for column in range(F.shape[1]):
        pivot = int(np.argmax(left))
        if left.sum() <= tolerance * len(rows) or left[pivot] <= 1e-12:
            return F[:, :column].copy(), left
        fresh = gaussian_kernel(rows, rows[pivot : pivot + 1], twice_variance)[:, 0]
        fresh -= F[:, :column] @ F[pivot, :column]
        F[:, column] = fresh / np.sqrt(left[pivot])
        left = np.maximum(left - F[:, column] ** 2, 0.0)
    return F, left
