"""Keeping Lanczos vectors orthogonal: against all of them, or only where rounding makes it necessary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[Any]


def overlaps(basis: Array, r: Array) -> Array:
    """basis^H r, (..., k), for rows ``basis`` (k, n) and vectors r (..., n), without a conjugated copy of the basis."""
    return np.conj(np.conj(r) @ basis.T)


def orthogonalised(r: Array, basis: Array) -> Array:
    """Vectors r (..., n) less their parts along the orthonormal rows of ``basis`` (k, n).

    Gram-Schmidt, and a second time where the first has cancelled much: "twice is enough". Daniel, Gragg, Kaufman &
    Stewart, Math. Comp. 30 (1976).
    """
    for _ in range(2):
        before = np.linalg.norm(r, axis=-1)
        r = r - overlaps(basis, r) @ basis
        if np.all(np.linalg.norm(r, axis=-1) > 0.7 * before):
            break
    return r


class ConvergedRitzVectors:
    """Selective orthogonalisation: new Lanczos vectors lose their orthogonality only along converged Ritz vectors.

    Parameters
    ----------
    dtype : numpy dtype
        Of the Lanczos vectors; a Ritz vector has converged where its residual is below the square root of the rounding.
    every : int
        Steps from one look at the eigenvalues of T to the next, once no Ritz vector is about to converge.

    Notes
    -----
    Parlett & Scott, Math. Comp. 33 (1979), in the lazy variant of TR-175, B.1: pauses at fixed intervals, and Ritz
    vectors found at earlier pauses are kept, not computed anew. The basis stays orthonormal to about the square root
    of the rounding. Eigenvalues far from all others converge within a step or two, so while one is on its way every
    step is a pause, and so is each of the first.
    """

    def __init__(self, dtype: np.dtype[Any], every: int = 4) -> None:
        self.threshold = float(np.sqrt(np.finfo(dtype).eps))
        self.every = every
        self._values: Array = np.empty(0)
        self._vectors: Array | None = None
        self._close = True

    def take_converged(self, basis: Array, diagonal: Array, off_diagonal: Array, size: float) -> bool:
        """At a pause take in Ritz vectors that have converged, True if any; ``size`` is the norm of the residual."""
        steps = len(diagonal)
        if not (self._close or steps % self.every == 0 or steps < 4 * self.every):
            return False
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal)
        scale = float(np.abs(values).max())
        bounds = size * np.abs(vectors[-1])
        if self._values.size:
            gaps = np.abs(values[:, None] - self._values).min(axis=1)
            bounds[gaps <= self.threshold * scale] = np.inf  # known
        new = np.flatnonzero(bounds <= self.threshold * scale)
        self._close = bool(np.any((bounds <= np.sqrt(self.threshold) * scale) & (bounds > self.threshold * scale)))
        if not new.size:
            return False
        converged = orthogonalised(vectors.T[new].astype(basis.real.dtype) @ basis, self._basis(basis))
        converged /= np.linalg.norm(converged, axis=-1, keepdims=True)
        self._vectors = np.concatenate([self._basis(basis), converged])
        self._values = np.concatenate([self._values, values[new]])
        return True

    def removed(self, r: Array) -> Array:
        """r less its parts along the converged Ritz vectors."""
        return r if self._vectors is None else orthogonalised(r, self._vectors)

    def _basis(self, like: Array) -> Array:
        return np.empty((0, like.shape[1]), dtype=like.dtype) if self._vectors is None else self._vectors
