"""Lanczos tridiagonalisation, one vector or a block at a time, and what it tells about A^-1.

Keeping Lanczos vectors orthogonal: against all of them, or only where rounding makes it necessary.

Block Lanczos: several products with A at once, and Gram-Schmidt as matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mri_design.status import Convergence, Status

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


Reorthogonalisation = Literal["full", "selective"]


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


def lanczos(
    apply: Callable[[Array], Array], start: Array, steps: int, reorthogonalisation: Reorthogonalisation = "full"
) -> LanczosFactors:
    """Run ``steps`` Lanczos steps with a Hermitian positive definite A from a starting vector.

    Parameters
    ----------
    apply : callable
        x -> A x for one vector of the shape of ``start``.
    start : array
        Any non-zero vector, real or complex; it is normalised.
    steps : int
        k, at most the dimension.
    reorthogonalisation : {"full", "selective"}
        Against all previous vectors, or against converged Ritz vectors only (orthonormal to the square root of the
        rounding; cheaper while few have converged).

    Returns
    -------
    LanczosFactors
        Fewer than ``steps`` vectors where an invariant subspace was found. Status breakdown, and vectors up to there,
        where A is not positive definite.

    Notes
    -----
    Gram-Schmidt against all previous vectors, a second time where needed; memory k vectors, time O(n k^2). Selective:
    see `orthogonal.ConvergedRitzVectors`. Seeger & Nickisch 2008 (TR-175), Algorithm 1 and B.1.
    """
    shape = start.shape
    n = start.size
    steps = min(steps, n)
    basis = np.empty((steps, n), dtype=start.dtype)
    diagonal = np.empty(steps)
    off_diagonal = np.empty(max(steps - 1, 0))
    basis[0] = start.ravel() / np.linalg.norm(start)
    status, residual, done, pivot = Status.CONVERGED, 0.0, steps, np.inf
    ritz = ConvergedRitzVectors(start.dtype) if reorthogonalisation == "selective" else None
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
        if ritz is None:
            r = orthogonalised(r, basis[: k + 1])
        else:
            r = ritz.removed(orthogonalised(r, basis[max(k - 1, 0) : k + 1]))
        size = float(np.linalg.norm(r))
        if ritz is not None and ritz.take_converged(basis[: k + 1], diagonal[: k + 1], off_diagonal[:k], size):
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


@dataclass(frozen=True)
class BlockLanczosFactors:
    """Q and T with Q^H A Q = T, block tridiagonal.

    Parameters
    ----------
    basis : array, shape (k, *shape)
        Rows are orthonormal vectors.
    projected : array, shape (k, k)
        T, in double precision.
    edges : tuple of int
        First row of every block, and k.
    convergence : Convergence
        Status; ``residual`` is the size of the last block's continuation relative to T's largest diagonal entry.
    """

    basis: Array
    projected: Array
    edges: tuple[int, ...]
    convergence: Convergence

    def inverse_root(self) -> Array:
        """V of shape (k, *shape) with A^-1 approximately sum_j v_j v_j^H: the rows of conj(L)^-1 Q^T, T = L L^H."""
        lower = np.conj(np.linalg.cholesky(self.projected)).astype(self.basis.dtype)
        flat = self.basis.reshape(len(self.basis), -1)
        root = np.empty_like(flat)
        for number, (start, stop) in enumerate(zip(self.edges, self.edges[1:], strict=False)):
            rows = flat[start:stop]
            if number:
                before = self.edges[number - 1]
                rows = rows - lower[start:stop, before:start] @ root[before:start]
            root[start:stop] = scipy.linalg.solve_triangular(lower[start:stop, start:stop], rows, lower=True)
        return root.reshape(self.basis.shape)

    def log_determinant(self) -> float:
        """log|T|: an underestimate of log|A| for k below the dimension (when the rest of A is above 1)."""
        return 2 * float(np.sum(np.log(np.diag(np.linalg.cholesky(self.projected)).real)))


def block_lanczos(apply: Callable[[Array], Array], start: Array, steps: int) -> BlockLanczosFactors:
    """Build a basis of ``steps`` vectors of the block Krylov space of a Hermitian positive definite A.

    Parameters
    ----------
    apply : callable
        x -> A x on a batch (batch, *shape).
    start : array, shape (block, *shape)
        Linearly independent vectors, real or complex.
    steps : int
        k, at most the dimension: products with A and vectors in all; the last block may be smaller.

    Returns
    -------
    BlockLanczosFactors
        Fewer vectors where an invariant subspace was found. Status breakdown, and vectors up to there, where A is not
        positive definite.

    Notes
    -----
    Full reorthogonalisation, O(n k^2) as for single vectors but in matrix products. Directions that run out are
    dropped from the block, by a QR factorisation with pivoting. The space of k vectors holds polynomials of A of degree
    k / block only: z is reached from further below than with single vectors (Golub & Van Loan, Matrix Computations,
    section 10.3.6).
    """
    shape, n = start.shape[1:], int(np.prod(start.shape[1:]))
    steps = min(steps, n)
    rounding = 10 * np.finfo(start.real.dtype).eps
    basis = np.empty((steps, n), dtype=start.dtype)
    projected = np.zeros((steps, steps), dtype=np.result_type(start.dtype, np.float64))
    block, coupling = _new_directions(start.reshape(len(start), n), rounding, steps)
    edges, status, residual = [0], Status.CONVERGED, 0.0
    pivot, spent = np.empty((0, 0)), 0
    while len(block):
        low, high = edges[-1], edges[-1] + len(block)
        basis[low:high] = block
        spent = high
        r = apply(block.reshape(-1, *shape)).reshape(len(block), n)
        own = overlaps(basis[low:high], r).T  # entry (i, j) is q_i^H A q_j
        projected[low:high, low:high] = 0.5 * (own + own.conj().T)
        # The last pivot of T's block Cholesky factor: all are positive where A is positive definite on the basis.
        pivot = projected[low:high, low:high] - (coupling @ np.linalg.solve(pivot, coupling.conj().T) if low else 0)
        if not _positive(pivot):
            status = Status.BREAKDOWN
            break
        edges.append(high)
        # The recurrence first: what Gram-Schmidt then removes is rounding, and one pass mostly does.
        r = r - own.T.astype(r.dtype) @ basis[low:high]
        if len(edges) > 2:
            r = r - projected[edges[-3] : low, low:high].T.astype(r.dtype) @ basis[edges[-3] : low]
        r = orthogonalised(r, basis[:high])
        scale = float(np.diag(projected[:high, :high]).real.max())
        residual = float(np.linalg.norm(r, axis=-1).max()) / scale
        if high == steps:
            break
        block, coupling = _new_directions(r, rounding * scale, steps - high)
        if len(block) and np.linalg.norm(coupling, axis=-1).min() < 0.01 * residual * scale:
            # A small direction has kept what a large one leaves of the basis within rounding.
            block = _normalised(orthogonalised(block, basis[:high]))
        projected[high : high + len(block), low:high] = coupling
        projected[low:high, high : high + len(block)] = coupling.conj().T
    k = edges[-1]
    if k and not _positive(projected[:k, :k], start.real.dtype):
        status = Status.BREAKDOWN
    convergence = Convergence(status, k, residual, matvecs=spent)
    return BlockLanczosFactors(basis[:k].reshape(k, *shape), projected[:k, :k], tuple(edges), convergence)


def _new_directions(r: Array, floor: float, limit: int) -> tuple[Array, Array]:
    """Orthonormal rows Q (at most ``limit``) and B with r^T = Q^T B, without directions smaller than ``floor``."""
    tall, square = np.linalg.qr(r.T)
    turn, upper, order = scipy.linalg.qr(square, pivoting=True)
    rank = min(int(np.sum(np.abs(np.diag(upper)) > floor)), limit)
    coupling = np.empty_like(upper[:rank])
    coupling[:, order] = upper[:rank]
    return np.asarray(turn[:, :rank].T @ tall.T), coupling


def _normalised(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def _positive(matrix: Array, dtype: np.dtype[Any] | None = None) -> bool:
    """True where all eigenvalues are positive; with ``dtype``, more than rounding of its vectors."""
    if not np.isfinite(matrix).all():
        return False
    smallest = float(scipy.linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0])
    if dtype is None:
        return smallest > 0
    return smallest > max(np.finfo(dtype).eps, 100 * np.finfo(float).eps) * float(np.diag(matrix).real.max())
