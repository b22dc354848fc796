"""Automatic relevance determination against the evidence of sparse Bayesian learning and dense matrices."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from mri_design.glm import automatic_relevance
from mri_design.glm.relevance import weighted_lasso
from tests.refusals import refused

VARIANCE = 0.04
STEPS = np.eye(9)[1:] - np.eye(9)[:-1]


def problem(m: int, n: int, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X and y of an image whose coefficients are sparse."""
    rng = np.random.default_rng(m)
    s = np.zeros(len(B))
    s[[1, 4, 6]] = 1.0, -2.0, 0.7
    X = rng.standard_normal((m, n)) / np.sqrt(m)
    return X, X @ np.linalg.pinv(B) @ s + np.sqrt(VARIANCE) * rng.standard_normal(m)


@pytest.mark.parametrize("m", [6, 9])
def test_it_ends_in_a_local_maximum_of_the_evidence_of_sparse_bayesian_learning(m):
    X, y = problem(m, 14, np.eye(14))
    made = automatic_relevance(X, y, VARIANCE)
    gamma = made.widths
    assert made.convergence.converged and 0 < np.sum(gamma == 0) < 14
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(made.criterion))

    def phi(g: np.ndarray) -> tuple[float, np.ndarray]:
        """log|sigma^2 I + sigma^2 X Gamma X^T| + y^T (...)^-1 y, less m log sigma^2, and its gradient."""
        C = VARIANCE * (np.eye(m) + (X * g) @ X.T)
        inverse = np.linalg.inv(C)
        gradient = VARIANCE * (np.einsum("mi,mk,ki->i", X, inverse, X) - (X.T @ inverse @ y) ** 2)
        return float(np.linalg.slogdet(C)[1] - m * np.log(VARIANCE) + y @ inverse @ y), gradient

    value, gradient = phi(gamma)
    assert made.criterion[-1] == pytest.approx(value, abs=1e-9)
    assert np.abs(gradient[gamma > 0]).max() < 1e-4 and gradient[gamma == 0].min() > 0
    options = {"ftol": 1e-15, "gtol": 1e-10}
    near = gamma * 1.05 + 1e-3 * (gamma == 0)
    lowest = scipy.optimize.minimize(phi, near, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 14, options=options)
    assert value == pytest.approx(lowest.fun, abs=1e-8)


def test_other_analysis_operators_are_those_of_dense_matrices():
    X, y = problem(12, 9, STEPS)
    made = automatic_relevance(X, y, VARIANCE, STEPS)
    kept = made.widths > 0
    assert 0 < kept.sum() < 8
    B_0, B_1, Gamma_1 = STEPS[~kept], STEPS[kept], made.widths[kept]
    A_1 = X.T @ X + (B_1.T / Gamma_1) @ B_1
    among = B_0 @ np.linalg.solve(A_1, B_0.T)
    np.testing.assert_allclose(made.z[~kept], np.diag(np.linalg.inv(among)), rtol=1e-8)
    near = scipy.linalg.null_space(B_0)
    covariance = near @ np.linalg.solve(near.T @ A_1 @ near, near.T)
    np.testing.assert_allclose(made.covariance, VARIANCE * covariance, atol=1e-8)
    np.testing.assert_allclose(made.mean, covariance @ X.T @ y, atol=1e-8)
    s = STEPS @ made.mean
    np.testing.assert_allclose(s[~kept], 0, atol=1e-10)
    determinants = sum(np.linalg.slogdet(M)[1] for M in (A_1, np.diag(Gamma_1), among))
    fit = np.sum((y - X @ made.mean) ** 2) + np.sum(s[kept] ** 2 / Gamma_1)
    assert made.criterion[-1] == pytest.approx(determinants + fit / VARIANCE, abs=1e-8)


def test_the_weighted_lasso_satisfies_its_conditions():
    rng = np.random.default_rng(0)
    X, y, weights = rng.standard_normal((20, 50)), rng.standard_normal(20), rng.uniform(1, 6, 50)
    s, convergence = weighted_lasso(X.T @ X, X.T @ y, weights, np.zeros(50))
    assert convergence.converged
    slope, on = X.T @ (y - X @ s), s != 0
    assert 0 < on.sum() < 20
    np.testing.assert_allclose(slope[on], (weights * np.sign(s))[on], atol=1e-9)
    assert (np.abs(slope) <= weights + 1e-9).all()


def test_a_weighted_lasso_that_runs_out_of_steps_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 50)), rng.standard_normal(20)
    _, convergence = weighted_lasso(X.T @ X, X.T @ y, np.ones(50), np.zeros(50), steps=3)
    assert not convergence.converged and convergence.iterations == 3 and convergence.residual > 0


def test_what_has_no_minimum_is_refused():
    X, y = problem(12, 9, STEPS)
    for field, change in (
        ("B", {"B": np.concatenate([STEPS, STEPS[:1]])}),
        ("X and B", {"X": X - X.mean(axis=1, keepdims=True), "B": STEPS}),
        ("y", {"y": y[1:]}),
        ("start", {"start": -np.ones(9)}),
        ("noise_variance", {"noise_variance": 0.0}),
    ):
        with refused(field):
            automatic_relevance(**{"X": X, "y": y, "noise_variance": VARIANCE, **change})
