"""Scores of labels to come, by quadrature, by scalar minimisation and by dense Gaussian divergences."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import entr, expit

from mri_design import Laplace, Logistic
from mri_design.glm import bald, information_gain_of_labels, label_probability, site_width, uncertainty

CASES = [(0.0, 0.3), (1.2, 0.05), (-2.0, 4.0), (0.7, 8.9), (0.7, 9.1), (15.0, 400.0), (-30.0, 1e4), (0.4, 0.0)]


def by_quadrature(function, mean, variance):
    if variance == 0:
        return function(mean)
    sd = np.sqrt(variance)

    def integrand(x):
        return function(x) * np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))

    ends = sorted({mean - 12 * sd, *(p for p in (-40.0, 0.0, 40.0) if abs(p - mean) < 12 * sd), mean + 12 * sd})
    return sum(quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=400)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize(("mean", "variance"), CASES)
@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_probabilities_by_quadrature(mean, variance, scale):
    found = label_probability(np.array([mean]), np.array([variance]), scale)[0]
    assert found == pytest.approx(by_quadrature(lambda x: expit(scale * x), mean, variance), abs=1e-9)


def test_labels_are_exchangeable_and_what_is_known_tells_nothing():
    mean, variance = np.array([0.3, 2.0, -1.0]), np.array([0.5, 20.0, 1.0])
    np.testing.assert_allclose(label_probability(mean, variance) + label_probability(-mean, variance), 1, atol=1e-10)
    for score in (uncertainty, bald, information_gain_of_labels):
        np.testing.assert_allclose(score(mean, variance), score(-mean, variance), atol=1e-10)
    sure = np.array([8.0])
    assert information_gain_of_labels(sure, np.array([1e-12]))[0] == pytest.approx(0, abs=1e-9)
    assert bald(sure, np.array([1e-12]))[0] == pytest.approx(0, abs=1e-9)
    scores = uncertainty(np.array([0.0, 0.5, 3.0]), np.ones(3))
    assert scores[0] == pytest.approx(0) and np.all(np.diff(scores) < 0)


@pytest.mark.parametrize(("mean", "variance"), CASES[:7])
def test_mutual_information_by_quadrature(mean, variance):
    p = by_quadrature(expit, mean, variance)
    within = by_quadrature(lambda x: entr(expit(x)) + entr(expit(-x)), mean, variance)
    expected = entr(p) + entr(1 - p) - within
    assert bald(np.array([mean]), np.array([variance]))[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("site", [Logistic(1.0), Logistic(-1.0, 2.5), Laplace(1.5)])
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 0.3), (1.2, 0.05), (-2.0, 4.0), (3.0, 12.0)])
def test_widths_by_scalar_minimisation_of_the_criterion(site, mean, variance):
    slope = float(np.asarray(site.shift))

    def h(gamma):
        inner = minimize_scalar(lambda v: np.exp(v) / gamma + 2 * float(site.g(np.exp(np.array(v)))), (-25, 12))
        grid = np.exp(np.linspace(-30, 15, 4001))
        return -min(inner.fun, float(np.min(grid / gamma + 2 * site.g(grid))))

    def phi(log_gamma):
        gamma = np.exp(log_gamma)
        growth = 1 + variance / gamma
        return h(gamma) + np.log(growth) - (mean + variance * slope) ** 2 / (variance * growth)

    best = minimize_scalar(phi, bounds=(-6, 8), method="bounded", options={"xatol": 1e-9})
    found = float(site_width(np.array(mean), np.array(variance), site, max_iterations=2000))
    assert phi(np.log(found)) <= best.fun + 1e-8
    assert np.log(found) == pytest.approx(best.x, abs=1e-3)


def test_information_gain_is_the_dense_divergence_over_the_weights():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    covariance, mean, b = root @ root.T + np.eye(4), rng.standard_normal(4), rng.standard_normal(4)
    m, r = b @ mean, b @ covariance @ b
    p = label_probability(np.array([m]), np.array([r]))[0]
    expected = 0.0
    for label, weight in ((1.0, p), (-1.0, 1 - p)):
        pi = 1 / float(site_width(np.array(m), np.array(r), Logistic(label)))
        after = np.linalg.inv(np.linalg.inv(covariance) + pi * np.outer(b, b))
        new = after @ (np.linalg.solve(covariance, mean) + 0.5 * label * b)
        ratio = np.linalg.solve(covariance, after)
        step = new - mean
        divergence = np.trace(ratio) - 4 - np.linalg.slogdet(ratio)[1] + step @ np.linalg.solve(covariance, step)
        expected += weight * 0.5 * divergence
    assert information_gain_of_labels(np.array([m]), np.array([r]))[0] == pytest.approx(expected, rel=1e-9)
