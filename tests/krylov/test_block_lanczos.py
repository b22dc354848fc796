"""Block Lanczos: the factorisation, exactness at full length, directions that run out, breakdown."""

import numpy as np
import pytest

from mri_design import Status
from mri_design.krylov.lanczos import BlockLanczosFactors, block_lanczos


def run(matrix: np.ndarray, start: np.ndarray, steps: int) -> BlockLanczosFactors:
    return block_lanczos(lambda u: u @ matrix.T, start, steps)


@pytest.mark.parametrize(("block", "steps"), [(1, 5), (3, 6), (4, 10), (5, 12), (16, 12), (5, 3)])
def test_basis_is_orthonormal_and_projects_to_a_block_tridiagonal_matrix(block, steps, matrix, vectors):
    factors = run(matrix, vectors((block, 12), 1), steps)
    assert factors.basis.shape == (steps, 12) and factors.edges[-1] == steps
    Q = factors.basis.T  # columns q_j
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(steps), atol=1e-12)
    np.testing.assert_allclose(Q.conj().T @ matrix @ Q, factors.projected, atol=1e-11)
    assert factors.convergence.status is Status.CONVERGED
    assert factors.convergence.matvecs == steps


@pytest.mark.parametrize("block", [1, 2, 5, 12])
def test_full_length_reproduces_the_inverse_and_the_determinant(block, matrix, vectors):
    factors = run(matrix, vectors((block, 12), 2), 100)
    assert len(factors.basis) == 12
    V = factors.inverse_root()
    np.testing.assert_allclose(np.einsum("ji,jk->ik", V, V.conj()), np.linalg.inv(matrix), atol=1e-9)
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)


def test_the_inverse_is_approached_from_below(matrix, vectors):
    inverse, last = np.linalg.inv(matrix), np.zeros(12)
    for steps in range(1, 13):
        V = run(matrix, vectors((3, 12), 3), steps).inverse_root()
        low_rank = np.einsum("ji,jk->ik", V, V.conj())
        assert np.linalg.eigvalsh(inverse - low_rank).min() > -1e-9
        if steps % 3 == 0:  # whole blocks are nested
            assert (low_rank.diagonal().real >= last - 1e-10).all()
            last = low_rank.diagonal().real
    np.testing.assert_allclose(last, inverse.diagonal().real, rtol=1e-9)


def test_images_and_single_precision(matrix, vectors):
    start = vectors((2, 3, 4), 4)
    single = start.astype(np.complex64 if np.iscomplexobj(start) else np.float32)
    A = matrix.astype(single.dtype)
    factors = block_lanczos(lambda u: (u.reshape(-1, 12) @ A.T).reshape(u.shape), single, 12)
    assert factors.basis.shape == (12, 3, 4)
    assert factors.basis.dtype == factors.inverse_root().dtype == single.dtype
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-3)


def test_directions_that_run_out_are_dropped(vectors):
    """Three eigenvalues, one of them in one direction only: an invariant subspace of five dimensions."""
    eigenvalues = np.array([1.0] * 5 + [2.0] * 6 + [7.0])
    factors = run(np.diag(eigenvalues), vectors((2, 12), 5), 12)
    assert factors.convergence.status is Status.CONVERGED and len(factors.basis) == 5
    Q = factors.basis.T
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(factors.projected), [1, 1, 2, 2, 7], rtol=1e-9)
    twice = np.repeat(vectors((1, 12), 6), 3, axis=0)
    assert len(run(np.diag(eigenvalues), twice, 12).basis) == 3


def test_orthogonality_survives_many_steps(vectors):
    eigenvalues = np.concatenate([np.linspace(1, 2, 150), [1e3, 1e4]])
    Q = block_lanczos(lambda u: eigenvalues * u, vectors((4, 152), 7), 152).basis.T
    assert Q.shape[1] == 152
    np.testing.assert_allclose(Q.conj().T @ Q, np.eye(152), atol=1e-10)


@pytest.mark.parametrize("trouble", ["indefinite", "singular", "nan"])
def test_operators_that_are_not_positive_definite_break_down(trouble, matrix, vectors):
    eigenvalues, basis = np.linalg.eigh(matrix)
    eigenvalues[0] = {"indefinite": -0.5, "singular": 0.0, "nan": np.nan}[trouble]
    factors = run((basis * eigenvalues) @ basis.conj().T, vectors((3, 12), 8), 12)
    assert factors.convergence.status is Status.BREAKDOWN
