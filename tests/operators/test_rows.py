"""Rows of operators: of any operator, of matrices, and of matrices on disk."""

from __future__ import annotations

import numpy as np
import scipy.sparse

import mri_design as md
from mri_design import Dense, Wavelet, cartesian
from mri_design.operators import RealAndImaginary, RowsOnDisk, SparseMatrix, real_rows


def test_rows_are_those_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(0)
    operators = [
        Dense(rng.standard_normal((7, 5))),
        Dense(rng.standard_normal((7, 5)) + 1j * rng.standard_normal((7, 5))),
        SparseMatrix(scipy.sparse.random_array((7, 5), density=0.4, rng=rng)),
        md.FiniteDifferences((4, 3)),
        Wavelet((8, 8), "db2", 1),
        RealAndImaginary((3, 3)),
        cartesian([0, 2, 3], (4, 4)),
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
    operator, dense = RowsOnDisk(tmp_path / "rows.npy", slab_rows=5), Dense(matrix)
    u, v = rng.standard_normal((3, 4)), rng.standard_normal((2, 23))
    np.testing.assert_allclose(operator(u), dense(u))
    np.testing.assert_allclose(operator.adjoint(v), dense.adjoint(v))
    np.testing.assert_array_equal(operator.rows(np.array([3, 22])), matrix[[3, 22]])
