"""Bounds of sites and of the evidence, and hyperparameters that are learnt by it."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import mri_design as md
from mri_design.estimation import IRLS
from mri_design.inference import PriorEvidence, dual_argument_of, first_class, hybrid, site_bounds, site_groups
from mri_design.operators import Dense, FiniteDifferences, Identity, Wavelet
from mri_design.sites import (
    ExponentialPower,
    Gaussian,
    Laplace,
    Logistic,
    PositiveMixture,
    Sech2,
    ShiftedMixture,
    StudentT,
    SuperGaussian,
)
from mri_design.variances import ControlVariate, Exact
from tests.arrays import noise
from tests.inference.conftest import integrated
from tests.slow_cases import slow_case

SITES = {
    "Laplace": Laplace(0.8),
    "logistic": Logistic(1.0, 1.5),
    "sech^2": Sech2(0.7),
    "Gaussian": Gaussian(1.3),
    "power 1.4": ExponentialPower(1.4, 0.9),
    "power 0.6": ExponentialPower(0.6, 0.9),
    "Student-t": StudentT(2.5, 0.7),
    "mixture": PositiveMixture([0.6, 0.4], [Laplace(2.0), Laplace(0.3)]),
}
X = np.array([0.0, 0.03, 1.0, 20.0])


def h(site: SuperGaussian, gamma: float) -> float:
    """max over x >= 0 of -x / gamma - 2 g(x), from a grid and a refinement."""

    def negative(log_x: float) -> float:
        x = np.array([np.exp(log_x)])
        return float((x / gamma + 2 * site.g(x))[0])

    grid = np.linspace(-40, 16, 400)
    best = grid[np.argmin(np.exp(grid) / gamma + 2 * site.g(np.exp(grid)))]
    found = scipy.optimize.minimize_scalar(negative, bounds=(best - 0.2, best + 0.2), options={"xatol": 1e-12})
    return -min(float(found.fun), negative(best), float(2 * site.g(np.zeros(1))[0]))


def least(function, grid: np.ndarray) -> tuple[float, float]:
    """Minimum of a function of log gamma, and its place."""
    values = [function(v) for v in grid]
    best, step = grid[int(np.argmin(values))], grid[1] - grid[0]
    found = scipy.optimize.minimize_scalar(function, bounds=(best - step, best + step), options={"xatol": 1e-11})
    return float(found.fun), float(np.exp(found.x))


def block_of(site: SuperGaussian, is_complex: bool = False) -> md.SiteBlock:
    return md.SiteBlock("sites", Identity((4,), is_complex=is_complex), site)


@pytest.mark.parametrize("name", [n for n, site in SITES.items() if site.log_concave])
@pytest.mark.parametrize("is_complex", [slow_case(False), True])
def test_first_class_by_scalar_minimisation(name, is_complex):
    site, count = SITES[name], 2 if is_complex else 1
    if is_complex and isinstance(site, Logistic):
        pytest.skip("labels need real coefficients")
    t = np.array([0.5, 2.0, 0.1, 3.0])
    pi = site.site_precision(t)
    z = 0.6 * count / pi
    bound = first_class(block_of(site, is_complex), z, t)
    z1 = count * pi - pi**2 * z
    values, precisions = bound.value(X), bound.precision(X)
    references = []
    for i, x in enumerate(X):

        def criterion(log_gamma: float, i: int = i, x: float = x) -> float:
            gamma = np.exp(log_gamma)
            return z1[i] * gamma + h(site, gamma) - count * log_gamma + x / gamma

        # A Gaussian has no wider form than its own.
        top = np.log(1 / site.precision) if isinstance(site, Gaussian) else 8.0
        reference, gamma = least(criterion, np.linspace(-8, top - 1e-9, 60))
        references.append(reference)
        assert precisions[i] == pytest.approx(1 / gamma, rel=2e-4)
    differences = values - references
    np.testing.assert_allclose(differences, differences[0] if name == "Laplace" else 0, atol=1e-6)


@pytest.mark.parametrize("name", list(SITES))
@pytest.mark.parametrize("make", [first_class, hybrid])
def test_penalties_are_concave_in_x_and_have_their_slope(name, make):
    site = SITES[name]
    t = np.full(4, 0.9)
    z = 0.5 / site.site_precision(t)
    bound = make(block_of(site), z, t)
    x = np.repeat(np.geomspace(1e-2, 1e2, 30)[:, None], 4, axis=1)
    step = 1e-5 * x
    slope = (bound.value(x + step) - bound.value(x - step)) / (2 * step)
    np.testing.assert_allclose(slope, bound.precision(x), rtol=1e-5)
    assert (np.diff(bound.precision(x), axis=0) <= 1e-12).all() and (bound.precision(x) > 0).all()


@pytest.mark.parametrize("name", list(SITES))
def test_hybrid_lies_above_the_second_class_and_touches_where_it_was_developed(name):
    """psi_hybrid(x) + const >= -2 g(x + z) with equality at x + z = t; constants cancel in differences."""
    site, z = SITES[name], np.full(4, 0.4)
    x = np.linspace(0, 8, 41)[:, None] * np.ones(4)
    at = np.array([0.0, 0.5, 2.0, 6.0])
    (bound,) = site_bounds("hybrid", SimpleNamespace(blocks=[block_of(site)]), (z,), (at + z,))
    excess = bound.value(x) + 2 * site.g(x + z) - (bound.value(at) + 2 * site.g(at + z))
    assert (excess >= -1e-9).all()
    np.testing.assert_allclose(bound.precision(at), site.site_precision(at + z), rtol=1e-9)


@pytest.mark.parametrize("name", ["power 0.6", "Student-t", "mixture"])
def test_hybrid_is_convex_in_s(name):
    """Also for sites that are not log-concave, which the second class's own penalty is not."""
    site, z = SITES[name], np.full(4, 0.05)
    bound = hybrid(block_of(site), z, np.full(4, 0.7))
    s = np.linspace(-12, 12, 801)[:, None] * np.ones(4)

    def least_bend(values: np.ndarray) -> float:
        return float(np.diff(values, 2, axis=0).min())

    assert least_bend(bound.value(s**2)) >= -1e-10
    assert least_bend(-2 * site.g(s**2 + z)) < -1e-5


