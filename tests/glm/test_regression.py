"""Linear and logistic regression: closed forms, sums on grids, coverage on simulated data, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.stats
from scipy.sparse.linalg import aslinearoperator
from scipy.special import expit

import mri_design as md
from mri_design.operators import Dense
from mri_design.sites import Gaussian, Laplace, Logistic
from tests.slow_cases import slow_case

X = np.random.default_rng(0).standard_normal((40, 6))
W = np.array([2.0, 0.0, -1.0, 0.0, 0.5, 0.0])
Y = X @ W + 0.5 * np.random.default_rng(1).standard_normal(40)
LABELS = np.random.default_rng(2).random(40) < expit(X @ W)


def test_a_gaussian_prior_is_ridge_regression_exactly() -> None:
    fit = md.linear_regression(X, Y, prior=Gaussian(precision=4.0), noise_variance=0.25)
    covariance = np.linalg.inv(X.T @ X / 0.25 + 4.0 * np.eye(6))
    np.testing.assert_allclose(fit.mean, covariance @ X.T @ Y / 0.25, rtol=1e-8)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fit.sd, np.sqrt(np.diag(covariance)), rtol=1e-8)
    of_data = scipy.stats.multivariate_normal(cov=X @ X.T / 4.0 + 0.25 * np.eye(40))
    assert fit.evidence == pytest.approx(of_data.logpdf(Y), rel=1e-9)
    low, high = fit.interval(0.9)
    np.testing.assert_allclose([low, high], scipy.stats.norm(fit.mean, fit.sd).interval(0.9), rtol=1e-8)
    new = np.ones((2, 6)) * [[1.0], [2.0]]
    for noise, extra in ((True, 0.25), (False, 0.0)):
        found = fit.predict(new, noise=noise)
        np.testing.assert_allclose(found.mean, new @ fit.mean)
        np.testing.assert_allclose(found.sd**2, np.diag(new @ covariance @ new.T) + extra, rtol=1e-8)


def test_what_is_learnt_of_a_gaussian_model_has_the_largest_evidence() -> None:
    fit = md.linear_regression(X, Y, prior="gaussian")

    def negative(logs: np.ndarray) -> float:
        covariance = X @ X.T / np.exp(logs[0]) + np.exp(logs[1]) * np.eye(40)
        return -float(scipy.stats.multivariate_normal(cov=covariance).logpdf(Y))

    best = scipy.optimize.minimize(negative, np.zeros(2), method="Nelder-Mead")
    assert fit.evidence == pytest.approx(-best.fun, abs=1e-3)
    assert [fit.prior.precision, fit.noise_variance] == pytest.approx(np.exp(best.x), rel=0.05)
    assert fit.convergence.converged


def on_a_grid(log_likelihood, centre: np.ndarray, prior: md.sites.Site) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, standard deviations and log evidence of two weights under a normalised prior."""
    axes = [np.linspace(c - 6, c + 6, 601) for c in centre]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    joint = log_likelihood(grid) + (prior.log_t(grid) - prior.log_normaliser()).sum(axis=-1)
    mass = np.exp(joint - joint.max())
    log_z = np.log(mass.sum() * (axes[0][1] - axes[0][0]) ** 2) + joint.max()
    mass /= mass.sum()
    mean = np.einsum("ij,ijk->k", mass, grid)
    return mean, np.sqrt(np.einsum("ij,ijk->k", mass, (grid - mean) ** 2)), log_z


def test_two_weights_agree_with_their_posterior_on_a_grid() -> None:
    prior, few = Laplace(rate=1.5), X[:, :2]
    data, labels = few @ [0.6, -0.1] + 0.8 * np.random.default_rng(3).standard_normal(40), LABELS
    linear = md.linear_regression(few, data, prior=prior, noise_variance=0.64)
    logistic = md.logistic_regression(few, labels, prior=prior)

    def of_data(w: np.ndarray) -> np.ndarray:
        return scipy.stats.norm(scale=0.8).logpdf(data - w @ few.T).sum(axis=-1)

    def of_labels(w: np.ndarray) -> np.ndarray:
        return Logistic(2.0 * labels - 1).log_t(w @ few.T).sum(axis=-1)

    for fit, likelihood in ((linear, of_data), (logistic, of_labels)):
        mean, sd, log_z = on_a_grid(likelihood, fit.mean, prior)
        np.testing.assert_allclose(fit.mean, mean, atol=0.05 * sd.min())
        np.testing.assert_allclose(fit.sd, sd, rtol=0.15)
        assert log_z - 0.1 < fit.evidence <= log_z


