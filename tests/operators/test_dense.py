"""Matrices as operators, sparse and on disk: they do what dense ones do, row by row too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import mri_design as md
from mri_design.operators import RealAndImaginary, RowsOnDisk, SparseMatrix, real_rows


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def sparse(rng):
    """Nine rows of five columns, one row empty."""
    matrix = scipy.sparse.random(9, 5, 0.4, format="csr", rng=rng)
    matrix.data[:] = rng.standard_normal(matrix.nnz)
    return (scipy.sparse.diags_array(np.arange(9) != 3, dtype=float) @ matrix).tocsr()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("batch", [(), (1,), (4,), (2, 3)])
def test_sparse_is_dense(form, batch, sparse, rng):
    ours, plain = SparseMatrix(sparse.asformat(form)), md.Dense(sparse.toarray())
    u, v = rng.standard_normal((*batch, 5)), rng.standard_normal((*batch, 9))
    np.testing.assert_allclose(ours(u), plain(u), atol=1e-14)
    np.testing.assert_allclose(ours.adjoint(v), plain.adjoint(v), atol=1e-14)
    np.testing.assert_allclose(ours.to_dense_real(), sparse.toarray(), atol=1e-15)


@pytest.mark.parametrize("kind", [SparseMatrix, lambda m: md.Dense(m.toarray())])
def test_gram_and_spread_by_hand(kind, sparse, rng):
    operator, B = kind(sparse), sparse.toarray()
    weights, root = rng.uniform(0.1, 2, 9), rng.standard_normal((6, 5))
    np.testing.assert_allclose(operator.weighted_gram_matrix(weights), B.T @ np.diag(weights) @ B, atol=1e-14)
    np.testing.assert_allclose(operator.spread(root), np.diag(B @ root.T @ root @ B.T), atol=1e-14)


def test_rows_beyond_one_chunk_and_single_precision(rng, sparse):
    matrix = rng.standard_normal((9001, 2))
    for operator in (md.Dense(matrix), SparseMatrix(scipy.sparse.csr_array(matrix))):
        np.testing.assert_allclose(operator.spread(np.eye(2)), (matrix**2).sum(axis=1))
    u = rng.standard_normal(5).astype(np.float32)
    assert SparseMatrix(sparse)(u).dtype == np.float32


def test_duplicates_add_up_and_the_given_matrix_is_left_alone():
    given = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    ours = SparseMatrix(given)
    given.data[:] = 0
    np.testing.assert_array_equal(ours(np.array([5.0, 7.0, 9.0])), [21.0])


def test_rows_are_those_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(0)
    operators = [
        md.Dense(rng.standard_normal((7, 5))),
        md.Dense(rng.standard_normal((7, 5)) + 1j * rng.standard_normal((7, 5))),
        SparseMatrix(scipy.sparse.random_array((7, 5), density=0.4, rng=rng)),
        md.FiniteDifferences((4, 3)),
        md.Wavelet((8, 8), "db2", 1),
        RealAndImaginary((3, 3)),
        md.cartesian([0, 2, 3], (4, 4)),
    ]
    for operator in operators:
        count = int(np.prod(operator.out_shape))
        index = np.array([count - 1, 0, count // 2])
        found = real_rows(operator, index)
        dense = operator.to_dense_real().reshape(found.shape[1], count, -1)
        np.testing.assert_allclose(found, dense[:, index].transpose(1, 0, 2), atol=1e-6, err_msg=str(type(operator)))


def test_a_matrix_on_disk_is_a_dense_one(tmp_path) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((23, 4))
    np.save(tmp_path / "rows.npy", matrix)
    operator, dense = RowsOnDisk(tmp_path / "rows.npy", slab_rows=5), md.Dense(matrix)
    u, v = rng.standard_normal((3, 4)), rng.standard_normal((2, 23))
    np.testing.assert_allclose(operator(u), dense(u))
    np.testing.assert_allclose(operator.adjoint(v), dense.adjoint(v))
    np.testing.assert_array_equal(operator.rows(np.array([3, 22])), matrix[[3, 22]])
