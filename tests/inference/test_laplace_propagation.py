"""Laplace propagation ends in the MAP estimate with its inverse Hessian, whatever the partition, schedule and space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

import mri_design as md
from mri_design import Dense, Gaussian, Logistic, Sech2, Status, StudentT

LP = md.LaplacePropagation
SEED = 7


def logistic_model(q: int = 600, n: int = 20, prior: float = 0.7, seed: int = 0):
    """Logistic regression with a Gaussian prior, and its rows and labels."""
    rng = np.random.default_rng(seed)
    rows = 2 * rng.standard_normal((q, n)) / np.sqrt(n)
    labels = np.where(rng.random(q) < 1 / (1 + np.exp(-rows @ rng.standard_normal(n))), 1.0, -1.0)
    blocks = [
        md.SiteBlock("labels", Dense(rows), Logistic(labels)),
        md.SiteBlock("weights", Dense(np.eye(n)), Gaussian(prior)),
    ]
    return md.GeneralizedLinearModel.of_sites(blocks), rows, labels, prior


def newton_map(rows, labels, prior):
    """MAP and Hessian of logistic regression by Newton's method on everything."""
    theta = np.zeros(rows.shape[1])
    for _ in range(40):
        p = 1 / (1 + np.exp(-labels * (rows @ theta)))
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + prior * np.eye(len(theta))
        theta = theta + np.linalg.solve(hessian, rows.T @ (labels * (1 - p)) - prior * theta)
    return theta, hessian


def run(model, **settings):
    return LP(**settings).propagate(model, np.random.default_rng(SEED))


@pytest.mark.parametrize(
    ("schedule", "partition", "size", "cavity"),
    [
        ("serial", "random", 60, "dense"),
        ("parallel", "contiguous", 60, "low_rank"),
        ("serial", "groups", 7, "low_rank"),
        ("parallel", "random", 30, "dense"),
    ],
)
def test_the_fixed_point_is_the_map_with_the_inverse_hessian(schedule, partition, size, cavity) -> None:
    model, rows, labels, prior = logistic_model()
    theta, hessian = newton_map(rows, labels, prior)
    found = run(model, schedule=schedule, partition=partition, chunk_size=size, cavity=cavity)
    assert found.posterior.convergence.converged
    np.testing.assert_allclose(found.posterior.mean, theta, rtol=0, atol=3e-12)
    covariance = np.linalg.inv(found.posterior.precision.dense_real())
    inverse = np.linalg.inv(hessian)
    assert np.abs(covariance - inverse).max() <= 1e-9 * np.abs(inverse).max()
    z = found.posterior.marginals.values[0]
    np.testing.assert_allclose(z, np.einsum("ij,jk,ik->i", rows, inverse, rows), rtol=1e-8)
    np.testing.assert_allclose(found.posterior.image_variances, np.diag(inverse), rtol=1e-8)
    np.testing.assert_allclose(found.posterior.marginals.log_determinant, np.linalg.slogdet(hessian)[1], rtol=1e-9)
    for number in range(len(found.chunks)):
        np.testing.assert_allclose(found.chunk_mode(number), theta, atol=1e-7)


def test_both_ways_to_hold_a_cavity_make_the_same_messages() -> None:
    model = logistic_model()[0]
    dense, low = (run(model, chunk_size=9, cavity=form, max_sweeps=1) for form in ("dense", "low_rank"))
    for one, other in zip(dense.messages, low.messages, strict=True):
        np.testing.assert_allclose(one.slope, other.slope, atol=1e-10)
        np.testing.assert_allclose(one.curvature, other.curvature, atol=1e-10)


