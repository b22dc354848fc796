"""What a user at the public face may get wrong: every call names the argument that it is about."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Calibrated, DesignEngine, VariableDensity
from mri_design.estimation import IRLS, LBFGS, MaximumAPosteriori
from mri_design.glm import (
    DecoupledGaussian,
    FilterState,
    InfomaxQuery,
    LabelPool,
    LaplaceFilter,
    LaplacePropagation,
    PoolDesign,
    VariationalGaussian,
)
from mri_design.inference import LogDeterminant, WarmStart
from mri_design.model import GaussianPosterior
from mri_design.operators import CartesianLines, Dense, FiniteDifferences, Identity, NonUniformFourier, Wavelet
from mri_design.readouts import LineConstraints
from mri_design.scan import GradientLimits
from mri_design.sites import (
    BernoulliResponse,
    Gaussian,
    GaussianResponse,
    Laplace,
    Poisson,
    PoissonResponse,
    PositiveMixture,
    ShiftedMixture,
    Tilted,
)
from mri_design.variances import ControlVariate, Exact, Lanczos, MonteCarlo
from tests.refusals import refused, refuses

X = Dense(np.random.default_rng(5).standard_normal((6, 4)))
PIXELS = Identity((4,), is_complex=False)
BLOCK = md.SiteBlock("pixels", PIXELS, Laplace(1.0))
MODEL = md.GeneralizedLinearModel(X, np.ones(6), 0.1, (BLOCK,))
SMOOTH = md.GeneralizedLinearModel(X, np.ones(6), 0.1, (md.SiteBlock("pixels", PIXELS, Gaussian(1.0)),))
ENGINES = [md.DoubleLoop, VariationalGaussian, DecoupledGaussian, LaplacePropagation, LaplaceFilter]
KSPACE, MEASURED, STATE = np.ones((1, 2, 16, 16), np.complex64), np.ones(16, dtype=bool), FilterState([0.0], [[1.0]])
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def posterior() -> GaussianPosterior:
    return md.DoubleLoop(Exact()).infer(MODEL, np.random.default_rng(0))


@pytest.fixture(scope="module")
def small_slice() -> md.SliceModel:
    return md.load("phantom:t2w", matrix=32).calibrated.slice_model()


def assert_refused(field: str, call: Callable[[], object]) -> None:
    with refused(field) as caught:
        call()
    assert caught.value.wanted


def design(one: md.SliceModel, recipe: md.Recipe | None, **wrong: object) -> object:
    named = {"slices": [one], "strategy": md.make_strategy("low-pass"), "target": 12, "seed": 0, "start": 8} | wrong
    return md.run_design(named.pop("slices"), named.pop("strategy"), named.pop("target"), recipe, **named)


def spiral(**changes: object) -> object:
    settings: dict[str, object] = {"matrix": 64, "turns": 4.0, "field_of_view": 0.24, **changes}
    return md.scan.spiral_readout(limits=GradientLimits(amplitude=0.04, slew=150), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("blocks", lambda: md.GeneralizedLinearModel(X, np.ones(6), 0.1, BLOCK)),
        ("blocks[0]", lambda: md.GeneralizedLinearModel(X, np.ones(6), 0.1, ["a"])),
        ("data", lambda: md.GeneralizedLinearModel(X, [[1], [1, 2]], 0.1, (BLOCK,))),
        ("noise_variance", lambda: md.GeneralizedLinearModel(X, np.ones(6), [[1], [1, 2]], (BLOCK,))),
        ("analysis", lambda: md.GeneralizedLinearModel(X, np.ones(6), 0.1, analysis=3, potentials=Laplace(1.0))),
        ("block 'b'", lambda: md.SiteBlock("b", PIXELS, Laplace)),
        ("block 'b': group_axes", lambda: md.SiteBlock("b", PIXELS, Laplace(1.0), 3)),
        ("block 'b': offset", lambda: md.SiteBlock("b", PIXELS, Laplace(1.0), (), ["a"] * 4)),
        ("matrix", lambda: Dense(object)),
        ("matrix", lambda: Dense([["a"]])),
        ("matrix", lambda: Dense([[1.0], [1.0, 2.0]])),
        ("operator @", lambda: X @ [1, 2, 3, 4]),
        ("operator @", lambda: X @ np.ones(4)),
        ("operator @", lambda: np.ones((3, 6)) @ X),
        ("operator +", lambda: X + 3),
        ("scalar", lambda: X * "a"),
        ("scalar", lambda: np.ones(3) * X),
        ("Dense", lambda: X("abcd")),
        ("Dense", lambda: X(None)),
        ("Dense", lambda: X([1, 2, 3])),
        ("shape", lambda: Identity(3)),
        ("shape", lambda: FiniteDifferences((5,))),
        ("shape", lambda: FiniteDifferences((0, 5))),
        ("shape", lambda: Wavelet((8,))),
        ("lines", lambda: CartesianLines("ab", (8, 8))),
        ("lines", lambda: CartesianLines(3, (8, 8))),
        ("shape", lambda: CartesianLines([1], (8.5, 8))),
        ("shape", lambda: md.operators.cartesian((8, 8), [1])),
        ("variances", lambda: md.DoubleLoop(md.variances.Exact)),
        ("inner", lambda: md.DoubleLoop(Exact(), LBFGS)),
        ("inner", lambda: md.DoubleLoop(Exact(), Exact())),
        ("inner", lambda: MaximumAPosteriori(inner=IRLS)),
        ("engine", lambda: PoolDesign(engine=md.DoubleLoop)),
        ("engine", lambda: md.inference.learn_hyperparameters(MODEL, Exact(), np.random.default_rng(0))),
        ("response", lambda: InfomaxQuery(1.0, response=PoissonResponse)),
        ("sites of a mixture[0]", lambda: PositiveMixture([1.0], [Laplace])),
        ("sites of a mixture", lambda: PositiveMixture([1.0], Laplace(1.0))),
        ("sites of a mixture", lambda: ShiftedMixture([1.0], Laplace(1.0), [0.0])),
        ("pool", lambda: LabelPool([["a", "b"]])),
        ("prior", lambda: LabelPool(np.ones((3, 4)), BLOCK)),
        ("rate", lambda: LabelPool(np.ones((3, 4)), rate=True)),
        ("labelled cases", lambda: LabelPool(np.ones((3, 4))).checked(["a"], [1])),
        ("pool", lambda: PoolDesign().begin(None, [0], [1], np.random.default_rng(0))),
        ("Poisson counts", lambda: Poisson([[1], [1, 2]])),
        ("phase", lambda: md.scan.random_head(32, np.random.default_rng(0), phase="odd")),
        ("response", lambda: md.glm.asymptotic_information(PoissonResponse, [1.0, 1.0], 1.0)),
        ("model", lambda: md.map_estimate(None)),
        ("damping", lambda: md.estimation.least_squares(MODEL, damping=-1)),
        ("criterion", lambda: md.inference.evidence_bound(MODEL, None)),
        ("posterior", lambda: md.inference.log_evidence(MODEL)),
        ("data", lambda: md.scan.prewhiten(KSPACE)),
        ("data", lambda: md.scan.estimate_coil_maps(None)),
        ("kspace", lambda: md.KSpaceData([[1]], MEASURED)),
        ("slice", lambda: md.KSpaceData(KSPACE, MEASURED).select_slice(0.5)),
        ("image", lambda: md.measure("a", np.ones((8, 8)))),
        ("forbidden lines", lambda: LineConstraints(3)),
        ("forbidden lines", lambda: LineConstraints((1.5,))),
        ("density power", lambda: VariableDensity(power="a")),
        ("block kind", lambda: md.SparsityBlock("curvelets", 1.0)),
        ("rate", lambda: md.SparsityBlock("pixels", -1.0)),
        ("model", lambda: md.model.with_noise_covariance(None, variances=1.0)),
        ("noise variances", lambda: md.model.with_noise_covariance(MODEL, variances="a")),
        ("noise covariance", lambda: md.model.with_noise_covariance(MODEL, matrix=[[1], [1, 2]])),
        ("potential", lambda: Tilted(Laplace, 1)),
        ("posterior", lambda: FilterState.from_posterior(3)),
        ("state", lambda: LaplaceFilter().update(None, [1.0], Poisson(1))),
        ("responses", lambda: LaplaceFilter().track(STATE, [[1.0]] * 2, [Poisson(1)])),
        (
            "warm start: z",
            lambda: md.DoubleLoop().infer(MODEL, np.random.default_rng(0), warm_start=WarmStart(np.ones(4), 3)),
        ),
        ("slice_model", lambda: md.reconstruct(None, [1], "mean", md.load_recipe(None), np.random.default_rng(0))),
        ("recipe: design.block", lambda: md.Recipe().replacing("design", block=-3, order="nonsense")),
        ("recipe: desing", lambda: md.Recipe().replacing("desing", block=3)),
        ("recipe: fft", lambda: md.Recipe().replacing("fft", x=1)),
        ("recipe: input.matrix", lambda: md.Recipe().replacing("input", matrix=[64])),
        ("recipe", lambda: md.load_recipe(3)),
        ("count", lambda: md.operators.equispaced_angles(10**12)),
        ("count", lambda: md.operators.interleaf_angles(10**12, "one-missing")),
        ("angles", lambda: md.operators.turned(np.zeros((10**5, 2)), np.zeros(10**5))),
        ("matrix", lambda: md.operators.radial_spokes(10**12, [0.0])),
        ("matrix", lambda: md.operators.radial_spokes(8, [0.0], oversampling=10**12)),
        ("matrix", lambda: md.scan.nyquist_turns(10**30, 2)),
        ("matrix", lambda: md.scan.nyquist_turns(64, 4, density=1e300)),
        ("turns", lambda: spiral(turns=1e9)),
        ("density", lambda: spiral(density=1e-300)),
        ("limits", lambda: spiral(field_of_view=1e-300)),
        ("shape", lambda: md.scan.point_spread(np.zeros((4, 2)), (10**6, 10**6))),
        ("shape", lambda: Identity((2**40, 2**40))),
        ("grid", lambda: NonUniformFourier(np.zeros((4, 2)), None)),
        ("grid", lambda: NonUniformFourier(np.zeros((4, 2)), (2**40, 2**40))),
        ("start lines", lambda: md.readouts.centre_lines(np.ones(16, bool), "a")),
        ("measurable", lambda: md.readouts.centre_lines(16, 4)),
        ("draws", lambda: md.DoubleLoop(MonteCarlo(10**30)).infer(MODEL, RNG)),  # more than a machine holds
        ("phantom", lambda: md.load_phantom([], rng=np.random.default_rng(0))),
    ],
)
def test_a_wrong_argument_is_named(field: str, call: Callable[[], object]) -> None:
    assert_refused(field, call)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("rng", lambda q: q.draw(0, 3)),
        ("rng", lambda q: md.inference.learn_hyperparameters(MODEL, md.DoubleLoop(Exact()), 0)),
        ("rng", lambda q: md.experiment.pixel_std(q, 4, 0)),
        ("rng", lambda q: md.glm.best_free_encoding(q, 0)),
        ("rng", lambda q: MonteCarlo()(q.precision, [PIXELS], None, np.ones(4))),
        ("rng", lambda q: ControlVariate()(q.precision, [PIXELS], None, np.ones(4))),
        ("rng", lambda q: Lanczos()(q.precision, [PIXELS], None, np.ones(4))),
        ("rng", lambda q: LogDeterminant()(q.precision, 0, np.ones(4))),
        ("rng", lambda q: md.scan.random_head(32, 0)),
        ("rng", lambda q: md.scan.simulate_scan(md.ImageStack(np.ones((1, 32, 32), np.float32)), rng=0)),
        ("rng", lambda q: PoissonResponse().draw([0.0], 0)),
        ("rng", lambda q: BernoulliResponse().draw([0.0], 0)),
        ("rng", lambda q: GaussianResponse().draw([0.0], 0)),
        ("rng", lambda q: PoolDesign().begin(LabelPool(np.eye(3)), [0], [1], 0)),
    ],
)
def test_everything_random_wants_a_generator(field, call, posterior):
    assert_refused(field, lambda: call(posterior))


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("scan", lambda one, r: md.calibrate(None, r)),
        ("lines", lambda one, r: md.reconstruct(one, "abc", "mean", r, RNG)),
        ("lines", lambda one, r: md.reconstruct(one, [15.5], "mean", r, RNG)),
        ("lines", lambda one, r: md.reconstruct(one, 3, "mean", r, RNG)),
        ("slices", lambda one, r: design(one, r, slices=one)),
        ("strategy", lambda one, r: design(one, r, strategy=3)),
        ("strategy", lambda one, r: design(one, r, strategy=Calibrated)),
        ("recipe", lambda one, r: design(one, 3)),
        ("seed", lambda one, r: design(one, r, seed=None)),
        ("start", lambda one, r: design(one, r, start="x")),
        ("number of lines", lambda one, r: design(one, r, target=99)),
        ("strategy", lambda one, r: DesignEngine(3, md.DoubleLoop())),
        ("coil_maps", lambda one, r: md.experiment.mr_image_model(one.kspace[0], coil_maps="a")),
        ("kspace", lambda one, r: md.experiment.mr_image_model("a")),
        ("kspace", lambda one, r: md.experiment.mr_image_model(one.kspace[0].astype(complex) * 1e60)),
        ("lines", lambda one, r: md.reconstruct(one, range(10**12), "mean", r, RNG)),
        ("slices", lambda one, r: design(one, r, slices=[])),
        ("lines", lambda one, r: design(one, r, start=["a"])),
    ],
)
def test_runs_of_the_wrong_parts(field, call, small_slice):
    assert_refused(field, lambda: call(small_slice, md.load_recipe(None)))


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_want_a_model_a_generator_a_warm_start_and_a_callable(engine, posterior):
    assert_refused("model", lambda: engine().infer(None, RNG))
    for wrong in (0, None, np.random.RandomState(0)):
        assert_refused("rng", lambda wrong=wrong: engine().infer(SMOOTH, wrong))
    assert_refused("warm_start", lambda: engine().infer(SMOOTH, RNG, warm_start=posterior))
    assert_refused("callback", lambda: engine().infer(SMOOTH, RNG, callback=3))


def test_a_warm_start_of_a_posterior_is_taken(posterior: GaussianPosterior) -> None:
    start = WarmStart.from_posterior(posterior)
    again = md.DoubleLoop(Exact()).infer(MODEL, np.random.default_rng(0), warm_start=start)
    np.testing.assert_allclose(again.mean, posterior.mean, atol=1e-2)


@pytest.mark.parametrize("candidate", [3, Dense(np.ones((1, 5))), Dense(1j * np.ones((1, 4))), "a", True])
def test_information_gain_of_what_is_no_candidate(posterior: GaussianPosterior, candidate: object) -> None:
    with pytest.raises(md.InputError):
        md.design.information_gain(posterior, candidate)


def test_queries_want_a_covariance() -> None:
    query = InfomaxQuery(1.0)
    for matrix in ([[1, 0.9], [0, 1]], [[1, 2.0], [2.0, 1]]):
        with pytest.raises(md.InputError):
            query.propose(FilterState(np.zeros(2), np.array(matrix)))
    assert len(query.propose(FilterState([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])).x) == 2


def test_operators_take_lists_and_whole_numbers() -> None:
    np.testing.assert_array_equal(Dense([[1, 2], [3, 4]])([1, 1]), [3, 7])
    np.testing.assert_array_equal(Dense([[1, 2], [3, 4]]).adjoint([1, 1]), [4, 6])
    u = np.array([[3, 1], [0, 2]], dtype=np.uint8)  # differences of unsigned numbers used to wrap around
    np.testing.assert_array_equal(
        FiniteDifferences((2, 2), is_complex=False)(u), FiniteDifferences((2, 2))(u.astype(float))
    )


@pytest.mark.parametrize("variance", [1e-300, 1e200])
def test_numbers_that_leave_double_precision_are_refused(variance: float) -> None:
    with pytest.raises(md.InputError):
        md.GeneralizedLinearModel(X, np.ones(6), variance, (BLOCK,))
    assert_refused("data", lambda: md.GeneralizedLinearModel(X, np.full(6, 1e200), 1.0, (BLOCK,)))


@pytest.mark.parametrize("factor", [1e20, 1e-25])
def test_single_precision_data_whose_squares_do_not_fit_are_taken_in_double(factor: float) -> None:
    engine = md.DoubleLoop(Exact(), outer_iterations=30, tolerance=1e-6)
    ordinary = md.GeneralizedLinearModel(X, np.arange(6, dtype=np.float32), 0.1, (BLOCK,))
    extreme = md.GeneralizedLinearModel(X, np.float32(factor) * ordinary.data, 0.1 * factor**2, (BLOCK,))
    assert (ordinary.data.dtype, extreme.data.dtype) == (np.float32, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = (engine.infer(model, np.random.default_rng(0)) for model in (ordinary, extreme))
    np.testing.assert_allclose(other.mean / factor, one.mean, atol=1e-5)
    np.testing.assert_allclose(other.image_variances / factor**2, one.image_variances, rtol=1e-4)


@pytest.mark.parametrize("covariance", [-np.eye(2), np.array([["a", "b"], ["c", "d"]])], ids=["negative", "text"])
def test_what_is_no_covariance_of_noise_is_refused_by_scans(covariance: np.ndarray) -> None:
    points = np.random.default_rng(1).uniform(-4, 4, (256, 2))
    refuses("noise_covariance", md.KSpaceData, KSPACE, MEASURED, noise_covariance=covariance)
    samples = KSPACE.reshape(1, 2, 256)
    refuses("noise_covariance", md.TrajectoryData, samples, points, (16, 16), noise_covariance=covariance)
