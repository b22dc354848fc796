"""The double loop in all its forms against the exact criterion, and what no engine takes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import ADMM, IRLS, LBFGS, Automatic, MaximumAPosteriori
from mri_design.glm import (
    DecoupledGaussian,
    LaplaceFilter,
    LaplacePropagation,
    VariationalGaussian,
    exact_criterion,
    minimise_exact_criterion,
)
from mri_design.inference import LogDeterminant, WarmStart, cold_start, pooled_variances
from mri_design.inference.double_loop import left_of
from mri_design.krylov import conjugate_gradients
from mri_design.model import PosteriorPrecision, Variances
from mri_design.operators import Dense, FiniteDifferences, Identity
from mri_design.sites import Gaussian, Laplace, Logistic, ShiftedMixture
from mri_design.variances import ControlVariate, Exact, Lanczos, MonteCarlo
from tests.arrays import as_real
from tests.inference.conftest import SITES
from tests.refusals import refused
from tests.unfit_sites import Honest, Quartic

# Every site and model with one algorithm at least, and every algorithm on models of every kind.
ON_CONVEX_MODELS = [
    *(("Laplace", name, "second") for name in ("moduli", "groups", "coils", "wavelet")),
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


@pytest.mark.parametrize(("site", "name", "algorithm"), [*ON_CONVEX_MODELS, *ELSEWHERE])
def test_every_algorithm_falls_to_the_minimum_of_convex_models_and_a_local_one_elsewhere(
    site, name, algorithm, tiny_model, accurate
):
    convex = (site, name, algorithm) in ON_CONVEX_MODELS
    model = tiny_model(name, SITES[site], scale=0.7 if convex else 1.0)
    assert model.log_concave == convex
    posterior = replace(accurate, algorithm=algorithm).infer(model, np.random.default_rng(0))
    trace, precisions = posterior.criterion, posterior.precision.site_precisions
    assert all(later <= earlier + 1e-10 * abs(earlier) for earlier, later in pairwise(trace))
    if site == "Gaussian":  # whose widths are fixed
        for block, pi in zip(model.blocks, precisions, strict=True):
            np.testing.assert_allclose(pi, np.broadcast_to(block.potential.precision, pi.shape), rtol=1e-12)
    else:
        start = tuple(np.full(b.site_shape, 1.0) for b in model.blocks) if convex else precisions
        lowest, _ = minimise_exact_criterion(model, start)
        assert trace[-1] == pytest.approx(lowest, rel=1e-7 if convex else 1e-6)
        assert trace[-1] == pytest.approx(exact_criterion(model, precisions), rel=1e-9)
    assert posterior.stationarity < (1e-5 if convex else 1e-3) and posterior.criterion_kind == "exact"
    assert posterior.convergence.converged or not convex


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
def test_every_estimator_serves_every_algorithm(name, site, algorithm, estimator, tiny_model, rng):
    """Near the posterior of exact variances, and flagged as converged."""
    model = tiny_model(name, SITES[site])
    settings = {"outer_iterations": 60, "tolerance": 3e-3, "algorithm": algorithm}
    exact = md.DoubleLoop(Exact(), **settings).infer(model, rng)
    other = md.DoubleLoop(ESTIMATORS[estimator], **settings).infer(model, rng)
    assert exact.convergence.converged and other.convergence.converged
    assert np.linalg.norm(other.mean - exact.mean) < 0.05 * np.linalg.norm(exact.mean)
    for a, b in zip(other.marginals.values, exact.marginals.values, strict=True):
        assert np.mean(a) == pytest.approx(np.mean(b), rel=0.1)


@pytest.mark.parametrize(("site", "algorithm"), [("Student-t", "first"), ("tilted", "hybrid"), ("power 0.6", "second")])
def test_single_precision_stays_single_and_agrees(site, algorithm, tiny_model, rng):
    loop = md.DoubleLoop(Exact(), outer_iterations=8, algorithm=algorithm)
    models = (tiny_model("parts", SITES[site], real=real) for real in (np.float32, np.float64))
    single, double = (loop.infer(model, rng) for model in models)
    assert single.mean.dtype == np.complex64
    assert all(pi.dtype == np.float32 for pi in single.precision.site_precisions)
    np.testing.assert_allclose(single.mean, double.mean, atol=2e-3 * np.abs(double.mean).max())


def test_phi_may_be_estimated_where_nothing_knows_log_a(tiny_model, rng):
    model = tiny_model("groups")
    posterior = md.DoubleLoop(MonteCarlo(50, tolerance=1e-4), criterion="estimate").infer(model, rng)
    assert posterior.criterion_kind == "estimate"
    exact = exact_criterion(model, posterior.precision.site_precisions)
    assert posterior.criterion[-1] == pytest.approx(exact, abs=0.02 * model.measurement.in_size)
    plain = md.DoubleLoop(MonteCarlo(50, tolerance=1e-4)).infer(model, np.random.default_rng(0))
    assert plain.convergence.matvecs < posterior.convergence.matvecs


def test_sites_with_positions_need_another_class_and_real_coefficients(tiny_model, rng):
    site = ShiftedMixture([1.0], [Laplace(1.0)], [2.0])
    model = tiny_model("matrix", lambda scale: site)
    with refused("block 'entries'"):
        md.DoubleLoop(algorithm="first").infer(model, rng)
    with refused("block 'pixels'"):
        tiny_model("groups", lambda scale: site)


def closed_form(model: md.GeneralizedLinearModel) -> tuple[np.ndarray, np.ndarray]:
    """Mean on (real parts, imaginary parts) and covariance / sigma^2 for Gaussian sites."""
    X = model.measurement.to_dense_real()
    A = X.T @ X
    for block in model.blocks:
        B = block.analysis.to_dense_real()
        weights = np.broadcast_to(block.potential.precision, block.analysis.out_shape).ravel()
        A += B.T @ (np.tile(weights, len(B) // len(weights))[:, None] * B)
    covariance = np.linalg.inv(A)
    return covariance @ X.T @ as_real(model.data, model.measurement.out_complex), covariance


def test_gaussian_sites_give_the_closed_form_posterior(tiny_model, model_name, accurate, rng):
    model = tiny_model(model_name, Gaussian)
    scales = [np.random.default_rng(5).uniform(0.2, 2, b.site_shape) for b in model.blocks]  # distinct eigenvalues
    blocks = tuple(replace(b, potential=Gaussian(scale)) for b, scale in zip(model.blocks, scales, strict=True))
    model = replace(model, blocks=blocks)
    inner = IRLS(tolerance=1e-14, solver_tolerance=1e-11, solver_iterations=500)
    posterior = replace(accurate, inner=inner).infer(model, rng)
    mean, covariance = closed_form(model)
    np.testing.assert_allclose(as_real(posterior.mean, model.measurement.in_complex), mean, atol=1e-9)
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
        np.testing.assert_allclose(pi, block.potential.rate / np.sqrt(x + z_block), rtol=1e-6)
    again = Exact()(posterior.precision, [b.analysis for b in model.blocks], rng, posterior.mean)
    for values, other in zip(posterior.marginals.values, again.values, strict=True):
        np.testing.assert_allclose(values, other, rtol=1e-10)


def test_warm_starts_take_fewer_products_than_cold_ones_from_the_back_projection(settled, rng, tiny_model):
    """One more line, as in a sequential design."""
    before = settled("coils")
    model = before.model
    lines = model.measurement.lines.tolist()
    X = md.operators.cartesian([*lines, 3], model.image_shape, model.measurement.maps)
    noise = np.random.default_rng(1).standard_normal((3, 1, 4)) * 0.1
    more = replace(model, measurement=X, data=np.concatenate([model.data, X(before.mean)[:, -1:] + noise], axis=1))
    loose = md.DoubleLoop(Exact(), outer_iterations=30, tolerance=3e-3)
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
        md.DoubleLoop(Exact(), outer_iterations=1, tolerance=1e-3),
        md.DoubleLoop(Exact(), IRLS(max_iterations=1, tolerance=1e-9), outer_iterations=4, tolerance=10),
        md.DoubleLoop(MonteCarlo(4, tolerance=1e-9, max_iterations=2), outer_iterations=4, tolerance=10),
    ],
    ids=["one loop", "inner problem cut short", "variances cut short"],
)
def test_stopping_short_is_flagged(short, tiny_model, rng):
    posterior = short.infer(tiny_model("moduli", scale=3.0), rng)
    assert posterior.convergence.status is md.Status.MAX_ITERATIONS and not posterior.convergence.converged
    assert posterior.convergence.iterations == short.outer_iterations
    assert short.outer_iterations > 1 or posterior.stationarity > 1e-4


def test_default_settings_converge_say_what_is_random_and_repeat_with_the_seed(tiny_model, rng):
    posterior = md.DoubleLoop(outer_iterations=30).infer(tiny_model("moduli"), rng)
    assert posterior.convergence.converged and posterior.convergence.residual < 1e-2
    assert posterior.variances.kind == "unbiased" and posterior.variances.std_error is not None
    assert posterior.criterion == () and posterior.criterion_kind == "none"
    model = tiny_model("moduli")
    first, again, other = (md.DoubleLoop().infer(model, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.mean, again.mean)
    assert np.abs(first.mean - other.mean).max() > 0


def test_the_dense_criterion_of_one_unknown_by_hand():
    """phi = log(a^2 + pi) + tau^2 / pi + y^2 pi / (a^2 + pi) / sigma^2."""
    a, y, sigma2, tau = 1.3, 0.7, 0.2, 0.9
    block = md.SiteBlock("one", Dense(np.ones((1, 1))), Laplace(tau))
    model = md.GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    for pi in (0.05, 1.0, 20.0):
        by_hand = np.log(a**2 + pi) + tau**2 / pi + y**2 * pi / (a**2 + pi) / sigma2
        assert exact_criterion(model, (np.array([pi]),)) == pytest.approx(by_hand, rel=1e-12)


def test_every_loop_is_reported(tiny_model, rng):
    seen = []
    loop = md.DoubleLoop(Exact(), outer_iterations=3, tolerance=1e-12)
    posterior = loop.infer(tiny_model("moduli"), rng, callback=seen.append)
    assert [info.loop for info in seen] == [1, 2, 3]
    assert tuple(info.criterion for info in seen) == posterior.criterion
    assert seen[-1].change == posterior.convergence.residual
    assert sum(info.inner.matvecs + info.variances.matvecs for info in seen) == posterior.convergence.matvecs


def test_loops_go_on_as_long_as_they_gain() -> None:
    """A lasso that needs more loops than any fixed small number."""
    rng = np.random.default_rng(0)
    X, u = rng.standard_normal((40, 80)), np.zeros(80)
    u[:8] = 3 * rng.standard_normal(8)
    blocks = (md.SiteBlock("sparse", Identity((80,), is_complex=False), Laplace(1e-4)),)
    data = X @ u + 1e-3 * np.random.default_rng(1).standard_normal(40)
    model = md.GeneralizedLinearModel(Dense(X), data, 1e-6, blocks)
    converged = md.DoubleLoop(Exact()).infer(model, rng).convergence
    assert converged.converged and converged.iterations > 6 and converged.advice == ""
    short = md.DoubleLoop(Exact(), outer_iterations=6).infer(model, rng).convergence
    assert short.status is md.Status.MAX_ITERATIONS and "outer_iterations (6)" in short.advice


def test_what_changes_to_come_add_up_to():
    assert left_of((1.0, 0.5, 0.25)) == pytest.approx(0.25 * sum(0.5**k for k in range(1, 60)))
    assert left_of((0.1, 0.09)) > 0.09  # slower than by half: more is left than changed
    assert left_of(()) == left_of((0.1,)) == left_of((0.1, 0.1)) == left_of((0.1, 0.2)) == np.inf


@pytest.mark.parametrize("tolerance", [0.1, 0.03, 0.01])
def test_loops_stop_as_near_to_their_end_as_the_tolerance(tiny_model, tolerance):
    model = tiny_model("moduli")
    seen = []
    made = md.DoubleLoop(Exact(), tolerance=tolerance).infer(model, np.random.default_rng(0), callback=seen.append)
    settled = md.DoubleLoop(Exact(), outer_iterations=60, tolerance=1e-9).infer(model, np.random.default_rng(0))
    pairs = list(zip(made.marginals.values, settled.marginals.values, strict=True))
    away = sum(np.sum(2 * np.abs(a - b) / (a + b)) for a, b in pairs) / sum(a.size for a, _ in pairs)
    assert made.convergence.converged and away < 1.5 * tolerance
    assert [info.change < tolerance for info in seen] == [False] * (len(seen) - 1) + [True]


def test_loops_end_where_they_gain_no_more(tiny_model, rng) -> None:
    """Variances that are never the same twice."""

    class Restless:
        calls = 0

        def __call__(self, *asked) -> Variances:
            self.calls += 1
            found = Exact()(*asked)
            return replace(found, values=tuple(z * (1 + self.calls % 2) for z in found.values))

    restless = md.DoubleLoop(Restless()).infer(tiny_model("moduli", scale=3.0), rng).convergence
    assert restless.status is md.Status.STALLED and restless.iterations < 20
    assert "tolerance (0.01)" in restless.advice


class UndefinedFarOut(Laplace):
    """A site whose derivative is NaN beyond all that a probe would try."""

    def dg(self, x):
        return np.where(x > 1e9, np.nan, super().dg(x))


SQUARE = Identity((4, 4))


def square(site=None, **more) -> md.GeneralizedLinearModel:
    blocks = (md.SiteBlock("pixels", SQUARE, site or Laplace(1.0), **more),)
    return md.GeneralizedLinearModel(SQUARE, np.full((4, 4), 1e6 + 0j), 1.0, blocks)


def learnt(model, **settings):
    return md.inference.learn_hyperparameters(model, md.DoubleLoop(Exact()), np.random.default_rng(0), **settings)


def with_steps() -> md.GeneralizedLinearModel:
    eye = np.eye(6)
    blocks = (
        md.SiteBlock("entries", Dense(eye), Laplace(1.0)),
        md.SiteBlock("steps", Dense(np.diff(eye, axis=0)), Laplace(1.0)),
    )
    return md.GeneralizedLinearModel(Dense(eye), np.ones(6), 1.0, blocks)


def improper(line: int = 4) -> md.GeneralizedLinearModel:
    X = md.operators.cartesian([line], (8, 8))
    alone = (md.SiteBlock("differences", FiniteDifferences((8, 8)), Laplace(1.0)),)
    return md.GeneralizedLinearModel(X, np.zeros(X.out_shape, complex), 1.0, alone)


SETTINGS = [
    *(
        ("tolerance", lambda kind=kind, t=t: kind(tolerance=t))
        for kind in (ADMM, IRLS, LBFGS, Automatic, md.DoubleLoop, MonteCarlo, ControlVariate)
        for t in (np.nan, -1e-3, "small")
    ),
    *(
        (name, lambda kind=kind, name=name, wrong=wrong: kind(**{name: wrong}))
        for kinds, name, least in (
            ((ADMM, IRLS, LBFGS, Automatic), "max_iterations", 0),
            ((MonteCarlo, ControlVariate), "max_iterations", 1),
            ((ADMM, IRLS), "solver_iterations", 1),
            ((MaximumAPosteriori,), "stages", 1),
        )
        for kind in kinds
        for wrong in (least - 1, least + 0.5, np.nan, None)
    ),
    *(("relaxation", lambda r=r: ADMM(relaxation=r)) for r in (0.5, 2.5)),
    ("solver_tolerance", lambda: ADMM(solver_tolerance=np.nan)),
    ("algorithm", lambda: md.DoubleLoop(algorithm="third")),
    ("criterion", lambda: md.DoubleLoop(criterion="all")),
    ("log-determinant: probes", lambda: LogDeterminant(probes=1)),
    ("log-determinant: steps", lambda: LogDeterminant(steps=0)),
    *(
        (name, lambda given={name: wrong}: conjugate_gradients(lambda x: 2 * x, np.ones((1, 3)), n_axes=1, **given))
        for name, wrong in (("tolerance", np.nan), ("tolerance", -1.0), ("max_iterations", -1), ("max_iterations", 2.5))
    ),
    ("learn_hyperparameters: rounds", lambda: learnt(with_steps(), rounds=0)),
    ("learn_hyperparameters: tolerance", lambda: learnt(with_steps(), tolerance=0.0)),
    ("learn_hyperparameters", lambda: learnt(with_steps(), scales=False)),
    ("blocks", lambda: learnt(replace(square(), blocks=square().blocks * 2))),
    ("labels", lambda: learnt(with_steps(), labels={"edges": np.zeros(60)})),
    ("block 'entries'", lambda: learnt(with_steps())),
    ("prior", lambda: learnt(improper())),
    ("learn_hyperparameters", lambda: learnt(md.GeneralizedLinearModel.of_sites(square().blocks), noise=True)),
    ("learn_hyperparameters", lambda: learnt(square(offset=np.ones((4, 4))))),
    *(
        ("block 'pixels'", lambda s=s: md.DoubleLoop().infer(square(s), np.random.default_rng(0)))
        for s in (Quartic(1.0), UndefinedFarOut(1e-3))
    ),
    *(("block 'pixels'", lambda s=s: MaximumAPosteriori()(square(s))) for s in (Quartic(1.0), Honest(1.0))),
    *(
        ("start", lambda u=u: MaximumAPosteriori()(square(), u))
        for u in (np.full((4, 4), np.nan), np.full((4, 4), np.inf), np.ones(4))
    ),
    ("model with blocks 'differences'", lambda: MaximumAPosteriori().estimate(improper(1))),
]


@pytest.mark.parametrize(("field", "call"), SETTINGS)
def test_what_cannot_be_is_refused_by_its_field(field, call):
    with refused(field):
        call()


ENGINES = [md.DoubleLoop, VariationalGaussian, DecoupledGaussian, LaplacePropagation, LaplaceFilter]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("warm start: mean", {"mean": np.zeros(3)}),
        ("warm start: mean", {"mean": np.full(4, np.nan)}),
        ("warm start: samples", {"samples": np.zeros((2, 3))}),
        ("warm start: z", {"z": ()}),
        *(
            ("warm start: z of block 'labels'", {"z": (z, np.ones(4))})
            for z in (np.ones(3), np.full(4, np.nan), np.zeros(4), -1.0)
        ),
    ],
)
def test_warm_starts_of_another_model_are_refused(engine, field, change):
    prior = md.SiteBlock("prior", Dense(np.eye(4)), Gaussian(0.3))
    labels = md.SiteBlock("labels", Dense(np.eye(4)), Logistic(np.ones(4)))
    start = replace(WarmStart(np.zeros(4), (np.ones(4), np.ones(4))), **change)
    with refused(field):
        engine().infer(md.GeneralizedLinearModel.of_sites((labels, prior)), np.random.default_rng(0), warm_start=start)


def test_log_determinants_of_indefinite_matrices_are_refused(tiny_model):
    model = tiny_model("matrix")
    pi = tuple(np.full(b.site_shape, -9.0) for b in model.blocks)
    with refused("posterior precision"):
        indefinite = PosteriorPrecision(model.measurement, model.blocks, pi)
        LogDeterminant()(indefinite, np.random.default_rng(0), cold_start(model).mean)