@pytest.mark.parametrize("name", [n for n in SITES if n != "Gaussian"])
def test_widths_lead_back_to_the_argument(name):
    t = np.array([1e-6, 0.3, 40.0])
    np.testing.assert_allclose(dual_argument_of(SITES[name], SITES[name].site_precision(t)), t, rtol=2e-5)
    steep = np.array([1e9])
    if name in ("logistic", "sech^2", "Student-t"):
        assert dual_argument_of(SITES[name], steep) == 0


MIXTURES = {
    "two peaks": ShiftedMixture([1.0, 0.5], [Laplace(1.0), Laplace(2.0)], [-1.5, 2.0]),
    "skewed": ShiftedMixture([1.0, 0.7, 0.4], [Gaussian(4.0), Gaussian(1.0), Gaussian(0.2)], [0.0, 0.8, 2.5]),
    "heavy": ShiftedMixture([1.0, 0.3], [StudentT(2.0, 2.0), Gaussian(1.0)], [0.5, -3.0]),
    "one site off centre": ShiftedMixture([1.0], [Laplace(1.5)], [1.2]),
}


def model_of(site: ShiftedMixture, dimensions: int) -> md.GeneralizedLinearModel:
    if dimensions == 1:
        block = md.SiteBlock("one", Dense(np.array([[1.0], [0.6]])), site)
        return md.GeneralizedLinearModel(Dense(np.array([[1.1]])), np.array([0.4]), 0.3, (block,))
    block = md.SiteBlock("two", Dense(np.array([[1.0, 0.0], [0.0, 1.0]])), site)
    smooth = md.SiteBlock("steps", Dense(np.array([[1.0, -1.0]])), Laplace(0.8))
    return md.GeneralizedLinearModel(Dense(np.array([[1.0, 0.5]])), np.array([0.7]), 0.3, (block, smooth))


@pytest.mark.parametrize(("name", "dimensions"), [("two peaks", 1), ("heavy", 1), ("skewed", 2)])
def test_monotone_and_below_the_evidence(name, dimensions, accurate, rng):
    model = model_of(MIXTURES[name], dimensions)
    posterior = replace(accurate, outer_iterations=80).infer(model, rng)
    assert posterior.convergence.converged and posterior.stationarity < 1e-3
    assert all(later <= earlier + 1e-10 * abs(earlier) for earlier, later in pairwise(posterior.criterion))
    gap = integrated(model) - md.inference.evidence_bound(model, posterior.criterion[-1])
    assert 0 < gap < 2.5  # with two peaks a Gaussian covers one of them


