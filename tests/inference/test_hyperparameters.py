"""Learnt noise and scales: the maximum of the exact evidence where it is known, the truth where data were simulated."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import mri_design as md
from mri_design.inference import PriorEvidence, site_groups

ENGINE = md.DoubleLoop(md.Exact(), md.IRLS(tolerance=1e-8, solver_tolerance=1e-4, max_iterations=100), 10, 1e-4)


def regression(site, *, sigma=0.3, rate=2.0, n=60, m=120, is_complex=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) / np.sqrt(m)
    noise = rng.standard_normal(m)
    if site is md.Gaussian:
        u = rng.standard_normal(n) / rate
    elif is_complex:  # exp(-rate |u|) on the plane
        u = rng.gamma(2, 1 / rate, n) * np.exp(2j * np.pi * rng.random(n))
        X, noise = X + 0j, noise + 1j * rng.standard_normal(m)
    else:
        u = rng.laplace(scale=1 / rate, size=n)
    tau = sigma * rate
    block = md.SiteBlock(
        "entries", md.Identity((n,), is_complex=is_complex), site(tau**2 if site is md.Gaussian else tau)
    )
    return md.GeneralizedLinearModel(md.Dense(X), X @ u + sigma * noise, sigma**2, (block,))


def misjudged(model: md.GeneralizedLinearModel, rate: float, noise: float = 1.0) -> md.GeneralizedLinearModel:
    """The model with a rate and a noise sd that are wrong by these factors."""
    blocks = tuple(replace(b, potential=b.potential.rescaled(rate * noise)) for b in model.blocks)
    return replace(model, blocks=blocks, noise_variance=model.noise_variance * noise**2)


def test_gaussian_sites_end_at_the_maximum_of_the_exact_evidence(rng):
    model = regression(md.Gaussian)
    learnt = md.learn_hyperparameters(misjudged(model, 3.0, 0.7), ENGINE, rng, noise=True, rounds=200, tolerance=1e-6)
    X, y = model.measurement.matrix, model.data

    def minus_log_evidence(logs: np.ndarray) -> float:
        sigma2, prior = np.exp(logs)
        return -scipy.stats.multivariate_normal.logpdf(y, cov=sigma2 * np.eye(len(y)) + prior * X @ X.T)

    best = np.exp(scipy.optimize.minimize(minus_log_evidence, np.log([0.1, 0.3]), method="Nelder-Mead").x)
    sigma2 = learnt.model.noise_variance
    prior = sigma2 / float(learnt.model.blocks[0].potential.precision)
    assert learnt.convergence.converged
    np.testing.assert_allclose([sigma2, prior], best, rtol=5e-3)


@pytest.mark.parametrize("is_complex", [False, True])
def test_laplace_rates_and_noise_are_found_where_the_data_tell_them(is_complex, rng):
    """The bound puts variances in the place of moduli, so that rates come out low; less so for complex sites."""
    model = regression(md.Laplace, rate=1.0, sigma=0.1, n=120, m=240, is_complex=is_complex)
    learnt = md.learn_hyperparameters(misjudged(model, 4.0, 2.0), ENGINE, rng, noise=True, rounds=40, tolerance=1e-3)
    sigma = np.sqrt(learnt.model.noise_variance)
    assert learnt.convergence.converged
    assert sigma == pytest.approx(0.1, rel=0.12)
    assert float(learnt.model.blocks[0].potential.scale) / sigma == pytest.approx(1.0, rel=0.15)
    assert learnt.trace[-1].rates["entries"] == pytest.approx(0.25, rel=0.15)


def test_every_wavelet_level_finds_its_own_rate(rng):
    shape = (32, 32)
    wavelet = md.Wavelet(shape, "db2", 2)
    levels = wavelet.level_map()
    truth = np.choose(levels, [0.5, 1.0, 4.0])
    s = rng.gamma(2, 1 / truth) * np.exp(2j * np.pi * rng.random(shape))
    X = md.cartesian(range(32), shape)
    sigma = 0.02
    noise = rng.standard_normal((2, *X.out_shape))
    data = X(wavelet.adjoint(s)) + sigma * (noise[0] + 1j * noise[1])
    block = md.SiteBlock("wavelet", wavelet, md.Laplace(sigma))
    model = md.GeneralizedLinearModel(X, data, sigma**2, (block,))
    engine = md.DoubleLoop(md.ControlVariate(4), outer_iterations=6)
    learnt = md.learn_hyperparameters(model, engine, rng, rounds=20)
    rates = [learnt.trace[-1].rates[f"wavelet {level}"] for level in range(3)]
    drawn = [2 / np.abs(s[levels == level]).mean() for level in range(3)]  # E|s| = 2 / rate on the plane
    np.testing.assert_allclose(rates, drawn, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["pixels", "differences", "wavelet"])
def test_the_prior_evidence_is_the_dense_criterion_without_data(prior):
    """phi_0 where one pi per group is optimal: shift-invariant blocks, and wavelets with pixels."""
    shape = (8, 8)
    blocks = [md.SiteBlock("pixels", md.Identity(shape), md.Laplace(0.7))]
    if prior == "differences":
        blocks.append(md.SiteBlock("differences", md.FiniteDifferences(shape), md.Laplace(1.3), (-3,)))
    if prior == "wavelet":
        wavelet = md.Wavelet(shape, "db2", 1)
        blocks.append(md.SiteBlock("wavelet", wavelet, md.Laplace(np.where(wavelet.level_map() == 0, 0.5, 2.0))))
    model = md.GeneralizedLinearModel(md.cartesian([4], shape), np.zeros((1, 1, 8), complex), 1.0, tuple(blocks))
    phi, slopes = PriorEvidence.of(model, site_groups(model))(model.blocks)
    z = [np.full(b.site_shape, 1.0) for b in blocks]
    dense = [b.analysis.to_dense() for b in blocks]
    for _ in range(400):
        pi = [b.potential.site_precision(one) for b, one in zip(blocks, z, strict=True)]
        A = 0
        for b, B, one in zip(blocks, dense, pi, strict=True):
            weights = np.broadcast_to(one, b.analysis.out_shape).ravel()
            A = A + B.conj().T @ (weights[:, None] * B)
        inverse = np.linalg.inv(A)
        z = []
        for b, B in zip(blocks, dense, strict=True):
            each = 2 * np.sum((B @ inverse) * B.conj(), axis=1).real
            pooled = b.pooled(each.reshape(b.analysis.out_shape))
            for kind in np.unique(b.potential.start_variance):  # one pi per group
                members = np.broadcast_to(b.potential.start_variance == kind, b.site_shape)
                pooled[members] = pooled[members].mean()
            z.append(pooled)
    dual = sum(float(np.sum(b.potential.h_at_optimum(one))) for b, one in zip(blocks, z, strict=True))
    assert phi == pytest.approx(2 * np.linalg.slogdet(A)[1] + dual, rel=1e-6)
    assert sum(slopes) == pytest.approx(2 * 2 * 64, rel=1e-6)  # phi_0 is homogeneous: n log(rate^2) in all


@pytest.mark.slow
def test_a_block_that_evidence_switches_off_stays_finite(rng):
    """Smooth data under pixels and differences: the pixel rate falls until it no longer matters."""
    shape = (16, 16)
    u = 5 + np.cumsum(np.cumsum(rng.laplace(size=shape), 0), 1) * 0.05 + 0j
    X = md.cartesian(range(16), shape)
    data = X(u) + 0.05 * (rng.standard_normal(X.out_shape) + 1j * rng.standard_normal(X.out_shape))
    blocks = (
        md.SiteBlock("pixels", md.Identity(shape), md.Laplace(0.05)),
        md.SiteBlock("differences", md.FiniteDifferences(shape), md.Laplace(0.05)),
    )
    model = md.GeneralizedLinearModel(X, data, 0.05**2, blocks)
    learnt = md.learn_hyperparameters(model, md.DoubleLoop(md.Exact(), outer_iterations=4), rng, rounds=30)
    assert learnt.convergence.converged
    assert learnt.trace[-1].rates["pixels"] < 0.5
    assert 0.05 < learnt.trace[-1].rates["differences"] < 20
    assert np.isfinite(learnt.posterior.mean).all()


def test_too_few_rounds_and_inference_cut_short_are_flagged(rng):
    learnt = md.learn_hyperparameters(misjudged(regression(md.Laplace), 4.0), ENGINE, rng, rounds=1)
    assert learnt.convergence.status is md.Status.MAX_ITERATIONS
    assert len(learnt.trace) == 1
    starved = md.DoubleLoop(md.Exact(), md.IRLS(max_iterations=1, tolerance=1e-12), outer_iterations=1, tolerance=1e-12)
    learnt = md.learn_hyperparameters(misjudged(regression(md.Laplace), 2.0), starved, rng, rounds=2, tolerance=5.0)
    assert not learnt.posterior.convergence.converged
    assert learnt.convergence.status is md.Status.MAX_ITERATIONS


def test_noise_of_data_without_any_stays_at_their_rounding_in_single_precision(rng) -> None:
    model = regression(md.Laplace, n=10, m=20)
    model = replace(model, data=model.measurement(np.linspace(-1, 1, 10)))
    learnt = md.learn_hyperparameters(model, md.DoubleLoop(md.Exact()), rng, noise=True, scales=False, rounds=40)
    assert learnt.convergence.converged
    least = (2.0**-24 * np.abs(model.data).max()) ** 2
    assert learnt.model.noise_variance == pytest.approx(least)
