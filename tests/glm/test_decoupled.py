"""The decoupled dual, the references, and that all of them end where the natural gradient does."""

import numpy as np
import pytest
import scipy.optimize

from mri_design import (
    DecoupledGaussian,
    Dense,
    Exact,
    Gaussian,
    GeneralizedLinearModel,
    Identity,
    Laplace,
    Logistic,
    Poisson,
    Sech2,
    SiteBlock,
    StudentT,
    VariationalGaussian,
)
from mri_design.glm import (
    Anchor,
    CholeskyGaussian,
    DecoupledDual,
    DualState,
    OpperArchambeau,
    PriorAndSites,
    conjugate,
    slope_range,
)
from tests.refusals import refused

RNG = np.random.default_rng(0)


def mixed(seed: int = 0, n: int = 4) -> GeneralizedLinearModel:
    """Sparse weights, labels and counts under a Gaussian prior, in units that are not one."""
    draws = np.random.default_rng(seed).standard_normal
    counts = np.random.default_rng(seed).poisson(2.0, 5)
    blocks = (
        SiteBlock("prior", Identity((n,), is_complex=False), Gaussian(0.4), offset=0.1 * draws(n)),
        SiteBlock("weights", Identity((n,), is_complex=False), Laplace(0.7)),
        SiteBlock("labels", Dense(draws((6, n))), Logistic(np.sign(draws(6)), 1.4)),
        SiteBlock("counts", Dense(draws((5, n))), Poisson(counts, 1.5), offset=0.1 * draws(5)),
    )
    return GeneralizedLinearModel(Dense(draws((3, n))), draws(3), 0.6, blocks)


@pytest.mark.slow
def test_four_engines_end_in_one_optimum() -> None:
    model = mixed()
    natural = VariationalGaussian(Exact(), tolerance=1e-6).infer(model, RNG)
    for engine in (DecoupledGaussian(tolerance=1e-5), CholeskyGaussian(), OpperArchambeau()):
        other = engine.infer(model, RNG)
        assert other.convergence.converged, engine
        assert other.criterion[-1] == pytest.approx(natural.criterion[-1], rel=1e-8)
        np.testing.assert_allclose(other.mean, natural.mean, atol=1e-4)
        # Not their pi: with more sites than entries of the covariance, many make the same one.
        for one, two in zip(other.marginals.values, natural.marginals.values, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-3)


@pytest.mark.parametrize("site", [Poisson(3, 0.7), Laplace(0.8), Logistic(1, 1.3), Logistic(-1), Sech2(0.9)])
@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_conjugates_are_maxima(site, delta) -> None:
    """Equations (12), (20) and (21), against a search that knows nothing of them."""
    low, high = (float(end) for end in slope_range(site, ()))
    slope = 0.3 * max(low, -2.0) + 0.7 * min(high, 2.0)
    anchor = Anchor(np.array(1.3), np.array(0.2), delta)
    weights = np.array(0.17)
    got = conjugate(site, np.array(-slope), weights, anchor, None)

    def negative(x: np.ndarray) -> float:
        h, sd = x[0], np.exp(x[1])
        tied = 0.5 * 0.17 * 1.3 * (2 * sd - 1.3) - 0.1 * (sd - 1.3) ** 2 - 0.5 * delta * (sd - 1.3) ** 4
        return -float(site.expected_log_t(np.array(h), np.array(sd**2)).value - slope * h + tied)

    found = scipy.optimize.minimize(negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    assert float(got.value) == pytest.approx(-found.fun, abs=1e-9)
    assert float(got.mean) == pytest.approx(found.x[0], abs=1e-4)
    assert float(got.spread) == pytest.approx(np.exp(found.x[1]), abs=1e-4)


def test_ranges_of_slopes_and_a_site_pressed_to_no_width() -> None:
    got = conjugate(Laplace(2.0), np.array(0.1), np.array(1e-6), Anchor(np.array(0.1), np.array(1e-4)), None)
    assert float(got.spread) == 0 and float(got.mean) == 0
    assert [float(a) for a in slope_range(Laplace(0.8), ())] == [-0.8, 0.8]
    np.testing.assert_allclose(slope_range(Logistic([1, -1], 2.0), (2,)), [[0, -2], [2, 0]], atol=1e-12)
    assert [float(a) for a in slope_range(Poisson(3), ())] == [-np.inf, 3.0]
    assert [float(a) for a in slope_range(StudentT(3.0, 1.0), ())] == [-np.inf, np.inf]


def test_the_gradient_of_the_dual() -> None:
    split = PriorAndSites.of(mixed(2))
    S = split.rows @ split.rows.T
    rng = np.random.default_rng(1)
    low, high = DecoupledDual.box(split)
    low, high = np.maximum(low, -2.0), np.minimum(high, 2.0)
    alpha, weights = low + (high - low) * rng.uniform(0.3, 0.7, len(S)), rng.uniform(0.1, 0.6, len(S))
    spread = np.sqrt(DualState.of(S, split.means, alpha, weights).variance)
    dual = DecoupledDual(split, S, Anchor(spread, weights + 0.1), (None,) * len(split.parts))
    at = np.concatenate([alpha, weights])
    gradient = dual(at)[1]
    numeric = scipy.optimize.approx_fprime(at, lambda x: dual(x)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=1e-4)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_dual_meets_the_bound_at_the_fixed_point() -> None:
    """-dual = sum E log t - KL there: phi / 2 with its constants."""
    model = mixed(4)
    posterior = DecoupledGaussian(tolerance=1e-6, iterations=80).infer(model, RNG)
    split = PriorAndSites.of(model)
    S = split.rows @ split.rows.T
    sigma = np.sqrt(model.noise_variance)
    weights = np.concatenate([pi.ravel() for pi in posterior.site_precisions[1:]])
    means = np.concatenate([s.ravel() / sigma for s in model.analysis_coefficients(posterior.mean)[1:]])
    variances = np.concatenate([z.ravel() for z in posterior.marginals.values[1:]])
    slope = split.expectation(means, variances)[1]
    np.testing.assert_allclose(means, split.means + S @ slope, atol=1e-5)  # equation (8) with alpha = -slope
    dual = DecoupledDual(split, S, Anchor(np.sqrt(variances), weights), (None,) * len(split.parts))
    value = dual(np.concatenate([-slope, weights]))[0]
    assert value == pytest.approx(-0.5 * (posterior.criterion[-1] - split.constant), abs=1e-6)


@pytest.mark.slow
@pytest.mark.thorough
def test_a_student_t_site_settles_with_the_quartic_term() -> None:
    rng = np.random.default_rng(4)
    inputs = rng.standard_normal((5, 2))
    y = inputs @ np.array([1.0, -0.5]) + 0.2 * rng.standard_normal(5)
    blocks = (
        SiteBlock("data", Dense(inputs), StudentT(3.0, 4.0), offset=y),
        SiteBlock("prior", Identity((2,), is_complex=False), Gaussian(0.3)),
    )
    model = GeneralizedLinearModel.of_sites(blocks)
    with refused("block 'data'"):
        DecoupledGaussian().infer(model, rng)
    posterior = DecoupledGaussian(delta=1.0, tolerance=1e-2, iterations=40).infer(model, rng)
    natural = VariationalGaussian(Exact(), tolerance=1e-6, iterations=300).infer(model, rng)
    assert posterior.convergence.converged
    assert posterior.criterion[-1] == pytest.approx(natural.criterion[-1], rel=1e-4)
