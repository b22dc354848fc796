"""Lanczos tridiagonalisation, and the low-rank approximation of A^-1 that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.status import Convergence, Status

Array = NDArray[Any]


def orthogonalised(r: Array, basis: Array) -> Array:
    """The vector r (n,) less its part along the orthonormal rows of ``basis`` (k, n).

    Gram-Schmidt, and a second time where the first has cancelled much: "twice is enough". Daniel, Gragg, Kaufman &
    Stewart, Math. Comp. 30 (1976).
    """
    for _ in range(2):
        before = np.linalg.norm(r)
        r = r - np.conj(np.conj(r) @ basis.T) @ basis  # without a conjugated copy of the basis
        if np.linalg.norm(r) > 0.7 * before:
            break
    return r


@dataclass(frozen=True)
class LanczosFactors:
    """Q and T with Q^H A Q = T, and T = L L^T with L bidiagonal.

    Parameters
    ----------
    basis : array, shape (k, *shape)
        Rows are the orthonormal Lanczos vectors q_1 ... q_k.
    diagonal, off_diagonal : float arrays, shapes (k,) and (k - 1,)
        The tridiagonal matrix T.
    convergence : Convergence
        Status; ``residual`` is the last off-diagonal entry relative to the largest diagonal one.
    """

    basis: Array
    diagonal: NDArray[np.float64]
    off_diagonal: NDArray[np.float64]
    convergence: Convergence

    def cholesky(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Diagonal e and sub-diagonal d of L (TR-175 appendix B)."""
        e = np.empty_like(self.diagonal)
        d = np.empty_like(self.off_diagonal)
        e[0] = np.sqrt(self.diagonal[0])
        for i in range(1, len(e)):
            d[i - 1] = self.off_diagonal[i - 1] / e[i - 1]
            e[i] = np.sqrt(self.diagonal[i] - d[i - 1] ** 2)
        return e, d

    def inverse_root(self) -> Array:
        """V of shape (k, *shape) with A^-1 approximately sum_j v_j v_j^H: the rows of L^-1 Q^T (TR-175 section 6.1)."""
        e, d = self.cholesky()
        root = np.empty_like(self.basis)
        root[0] = self.basis[0] / e[0].astype(self.basis.real.dtype)
        for i in range(1, len(e)):
            root[i] = (self.basis[i] - d[i - 1].astype(root.real.dtype) * root[i - 1]) / e[i].astype(root.real.dtype)
        return root

    def log_determinant(self) -> float:
        """log|T|: an underestimate of log|A| for k below the dimension (when the rest of A is above 1)."""
        return 2 * float(np.sum(np.log(self.cholesky()[0])))


def lanczos(apply: Callable[[Array], Array], start: Array, steps: int) -> LanczosFactors:
    """Run ``steps`` Lanczos steps with a Hermitian positive definite A from a starting vector.

    Parameters
    ----------
    apply : callable
        x -> A x for one vector of the shape of ``start``.
    start : array
        Any non-zero vector, real or complex; it is normalised.
    steps : int
        k, at most the dimension.

    Returns
    -------
    LanczosFactors
        Fewer than ``steps`` vectors where an invariant subspace was found. Status breakdown, and vectors up to there,
        where A is not positive definite.

    Notes
    -----
    Gram-Schmidt against all previous vectors, a second time where needed; memory k vectors, time O(n k^2).
    Seeger & Nickisch 2008 (TR-175), Algorithm 1 and B.1.
    """
    shape = start.shape
    n = start.size
    steps = min(steps, n)
    basis = np.empty((steps, n), dtype=start.dtype)
    diagonal = np.empty(steps)
    off_diagonal = np.empty(max(steps - 1, 0))
    basis[0] = start.ravel() / np.linalg.norm(start)
    status, residual, done, pivot = Status.CONVERGED, 0.0, steps, np.inf
    rounding = 10 * np.finfo(start.real.dtype).eps
    for k in range(steps):
        r = apply(basis[k].reshape(shape)).ravel()
        diagonal[k] = float(np.real(np.vdot(basis[k], r)))
        # The last pivot of T's Cholesky factor: all are positive where A is positive definite on the basis.
        pivot = diagonal[k] - (off_diagonal[k - 1] ** 2 / pivot if k else 0.0)
        if not pivot > 0:
            status, done = Status.BREAKDOWN, k
            break
        # The three-term recurrence first: what Gram-Schmidt then removes is rounding, and one pass mostly does.
        r = r - diagonal[k].astype(r.real.dtype) * basis[k]
        if k:
            r = r - off_diagonal[k - 1].astype(r.real.dtype) * basis[k - 1]
        r = orthogonalised(r, basis[: k + 1])
        size = float(np.linalg.norm(r))
        residual = size / float(diagonal[: k + 1].max())
        if k + 1 == steps:
            break
        if residual < rounding:
            done = k + 1
            break
        off_diagonal[k] = size
        basis[k + 1] = r / np.asarray(size, dtype=r.real.dtype)
    if done and _numerically_singular(diagonal[:done], off_diagonal[: done - 1], start.real.dtype):
        status = Status.BREAKDOWN
    return LanczosFactors(
        basis[:done].reshape(done, *shape),
        diagonal[:done],
        off_diagonal[: max(done - 1, 0)],
        Convergence(status, done, residual, matvecs=min(done + (status is Status.BREAKDOWN), steps)),
    )


def _numerically_singular(diagonal: Array, off_diagonal: Array, dtype: np.dtype[Any]) -> bool:
    """True where T's smallest eigenvalue is rounding: in double precision, or of vectors in single."""
    smallest = scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(0, 0))[0]
    return bool(smallest <= max(np.finfo(dtype).eps, 100 * np.finfo(float).eps) * diagonal.max())