def test_serial_sweeps_converge_in_fewer_rounds_than_parallel_ones() -> None:
    model, rows, labels, prior = logistic_model()
    theta = newton_map(rows, labels, prior)[0]
    needed = []
    for schedule in ("serial", "parallel"):
        found = run(model, chunk_size=60, schedule=schedule)
        errors = [np.abs(mean - theta).max() for mean in found.sweep_means]
        needed.append(1 + next(k for k, error in enumerate(errors) if error < 1e-8))
    assert needed[0] <= 3
    assert needed[0] < needed[1] <= 6


def test_damping_makes_the_sweeps_linear() -> None:
    model, rows, labels, prior = logistic_model()
    theta = newton_map(rows, labels, prior)[0]
    found = run(model, chunk_size=60, damping=0.5, max_sweeps=12)
    errors = np.array([np.abs(mean - theta).max() for mean in found.sweep_means])
    np.testing.assert_allclose(errors[6:] / errors[5:-1], 0.5, atol=0.05)
    assert found.posterior.convergence.status is Status.MAX_ITERATIONS


@pytest.mark.parametrize("cavity", ["dense", "low_rank"])
@pytest.mark.parametrize("schedule", ["serial", "parallel"])
def test_gaussian_sites_are_exact_after_one_sweep(schedule, cavity) -> None:
    rng = np.random.default_rng(3)
    rows, offset, x = rng.standard_normal((30, 8)), rng.standard_normal(30), rng.standard_normal((9, 8))
    data, variance, precision = rng.standard_normal(9), 0.3, rng.uniform(0.5, 2, 30)
    block = md.SiteBlock("data", Dense(rows), Gaussian(precision), offset=offset)
    model = md.GeneralizedLinearModel(Dense(x), data, variance, (block,))
    found = run(model, chunk_size=4, schedule=schedule, max_sweeps=1, exact=(), cavity=cavity)
    a = x.T @ x + rows.T @ (precision[:, None] * rows)
    wanted = np.linalg.solve(a, x.T @ data + rows.T @ (precision * offset))
    np.testing.assert_allclose(found.posterior.mean, wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.posterior.image_variances, variance * np.diag(np.linalg.inv(a)), rtol=1e-11)
    whole = run(model, chunk_size=4)  # in t_0, where Gaussian blocks belong by default
    assert whole.chunks == ()
    np.testing.assert_allclose(whole.posterior.mean, wanted, rtol=1e-12, atol=1e-13)


def test_one_parallel_sweep_is_the_bayes_committee_machine() -> None:
    model, rows, labels, prior = logistic_model(q=200, n=6)
    found = run(model, chunk_size=50, partition="contiguous", schedule="parallel", max_sweeps=1)
    P, h = -(4 - 1) * prior * np.eye(6), np.zeros(6)  # product of p(theta | Z_i) over p(theta)^(N - 1)
    for part in np.array_split(np.arange(200), 4):
        mode, hessian = newton_map(rows[part], labels[part], prior)
        P, h = P + hessian, h + hessian @ mode
    np.testing.assert_allclose(found.posterior.mean, np.linalg.solve(P, h), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.posterior.precision.dense_real(), P, rtol=1e-8, atol=1e-9)


def test_one_site_is_laplaces_approximation_of_it() -> None:
    rng = np.random.default_rng(1)
    row, prior = rng.standard_normal(5), 0.6
    block = md.SiteBlock("label", Dense(row[None]), Logistic(np.array([-1.0])))
    model = md.GeneralizedLinearModel(Dense(np.sqrt(prior) * np.eye(5)), np.full(5, 0.4), 1.0, (block,))
    mean0, variance = 0.4 / np.sqrt(prior) * row.sum(), row @ row / prior

    def score(a: float) -> float:  # epsilon = mu^T x + a x^T C x with a = d log t / d epsilon
        return a - (-1 + 1 / (1 + np.exp(mean0 + a * variance)))

    a = scipy.optimize.brentq(score, -1, 0, xtol=1e-14)
    p = 1 / (1 + np.exp(-(mean0 + a * variance)))
    found = LP().infer(model, np.random.default_rng(0))
    np.testing.assert_allclose(found.mean, 0.4 / np.sqrt(prior) + a * row / prior, rtol=1e-10)
    curvature = p * (1 - p)
    covariance = np.eye(5) / prior - np.outer(row, row) / prior**2 * curvature / (1 + curvature * variance)
    np.testing.assert_allclose(np.linalg.inv(found.precision.dense_real()), covariance, rtol=1e-9)


