"""The optimum of the Gaussian bound: by natural gradients, the decoupled dual and references, at any scale."""

import numpy as np
import pytest
import scipy.optimize

import mri_design as md
from mri_design.glm import (
    Anchor,
    DecoupledGaussian,
    DualState,
    PriorAndSites,
    VariationalGaussian,
    best_gaussian,
    conjugate,
    linearised_dual,
    open_range,
    slope_range,
)
from mri_design.inference import WarmStart
from mri_design.operators import Dense, FiniteDifferences, Identity, LinearOperator
from mri_design.sites import Gaussian, Laplace, Logistic, Poisson, Sech2, StudentT
from mri_design.variances import ControlVariate, Exact, Lanczos, MonteCarlo
from tests.inference.conftest import integrated
from tests.refusals import refused
from tests.slow_cases import slow_case

RNG = np.random.default_rng(0)


def mixed(seed: int = 0, n: int = 4) -> md.GeneralizedLinearModel:
    """Sparse weights, labels and counts under a Gaussian prior, in units that are not one."""
    draws = np.random.default_rng(seed).standard_normal
    counts = np.random.default_rng(seed).poisson(2.0, 5)
    blocks = (
        md.SiteBlock("prior", Identity((n,), is_complex=False), Gaussian(0.4), offset=0.1 * draws(n)),
        md.SiteBlock("weights", Identity((n,), is_complex=False), Laplace(0.7)),
        md.SiteBlock("labels", Dense(draws((6, n))), Logistic(np.sign(draws(6)), 1.4)),
        md.SiteBlock("counts", Dense(draws((5, n))), Poisson(counts, 1.5), offset=0.1 * draws(5)),
    )
    return md.GeneralizedLinearModel(Dense(draws((3, n))), draws(3), 0.6, blocks)


