"""One model, five engines (and two references): what must be the same is the same."""

from __future__ import annotations

import numpy as np
import pytest

import mri_design as md
from mri_design import Dense
from mri_design.glm import CholeskyGaussian, OpperArchambeau

ENGINES = [
    md.DoubleLoop(md.Exact(), inner=md.IRLS(tolerance=1e-20), outer_iterations=5, tolerance=1e-8),
    md.VariationalGaussian(md.Exact(), tolerance=1e-8),
    md.DecoupledGaussian(),
    md.LaplacePropagation(chunk_size=2),
    md.LaplacePropagation(chunk_size=2, exact=("prior",)),
    md.LaplaceFilter(),
    CholeskyGaussian(),
    OpperArchambeau(),
]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: type(engine).__name__)
def test_gaussian_sites_make_every_engine_exact(engine) -> None:
    """Mean, variances and, where there is one, the bound, for two blocks with offsets and a noise variance not one."""
    rng = np.random.default_rng(11)
    X, B, y, offset = rng.standard_normal((3, 4)), rng.standard_normal((6, 4)), rng.standard_normal(3), np.ones(6)
    sites = md.SiteBlock("sites", Dense(B), md.Gaussian(1.7), offset=offset)
    prior = md.SiteBlock("prior", Dense(np.eye(4)), md.Gaussian(0.3))
    model = md.GeneralizedLinearModel(Dense(X), y, 0.5, (sites, prior))
    A = X.T @ X + 1.7 * B.T @ B + 0.3 * np.eye(4)
    mean = np.linalg.solve(A, X.T @ y + 1.7 * B.T @ offset)
    found = engine.infer(model, np.random.default_rng(0))
    assert found.convergence.converged
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.image_variances, 0.5 * np.diag(np.linalg.inv(A)), rtol=1e-10)
    least = np.sum((y - X @ mean) ** 2) + 1.7 * np.sum((B @ mean - offset) ** 2) + 0.3 * np.sum(mean**2)
    evidence = 0.5 * (np.log(2 * np.pi * 0.5) - np.linalg.slogdet(A)[1] - least / 0.5)  # of 3 data in 4 unknowns
    for phi in found.criterion[-1:]:
        np.testing.assert_allclose(md.evidence_bound(model, phi), evidence, rtol=1e-10)
