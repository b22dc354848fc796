from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design.design import (
    FEATURES,
    AOptimal,
    Calibrated,
    DesignEngine,
    DesignState,
    DesignView,
    ErrorModel,
    LineCandidates,
    shipped_error_model,
)
from mri_design.design.line_variances import all_lines
from mri_design.errors import InputError
from mri_design.inference import DoubleLoop
from mri_design.model import GaussianPosterior, MRSlice
from mri_design.variances import ControlVariate

SliceMaker = Callable[..., MRSlice]
START = (16, 15, 17, 14, 18, 13, 19, 12)


def model(constant: float = 0.0, slack: float = 1.0) -> ErrorModel:
    """Trusts the posterior's energies, times exp(constant); ``slack`` is the deviation of that constant."""
    mean = np.zeros(len(FEATURES))
    mean[FEATURES.index("constant")] = constant
    mean[FEATURES.index("log expected energy of the error")] = 1.0
    covariance = np.diag(np.full(len(FEATURES), 1e-8))
    covariance[0, 0] = slack**2
    return ErrorModel(mean, covariance, 0.3)


def design(one: MRSlice, rule: AOptimal, target: int = 16, block: int = 1) -> DesignState:
    engine = DesignEngine(rule, DoubleLoop(ControlVariate(4)), block=block)
    return engine.run([one], engine.begin([one], START), target)


def test_expected_energies_are_traces_of_the_dense_covariance(
    make_posterior: Callable[..., GaussianPosterior],
) -> None:
    for coils in (1, 2):
        posterior = make_posterior(coils)
        every = all_lines(posterior)
        x = every.to_dense_real().reshape(2, *every.out_shape, -1)
        covariance = posterior.model.noise_variance * np.linalg.inv(posterior.precision.dense_real())
        exact = [np.trace(r @ covariance @ r.T) for r in (x[:, :, k].reshape(-1, x.shape[-1]) for k in range(16))]
        view = DesignView(LineCandidates(np.ones(16, bool), (8, 7, 9, 6, 3), 8), [posterior])
        choice = AOptimal(draws=600).choose(view, np.random.default_rng(0))
        assert choice.expected is not None and choice.scores is not None
        np.testing.assert_allclose(choice.expected, exact, rtol=0.12)
        assert choice.line == np.nanargmax(choice.scores)
        assert np.isnan(choice.scores[[8, 7, 9, 6, 3]]).all()


def test_learning_is_bayesian_regression() -> None:
    rng = np.random.default_rng(0)
    n = len(FEATURES)
    root = rng.standard_normal((n, n))
    start = ErrorModel(rng.standard_normal(n), root @ root.T / n + 0.1 * np.eye(n), 0.5)
    x, y, extra = rng.standard_normal((7, n)), rng.standard_normal(7), rng.uniform(0, 1, 7)
    after = start.given(x, y, extra)
    noise = np.diag(0.25 + extra)  # by conditioning the joint Gaussian instead
    gain = start.covariance @ x.T @ np.linalg.inv(x @ start.covariance @ x.T + noise)
    np.testing.assert_allclose(after.mean, start.mean + gain @ (y - x @ start.mean), atol=1e-8)
    np.testing.assert_allclose(after.covariance, start.covariance - gain @ x @ start.covariance, atol=1e-8)
    halves = start.given(x[:3], y[:3], extra[:3]).given(x[3:], y[3:], extra[3:])
    np.testing.assert_allclose(halves.mean, after.mean, atol=1e-7)


def test_energies_are_means_over_the_spread_and_hopes_over_the_weights_too() -> None:
    rng = np.random.default_rng(1)
    n = len(FEATURES)
    start = ErrorModel(0.1 * rng.standard_normal(n), 0.01 * np.eye(n), 0.4)
    x = rng.standard_normal((2, n))
    noise = 0.4 * rng.standard_normal((200_000, 2))
    np.testing.assert_allclose(start.energies(x), np.exp(x @ start.mean + noise).mean(axis=0), rtol=0.02)
    weights = start.mean + 0.1 * rng.standard_normal((200_000, n))
    np.testing.assert_allclose(start.hopes(x), np.exp(weights @ x.T + noise).mean(axis=0), rtol=0.02)


def test_innovations_mend_a_model_that_is_wrong(make_slice: SliceMaker) -> None:
    one = make_slice(shape=(32, 32))
    noise = 2 * one.noise_variance * 32
    wrong = np.log(300.0)
    late = {}
    for online in (True, False):
        steps = design(one, Calibrated(error_model=model(wrong, 3.0), online=online)).trace.steps[3:]
        pairs = [(s.corrected[s.line], s.actual_energy - noise) for s in steps if s.corrected is not None]
        late[online] = float(np.median([np.log(p / a) for p, a in pairs]))
    assert late[False] > np.log(10)  # far too large, and it stays so
    assert abs(late[True]) < np.log(2)


def test_error_models_tell_what_a_scan_taught(make_slice: SliceMaker) -> None:
    one = make_slice(shape=(32, 32))
    start = model(np.log(50.0), 3.0)
    rule = Calibrated(error_model=start)
    trace = design(one, rule).trace
    posterior = DoubleLoop(ControlVariate(4)).infer(one.model(trace.lines), np.random.default_rng(0))
    view = DesignView(LineCandidates(one.measured, trace.lines, 16), [posterior], trace.steps)
    before, after = rule.error_models(view)
    assert before is start
    assert after.mean[0] < before.mean[0] - 1  # the constant was far too large
    assert after.covariance[0, 0] < 0.1 * before.covariance[0, 0]
    untaught = replace(view, steps=())
    np.testing.assert_array_equal(rule.error_models(untaught)[1].mean, start.mean)