def test_a_mixture_of_one_is_its_site_with_an_offset(accurate, rng):
    model = model_of(MIXTURES["one site off centre"], 2)
    sigma = np.sqrt(model.noise_variance)
    fixed = replace(model.blocks[0], potential=Laplace(1.5), offset=np.full(2, 1.2 * sigma))
    same = replace(model, blocks=(fixed, model.blocks[1]))
    moving, still = (accurate.infer(one, rng) for one in (model, same))
    assert moving.criterion[-1] == pytest.approx(still.criterion[-1], rel=1e-7)
    np.testing.assert_allclose(moving.mean, still.mean, atol=1e-4)


def test_the_bound_is_stationary_in_widths_positions_and_responsibilities(accurate, rng):
    """Beside -log of the Gaussian integral of the bound with free q_k and gamma_k of one site, minimised by scipy."""
    site, a, y, sigma2 = MIXTURES["two peaks"], 1.1, 0.4, 0.3
    block = md.SiteBlock("one", Dense(np.array([[1.0]])), site)
    model = md.GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    posterior = replace(accurate, outer_iterations=200, tolerance=1e-10).infer(model, rng)
    count = len(site.sites)

    def phi(free: np.ndarray) -> float:
        q = np.exp(free[:count] - np.logaddexp.reduce(free[:count]))
        t = np.exp(free[count:])
        widths = np.array([1 / float(one.site_precision(np.array(v))) for one, v in zip(site.sites, t, strict=True)])
        h = np.array([float(one.h_at_optimum(np.array(v))) for one, v in zip(site.sites, t, strict=True)])
        c = site.positions
        A, r = a**2 + np.sum(q / widths), a * y / np.sqrt(sigma2) + np.sum(q * c / widths)
        quadratic = y**2 / sigma2 + np.sum(q * c**2 / widths) - r**2 / A
        return float(np.log(A) + quadratic + np.sum(q * (h - 2 * np.log(site.weights) + 2 * np.log(q))))

    starts = np.random.default_rng(0).normal(0, 1, (6, 2 * count))
    ends = [scipy.optimize.minimize(phi, start, options={"gtol": 1e-9}).fun for start in starts]
    assert posterior.criterion[-1] == pytest.approx(min(ends, key=lambda v: abs(v - posterior.criterion[-1])), abs=1e-7)
    assert posterior.criterion[-1] < np.max(ends) + 1e-7


ENGINE = md.DoubleLoop(Exact(), IRLS(tolerance=1e-8, solver_tolerance=1e-4, max_iterations=100), 10, 1e-4)


def regression(site, *, sigma=0.3, rate=2.0, n=60, m=120, is_complex=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) / np.sqrt(m)
    noise = rng.standard_normal(m)
    if site is Gaussian:
        u = rng.standard_normal(n) / rate
    elif is_complex:  # exp(-rate |u|) on the plane
        u = rng.gamma(2, 1 / rate, n) * np.exp(2j * np.pi * rng.random(n))
        X, noise = X + 0j, noise + 1j * rng.standard_normal(m)
    else:
        u = rng.laplace(scale=1 / rate, size=n)
    tau = (sigma * rate) ** (2 if site is Gaussian else 1)
    block = md.SiteBlock("entries", Identity((n,), is_complex=is_complex), site(tau))
    return md.GeneralizedLinearModel(Dense(X), X @ u + sigma * noise, sigma**2, (block,))


def misjudged(model: md.GeneralizedLinearModel, rate: float, noise: float = 1.0) -> md.GeneralizedLinearModel:
    """The model with a rate and a noise sd that are wrong by these factors."""
    blocks = tuple(replace(b, potential=b.potential.rescaled(rate * noise)) for b in model.blocks)
    return replace(model, blocks=blocks, noise_variance=model.noise_variance * noise**2)


def test_gaussian_sites_end_at_the_maximum_of_the_exact_evidence(rng):
    model = regression(Gaussian)
    learnt = md.inference.learn_hyperparameters(
        misjudged(model, 3.0, 0.7), ENGINE, rng, noise=True, rounds=200, tolerance=1e-6
    )
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
    model = regression(Laplace, rate=1.0, sigma=0.1, n=120, m=240, is_complex=is_complex)
    learnt = md.inference.learn_hyperparameters(
        misjudged(model, 4.0, 2.0), ENGINE, rng, noise=True, rounds=40, tolerance=1e-3
    )
    sigma = np.sqrt(learnt.model.noise_variance)
    assert learnt.convergence.converged
    assert sigma == pytest.approx(0.1, rel=0.12)
    assert float(learnt.model.blocks[0].potential.rate) / sigma == pytest.approx(1.0, rel=0.15)
    assert learnt.trace[-1].rates["entries"] == pytest.approx(0.25, rel=0.15)


