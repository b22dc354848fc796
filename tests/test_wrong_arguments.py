"""What a user at the public face may get wrong: every call names the argument, what came, what was wanted, the cure."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import mri_design as md
from mri_design.design.constraints import LineConstraints
from mri_design.inference.criterion import LogDeterminant

X = md.Dense(np.random.default_rng(5).standard_normal((6, 4)))
PIXELS = md.Identity((4,), is_complex=False)
BLOCK = md.SiteBlock("pixels", PIXELS, md.Laplace(1.0))
MODEL = md.GeneralizedLinearModel(X, np.ones(6), 0.1, (BLOCK,))
SMOOTH = md.GeneralizedLinearModel(X, np.ones(6), 0.1, (md.SiteBlock("pixels", PIXELS, md.Gaussian(1.0)),))
ENGINES = [md.DoubleLoop, md.VariationalGaussian, md.DecoupledGaussian, md.LaplacePropagation, md.LaplaceFilter]


@pytest.fixture
def posterior() -> md.GaussianPosterior:
    return md.DoubleLoop(md.Exact()).infer(MODEL, np.random.default_rng(0))


def assert_refused(call: Callable[[], object], *words: str) -> None:
    with pytest.raises(md.InputError) as caught:
        call()
    assert caught.value.wanted
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: md.GeneralizedLinearModel(X, np.ones(6), 0.1, BLOCK), ["blocks: got a SiteBlock by itself", "tuple"]),
        (lambda: md.GeneralizedLinearModel(X, np.ones(6), 0.1, ["a"]), ["blocks[0]: got 'a'"]),
        (lambda: md.GeneralizedLinearModel.of_sites(BLOCK), ["blocks: got a SiteBlock by itself", "tuple"]),
        (lambda: md.GeneralizedLinearModel.of_sites(3), ["blocks: got 3"]),
        (lambda: md.GeneralizedLinearModel(X, [[1], [1, 2]], 0.1, (BLOCK,)), ["data: got lists of unequal lengths"]),
        (lambda: md.GeneralizedLinearModel(X, np.ones(6), [[1], [1, 2]], (BLOCK,)), ["noise_variance: got a list"]),
        (
            lambda: md.GeneralizedLinearModel(X, np.ones(6), 0.1, analysis=3, potentials=md.Laplace(1.0)),
            ["analysis: got 3"],
        ),
        (lambda: md.SiteBlock("b", PIXELS, md.Laplace), ["block 'b': got the class Laplace", "a Site"]),
        (lambda: md.SiteBlock("b", PIXELS, md.Laplace(1.0), 3), ["group_axes: got 3"]),
        (lambda: md.SiteBlock("b", PIXELS, md.Laplace(1.0), ("a",)), ["group_axes: got ('a',)"]),
        (lambda: md.SiteBlock("b", PIXELS, md.Laplace(1.0), (), ["a"] * 4), ["offset: got an array of text"]),
    ],
)
def test_models_of_the_wrong_parts(call: Callable[[], object], words: list[str]) -> None:
    assert_refused(call, *words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: md.Dense(object), ["matrix: got the class object", "(rows, columns)"]),
        (lambda: md.Dense(object()), ["matrix: got an object"]),
        (lambda: md.Dense([["a"]]), ["matrix: got an array of text"]),
        (lambda: md.Dense([[1.0], [1.0, 2.0]]), ["matrix: got lists of unequal lengths", "equally long"]),
        (lambda: md.Dense([[np.nan]]), ["matrix: got NaN"]),
        (lambda: X @ [1, 2, 3, 4], ["operator @: got a list", "operator(array)"]),
        (lambda: X @ np.ones(4), ["operator @: got an array of float64, shape (4,)", "operator(array)"]),
        (lambda: np.ones((3, 6)) @ X, ["operator @: got an array", "Dense(matrix)"]),
        (lambda: X + 3, ["operator +: got 3"]),
        (lambda: X * "a", ["scalar: got 'a'", "one finite number"]),
        (lambda: X * float("nan"), ["scalar: got nan"]),
        (lambda: np.ones(3) * X, ["scalar: got an array", "Diagonal"]),
        (lambda: X("abcd"), ["Dense: got 'abcd'"]),
        (lambda: X(None), ["Dense: got None"]),
        (lambda: X([1, 2, 3]), ["shape (3,)", "(4,)"]),
        (lambda: X.adjoint([1, 2, 3]), ["shape (3,)", "(6,)"]),
        (lambda: X(np.array([None] * 4)), ["Dense: got an array of object"]),
        (lambda: md.Identity(3), ["shape: got 3", "tuple"]),
        (lambda: md.Identity((-3,)), ["shape: got (-3,)"]),
        (lambda: md.FiniteDifferences((5,)), ["shape: got (5,)", "(ky, kx)", "SparseMatrix"]),
        (lambda: md.FiniteDifferences((0, 5)), ["shape: got (0, 5)"]),
        (lambda: md.Wavelet((8,)), ["shape: got (8,)"]),
        (lambda: md.Wavelet((8, 8), "db4", 1.5), ["wavelet levels: got 1.5"]),
        (lambda: md.CartesianLines("ab", (8, 8)), ["lines: got 'ab'"]),
        (lambda: md.CartesianLines(3, (8, 8)), ["lines: got 3"]),
        (lambda: md.CartesianLines(np.ones(7, dtype=bool), (8, 8)), ["lines: got bool (7,)", "bool (8,)"]),
        (lambda: md.CartesianLines([1], (8.5, 8)), ["shape: got (8.5, 8)"]),
        (lambda: md.cartesian((8, 8), [1]), ["shape: got [1]"]),
    ],
)
def test_operators_of_what_is_none(call: Callable[[], object], words: list[str]) -> None:
    assert_refused(call, *words)


def test_operators_take_lists_and_whole_numbers() -> None:
    np.testing.assert_array_equal(md.Dense([[1, 2], [3, 4]])([1, 1]), [3, 7])
    np.testing.assert_array_equal(md.Dense([[1, 2], [3, 4]]).adjoint([1, 1]), [4, 6])
    u = np.array([[3, 1], [0, 2]], dtype=np.uint8)  # differences of unsigned numbers used to wrap around
    np.testing.assert_array_equal(
        md.FiniteDifferences((2, 2), is_complex=False)(u), md.FiniteDifferences((2, 2))(u.astype(float))
    )


@pytest.mark.parametrize("encoding", [md.CartesianLines, md.cartesian])
def test_coil_maps_with_nan(encoding: Callable[..., object]) -> None:
    maps = np.ones((2, 8, 8), dtype=complex)
    maps[1, 2, 3] = np.nan
    assert_refused(lambda: encoding([1, 2], (8, 8), maps), "coil maps: got NaN or infinite values")
    assert_refused(lambda: encoding([1, 2], (8, 8), [[1]]), "coil maps: got shape (1, 1)")
    assert_refused(lambda: encoding([1, 2], (8, 8), "maps"), "coil maps: got 'maps'")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rng", [0, None, "a", np.random.RandomState(0), np.random.Generator])
def test_engines_want_a_generator(engine: Callable[[], object], rng: object) -> None:
    assert_refused(lambda: engine().infer(SMOOTH, rng), "rng: got ", "numpy.random.Generator", "default_rng(0)")


def test_a_seed_comes_back_in_the_cure() -> None:
    assert_refused(lambda: md.DoubleLoop().infer(MODEL, 7), "rng: got 7", "numpy.random.default_rng(7)")


@pytest.mark.parametrize(
    "call",
    [
        lambda q: q.draw(0, 3),
        lambda q: q.deviations(None, 3),
        lambda q: md.learn_hyperparameters(MODEL, md.DoubleLoop(md.Exact()), 0),
        lambda q: md.pixel_std(q, 4, 0),
        lambda q: md.best_free_encoding(q, 0),
        lambda q: md.MonteCarlo()(q.precision, [PIXELS], None, np.ones(4)),
        lambda q: md.ControlVariate()(q.precision, [PIXELS], None, np.ones(4)),
        lambda q: md.Lanczos()(q.precision, [PIXELS], None, np.ones(4)),
        lambda q: LogDeterminant()(q.precision, 0, np.ones(4)),
        lambda q: md.random_head(32, 0),
        lambda q: md.simulate_scan(md.ImageStack(np.ones((1, 32, 32), np.float32)), rng=0),
        lambda q: md.PoissonResponse().draw([0.0], 0),
        lambda q: md.BernoulliResponse().draw([0.0], 0),
        lambda q: md.GaussianResponse().draw([0.0], 0),
        lambda q: md.PoolDesign().begin(md.LabelPool(np.eye(3)), [0], [1], 0),
    ],
)
def test_everything_random_wants_a_generator(call: Callable[[object], object], posterior: md.GaussianPosterior) -> None:
    assert_refused(lambda: call(posterior), "rng: got ", "numpy.random.Generator", "numpy.random.default_rng(0)")


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_want_a_model_a_warm_start_and_a_callable(
    engine: Callable[[], object], posterior: md.GaussianPosterior
) -> None:
    rng = np.random.default_rng(0)
    assert_refused(lambda: engine().infer(None, rng), "model: got None", "a GeneralizedLinearModel")
    assert_refused(
        lambda: engine().infer(SMOOTH, rng, warm_start=posterior),
        "warm_start: got a GaussianPosterior",
        "WarmStart.from_posterior(posterior)",
    )
    assert_refused(lambda: engine().infer(SMOOTH, rng, callback=3), "callback: got 3", "StepInfo")


def test_a_warm_start_made_as_the_cure_says_is_taken(posterior: md.GaussianPosterior) -> None:
    start = md.WarmStart.from_posterior(posterior)
    again = md.DoubleLoop(md.Exact()).infer(MODEL, np.random.default_rng(0), warm_start=start)
    np.testing.assert_allclose(again.mean, posterior.mean, atol=1e-2)
    assert_refused(lambda: md.WarmStart.from_posterior(MODEL), "posterior: got a GeneralizedLinearModel")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: md.DoubleLoop(md.variances.Exact), ["variances: got the class Exact", "Make one: Exact(...)"]),
        (lambda: md.DoubleLoop("exact"), ["variances: got 'exact'", "a variance estimator"]),
        (lambda: md.DoubleLoop(md.LBFGS()), ["variances: got an LBFGS", "a variance estimator"]),
        (lambda: md.DoubleLoop(md.Exact(), md.LBFGS), ["inner: got the class LBFGS", "Make one"]),
        (lambda: md.DoubleLoop(md.Exact(), md.Exact()), ["inner: got an Exact", "a solver"]),
        (lambda: md.VariationalGaussian(md.Exact), ["variances: got the class Exact"]),
        (lambda: md.MapEstimate(inner=md.IRLS), ["inner: got the class IRLS"]),
        (lambda: md.PoolDesign(engine=md.DoubleLoop), ["engine: got the class DoubleLoop"]),
        (lambda: md.PoolDesign(variances=md.Exact), ["variances: got the class Exact"]),
        (
            lambda: md.learn_hyperparameters(MODEL, md.Exact(), np.random.default_rng(0)),
            ["engine: got an Exact", "an inference method"],
        ),
        (lambda: md.InfomaxQuery(1.0, response=md.PoissonResponse), ["response: got the class PoissonResponse"]),
        (lambda: md.PositiveMixture([1.0], [md.Laplace]), ["mixture[0]: got the class Laplace"]),
        (lambda: md.PositiveMixture([1.0], md.Laplace(1.0)), ["a Laplace by itself"]),
        (lambda: md.ShiftedMixture([1.0], md.Laplace(1.0), [0.0]), ["a Laplace by itself"]),
    ],
)
def test_a_class_is_not_one_made_of_it(call: Callable[[], object], words: list[str]) -> None:
    assert_refused(call, *words)


def test_information_gain_of_what_is_no_candidate(posterior: md.GaussianPosterior) -> None:
    for candidate, words in (
        (3, ["a Dense", "Cartesian", "Dense(rows)"]),
        (md.Dense(np.ones((1, 5))), ["candidate", "real (5,)", "real (4,)"]),
        (md.Dense(1j * np.ones((1, 4))), ["candidate", "complex (4,)"]),
        (np.ones((1, 4)), ["candidate: got an array", "Dense(rows)"]),
        ("a", ["candidate: got 'a'"]),
        (True, ["candidate: got True"]),
    ):
        assert_refused(lambda candidate=candidate: md.information_gain(posterior, candidate), *words)
    assert_refused(
        lambda: md.information_gain(MODEL, 3), "posterior: got a GeneralizedLinearModel", "infer(model, rng)"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: md.LabelPool([["a", "b"]]), ["pool: got an array of text", "real numbers"]),
        (lambda: md.LabelPool([[1.0], [1.0, 2.0]]), ["pool: got lists of unequal lengths"]),
        (lambda: md.LabelPool(np.ones((3, 4)), BLOCK), ["prior: got a SiteBlock by itself"]),
        (lambda: md.LabelPool(np.ones((3, 4)), scale=True), ["scale: got True"]),
        (lambda: md.LabelPool(np.ones((3, 4))).checked(["a"], [1]), ["labelled cases: got an array of text"]),
        (lambda: md.PoolDesign().begin(None, [0], [1], np.random.default_rng(0)), ["pool: got None"]),
        (lambda: md.Poisson([[1], [1, 2]]), ["Poisson counts: got lists of unequal lengths"]),
        (lambda: md.random_head(32, np.random.default_rng(0), phase="odd"), ["phase: got 'odd'", "rough"]),
        (lambda: md.asymptotic_information(md.PoissonResponse, [1.0, 1.0], 1.0), ["response: got the class"]),
        (lambda: md.asymptotic_information(md.PoissonResponse(), ["a", "b"], 1.0), ["theta: got an array of text"]),
        (lambda: md.map_estimate(None), ["model: got None"]),
        (lambda: md.least_squares(None), ["model: got None"]),
        (lambda: md.least_squares(MODEL, damping=-1), ["damping: got -1"]),
        (lambda: md.zero_filled(None), ["model: got None"]),
        (lambda: md.evidence_bound(MODEL, None), ["criterion: got None"]),
        (lambda: md.log_evidence(MODEL), ["posterior: got a GeneralizedLinearModel"]),
    ],
)
def test_wrong_arguments_elsewhere(call: Callable[[], object], words: list[str]) -> None:
    assert_refused(call, *words)


KSPACE, MEASURED, STATE = np.ones((1, 2, 16, 16), np.complex64), np.ones(16, dtype=bool), md.FilterState([0.0], [[1.0]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: md.prewhiten(KSPACE), ["data: got an array", "a KSpaceData"]),
        (lambda: md.estimate_coil_maps(None), ["data: got None", "load_kspace"]),
        (lambda: md.estimate_noise_variance(None), ["data: got None"]),
        (lambda: md.coil_combined(None), ["data: got None"]),
        (lambda: md.KSpaceData([[1]], MEASURED), ["kspace: got a list"]),
        (lambda: md.KSpaceData(KSPACE, "a"), ["measured: got 'a'"]),
        (lambda: md.KSpaceData(KSPACE, MEASURED, coil_maps=[[1]]), ["coil_maps: got a list"]),
        (lambda: md.KSpaceData(KSPACE, MEASURED, noise_variance="a"), ["noise_variance: got 'a'"]),
        (lambda: md.KSpaceData(KSPACE, MEASURED).select_slice(0.5), ["slice: got 0.5"]),
        (lambda: md.ImageStack("a"), ["images: got 'a'"]),
        (lambda: md.read(3), ["path: got 3"]),
        (lambda: md.measure("a", np.ones((8, 8))), ["image: got 'a'"]),
        (lambda: LineConstraints(3), ["forbidden lines: got 3"]),
        (lambda: LineConstraints((), ("a",)), ["required lines: got 'a'"]),
        (lambda: LineConstraints("ab"), ["forbidden lines: got 'ab'"]),
        (lambda: LineConstraints((1.5,)), ["forbidden lines: got 1.5"]),
        (lambda: md.VariableDensity(power="a"), ["density power: got 'a'"]),
        (lambda: md.SparsityBlock("curvelets", 1.0), ["block kind: got 'curvelets'"]),
        (lambda: md.SparsityBlock("pixels", -1.0), ["scale: got -1.0"]),
        (lambda: md.with_noise_covariance(None, variances=1.0), ["model: got None"]),
        (lambda: md.with_noise_covariance(MODEL, variances="a"), ["noise variances: got 'a'"]),
        (lambda: md.with_noise_covariance(MODEL, matrix=[[1], [1, 2]]), ["noise covariance: got lists"]),
        (lambda: md.Tilted(md.Laplace, 1), ["potential: got the class Laplace"]),
        (lambda: md.FilterState([0, 0], [[1], [1, 2]]), ["filter state: got lists of unequal lengths"]),
        (lambda: md.FilterState.from_posterior(3), ["posterior: got 3"]),
        (lambda: md.LaplaceFilter("a"), ["drift: got 'a'"]),
        (lambda: md.LaplaceFilter().update(None, [1.0], md.Poisson(1)), ["state: got None"]),
        (lambda: md.LaplaceFilter().update(STATE, [1.0], 3), ["response: got 3", "Poisson(3)"]),
        (lambda: md.LaplaceFilter().track(STATE, [[1.0]] * 2, [md.Poisson(1)]), ["responses: got 1 beside 2 queries"]),
        (
            lambda: md.DoubleLoop().infer(MODEL, np.random.default_rng(0), warm_start=md.WarmStart(np.ones(4), 3)),
            ["warm start: z: got 3"],
        ),
        (
            lambda: md.reconstruct(None, [1], "mean", md.load_recipe(None), np.random.default_rng(0)),
            ["slice_model: got None", "MRSlice"],
        ),
    ],
)
def test_neighbours(call: Callable[[], object], words: list[str]) -> None:
    assert_refused(call, *words)


@pytest.mark.parametrize("count", [2.5, True, -1, "a", None, 0, np.nan])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: md.ControlVariate(samples=n),
        lambda n: md.ControlVariate(max_iterations=n),
        lambda n: md.MonteCarlo(samples=n),
        lambda n: md.MonteCarlo(max_iterations=n),
        lambda n: md.Lanczos(n),
        lambda n: md.Exact(n),
        lambda n: LogDeterminant(n),
        lambda n: LogDeterminant(8, n),
        lambda n: md.LanczosInformationGain(steps=n),
        lambda n: md.VariationalGaussian(iterations=n),
        lambda n: md.LaplaceFilter(limit=n),
    ],
)
def test_counts_are_whole_numbers(make: Callable[[object], object], count: object) -> None:
    assert_refused(lambda: make(count), f"got {count!r}; wanted a whole number, ")


@pytest.mark.parametrize("count", [2.5, True, -1, "a", 0, np.nan])
def test_loops_are_whole_numbers_or_as_many_as_gain(count: object) -> None:
    assert_refused(lambda: md.DoubleLoop(outer_iterations=count), f"got {count!r}; wanted a whole number, ")  # type: ignore[arg-type]
    assert md.DoubleLoop(outer_iterations=None).most_loops > 6
    assert_refused(lambda: md.InformationGain(draws=count), f"got {count!r}; wanted a whole number, ")  # type: ignore[arg-type]
    assert md.InformationGain(draws=None).draws is None


def test_numbers_are_not_true_or_false() -> None:
    assert_refused(lambda: md.DoubleLoop(tolerance=True), "tolerance: got True")
    assert_refused(lambda: md.UntilGain(True), "gain to stop at: got True")
    assert_refused(lambda: md.UntilGain(10**400), "gain to stop at", "finite")
    assert md.ControlVariate(samples=np.int64(4)).samples == 4


def test_queries_want_a_covariance() -> None:
    query = md.InfomaxQuery(1.0)
    skew = np.array([[1, 0.9, 0], [0, 1, 0], [0, 0, 1.0]])
    indefinite = np.array([[1, 2.0], [2.0, 1]])
    assert_refused(lambda: query.propose(md.FilterState(np.zeros(3), skew)), "not symmetric", "transpose")
    assert_refused(lambda: query.propose(md.FilterState(np.zeros(2), indefinite)), "negative eigenvalue")
    assert_refused(lambda: query.propose("a"), "state: got 'a'", "a FilterState")
    assert_refused(lambda: query.score(None, np.ones((1, 3))), "state: got None")
    assert_refused(lambda: md.InfomaxQuery(1.0, fixed=[[1], [1, 2]]), "fixed: got lists of unequal lengths")
    assert len(query.propose(md.FilterState([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])).x) == 2


@pytest.mark.parametrize("noise_variance", [1e-300, 1e-320, 1e200])
def test_noise_that_leaves_double_precision_is_refused(noise_variance: float) -> None:
    assert_refused(
        lambda: md.GeneralizedLinearModel(X, np.ones(6), noise_variance, (BLOCK,)), "Scale the data by one factor"
    )


@pytest.mark.parametrize("factor", [1e20, 1e-25])
def test_single_precision_data_whose_squares_do_not_fit_are_taken_in_double(factor: float) -> None:
    engine = md.DoubleLoop(md.Exact(), outer_iterations=30, tolerance=1e-6)
    ordinary = md.GeneralizedLinearModel(X, np.arange(6, dtype=np.float32), 0.1, (BLOCK,))
    extreme = md.GeneralizedLinearModel(X, np.float32(factor) * ordinary.data, 0.1 * factor**2, (BLOCK,))
    assert (ordinary.data.dtype, extreme.data.dtype) == (np.float32, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = (engine.infer(model, np.random.default_rng(0)) for model in (ordinary, extreme))
    np.testing.assert_allclose(other.mean / factor, one.mean, atol=1e-5)
    np.testing.assert_allclose(other.image_variances / factor**2, one.image_variances, rtol=1e-4)


def test_data_of_1e200_are_refused() -> None:
    assert_refused(
        lambda: md.GeneralizedLinearModel(X, np.full(6, 1e200), 1.0, (BLOCK,)), "data: got", "Scale the data"
    )


def counted(prior: tuple[md.SiteBlock, ...], counts: np.ndarray) -> md.GaussianPosterior:
    rates = md.SiteBlock("counts", md.Dense([[0.7], [1.2], [0.4]]), md.Poisson(counts))
    model = md.GeneralizedLinearModel.of_sites((*prior, rates), 4.0)
    return md.VariationalGaussian(md.Exact(), tolerance=1e-8).infer(model, np.random.default_rng(0))


def test_evidence_of_counts_is_a_bound_on_the_integral() -> None:
    identity = md.Identity((1,), is_complex=False)
    prior = (md.SiteBlock("prior", identity, md.Gaussian(2.0)),)
    found = md.log_evidence(counted(prior, np.array([1, 2, 0])))
    u = np.linspace(-30, 30, 200001)
    s = np.multiply.outer([0.7, 1.2, 0.4], u / 2)
    log_joint = np.array([1, 2, 0]) @ s - np.exp(s).sum(axis=0) - np.log(2) - u**2 / 4 - 0.5 * np.log(2 * np.pi * 2)
    truth = float(np.log(np.sum(np.exp(log_joint)) * (u[1] - u[0])))
    assert found.kind == "lower_bound"
    assert truth - 0.02 < found.value < truth
    with pytest.raises(md.InputError, match="models of different data"):
        md.log_bayes_factor(counted(prior, np.array([1, 2, 0])), counted(prior, np.array([1, 2, 1])))


def test_evidence_without_a_prior_says_where_it_belongs() -> None:
    rates = md.SiteBlock("counts", md.Dense([[0.7]]), md.Poisson([1]))
    model = md.GeneralizedLinearModel(md.Identity((1,), is_complex=False), np.zeros(1), 1.0, (rates,))
    found = md.VariationalGaussian(md.Exact()).infer(model, np.random.default_rng(0))
    assert_refused(lambda: md.log_evidence(found), "prior: got no block", "Gaussian sites on Identity")


def test_hinge_sites_have_no_evidence() -> None:
    identity = md.Identity((1,), is_complex=False)
    blocks = (md.SiteBlock("w", identity, md.Gaussian(1.0)), md.SiteBlock("h", md.Dense([[1.0]]), md.Hinge([1])))
    model = md.GeneralizedLinearModel.of_sites(blocks)
    found = md.VariationalGaussian(md.Exact()).infer(model, np.random.default_rng(0))
    assert_refused(lambda: md.log_evidence(found), "block 'h'", "no probability", "Logistic")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: r.replacing("design", block=-3, order="nonsense"),
            "recipe: design.block: got -3; wanted a whole number, 1 or more.",
        ),
        (lambda r: r.replacing("desing", block=3), "recipe: desing: got an unknown section; .*Did you mean design?"),
        (lambda r: r.replacing("fft", x=1), "recipe: fft: got 'fft', which is no section"),
        (
            lambda r: r.replacing("simulation", matrix=[64]),
            "recipe: simulation.matrix: got a list; wanted a whole number",
        ),
        (lambda r: md.load_recipe(3), "recipe: got 3; wanted a TOML file"),
    ],
)
def test_replacing_validates_as_a_file_does(call: Callable[[md.Recipe], object], message: str) -> None:
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(md.InputError, match=pattern):
        call(md.load_recipe(None))


def test_replacing_takes_numbers_of_numpy_and_oracles() -> None:
    recipe = md.load_recipe(None).replacing("simulation", matrix=np.int64(64)).replacing("design", block=None)
    assert recipe.simulation.matrix == 64
    assert recipe.replacing("design", strategy="oracle-residual").replacing("design", block=2).design.block == 2


@pytest.fixture(scope="module")
def small_slice() -> md.MRSlice:
    recipe = md.load_recipe(None).replacing("simulation", matrix=32)
    return md.prepare(md.load_input("phantom:t2w", recipe), recipe).slice_model(0, recipe)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one, r: md.load_input(3, r), ["source: got 3", "a path"]),
        (lambda one, r: md.load_input("phantom:t2w", "local"), ["recipe: got 'local'", "load_recipe(None)"]),
        (lambda one, r: md.load_kspace(None), ["source: got None"]),
        (lambda one, r: md.prepare(None, r), ["data: got None", "load(FILE).data"]),
        (lambda one, r: md.reconstruct(one, "abc", "mean", r, RNG), ["lines: got 'abc'"]),
        (lambda one, r: md.reconstruct(one, [15.5], "mean", r, RNG), ["lines: got"]),
        (lambda one, r: md.reconstruct(one, 3, "mean", r, RNG), ["lines: got 3"]),
        (lambda one, r: design(one, r, slices=one), ["slices: got an MRSlice by itself", "(it,)"]),
        (lambda one, r: design(one, r, strategy=3), ["strategy: got 3", "make_strategy"]),
        (lambda one, r: design(one, r, strategy=md.Calibrated), ["strategy: got the class Calibrated"]),
        (lambda one, r: design(one, "local"), ["recipe: got 'local'"]),
        (lambda one, r: design(one, r, seed=None), ["seed: got None", "a whole number"]),
        (lambda one, r: design(one, r, start="x"), ["start: got 'x'", "a whole number"]),
        (lambda one, r: design(one, r, target=99), ["number of lines: got 99"]),
        (lambda one, r: md.DesignEngine(3, md.DoubleLoop()), ["strategy: got 3", "make_strategy"]),
        (lambda one, r: md.mr_image_model(one.kspace[0], coil_maps="a"), ["coil_maps: got 'a'"]),
        (lambda one, r: md.mr_image_model("a"), ["kspace: got 'a'"]),
        (
            lambda one, r: md.mr_image_model(one.kspace[0].astype(complex) * 1e60),
            ["kspace: got samples up to", "Divide"],
        ),
    ],
)
def test_runs_of_the_wrong_parts(
    call: Callable[[md.MRSlice, md.Recipe], object], words: list[str], small_slice: md.MRSlice
) -> None:
    assert_refused(lambda: call(small_slice, md.load_recipe(None)), *words)


RNG = np.random.default_rng(0)


def design(one: md.MRSlice, recipe: md.Recipe | None, **wrong: object) -> object:
    named = {"slices": [one], "strategy": md.make_strategy("low-pass"), "target": 12, "seed": 0, "start": 8} | wrong
    return md.run_design(named.pop("slices"), named.pop("strategy"), named.pop("target"), recipe, **named)


SPIRAL_LIMITS = md.GradientLimits(amplitude=0.04, slew=150)


def spiral(**changes: object) -> object:
    settings: dict[str, object] = {"matrix": 64, "turns": 4.0, "field_of_view": 0.24, **changes}
    return md.spiral_readout(limits=SPIRAL_LIMITS, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: md.equispaced_angles(10**12), ["count: got an array of 1e+12 numbers", "at most 4 GiB"]),
        (lambda: md.equispaced_angles(10**30), ["count: got"]),
        (lambda: md.golden_angles(10**12), ["count: got", "at most 4 GiB"]),
        (lambda: md.interleaf_angles(10**12, "one-missing"), ["count: got", "at most 4 GiB"]),
        (lambda: md.turned(np.zeros((10**5, 2)), np.zeros(10**5)), ["angles: got", "fewer angles"]),
        (lambda: md.radial_spokes(10**12, [0.0]), ["matrix: got"]),
        (lambda: md.radial_spokes(8, [0.0], oversampling=10**12), ["matrix: got an array of 8 x 1e+12 numbers"]),
        (lambda: md.nyquist_turns(10**30, 2), ["matrix: got", "no gap at the rim"]),
        (lambda: md.nyquist_turns(64, 4, density=1e300), ["matrix: got", "no gap at the rim"]),
        (lambda: spiral(turns=1e9), ["turns: got 1e+09 of one interleaf", "at most 4096", "interleaves"]),
        (lambda: spiral(density=1e-300), ["density: got 1e-300", "between 0.01 and 100"]),
        (lambda: spiral(field_of_view=1e-300), ["limits: got", "Use SI units"]),
        (lambda: spiral(dwell=1e-12), ["dwell: got 1e-12 s", "or more for this curve"]),
        (lambda: md.point_spread(np.zeros((4, 2)), (10**6, 10**6)), ["shape: got an array of 1e+06 x 1e+06"]),
        (lambda: md.Identity((2**40, 2**40)), ["got an array of 1.1e+12 x 1.1e+12 numbers"]),
        (lambda: md.NonUniformFourier(np.zeros((4, 2)), None), ["grid: got None"]),
        (lambda: md.NonUniformFourier(np.zeros((4, 2)), (2**40, 2**40)), ["grid: got"]),
        (lambda: md.centre_lines(np.ones(16, bool), "a"), ["start lines: got 'a'"]),
        (lambda: md.centre_lines(16, 4), ["measurable: got 16"]),
        (lambda: md.load_input("", md.load_recipe(None)), ["got a folder", "a regular file"]),
        (lambda: md.load_input("/", md.load_recipe(None)), ["got a folder", "a regular file"]),
        (lambda: md.load_phantom([], rng=np.random.default_rng(0)), ["phantom"]),
    ],
)
def test_sizes_and_counts_that_no_machine_holds_are_refused_before_anything_is_made(
    call: Callable[[], object], words: list[str]
) -> None:
    assert_refused(call, *words)


@pytest.mark.parametrize("count", [10**9, 10**30])
def test_more_draws_than_a_machine_holds_are_refused(posterior: md.GaussianPosterior, count: int) -> None:
    assert_refused(lambda: posterior.draw(np.random.default_rng(0), count), "draws: got", "at most 4 GiB")
    estimator = md.MonteCarlo(count)
    assert_refused(lambda: md.DoubleLoop(estimator).infer(MODEL, np.random.default_rng(0)), "draws: got")


@pytest.mark.parametrize("slices", [[], ()])
def test_a_design_of_no_slice_is_refused(slices: object) -> None:
    recipe = md.load_recipe(None)
    strategy = md.make_strategy("low-pass")
    assert_refused(
        lambda: md.run_design(slices, strategy, 8, recipe, seed=0, start=4),  # type: ignore[arg-type]
        "slices: got an empty list",
        "1 or more",
    )


def test_lines_that_are_no_numbers_of_lines_are_refused(small_slice: md.MRSlice) -> None:
    one, recipe = small_slice, md.load_recipe(None)
    strategy, rng = md.make_strategy("low-pass"), np.random.default_rng(0)
    for start in (["a"], [1.5]):
        assert_refused(
            lambda start=start: md.run_design([one], strategy, 8, recipe, seed=0, start=start),  # type: ignore[misc]
            "lines: got",
        )
    assert_refused(lambda: md.reconstruct(one, range(10**12), "mean", recipe, rng), "lines: got 1000000000000 of them")


COVARIANCES = {
    "negative": (-np.eye(2), "an eigenvalue -1"),
    "indefinite": (np.array([[1, 2], [2, 1]]), "an eigenvalue -1"),
    "not Hermitian": (np.array([[1, 1], [0, 1]]), "not Hermitian"),
    "NaN": (np.full((2, 2), np.nan), "NaN"),
    "one axis": (np.ones(2), "(2,)"),
    "text": (np.array([["a", "b"], ["c", "d"]]), "text"),
}


@pytest.mark.parametrize(("covariance", "words"), COVARIANCES.values(), ids=COVARIANCES)
def test_what_is_no_covariance_of_noise_is_refused_by_all_that_take_one(covariance: np.ndarray, words: str) -> None:
    samples = np.random.default_rng(0).standard_normal((1, 2, 8, 8)) + 1j
    flags, points = np.ones(8, bool), np.random.default_rng(1).uniform(-4, 4, (64, 2))
    kspace = samples.astype(np.complex64)
    calls: list[Callable[[], object]] = [
        lambda: md.KSpaceData(kspace, flags, noise_covariance=covariance),
        lambda: md.TrajectoryData(kspace.reshape(1, 2, 64), points, (8, 8), noise_covariance=covariance),
        lambda: md.prewhiten(md.KSpaceData(kspace, flags), covariance),
        lambda: md.with_noise_covariance(
            md.GeneralizedLinearModel(md.Dense(np.eye(2, 4)), np.ones(2), 0.1, (BLOCK,)), coils=covariance
        ),
    ]
    for call in calls:
        assert_refused(call, "covariance: got", words)


def test_a_singular_covariance_is_one_but_cannot_be_inverted() -> None:
    kspace = (np.random.default_rng(0).standard_normal((1, 2, 8, 8)) + 1j).astype(np.complex64)
    data = md.KSpaceData(kspace, np.ones(8, bool), noise_covariance=np.ones((2, 2)))
    assert_refused(lambda: md.prewhiten(data), "covariance: got an eigenvalue", "positive definite")
