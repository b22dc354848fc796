"""Block Lanczos: several products with A at once, and Gram-Schmidt as matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mri_design.krylov.orthogonal import orthogonalised, overlaps
from mri_design.status import Convergence, Status

Array = NDArray[Any]


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