def test_every_wavelet_level_finds_its_own_rate(rng):
    shape = (32, 32)
    wavelet = Wavelet(shape, "db2", 2)
    levels = wavelet.level_map()
    truth = np.choose(levels, [0.5, 1.0, 4.0])
    s = rng.gamma(2, 1 / truth) * np.exp(2j * np.pi * rng.random(shape))
    X = md.operators.cartesian(range(32), shape)
    sigma = 0.02
    data = X(wavelet.adjoint(s)) + sigma * noise(X.out_shape)
    model = md.GeneralizedLinearModel(X, data, sigma**2, (md.SiteBlock("wavelet", wavelet, Laplace(sigma)),))
    engine = md.DoubleLoop(ControlVariate(4), outer_iterations=6)
    learnt = md.inference.learn_hyperparameters(model, engine, rng, rounds=20)
    rates = [learnt.trace[-1].rates[f"wavelet {level}"] for level in range(3)]
    drawn = [2 / np.abs(s[levels == level]).mean() for level in range(3)]  # E|s| = 2 / rate on the plane
    np.testing.assert_allclose(rates, drawn, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["pixels", "differences", "wavelet"])
def test_the_prior_evidence_is_the_dense_criterion_without_data(prior):
    """phi_0 where one pi per group is optimal: shift-invariant blocks, and wavelets with pixels."""
    shape = (8, 8)
    blocks = [md.SiteBlock("pixels", Identity(shape), Laplace(0.7))]
    if prior == "differences":
        blocks.append(md.SiteBlock("differences", FiniteDifferences(shape), Laplace(1.3), (-3,)))
    if prior == "wavelet":
        wavelet = Wavelet(shape, "db2", 1)
        blocks.append(md.SiteBlock("wavelet", wavelet, Laplace(np.where(wavelet.level_map() == 0, 0.5, 2.0))))
    model = md.GeneralizedLinearModel(
        md.operators.cartesian([4], shape), np.zeros((1, 1, 8), complex), 1.0, tuple(blocks)
    )
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
    X = md.operators.cartesian(range(16), shape)
    operators = {"pixels": Identity(shape), "differences": FiniteDifferences(shape)}
    blocks = tuple(md.SiteBlock(name, B, Laplace(0.05)) for name, B in operators.items())
    model = md.GeneralizedLinearModel(X, X(u) + 0.05 * noise(X.out_shape), 0.05**2, blocks)
    learnt = md.inference.learn_hyperparameters(model, md.DoubleLoop(Exact(), outer_iterations=4), rng, rounds=30)
    assert learnt.convergence.converged
    assert learnt.trace[-1].rates["pixels"] < 0.5
    assert 0.05 < learnt.trace[-1].rates["differences"] < 20
    assert np.isfinite(learnt.posterior.mean).all()


def test_too_few_rounds_and_inference_cut_short_are_flagged(rng):
    learnt = md.inference.learn_hyperparameters(misjudged(regression(Laplace), 4.0), ENGINE, rng, rounds=1)
    assert learnt.convergence.status is md.Status.MAX_ITERATIONS
    assert len(learnt.trace) == 1
    starved = md.DoubleLoop(Exact(), IRLS(max_iterations=1, tolerance=1e-12), outer_iterations=1, tolerance=1e-12)
    learnt = md.inference.learn_hyperparameters(
        misjudged(regression(Laplace), 2.0), starved, rng, rounds=2, tolerance=5.0
    )
    assert not learnt.posterior.convergence.converged
    assert learnt.convergence.status is md.Status.MAX_ITERATIONS


def test_noise_of_data_without_any_stays_at_their_rounding_in_single_precision(rng) -> None:
    model = regression(Laplace, n=10, m=20)
    model = replace(model, data=model.measurement(np.linspace(-1, 1, 10)))
    learnt = md.inference.learn_hyperparameters(model, md.DoubleLoop(Exact()), rng, noise=True, scales=False, rounds=40)
    assert learnt.convergence.converged
    least = (2.0**-24 * np.abs(model.data).max()) ** 2
    assert learnt.model.noise_variance == pytest.approx(least)
