"""A block-tridiagonal matrix on the columns of an image, closed to a ring: factor, solve, and parts of the inverse.

Cartesian readouts are fully sampled, so X^H X couples no two columns, and sites on pixels or differences couple only
neighbours: A is such a matrix exactly. Block elimination then costs O(kx ky^3) instead of the O(kx^3 ky^3) of dense
algebra.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from mri_design.operators.base import Array


@dataclass(frozen=True)
class ColumnFactors:
    """Elimination of all columns but the last, one after the other; the last is coupled to both its neighbours.

    Parameters
    ----------
    pivots : array, shape (kx, ky, ky)
        Inverses of the pivots D_k.
    to_next, to_last : arrays, shape (kx - 1, ky, ky)
        G_k = A_(k+1, k) D_k^-1 and V_k = A_(last, k) D_k^-1 after elimination of the columns before k; G is zero at
        the last of them, whose next column is the last.
    log_determinant : float
        log det of the complex matrix.

    Notes
    -----
    Parts of the inverse by the recurrences of Takahashi, Fagan & Chin (1973) from the last column to the first.
    """

    pivots: Array
    to_next: Array
    to_last: Array
    log_determinant: float

    @classmethod
    def of(cls, diagonal: Array, below: Array) -> ColumnFactors | None:
        """Factors of a Hermitian matrix; None where it is not positive definite.

        Parameters
        ----------
        diagonal, below : arrays, shape (kx, ky, ky)
            Blocks A_(k, k) and A_((k + 1) mod kx, k) of at least three columns.
        """
        count = len(diagonal)
        last = count - 1
        pivots = np.empty(diagonal.shape, dtype=np.complex128)
        to_next, to_last = np.zeros((2, last, *diagonal.shape[1:]), dtype=np.complex128)
        current, corner = diagonal[0], diagonal[last]
        border = _dagger(below[last])  # A_(last, 0)
        log_determinant = 0.0
        for k in range(last):
            step = _inverse(current, diagonal[k])
            if step is None:
                return None
            pivots[k], logarithm = step
            log_determinant += logarithm
            if k == last - 1:
                border = border + below[k]
            to_last[k] = border @ pivots[k]
            corner = corner - to_last[k] @ _dagger(border)
            if k < last - 1:
                to_next[k] = below[k] @ pivots[k]
                current = diagonal[k + 1] - to_next[k] @ _dagger(below[k])
                border = -to_last[k] @ _dagger(below[k])
        step = _inverse(corner, diagonal[last])
        if step is None:
            return None
        pivots[last], logarithm = step
        return cls(pivots, to_next, to_last, log_determinant + logarithm)

    def solve(self, b: Array) -> Array:
        """The solution for right-hand sides (..., ky, kx), in their precision."""
        x = np.moveaxis(b.reshape(-1, *b.shape[-2:]), 0, -1).transpose(1, 0, 2).copy()  # (kx, ky, batch)
        pivots, to_next, to_last = (m.astype(b.dtype, copy=False) for m in (self.pivots, self.to_next, self.to_last))
        last = len(x) - 1
        for k in range(last):
            if k < last - 1:
                x[k + 1] -= to_next[k] @ x[k]
            x[last] -= to_last[k] @ x[k]
        x = pivots @ x
        for k in range(last - 1, -1, -1):
            x[k] -= _dagger(to_last[k]) @ x[last]
            if k < last - 1:
                x[k] -= _dagger(to_next[k]) @ x[k + 1]
        return np.asarray(x.transpose(2, 1, 0).reshape(b.shape))

    @cached_property
    def neighbours(self) -> tuple[Array, Array]:
        """Blocks Z_(k, k) and Z_((k+1) mod kx, k) of the inverse, each (kx, ky, ky)."""
        last = len(self.pivots) - 1
        own, below = np.empty_like(self.pivots), np.empty_like(self.pivots)
        own[last] = self.pivots[last]
        from_last = own[last]  # Z_(last, k + 1)
        for k in range(last - 1, -1, -1):
            following = own[last] if k == last - 1 else own[k + 1]
            new = -own[last] @ self.to_last[k]
            own[k] = self.pivots[k] - _dagger(self.to_last[k]) @ new
            if k < last - 1:
                new -= from_last @ self.to_next[k]
                below[k] = -(following @ self.to_next[k]) - _dagger(from_last) @ self.to_last[k]
                own[k] = self.pivots[k] - _dagger(self.to_next[k]) @ below[k] - _dagger(self.to_last[k]) @ new
            else:
                below[k] = new
            from_last = new
        below[last] = _dagger(from_last)  # Z_(0, last)
        return own, below

    @property
    def image_variances(self) -> Array:
        """The diagonal of the inverse as an image (ky, kx)."""
        return np.asarray(np.diagonal(self.neighbours[0], axis1=1, axis2=2).real.T)

    def inverse(self) -> Array:
        """All blocks Z_(j, k) of the inverse, (kx, kx, ky, ky), in single precision."""
        count, n = self.pivots.shape[:2]
        z = np.empty((count, count, n, n), dtype=np.complex64)
        pivots, to_next, to_last = (m.astype(z.dtype) for m in (self.pivots, self.to_next, self.to_last))
        last = count - 1
        z[last, last] = pivots[last]
        for k in range(last - 1, -1, -1):
            rows = z[k + 1 :, last] @ to_last[k]
            if k < last - 1:
                rows += z[k + 1 :, k + 1] @ to_next[k]
            z[k + 1 :, k] = -rows
            z[k, k + 1 :] = _dagger(z[k + 1 :, k])
            z[k, k] = pivots[k] - _dagger(to_last[k]) @ z[last, k]
            if k < last - 1:
                z[k, k] -= _dagger(to_next[k]) @ z[k + 1, k]
        return z


def _dagger(blocks: Array) -> Array:
    return np.conj(np.swapaxes(blocks, -1, -2))


def _inverse(matrix: Array, before: Array) -> tuple[Array, float] | None:
    """Inverse and log-determinant; None where not positive definite, or only by the rounding of what was ``before``."""
    factor, failed = lapack.zpotrf(matrix, lower=1)
    if failed:
        return None
    pivots = np.diag(factor).real
    half, failed = lapack.zpotri(factor, lower=1)
    if failed or np.any(pivots**2 < 100 * np.finfo(float).eps * np.diag(before).real):
        return None
    lower = np.tril(half, -1)
    return lower + _dagger(lower) + np.diag(np.diag(half).real), 2 * float(np.log(pivots).sum())
