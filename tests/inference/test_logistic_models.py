"""Binary labels under a Gaussian or a Laplace prior: Nickisch & Seeger 2009, section 2, on dense and sparse rows."""

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
from mri_design.inference.references import exact_criterion, minimise_exact_criterion
from mri_design.operators.dense import SparseMatrix
from tests.slow_cases import slow_case

ENGINE = DoubleLoop(Exact(), outer_iterations=60, tolerance=1e-7)


def model_of(B, labels, prior="gaussian", noise_variance=1.0):
    """X = I and y = 0, or no Gaussian factor and Laplace sites on the weights."""
    kind = SparseMatrix if scipy.sparse.issparse(B) else Dense
    n = B.shape[1]
    blocks = (SiteBlock("labels", kind(B), Logistic(labels)),)
    identity = Identity((n,), is_complex=False)
    if prior == "gaussian":
        return GeneralizedLinearModel(identity, np.zeros(n), noise_variance, blocks)
    return GeneralizedLinearModel.of_sites((*blocks, SiteBlock("weights", identity, Laplace(1.3))), noise_variance)


def drawn(rng, rows, columns):
    B = scipy.sparse.random(rows, columns, 0.5, format="csr", rng=rng)
    labels = np.where(B @ rng.standard_normal(columns) + rng.standard_normal(rows) > 0, 1.0, -1.0)
    return B, labels


@pytest.mark.parametrize(("prior", "rows", "columns"), [("gaussian", 4, 9), slow_case("laplace", 30, 6)])
def test_the_criterion_falls_to_its_minimum_by_direct_search(prior, rows, columns, rng):
    B, labels = drawn(rng, rows, columns)
    model = model_of(B, labels, prior)
    posterior = ENGINE.infer(model, rng)
    assert posterior.convergence.converged
    assert np.all(np.diff(posterior.criterion) <= 1e-10)
    assert posterior.criterion[-1] == pytest.approx(
        exact_criterion(model, posterior.precision.site_precisions), abs=1e-8
    )
    lowest, _ = minimise_exact_criterion(model, tuple(np.ones(b.site_shape) for b in model.blocks))
    assert posterior.criterion[-1] == pytest.approx(lowest, abs=1e-6)


def test_sparse_rows_give_what_dense_ones_do(rng):
    B, labels = drawn(rng, 40, 7)
    inner = IRLS(tolerance=1e-12, max_iterations=300, solver_tolerance=1e-3, solver_iterations=300)
    engine = DoubleLoop(Exact(), inner, outer_iterations=200, tolerance=1e-12)
    sparse = engine.infer(model_of(B, labels, "laplace"), rng)
    dense = engine.infer(model_of(B.toarray(), labels, "laplace"), rng)
    # two orders of summation: where a function is least is known to the square root of rounding only, 1.5e-8 here
    np.testing.assert_allclose(sparse.mean, dense.mean, atol=2e-7)
    for ours, theirs in zip(sparse.marginals.values, dense.marginals.values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    assert sparse.criterion[-1] == pytest.approx(dense.criterion[-1], abs=1e-9)