@pytest.mark.slow
def test_three_engines_end_in_one_optimum() -> None:
    model = mixed()
    natural = VariationalGaussian(Exact(), tolerance=1e-6).infer(model, RNG)
    other = DecoupledGaussian(tolerance=1e-5).infer(model, RNG)
    assert other.convergence.converged
    for mean, criterion in ((other.mean, other.criterion[-1]), best_gaussian(model)):
        assert criterion == pytest.approx(natural.criterion[-1], rel=1e-8)
        np.testing.assert_allclose(mean, natural.mean, atol=1e-4)
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

    def negative(x: np.ndarray) -> float:
        h, sd = x[0], np.exp(x[1])
        tied = 0.5 * 0.17 * 1.3 * (2 * sd - 1.3) - 0.1 * (sd - 1.3) ** 2 - 0.5 * delta * (sd - 1.3) ** 4
        return -float(site.expected_log_t(np.array(h), np.array(sd**2)).value - slope * h + tied)

    found = scipy.optimize.minimize(negative, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    mean, spread, value = conjugate(site, np.array(-slope), weights, anchor, None)
    assert float(value) == pytest.approx(-found.fun, abs=1e-9)
    assert float(mean) == pytest.approx(found.x[0], abs=1e-4)
    assert float(spread) == pytest.approx(np.exp(found.x[1]), abs=1e-4)


def test_ranges_of_slopes_and_a_site_pressed_to_no_width() -> None:
    mean, spread, _ = conjugate(
        Laplace(2.0), np.array(0.1), np.array(1e-6), Anchor(np.array(0.1), np.array(1e-4)), None
    )
    assert float(spread) == 0 and float(mean) == 0
    assert [float(a) for a in slope_range(Laplace(0.8), ())] == [-0.8, 0.8]
    np.testing.assert_allclose(slope_range(Logistic([1, -1], 2.0), (2,)), [[0, -2], [2, 0]], atol=1e-12)
    assert [float(a) for a in slope_range(Poisson(3), ())] == [-np.inf, 3.0]
    assert [float(a) for a in slope_range(StudentT(3.0, 1.0), ())] == [-np.inf, np.inf]


def test_the_gradient_of_the_dual() -> None:
    split = PriorAndSites.of(mixed(2))
    S = split.rows @ split.rows.T
    rng = np.random.default_rng(1)
    low, high = open_range(split)
    low, high = np.maximum(low, -2.0), np.minimum(high, 2.0)
    alpha, weights = low + (high - low) * rng.uniform(0.3, 0.7, len(S)), rng.uniform(0.1, 0.6, len(S))
    spread = np.sqrt(DualState.of(S, split.means, alpha, weights).variance)
    dual = linearised_dual(split, S, Anchor(spread, weights + 0.1))
    at = np.concatenate([alpha, weights])
    gradient = dual(at)[1]
    numeric = scipy.optimize.approx_fprime(at, lambda x: dual(x)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=1e-4)


@pytest.mark.slow
@pytest.mark.thorough
def test_a_student_t_site_settles_with_the_quartic_term() -> None:
    rng = np.random.default_rng(4)
    inputs = rng.standard_normal((5, 2))
    y = inputs @ np.array([1.0, -0.5]) + 0.2 * rng.standard_normal(5)
    blocks = (
        md.SiteBlock("data", Dense(inputs), StudentT(3.0, 4.0), offset=y),
        md.SiteBlock("prior", Identity((2,), is_complex=False), Gaussian(0.3)),
    )
    model = md.GeneralizedLinearModel.of_sites(blocks)
    with refused("block 'data'"):
        DecoupledGaussian().infer(model, rng)
    posterior = DecoupledGaussian(delta=1.0, tolerance=1e-2, iterations=40).infer(model, rng)
    natural = VariationalGaussian(Exact(), tolerance=1e-6, iterations=300).infer(model, rng)
    assert posterior.convergence.converged
    assert posterior.criterion[-1] == pytest.approx(natural.criterion[-1], rel=1e-4)


class Flattened(LinearOperator):
    """An image as a vector."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape, (int(np.prod(shape)),))

    def _apply(self, u: np.ndarray) -> np.ndarray:
        return u.reshape(*u.shape[: u.ndim - len(self.in_shape)], -1)

    def _adjoint(self, v: np.ndarray) -> np.ndarray:
        return v.reshape(*v.shape[:-1], *self.in_shape)


EXACT = VariationalGaussian(Exact(), tolerance=1e-6, iterations=300)


@pytest.mark.parametrize(
    ("site", "group_axes"),
    [(Laplace(1.1), (-2,)), slow_case(Sech2(0.6), ()), slow_case(StudentT(4.0, 0.5), (-2,))],
)
def test_moduli_and_groups_reach_the_optimum_of_the_reference(site, group_axes) -> None:
    rng = np.random.default_rng(7)
    draws = rng.standard_normal((4, 9)) + 1j * rng.standard_normal((4, 9))
    blocks = (
        md.SiteBlock("pixels", Identity((3, 3)), Gaussian(0.2)),
        md.SiteBlock("differences", FiniteDifferences((3, 3)), site, group_axes=(-3,) if group_axes else ()),
        md.SiteBlock("columns", Identity((3, 3)), site, group_axes),
    )
    flat = Dense(draws) @ Flattened((3, 3))
    model = md.GeneralizedLinearModel(flat, 2 * draws[:, 0], 0.4, blocks)
    posterior = EXACT.infer(model, rng)
    mean, criterion = best_gaussian(model, 1e-5)
    assert posterior.convergence.converged
    assert posterior.criterion[-1] == pytest.approx(criterion, rel=1e-8)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-4)


def test_the_bound_lies_between_the_double_loop_and_the_evidence(accurate) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        blocks = (
            md.SiteBlock("weights", Identity((2,), is_complex=False), Laplace(0.8)),
            md.SiteBlock("labels", Dense(rng.standard_normal((5, 2))), Logistic(np.sign(rng.standard_normal(5)))),
        )
        model = md.GeneralizedLinearModel(Dense(rng.standard_normal((1, 2))), rng.standard_normal(1), 0.8, blocks)
        tight = md.inference.evidence_bound(model, EXACT.infer(model, rng).criterion[-1])
        loose = md.inference.evidence_bound(model, accurate.infer(model, rng).criterion[-1])
        assert loose + 1e-4 < tight < integrated(model) - 1e-4


@pytest.mark.parametrize("estimator", [MonteCarlo(samples=200, tolerance=1e-3), ControlVariate(samples=60)])
def test_random_variances_reach_nearly_the_same(tiny_model, estimator) -> None:
    model = tiny_model("moduli")
    exact = EXACT.infer(model, np.random.default_rng(0))
    seen = VariationalGaussian(estimator, tolerance=1e-3, criterion="estimate").infer(model, np.random.default_rng(0))
    assert seen.convergence.converged
    assert np.linalg.norm(seen.mean - exact.mean) < 0.05 * np.linalg.norm(exact.mean)
    assert seen.criterion_kind == "estimate" and len(seen.criterion) == 1
    assert np.mean(seen.image_variances) == pytest.approx(np.mean(exact.image_variances), rel=0.15)


def test_single_precision_stays_single(tiny_model) -> None:
    model = tiny_model("moduli", real=np.float32)
    posterior = VariationalGaussian(Exact(), tolerance=1e-3).infer(model, np.random.default_rng(0))
    assert posterior.convergence.converged
    assert posterior.mean.dtype == np.complex64
    assert all(pi.dtype == np.float32 for pi in posterior.precision.site_precisions)


def test_a_warm_start_takes_fewer_updates_and_lanczos_variances_give_no_bound() -> None:
    model = mixed(1)
    cold = EXACT.infer(model, np.random.default_rng(0))
    warm = EXACT.infer(model, np.random.default_rng(0), warm_start=WarmStart.from_posterior(cold))
    assert warm.convergence.iterations < cold.convergence.iterations
    assert warm.criterion[-1] == pytest.approx(cold.criterion[-1], rel=1e-10)
    posterior = VariationalGaussian(Lanczos(steps=3), iterations=3).infer(mixed(), np.random.default_rng(0))
    assert posterior.criterion_kind == "none" and posterior.criterion == ()


def test_large_counts_do_not_overflow() -> None:
    """From E s = 0 a full step would ask for exp(thousands)."""
    counts = np.array([0, 3, 4000])
    blocks = (
        md.SiteBlock("prior", Identity((3,), is_complex=False), Gaussian(0.01)),
        md.SiteBlock("counts", Identity((3,), is_complex=False), Poisson(counts)),
    )
    model = md.GeneralizedLinearModel.of_sites(blocks)
    posterior = EXACT.infer(model, np.random.default_rng(0))
    assert posterior.convergence.converged
    assert posterior.mean[2] == pytest.approx(np.log(4000), rel=1e-3)
    far = WarmStart(np.full(3, 800.0), (np.ones(3), np.ones(3)))
    assert EXACT.infer(model, np.random.default_rng(0), warm_start=far).mean[2] == pytest.approx(posterior.mean[2])


def test_sites_that_are_not_log_concave_reach_the_optimum_or_keep_to_what_can_be_drawn_from() -> None:
    rng = np.random.default_rng(4)
    inputs = rng.standard_normal((12, 2))
    y = inputs @ np.array([1.0, -0.5]) + 0.2 * rng.standard_normal(12)
    y[3] += 8
    blocks = (
        md.SiteBlock("data", Dense(inputs), StudentT(3.0, 4.0), offset=y),
        md.SiteBlock("prior", Identity((2,), is_complex=False), Gaussian(0.3)),
    )
    model = md.GeneralizedLinearModel.of_sites(blocks)
    posterior = EXACT.infer(model, rng)
    assert posterior.convergence.converged
    assert posterior.precision.site_precisions[0][3] < 0
    np.testing.assert_allclose(posterior.mean, [1.0, -0.5], atol=0.4)
    assert posterior.criterion[-1] == pytest.approx(best_gaussian(model)[1], rel=1e-8)
    loop = md.DoubleLoop(Exact(), outer_iterations=60, tolerance=1e-7).infer(model, rng)
    assert md.inference.evidence_bound(model, loop.criterion[-1]) < md.inference.evidence_bound(
        model, posterior.criterion[-1]
    )
    with refused("draws"):
        posterior.draw(rng, 2)
    drawn = VariationalGaussian(MonteCarlo(samples=4000, tolerance=1e-6), tolerance=1e-3).infer(model, rng)
    assert drawn.convergence.converged
    assert np.all(drawn.precision.site_precisions[0] >= 0)
    np.testing.assert_allclose(drawn.mean, posterior.mean, atol=0.02)


@pytest.mark.parametrize(("scale", "rate"), [(0.01, 1.0), (30.0, 10.0)])
def test_a_cold_start_is_proper_where_data_leave_directions_open_in_any_units(scale: float, rate: float) -> None:
    """X^H y is far from E s, and what Laplace sites ask for there is next to nothing: the step is taken shorter."""
    rng = np.random.default_rng(1)
    X, u = scale * rng.standard_normal((20, 40)), np.zeros(40)
    u[:8] = 3 * rng.standard_normal(8)
    blocks = (md.SiteBlock("sparse", Identity((40,), is_complex=False), Laplace(rate)),)
    model = md.GeneralizedLinearModel(Dense(X), X @ u + 0.01 * rng.standard_normal(20), 1e-4, blocks)
    cold, loop = (engine.infer(model, rng) for engine in (VariationalGaussian(Exact()), md.DoubleLoop(Exact())))
    assert cold.convergence.converged and cold.criterion[-1] < loop.criterion[-1]
    warm = VariationalGaussian(Exact()).infer(model, rng, warm_start=WarmStart.from_posterior(loop))
    assert cold.criterion[-1] == pytest.approx(warm.criterion[-1], abs=1e-3)
