"""Active learning over a pool: updates against dense algebra, scores against quadrature, choices against inference."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import entr, expit

from mri_design import DoubleLoop, SiteBlock
from mri_design.glm import LabelPool, PoolDesign, bald, information_gain_of_labels, label_probability, site_width
from mri_design.operators import Identity
from mri_design.sites import Laplace, Logistic
from mri_design.variances import Exact, Lanczos
from tests.refusals import refused

CONVERGED = DoubleLoop(Exact(), outer_iterations=60, tolerance=1e-6)
CASES, WEIGHTS, FIRST = 60, 7, 10


@pytest.fixture
def data():
    """Sparse features, labels by noisy weights."""
    rng = np.random.default_rng(3)
    features = scipy.sparse.random(CASES, WEIGHTS, 0.6, format="csr", rng=rng)
    features.data[:] = rng.standard_normal(features.nnz)
    labels = np.where(features @ rng.standard_normal(WEIGHTS) + 0.3 * rng.standard_normal(CASES) > 0, 1.0, -1.0)
    return features, labels


def pool_of(features, prior="gaussian"):
    if prior == "gaussian":
        return LabelPool(features)
    return LabelPool(features, (SiteBlock("weights", Identity((WEIGHTS,), is_complex=False), Laplace(1.5)),))


def begun(design, pool, labels, count=FIRST):
    return design.begin(pool, np.arange(count), labels[:count], np.random.default_rng(0))


@pytest.mark.parametrize("prior", ["gaussian", "laplace"])
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_rank_one_updates_are_dense_algebra(prior, storage, data):
    features, labels = data
    B = features.toarray()
    design = PoolDesign(block=10, engine=CONVERGED)
    state = begun(design, pool_of(features if storage == "sparse" else B, prior), labels)
    A = state.posterior.precision.dense_real()
    rhs = A @ state.posterior.mean
    for index in (20, 33, 41, 12):
        state = design.update(state, index, labels[index], np.random.default_rng(0))
        made = state.marginals
        pi = made.shrinkage[-1] / (1 - made.shrinkage[-1] * (B[index] @ np.linalg.solve(A, B[index])))
        A, rhs = A + pi * np.outer(B[index], B[index]), rhs + 0.5 * labels[index] * B[index]
        covariance = np.linalg.inv(A)
        np.testing.assert_allclose(state.mean, covariance @ rhs, atol=1e-12)
        np.testing.assert_allclose(made.means, B @ state.mean, atol=1e-12)
        np.testing.assert_allclose(made.variances, np.einsum("ij,jk,ik->i", B, covariance, B), atol=1e-12)
        assert made.log_determinant == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-11)
        if prior == "laplace":
            np.testing.assert_allclose(made.prior_variances[0], np.diag(covariance), atol=1e-12)
    assert state.block_start == FIRST and made.recomputed == 0


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["gaussian", "laplace"])
@pytest.mark.parametrize("score", ["uncertainty", "information_gain", "bald"])
def test_blocks_of_one_choose_as_inference_from_scratch_does(prior, score, data):
    features, labels = data
    pool, design = pool_of(features, prior), PoolDesign(score, 1, CONVERGED)
    state, rng = begun(design, pool, labels), np.random.default_rng(0)
    for _ in range(5):
        fresh = design.begin(pool, state.indices, state.labels, rng)
        (index, ours), (other, theirs) = design.propose(state, rng), design.propose(fresh, rng)
        assert index == other
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        assert np.all(np.isneginf(ours[state.indices]))
        state = design.update(state, index, labels[index], rng)


def test_a_full_block_is_inferred_anew_from_the_updated_marginals(data):
    features, labels = data
    design, rng = PoolDesign(block=2), np.random.default_rng(0)
    state = begun(design, pool_of(features, "laplace"), labels)
    one = design.update(state, 30, labels[30], rng)
    assert one.block_start == FIRST and one.posterior is state.posterior
    two = design.update(one, 31, labels[31], rng)
    assert two.block_start == FIRST + 2 and len(two.marginals.shrinkage) == 0
    assert two.posterior.convergence.iterations == 1
    full = replace(design, block=100).update(one, 31, labels[31], rng)
    model = two.pool.model(two.indices, two.labels)
    np.testing.assert_array_equal(two.mean, design.engine.infer(model, rng, warm_start=full.warm_start).mean)
    converged, cold = CONVERGED.infer(model, rng).mean, design.engine.infer(model, rng).mean
    assert np.linalg.norm(two.mean - converged) < 0.2 * np.linalg.norm(cold - converged)


@pytest.mark.parametrize("score", ["uncertainty", "random"])
def test_a_pickled_state_goes_on_as_if_it_had_never_stopped(score, data):
    features, labels = data
    design = PoolDesign(score, block=3)
    rng = np.random.default_rng(5)
    state = design.ask(begun(design, pool_of(features), labels), labels.__getitem__, 4, rng)
    kept = pickle.dumps((state, rng))
    whole = design.ask(state, labels.__getitem__, 9, rng)
    resumed, generator = pickle.loads(kept)
    again = design.ask(resumed, labels.__getitem__, 9, generator)
    np.testing.assert_array_equal(whole.indices, again.indices)
    np.testing.assert_array_equal(whole.mean, again.mean)


def test_all_of_a_pool_can_be_asked_and_every_label_is_reported(data):
    features, labels = data
    design, seen = PoolDesign("random", 25), []
    state = begun(design, pool_of(features), labels)
    state = design.ask(state, labels.__getitem__, 1000, np.random.default_rng(0), lambda s: seen.append(len(s.indices)))
    assert sorted(state.indices) == list(range(CASES)) and seen == list(range(FIRST + 1, CASES + 1))
    with refused("pool"):
        design.propose(state, np.random.default_rng(0))


def test_negative_variances_drop_candidates_and_mend_sites_of_the_model():
    rng = np.random.default_rng(1)
    features = rng.standard_normal((80, 30))
    labels = np.where(features[:, 0] > 0, 1.0, -1.0)
    prior = (SiteBlock("weights", Identity((30,), is_complex=False), Laplace(1.0)),)
    pool, lanczos = LabelPool(features, prior), Lanczos(3)
    design = PoolDesign(block=20, engine=DoubleLoop(lanczos, outer_iterations=2), variances=lanczos)
    state = design.begin(pool, np.arange(10), labels[:10], rng)
    state = design.ask(state, labels.__getitem__, 12, rng)
    made = state.marginals
    dropped = np.flatnonzero(~made.valid)
    assert dropped.size and made.recomputed
    assert np.all(made.variances[state.indices] > 0) and np.all(made.prior_variances[0] > 0)
    scores = design.propose(state, rng)[1]
    assert np.all(np.isneginf(scores[dropped]))
    b = features[7]
    A = state.posterior.precision.dense_real()
    for index, shrink, d in zip(state.indices[10:], made.shrinkage, made.directions, strict=True):
        r = features[index] @ d
        A = A + shrink / (1 - shrink * r) * np.outer(features[index], features[index])
    np.testing.assert_allclose(made.solve(b), np.linalg.solve(A, b), atol=1e-10)


def test_conjugate_gradients_serve_many_weights_and_ties_go_to_the_lowest_index(data, monkeypatch):
    features, labels = data
    dense = begun(PoolDesign(block=5), pool_of(features), labels)
    monkeypatch.setattr("mri_design.glm.labels.DENSE_LIMIT", 3)
    design = PoolDesign(block=5)
    free = begun(design, pool_of(features), labels)
    assert free.marginals.factor is None and dense.marginals.factor is not None
    for index in (20, 21):
        dense = design.update(dense, index, labels[index], np.random.default_rng(0))
        free = design.update(free, index, labels[index], np.random.default_rng(0))
    np.testing.assert_allclose(free.marginals.variances, dense.marginals.variances, rtol=1e-7)
    pool = LabelPool(np.ones((5, 2)))
    design, rng = PoolDesign(), np.random.default_rng(0)
    assert design.propose(design.begin(pool, [0, 3], [1, -1], rng), rng)[0] == 1


MOMENTS = [(0.0, 0.3), (1.2, 0.05), (-2.0, 4.0), (0.7, 8.9), (0.7, 9.1), (15.0, 400.0), (-30.0, 1e4), (0.4, 0.0)]


def by_quadrature(function, mean, variance):
    if variance == 0:
        return function(mean)
    sd = np.sqrt(variance)

    def integrand(x):
        return function(x) * np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))

    ends = sorted({mean - 12 * sd, *(p for p in (-40.0, 0.0, 40.0) if abs(p - mean) < 12 * sd), mean + 12 * sd})
    return sum(quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=400)[0] for a, b in pairwise(ends))


@pytest.mark.parametrize(("mean", "variance"), MOMENTS)
@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_probabilities_by_quadrature(mean, variance, scale):
    found = label_probability(np.array([mean]), np.array([variance]), scale)[0]
    assert found == pytest.approx(by_quadrature(lambda x: expit(scale * x), mean, variance), abs=1e-9)


@pytest.mark.parametrize(("mean", "variance"), MOMENTS[:7])
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
