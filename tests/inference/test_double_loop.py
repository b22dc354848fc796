"""The double loop: monotone, at the criterion's minimum, exact on Gaussian sites, honest about how it ended."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    IRLS,
    Dense,
    DoubleLoop,
    Exact,
    Gaussian,
    GeneralizedLinearModel,
    Identity,
    Laplace,
    MonteCarlo,
    SiteBlock,
    Status,
    WarmStart,
    cartesian,
)
from mri_design.glm import exact_criterion
from mri_design.inference import cold_start, pooled_variances
from mri_design.model import Variances


def closed_form(model: GeneralizedLinearModel) -> tuple[np.ndarray, np.ndarray]:
    """Mean on (real parts, imaginary parts) and covariance / sigma^2 for Gaussian sites."""
    X = model.measurement.to_dense_real()
    A = X.T @ X
    for block in model.blocks:
        B = block.analysis.to_dense_real()
        weights = np.broadcast_to(block.potential.precision, block.analysis.out_shape).ravel()
        A += B.T @ (np.tile(weights, len(B) // len(weights))[:, None] * B)
    y = model.data.ravel()
    y = np.concatenate([y.real, y.imag]) if model.measurement.out_complex else y
    covariance = np.linalg.inv(A)
    return covariance @ X.T @ y, covariance


def test_gaussian_sites_give_the_closed_form_posterior(tiny_model, model_name, accurate, rng):
    model = tiny_model(model_name, Gaussian)
    scales = [np.random.default_rng(5).uniform(0.2, 2, b.site_shape) for b in model.blocks]  # distinct eigenvalues
    blocks = tuple(replace(b, potential=Gaussian(scale)) for b, scale in zip(model.blocks, scales, strict=True))
    model = replace(model, blocks=blocks)
    inner = IRLS(tolerance=1e-14, solver_tolerance=1e-11, solver_iterations=500)
    posterior = replace(accurate, inner=inner).infer(model, rng)
    mean, covariance = closed_form(model)
    found = posterior.mean.ravel()
    found = np.concatenate([found.real, found.imag]) if model.measurement.in_complex else found
    np.testing.assert_allclose(found, mean, atol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(posterior.precision.dense_real()), covariance, atol=1e-10)
    for block, values in zip(model.blocks, posterior.marginals.values, strict=True):
        B = block.analysis.to_dense_real()
        diagonal = np.einsum("ij,jk,ik->i", B, covariance, B)
        diagonal = diagonal.reshape(2, -1).sum(axis=0) if block.analysis.out_complex else diagonal
        np.testing.assert_allclose(values.ravel(), diagonal, rtol=1e-8)


def test_mean_precision_and_variances_belong_together(model_name, settled, rng):
    """The mean solves A u = X^H y, and at convergence pi = tau / sqrt(|s|^2 / sigma^2 + z) with gamma = 1 / pi."""
    posterior = settled(model_name)
    model = posterior.model
    np.testing.assert_allclose(posterior.precision(posterior.mean), model.back_projection(), atol=1e-4)
    z = pooled_variances(model, posterior.marginals)
    coefficients = model.analysis_coefficients(posterior.mean)
    for block, s, z_block, pi in zip(model.blocks, coefficients, z, posterior.precision.site_precisions, strict=True):
        assert pi.shape == z_block.shape == block.site_shape
        x = block.site_power(s) / model.noise_variance
        np.testing.assert_allclose(pi, block.potential.scale / np.sqrt(x + z_block), rtol=1e-6)
    again = Exact()(posterior.precision, [b.analysis for b in model.blocks], rng, posterior.mean)
    for values, other in zip(posterior.marginals.values, again.values, strict=True):
        np.testing.assert_allclose(values, other, rtol=1e-10)


def test_warm_starts_take_fewer_products_than_cold_ones_from_the_back_projection(settled, rng, tiny_model):
    """One more line, as in a sequential design."""
    before = settled("coils")
    model = before.model
    lines = model.measurement.lines.tolist()
    X = cartesian([*lines, 3], model.image_shape, model.measurement.maps)
    noise = np.random.default_rng(1).standard_normal((3, 1, 4)) * 0.1
    more = replace(model, measurement=X, data=np.concatenate([model.data, X(before.mean)[:, -1:] + noise], axis=1))
    loose = DoubleLoop(Exact(), outer_iterations=30, tolerance=3e-3)
    cold = loose.infer(more, rng)
    warm = loose.infer(more, rng, warm_start=WarmStart(before.mean, pooled_variances(model, before.marginals)))
    assert cold.convergence.converged and warm.convergence.converged
    assert warm.convergence.matvecs < cold.convergence.matvecs
    assert warm.convergence.iterations <= cold.convergence.iterations
    np.testing.assert_allclose(warm.mean, cold.mean, atol=5e-3)
    assert warm.criterion[-1] == pytest.approx(cold.criterion[-1], rel=1e-4)
    assert warm.criterion[0] < cold.criterion[0]
    model = tiny_model("groups", scale=2.0)
    start = cold_start(model)
    np.testing.assert_array_equal(start.mean, model.back_projection())
    assert [float(z) for z in start.z] == [pytest.approx(0.09 / (2 * r) ** 2) for r in (0.5, 1.0)]


@pytest.mark.parametrize(
    "short",
    [
        DoubleLoop(Exact(), outer_iterations=1, tolerance=1e-3),
        DoubleLoop(Exact(), IRLS(max_iterations=1, tolerance=1e-9), outer_iterations=4, tolerance=10),
        DoubleLoop(MonteCarlo(4, tolerance=1e-9, max_iterations=2), outer_iterations=4, tolerance=10),
    ],
    ids=["one loop", "inner problem cut short", "variances cut short"],
)
def test_stopping_short_is_flagged(short, tiny_model, rng):
    posterior = short.infer(tiny_model("moduli", scale=3.0), rng)
    assert posterior.convergence.status is Status.MAX_ITERATIONS and not posterior.convergence.converged
    assert posterior.convergence.iterations == short.outer_iterations
    assert short.outer_iterations > 1 or posterior.stationarity > 1e-4


def test_default_settings_converge_say_what_is_random_and_repeat_with_the_seed(tiny_model, rng):
    posterior = DoubleLoop(outer_iterations=30).infer(tiny_model("moduli"), rng)
    assert posterior.convergence.converged and posterior.convergence.residual < 1e-2
    assert posterior.variances.kind == "unbiased" and posterior.variances.std_error is not None
    assert posterior.criterion == () and posterior.criterion_kind == "none"
    model = tiny_model("moduli")
    first, again, other = (DoubleLoop().infer(model, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.mean, again.mean)
    assert np.abs(first.mean - other.mean).max() > 0


def test_the_dense_criterion_of_one_unknown_by_hand():
    """phi = log(a^2 + pi) + tau^2 / pi + y^2 pi / (a^2 + pi) / sigma^2."""
    a, y, sigma2, tau = 1.3, 0.7, 0.2, 0.9
    block = SiteBlock("one", Dense(np.ones((1, 1))), Laplace(tau))
    model = GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    for pi in (0.05, 1.0, 20.0):
        by_hand = np.log(a**2 + pi) + tau**2 / pi + y**2 * pi / (a**2 + pi) / sigma2
        assert exact_criterion(model, (np.array([pi]),)) == pytest.approx(by_hand, rel=1e-12)


def test_every_loop_is_reported(tiny_model, rng):
    seen = []
    posterior = DoubleLoop(Exact(), outer_iterations=3, tolerance=1e-12).infer(
        tiny_model("moduli"), rng, callback=seen.append
    )
    assert [info.loop for info in seen] == [1, 2, 3]
    assert tuple(info.criterion for info in seen) == posterior.criterion
    assert seen[-1].change == posterior.convergence.residual
    assert sum(info.inner.matvecs + info.variances.matvecs for info in seen) == posterior.convergence.matvecs


def test_loops_go_on_as_long_as_they_gain() -> None:
    """A lasso that needs more loops than any fixed small number."""
    rng = np.random.default_rng(0)
    X, u = rng.standard_normal((40, 80)), np.zeros(80)
    u[:8] = 3 * rng.standard_normal(8)
    blocks = (SiteBlock("sparse", Identity((80,), is_complex=False), Laplace(1e-4)),)
    model = GeneralizedLinearModel(Dense(X), X @ u + 1e-3 * np.random.default_rng(1).standard_normal(40), 1e-6, blocks)
    converged = DoubleLoop(Exact()).infer(model, rng).convergence
    assert converged.converged and converged.iterations > 6 and converged.advice == ""
    short = DoubleLoop(Exact(), outer_iterations=6).infer(model, rng).convergence
    assert short.status is Status.MAX_ITERATIONS and short.advice == "raise outer_iterations (6)"


def test_loops_end_where_they_gain_no_more(tiny_model, rng) -> None:
    """Variances that are never the same twice."""

    class Restless:
        calls = 0

        def __call__(self, *asked) -> Variances:
            self.calls += 1
            found = Exact()(*asked)
            return replace(found, values=tuple(z * (1 + self.calls % 2) for z in found.values))

    restless = DoubleLoop(Restless()).infer(tiny_model("moduli", scale=3.0), rng).convergence
    assert restless.status is Status.STALLED and restless.iterations < 20
    assert restless.advice.startswith("loosen tolerance (0.01)")