@pytest.mark.parametrize("prior", ["laplace", slow_case("gaussian"), slow_case("student-t")])
def test_intervals_of_learnt_models_cover_the_truth(prior: str) -> None:
    drawn = {"laplace": "laplace", "gaussian": "standard_normal", "student-t": "standard_t"}[prior]
    inside = {"linear": [], "predicted": [], "logistic": []}
    for seed in range(25):
        rng = np.random.default_rng(seed)
        w = getattr(rng, drawn)(*([3] if prior == "student-t" else []), size=8)
        x, new = rng.standard_normal((150, 8)), rng.standard_normal((20, 8))
        linear = md.linear_regression(x, x @ w + rng.standard_normal(150), prior=prior)
        logistic = md.logistic_regression(x, rng.random(150) < expit(x @ w), prior=prior)
        cases = {"linear": (linear, w), "logistic": (logistic, w)}
        cases["predicted"] = linear.predict(new), new @ w + rng.standard_normal(20)
        for name, (found, truth) in cases.items():
            low, high = found.interval(0.9)
            inside[name] += [*((low < truth) & (truth < high))]
    for name, hits in inside.items():
        assert (0.78 if name == "logistic" else 0.85) < np.mean(hits) < 0.96, name


def test_a_constant_column_is_an_intercept_that_is_hardly_shrunk() -> None:
    with_one = np.c_[X, np.ones(40)]
    fit = md.linear_regression(with_one, Y + 30.0)
    assert fit.mean[-1] == pytest.approx(30.0, abs=3 * fit.sd[-1]) and fit.sd[-1] < 0.2
    np.testing.assert_allclose(fit.mean[:-1], md.linear_regression(X, Y).mean, atol=0.2)


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, aslinearoperator, Dense], ids=["sparse", "SciPy", "own"])
def test_a_matrix_may_be_sparse_or_an_operator(make) -> None:
    for fit, given in (
        (md.linear_regression(X, Y), md.linear_regression(make(X), Y)),
        (md.logistic_regression(X, LABELS), md.logistic_regression(make(X), np.where(LABELS, 1, -1))),
    ):
        np.testing.assert_allclose(given.mean, fit.mean, rtol=1e-6)
        np.testing.assert_allclose(given.sd, fit.sd, rtol=1e-6)
        told, expected = given.predict(make(X[:3])), fit.predict(X[:3])
        if isinstance(fit, md.glm.LinearRegression):
            told, expected = told.sd, expected.sd
        np.testing.assert_allclose(told, expected, rtol=1e-6)


def test_probabilities_of_labels_are_averaged_over_the_weights() -> None:
    fit = md.logistic_regression(X, LABELS, prior=Laplace(rate=1.0))
    draws = np.random.default_rng(0).multivariate_normal(fit.mean, fit.covariance, 200_000)
    np.testing.assert_allclose(fit.predict(X[:4]), expit(draws @ X[:4].T).mean(axis=0), atol=5e-3)


REFUSED = [
    ("X", lambda: md.linear_regression(X[0], Y)),
    ("X", lambda: md.linear_regression(X + 1j, Y)),
    ("X", lambda: md.linear_regression(np.where(X > 2, np.nan, X), Y)),
    ("X", lambda: md.linear_regression(np.zeros((40, 6)), Y)),
    ("X", lambda: md.linear_regression("X", Y)),
    ("X", lambda: md.logistic_regression(np.zeros((0, 6)), [])),
    ("y", lambda: md.linear_regression(X, Y[:-1])),
    ("y", lambda: md.linear_regression(X, np.zeros(40))),
    ("y", lambda: md.linear_regression(X, Y + np.nan)),
    ("noise_variance", lambda: md.linear_regression(X[:6], Y[:6])),
    ("noise_variance", lambda: md.linear_regression(X, Y, noise_variance=-1.0)),
    ("prior", lambda: md.linear_regression(X, Y, prior="laplacian")),
    ("prior", lambda: md.linear_regression(X, Y, prior=2.0)),
    ("prior", lambda: md.linear_regression(X, Y, prior=md.sites.Poisson(1))),
    ("prior", lambda: md.linear_regression(X, Y, prior=Laplace(np.ones(5)))),
    ("prior", lambda: md.logistic_regression(X[:, :2], X[:, 0] > 0)),
    ("labels", lambda: md.logistic_regression(X, Y)),
    ("labels", lambda: md.logistic_regression(X, LABELS[:-1])),
    ("level", lambda: md.linear_regression(X, Y).interval(95)),
    ("X_new", lambda: md.linear_regression(X, Y).predict(X[:, :5])),
]


@pytest.mark.parametrize(("field", "call"), REFUSED)
def test_arguments_that_fit_nothing_are_named(field: str, call) -> None:
    with pytest.raises(md.InputError) as caught:
        call()
    assert caught.value.field.partition(":")[0] == field
