"""First class, second class and hybrid: monotone, the same minimum on convex models, a local one on others."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    DoubleLoop,
    Exact,
    Lanczos,
    Laplace,
    MonteCarlo,
    ShiftedMixture,
)
from mri_design.glm import exact_criterion, minimise_exact_criterion
from tests.refusals import refused

# Every site and model with one algorithm at least, and every algorithm on models of every kind.
ON_CONVEX_MODELS = [
    ("Laplace", "groups", "hybrid"),
    ("Gaussian", "groups", "first"),
    ("sech^2", "matrix", "first"),
    ("sech^2", "parts", "hybrid"),
    ("own", "matrix", "hybrid"),
    ("logistic", "matrix", "first"),
    ("tilted", "matrix", "hybrid"),
    ("tilted", "matrix", "first"),
]
ELSEWHERE = [
    ("Student-t", "matrix", "first"),
    ("Student-t", "coils", "second"),
    ("power 0.6", "coils", "hybrid"),
    ("mixture", "matrix", "second"),
    ("mixture", "matrix", "hybrid"),
]


@pytest.mark.parametrize(("site", "name", "algorithm"), ON_CONVEX_MODELS)
def test_every_algorithm_falls_to_the_same_minimum_on_convex_models(site, name, algorithm, tiny_model, sites, accurate):
    model = tiny_model(name, sites[site], scale=0.7)
    assert model.log_concave
    posterior = replace(accurate, algorithm=algorithm).infer(model, np.random.default_rng(0))
    trace = posterior.criterion
    assert all(later <= earlier + 1e-10 * abs(earlier) for earlier, later in pairwise(trace))
    start = tuple(np.full(b.site_shape, 1.0) for b in model.blocks)
    if site == "Gaussian":  # whose widths are fixed
        for block, pi in zip(model.blocks, posterior.precision.site_precisions, strict=True):
            np.testing.assert_allclose(pi, np.broadcast_to(block.potential.precision, pi.shape), rtol=1e-12)
    else:
        assert trace[-1] == pytest.approx(minimise_exact_criterion(model, start)[0], rel=1e-7)
        assert trace[-1] == pytest.approx(exact_criterion(model, posterior.precision.site_precisions), rel=1e-9)
    assert posterior.convergence.converged and posterior.stationarity < 1e-5
    assert posterior.criterion_kind == "exact"


@pytest.mark.parametrize(("site", "name", "algorithm"), ELSEWHERE)
def test_every_algorithm_ends_in_a_local_minimum_elsewhere(site, name, algorithm, tiny_model, sites, accurate):
    model = tiny_model(name, sites[site])
    assert not model.log_concave
    posterior = replace(accurate, algorithm=algorithm).infer(model, np.random.default_rng(0))
    trace = posterior.criterion
    assert all(later <= earlier + 1e-10 * abs(earlier) for earlier, later in pairwise(trace))
    lowest, _ = minimise_exact_criterion(model, posterior.precision.site_precisions)
    assert trace[-1] == pytest.approx(lowest, rel=1e-6)
    assert posterior.stationarity < 1e-3


ESTIMATORS = {
    "Lanczos": Lanczos(60),
    "MonteCarlo": MonteCarlo(300, tolerance=1e-4),
    "ControlVariate": ControlVariate(300, tolerance=1e-4),
}


@pytest.mark.parametrize(
    ("name", "site", "algorithm", "estimator"),
    [
        ("matrix", "sech^2", "second", "Lanczos"),
        ("matrix", "sech^2", "first", "MonteCarlo"),
        ("groups", "Student-t", "hybrid", "ControlVariate"),
    ],
)
def test_every_estimator_serves_every_algorithm(name, site, algorithm, estimator, tiny_model, sites, rng):
    """Near the posterior of exact variances, and flagged as converged."""
    model = tiny_model(name, sites[site])
    settings = {"outer_iterations": 60, "tolerance": 3e-3, "algorithm": algorithm}
    exact = DoubleLoop(Exact(), **settings).infer(model, rng)
    other = DoubleLoop(ESTIMATORS[estimator], **settings).infer(model, rng)
    assert exact.convergence.converged and other.convergence.converged
    assert np.linalg.norm(other.mean - exact.mean) < 0.05 * np.linalg.norm(exact.mean)
    for a, b in zip(other.marginals.values, exact.marginals.values, strict=True):
        assert np.mean(a) == pytest.approx(np.mean(b), rel=0.1)


@pytest.mark.parametrize(
    ("site", "algorithm"),
    [("Student-t", "first"), ("tilted", "hybrid"), ("power 0.6", "second")],
)
def test_single_precision_stays_single_and_agrees(site, algorithm, tiny_model, sites, rng):
    single, double = (
        DoubleLoop(Exact(), outer_iterations=8, algorithm=algorithm).infer(
            tiny_model("parts", sites[site], real=real), rng
        )
        for real in (np.float32, np.float64)
    )
    assert single.mean.dtype == np.complex64
    assert all(pi.dtype == np.float32 for pi in single.precision.site_precisions)
    np.testing.assert_allclose(single.mean, double.mean, atol=2e-3 * np.abs(double.mean).max())


def test_phi_may_be_estimated_where_nothing_knows_log_a(tiny_model, rng):
    model = tiny_model("groups")
    posterior = DoubleLoop(MonteCarlo(50, tolerance=1e-4), criterion="estimate").infer(model, rng)
    assert posterior.criterion_kind == "estimate"
    exact = exact_criterion(model, posterior.precision.site_precisions)
    assert posterior.criterion[-1] == pytest.approx(exact, abs=0.02 * model.measurement.in_size)
    plain = DoubleLoop(MonteCarlo(50, tolerance=1e-4)).infer(model, np.random.default_rng(0))
    assert plain.convergence.matvecs < posterior.convergence.matvecs


def test_sites_with_positions_need_another_class_and_real_coefficients(tiny_model, rng):
    site = ShiftedMixture([1.0], [Laplace(1.0)], [2.0])
    model = tiny_model("matrix", lambda scale: site)
    with refused("block 'entries'"):
        DoubleLoop(algorithm="first").infer(model, rng)
    with refused("block 'pixels'"):
        tiny_model("groups", lambda scale: site)