def test_only_what_the_models_in_use_predicted_teaches(make_slice: SliceMaker) -> None:
    one = make_slice(shape=(32, 32))
    rule = Calibrated(error_model=model(np.log(50.0), 3.0))
    trace = design(one, rule).trace
    posterior = DoubleLoop(ControlVariate(4)).infer(one.model(trace.lines), np.random.default_rng(0))
    early, late = ([replace(s, models=(m,)) for s in part] for m, part in ((0, trace.steps[:5]), (1, trace.steps[5:])))
    view = DesignView(LineCandidates(one.measured, trace.lines, 16), [posterior], (*early, *late))
    means = {m: rule.error_models(replace(view, models=(m,)))[1].mean for m in (0, 1, 2)}
    np.testing.assert_array_equal(means[2], model(np.log(50.0), 3.0).mean)
    only_late = replace(view, steps=tuple(late), models=(1,))
    np.testing.assert_array_equal(means[1], rule.error_models(only_late)[1].mean)
    assert not np.allclose(means[0], means[1])


def test_a_lopsided_spectrum_is_learnt(make_slice: SliceMaker) -> None:
    """Lines of one side carry e^2 times the energy of the other's: soon the prediction says so."""
    start = model(0.0, 1.0)
    sided = FEATURES.index("sign(k) log(1 + |k|)")
    start.covariance[sided, sided] = 0.5**2
    one = make_slice(shape=(32, 32))
    k = np.arange(32) - 16
    lopsided = replace(one, kspace=(one.kspace * np.exp(0.5 * np.sign(k))[None, :, None]).astype(np.complex64))
    rule = Calibrated(error_model=start)
    learnt = []
    for scan in (one, lopsided):
        trace = design(scan, rule).trace
        posterior = DoubleLoop(ControlVariate(4)).infer(scan.model(trace.lines), np.random.default_rng(0))
        view = DesignView(LineCandidates(scan.measured, trace.lines, 16), [posterior], trace.steps)
        learnt.append(rule.error_models(view)[1].mean[sided])
    assert learnt[1] > learnt[0] + 0.1


def test_what_it_learns_does_not_depend_on_where_the_design_was_interrupted(make_slice: SliceMaker) -> None:
    one = make_slice(shape=(32, 32))
    rule = Calibrated(error_model=model())
    engine = DesignEngine(rule, DoubleLoop(ControlVariate(4)))
    whole = engine.run([one], engine.begin([one], START), 16)
    half = engine.run([one], engine.begin([one], START), 12)
    resumed = engine.run([one], half, 16)
    assert resumed.trace.lines == whole.trace.lines
    np.testing.assert_array_equal(resumed.trace.steps[-1].corrected, whole.trace.steps[-1].corrected)


def test_measured_lines_keep_the_posterior_s_own_energy(make_slice: SliceMaker) -> None:
    step = design(make_slice(shape=(32, 32)), Calibrated(error_model=model(2.0)), 9).trace.steps[0]
    assert step.expected is not None and step.corrected is not None
    np.testing.assert_array_equal(step.corrected[list(START)], step.expected[list(START)])
    left = np.setdiff1d(np.arange(32), START)
    assert np.all(step.corrected[left] > step.expected[left])
    assert step.predicted_error == pytest.approx(
        np.sqrt(step.corrected.sum() / (step.image_energy + step.corrected.sum()))
    )


def test_blocks_take_lines_apart_and_learn_when_the_data_are_there(make_slice: SliceMaker) -> None:
    state = design(make_slice(shape=(32, 32)), Calibrated(error_model=model()), 16, block=4)
    assert len(set(state.trace.lines)) == 16
    assert [step.pending for step in state.trace.steps] == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("name", ["one coil", "one coil, phase-aware", "several coils"])
def test_shipped_models_are_sound(name: str) -> None:
    shipped = shipped_error_model(name)  # type: ignore[arg-type]
    assert np.linalg.eigvalsh(shipped.covariance).min() > 0
    assert 0.1 < shipped.spread < 1
    conjugate = FEATURES.index("-k measured")
    assert shipped.mean[conjugate] < 0  # a line whose opposite was measured is partly known


def test_several_coils_and_phases_take_their_own_model(make_slice: SliceMaker) -> None:
    lines = (8, 7, 9, 6, 10, 5, 11, 4)
    one = make_slice(2)
    engine = DesignEngine(Calibrated(), DoubleLoop(ControlVariate(4)))
    shipped = engine.run([one], engine.begin([one], lines), 10)
    own = replace(engine, strategy=Calibrated(error_model=shipped_error_model("several coils")))
    assert own.run([one], own.begin([one], lines), 10).trace.lines == shipped.trace.lines


def test_models_that_do_not_fit_are_refused() -> None:
    n = len(FEATURES)
    with pytest.raises(InputError, match="error model"):
        ErrorModel(np.zeros(n - 1), np.eye(n), 0.3)
    with pytest.raises(InputError, match="no numbers"):
        ErrorModel(np.full(n, np.nan), np.eye(n), 0.3)
    with pytest.raises(InputError):
        ErrorModel(np.zeros(n), np.eye(n), 0.0)
