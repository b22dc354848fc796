"""Binary labels under a Laplace prior, on dense and sparse rows: Nickisch & Seeger 2009, section 2."""

import numpy as np
import pytest
import scipy.sparse

from mri_design import (
    IRLS,
    Dense,
    DoubleLoop,
    Exact,
    GeneralizedLinearModel,
    Identity,
    Laplace,
    Logistic,
    SiteBlock,
)
from mri_design.operators.dense import SparseMatrix


def model_of(B, labels):
    """Labels, and Laplace sites on the weights."""
    kind = SparseMatrix if scipy.sparse.issparse(B) else Dense
    weights = SiteBlock("weights", Identity((B.shape[1],), is_complex=False), Laplace(1.3))
    return GeneralizedLinearModel.of_sites((SiteBlock("labels", kind(B), Logistic(labels)), weights))


def test_sparse_rows_give_what_dense_ones_do(rng):
    B = scipy.sparse.random(40, 7, 0.5, format="csr", rng=rng)
    labels = np.where(B @ rng.standard_normal(7) + rng.standard_normal(40) > 0, 1.0, -1.0)
    inner = IRLS(tolerance=1e-12, max_iterations=300, solver_tolerance=1e-3, solver_iterations=300)
    engine = DoubleLoop(Exact(), inner, outer_iterations=200, tolerance=1e-12)
    sparse = engine.infer(model_of(B, labels), rng)
    dense = engine.infer(model_of(B.toarray(), labels), rng)
    # two orders of summation: where a function is least is known to the square root of rounding only, 1.5e-8 here
    np.testing.assert_allclose(sparse.mean, dense.mean, atol=2e-7)
    for ours, theirs in zip(sparse.marginals.values, dense.marginals.values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    assert sparse.criterion[-1] == pytest.approx(dense.criterion[-1], abs=1e-9)