def test_the_noise_variance_is_a_unit() -> None:
    model, *_ = logistic_model(q=100, n=5)
    other = replace(model, noise_variance=9.0)
    np.testing.assert_allclose(
        run(other, chunk_size=20).posterior.mean, 3 * run(model, chunk_size=20).posterior.mean, rtol=1e-9
    )


@pytest.mark.parametrize("cavity", ["dense", "low_rank"])
def test_chunks_live_on_the_coordinates_that_they_touch(cavity) -> None:
    rng = np.random.default_rng(5)
    rows = np.zeros((90, 12))
    for group in range(3):  # three groups of coordinates, with one shared by neighbours
        shape = rows[30 * group : 30 * group + 30, 4 * group : 4 * group + 5].shape
        rows[30 * group : 30 * group + 30, 4 * group : 4 * group + 5] = rng.standard_normal(shape)
    labels = np.where(rng.random(90) < 0.5, 1.0, -1.0)
    blocks = [
        md.SiteBlock("labels", Dense(rows), Logistic(labels)),
        md.SiteBlock("weights", Dense(np.eye(12)), Gaussian(0.4)),
    ]
    model = md.GeneralizedLinearModel.of_sites(blocks)
    found = run(model, partition="contiguous", chunk_size=30, cavity=cavity)
    np.testing.assert_array_equal(found.coordinates[1], np.arange(4, 9))
    assert len(found.modes[2]) == 4
    np.testing.assert_allclose(found.posterior.mean, newton_map(rows, labels, 0.4)[0], atol=1e-11)


def test_sites_on_moduli_reach_the_joint_map_in_few_sweeps() -> None:
    rng = np.random.default_rng(2)
    n, x = 10, rng.standard_normal((14, 10)) + 1j * rng.standard_normal((14, 10))
    b = rng.standard_normal((24, n)) + 1j * rng.standard_normal((24, n))
    data = rng.standard_normal(14) + 1j * rng.standard_normal(14)
    model = md.GeneralizedLinearModel(Dense(x), data, 0.5, (md.SiteBlock("b", Dense(b), Sech2(0.8)),))
    joint = joint_map(model)
    found = run(model, chunk_size=5)
    assert found.posterior.convergence.iterations <= 6
    np.testing.assert_allclose(found.posterior.mean, joint, atol=1e-10)
    # The posterior has the site precisions of the double loop, so that its mean solves its own equations.
    pi = found.posterior.site_precisions
    np.testing.assert_allclose(found.posterior.precision(found.posterior.mean), x.conj().T @ data, atol=1e-9)
    a = x.conj().T @ x + b.conj().T @ (pi[:, None] * b)
    z = 2 * np.einsum("ij,jk,ik->i", b, np.linalg.inv(a), b.conj()).real
    np.testing.assert_allclose(found.posterior.variances.values, z, rtol=1e-9)


def joint_map(model):
    """Minimiser of -log p over the real unknowns by a generic quasi-Newton method with a Newton polish."""
    n = model.measurement.in_size // 2

    def objective(v):
        u = v[:n] + 1j * v[n:]
        value = np.sum(np.abs(model.data - model.measurement(u)) ** 2) / (2 * model.noise_variance)
        slope = model.measurement.adjoint(model.measurement(u) - model.data) / model.noise_variance
        for block in model.blocks:
            s = block.coefficients(u)
            x = block.site_power(s) / model.noise_variance
            value -= np.sum(block.potential.g(x))
            slope = slope - block.analysis.adjoint(2 * block.potential.dg(x) * s) / model.noise_variance
        return value, np.concatenate([slope.ravel().real, slope.ravel().imag])

    found = scipy.optimize.minimize(
        objective, np.zeros(2 * n), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 0, "gtol": 1e-13}
    ).x
    for _ in range(3):  # Newton steps with a Hessian by central differences of the gradient
        eye = 1e-5 * np.eye(2 * n)
        hessian = np.array([(objective(found + e)[1] - objective(found - e)[1]) / 2e-5 for e in eye])
        found = found - np.linalg.solve(hessian, objective(found)[1])
    return found[:n] + 1j * found[n:]


