"""Lanczos: the factorisation itself, exactness at full length, early stops and breakdown."""

import numpy as np
import pytest

from mri_design import Status
from mri_design.krylov import LanczosFactors, lanczos


def tridiagonal(factors: LanczosFactors) -> np.ndarray:
    return np.diag(factors.diagonal) + np.diag(factors.off_diagonal, 1) + np.diag(factors.off_diagonal, -1)


@pytest.mark.parametrize("steps", [1, 5, 12])
def test_basis_is_orthonormal_and_projects_to_the_tridiagonal_matrix(steps, matrix, vectors):
    start = vectors((3, 4), 1)
    calls: list[int] = []

    def apply(u: np.ndarray) -> np.ndarray:
        calls.append(1)
        return (matrix @ u.ravel()).reshape(u.shape)

    factors = lanczos(apply, start, steps)
    assert factors.basis.shape == (steps, 3, 4)
    Q = factors.basis.reshape(steps, 12).T  # columns q_j
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(steps), atol=1e-12)
    np.testing.assert_allclose(Q.conj().T @ matrix @ Q, tridiagonal(factors), atol=1e-11)
    np.testing.assert_allclose(Q[:, 0], start.ravel() / np.linalg.norm(start), rtol=1e-12)
    assert factors.convergence.status is Status.CONVERGED
    assert factors.convergence.iterations == factors.convergence.matvecs == len(calls) == steps
    e, d = factors.cholesky()
    lower = np.diag(e) + np.diag(d, -1)
    np.testing.assert_allclose(lower @ lower.T, tridiagonal(factors), atol=1e-11)


def test_orthogonality_survives_many_steps(vectors):
    """Without reorthogonalisation well separated eigenvalues ruin it after a few dozen steps."""
    eigenvalues = np.concatenate([np.linspace(1, 2, 150), [1e3, 1e4]])
    factors = lanczos(lambda u: eigenvalues * u, vectors(152, 2), 152)
    Q = factors.basis.T
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(Q.shape[1]), atol=1e-10)


def test_full_length_reproduces_inverse_and_determinant_also_in_single_precision(matrix, vectors):
    factors = lanczos(lambda u: matrix @ u, vectors(12, 5), 100)
    assert len(factors.basis) == 12
    V = factors.inverse_root()
    np.testing.assert_allclose(np.einsum("ji,jk->ik", V, V.conj()), np.linalg.inv(matrix), atol=1e-9)
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)
    start = vectors(12, 9)
    single = start.astype(np.complex64 if np.iscomplexobj(start) else np.float32)
    A = matrix.astype(single.dtype)
    factors = lanczos(lambda u: A @ u, single, 12)
    assert factors.basis.dtype == factors.inverse_root().dtype == single.dtype
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-3)


def test_the_inverse_is_approached_from_below(matrix, vectors):
    """A^-1 - Q T^-1 Q^H is positive semidefinite for every k, so the inverse's diagonal rises with k."""
    inverse, last = np.linalg.inv(matrix), np.zeros(12)
    for steps in range(1, 13):
        V = lanczos(lambda u: matrix @ u, vectors(12, 6), steps).inverse_root()
        low_rank = np.einsum("ji,jk->ik", V, V.conj())
        assert np.linalg.eigvalsh(inverse - low_rank).min() > -1e-9
        diagonal = low_rank.diagonal().real
        assert (diagonal >= last - 1e-10).all()
        last = diagonal
    np.testing.assert_allclose(last, inverse.diagonal().real, rtol=1e-9)


def test_an_invariant_subspace_ends_it_early(vectors):
    eigenvalues = np.geomspace(0.1, 10, 12)
    start = np.where(np.isin(np.arange(12), [2, 5, 9]), vectors(12, 7), 0)
    factors = lanczos(lambda u: eigenvalues * u, start, 12)
    assert len(factors.basis) == factors.convergence.iterations == 3
    assert factors.convergence.status is Status.CONVERGED
    np.testing.assert_allclose(np.linalg.eigvalsh(tridiagonal(factors)), eigenvalues[[2, 5, 9]], rtol=1e-9)
    assert len(lanczos(lambda u: 3 * u, vectors(12, 8), 12).basis) == 1


@pytest.mark.parametrize("trouble", ["indefinite", "singular", "nan"])
def test_operators_that_are_not_positive_definite_break_down(trouble, matrix, vectors):
    eigenvalues, basis = np.linalg.eigh(matrix)
    eigenvalues[0] = {"indefinite": -0.5, "singular": 0.0, "nan": np.nan}[trouble]
    A = (basis * eigenvalues) @ basis.conj().T
    factors = lanczos(lambda u: A @ u, vectors(12, 10), 12)
    assert factors.convergence.status is Status.BREAKDOWN
    assert len(factors.basis) == factors.convergence.iterations <= 12
    if len(factors.basis):
        assert np.isfinite(factors.inverse_root()).all() and np.isfinite(factors.log_determinant())