@pytest.mark.parametrize("cavity", ["dense", "low_rank"])
def test_a_map_of_zero_is_reached_too(cavity) -> None:
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((40, 6))
    blocks = [
        md.SiteBlock("labels", Dense(np.concatenate([rows, rows])), Logistic(np.repeat([1.0, -1.0], 40))),
        md.SiteBlock("weights", Dense(np.eye(6)), Gaussian(0.5)),
    ]
    found = run(md.GeneralizedLinearModel.of_sites(blocks), chunk_size=5, cavity=cavity)
    assert found.posterior.convergence.converged
    np.testing.assert_allclose(found.posterior.mean, 0, atol=1e-12)


def test_the_safeguard_keeps_the_objective_falling() -> None:
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((60, 6))
    data = 3 * rows @ rng.standard_normal(6) + 0.1 * rng.standard_normal(60)
    data[::4] += 15
    site = StudentT(1.0, 20.0)  # not log-concave: parallel sweeps go astray
    blocks = [
        md.SiteBlock("data", Dense(rows), site, offset=data),
        md.SiteBlock("weights", Dense(np.eye(6)), Gaussian(0.1)),
    ]
    model = md.GeneralizedLinearModel.of_sites(blocks)

    def values(**settings):
        means = run(model, chunk_size=6, schedule="parallel", max_sweeps=20, **settings).sweep_means
        return np.array([0.05 * u @ u - np.sum(site.log_t(rows @ u - data)) for u in means])

    assert np.max(np.diff(values())) > 100
    kept = values(safeguard=True)
    assert np.all(np.diff(kept) <= 1e-9)
    assert kept[-1] < 0.6 * kept[0]


def test_counts_are_sites_too() -> None:
    rng = np.random.default_rng(6)
    rows, exposure = rng.standard_normal((150, 5)) / 2, rng.uniform(0.5, 3, 150)
    counts = rng.poisson(exposure * np.exp(rows @ rng.standard_normal(5)))
    blocks = [
        md.SiteBlock("counts", Dense(rows), md.Poisson(counts, exposure)),
        md.SiteBlock("weights", Dense(np.eye(5)), Gaussian(1.0)),
    ]
    found = run(md.GeneralizedLinearModel.of_sites(blocks), chunk_size=30)
    rate = exposure * np.exp(rows @ found.posterior.mean)
    np.testing.assert_allclose(rows.T @ (counts - rate), found.posterior.mean, atol=1e-9)
    np.testing.assert_allclose(found.posterior.site_precisions[0], rate, rtol=1e-7)


def test_senseless_settings_are_refused() -> None:
    for wrong in (
        {"partition": "slices"},
        {"schedule": "both"},
        {"cavity": "exact"},
        {"chunk_size": 0},
        {"max_sweeps": 0},
        {"damping": 0.0},
        {"damping": 1.5},
        {"tolerance": -1.0},
    ):
        with pytest.raises(md.InputError):
            LP(**wrong)
    model = logistic_model(q=20)[0]
    with pytest.raises(md.InputError, match="names out of"):
        run(model, exact=("prior",))
    with pytest.raises(md.InputError, match="Logistic"):
        run(model, exact=("labels",))
    with pytest.raises(md.InputError, match="at most 5"):
        run(model, limit=5)
