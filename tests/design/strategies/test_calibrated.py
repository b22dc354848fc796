from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    FEATURES,
    Calibrated,
    DesignEngine,
    DesignState,
    DesignView,
    ErrorModel,
    ExpectedError,
    LineCandidates,
    LineKnowledge,
    expected_energies,
    line_features,
    neighbourhood,
    shipped_error_model,
)
from mri_design.design.calibrated import LARGEST_DOUBT
from mri_design.variances import ControlVariate
from tests.design.conftest import make_posterior, make_slice
from tests.refusals import refused

START = (16, 15, 17, 14, 18, 13, 19, 12)


def model(constant: float = 0.0, slack: float = 1.0) -> ErrorModel:
    """Trusts the posterior's energies, times exp(constant); ``slack`` is the deviation of that constant."""
    mean = np.zeros(len(FEATURES))
    mean[FEATURES.index("constant")] = constant
    mean[FEATURES.index("log expected energy of the error")] = 1.0
    covariance = np.diag(np.full(len(FEATURES), 1e-8))
    covariance[0, 0] = slack**2
    return ErrorModel(mean, covariance, 0.3)


def design(one: md.SliceModel, rule: ExpectedError, target: int = 16, block: int = 1) -> DesignState:
    engine = DesignEngine(rule, md.DoubleLoop(ControlVariate(4)), block=block)
    return engine.run([one], engine.begin([one], START), target)


def test_the_largest_expected_energy_is_chosen() -> None:
    posterior, acquired = make_posterior(), [8, 7, 9, 6, 3]
    view = DesignView(LineCandidates(np.ones(16, bool), tuple(acquired), 8), [posterior])
    choice = ExpectedError(draws=12).choose(view, np.random.default_rng(0))
    expected = expected_energies([posterior], view.readouts, np.random.default_rng(0), 12)
    np.testing.assert_array_equal(choice.forecast.expected, expected)
    expected[acquired] = np.nan
    np.testing.assert_array_equal(choice.scores, expected)
    assert choice.line == np.nanargmax(expected)


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


def test_energies_are_means_over_the_spread_and_marginal_ones_over_the_weights_too() -> None:
    rng = np.random.default_rng(1)
    n = len(FEATURES)
    start = ErrorModel(0.1 * rng.standard_normal(n), 0.01 * np.eye(n), 0.4)
    x = rng.standard_normal((2, n))
    noise = 0.4 * rng.standard_normal((200_000, 2))
    np.testing.assert_allclose(start.energies(x), np.exp(x @ start.mean + noise).mean(axis=0), rtol=0.02)
    weights = start.mean + 0.1 * rng.standard_normal((200_000, n))
    np.testing.assert_allclose(start.marginal_energies(x), np.exp(weights @ x.T + noise).mean(axis=0), rtol=0.02)


def test_a_large_grid_with_a_wide_centre_goes_on_next_to_it() -> None:
    """Energies fall as those of heads do and are expected so; what is unknown is most at the edge, |k| = 512."""
    k = np.arange(1024) - 512
    falling = 1e6 / (1 + np.abs(k)) ** 3.0
    measured = np.abs(k + 0.5) < 128
    known = LineKnowledge(measured, (falling + 1) * measured, 1.0, falling / 4)
    features, shipped = line_features(known), shipped_error_model()
    doubts = np.einsum("lf,fg,lg->l", features, shipped.covariance, features)
    unlimited = shipped.energies(features) * np.exp(doubts / 2)
    assert abs(k[np.argmax(np.where(measured, 0, unlimited))]) > 400  # by doubt alone
    assert abs(k[np.argmax(np.where(measured, 0, shipped.marginal_energies(features)))]) < 150


def test_a_neighbourhood_is_a_convolution_with_nothing_beyond_the_grid() -> None:
    energies = np.array([4.0, 0, 0, 8, 0, 1])
    expected = np.convolve(energies, [0.25, 0.5, 1, 0.5, 0.25], mode="same")
    np.testing.assert_allclose(neighbourhood(energies, (0.5, 0.25)), expected)
    np.testing.assert_array_equal(neighbourhood(energies, ()), energies)
    assert energies[0] == 4  # left as it was


def test_measured_lines_add_nothing_to_their_neighbours() -> None:
    """What is chosen is the largest sum over unmeasured neighbours, and not the largest line."""
    one = make_slice(shape=(32, 32))
    posterior = md.DoubleLoop(ControlVariate(4)).infer(one.model(START), np.random.default_rng(0))
    view = DesignView(LineCandidates(one.measured, START, 16), [posterior])
    own, near = (Calibrated(neighbours=w).choose(view, np.random.default_rng(0)) for w in ((), (0.5, 0.25)))
    alone = np.nan_to_num(own.scores)  # NaN where measured
    expected = np.where(np.isnan(own.scores), np.nan, neighbourhood(alone, (0.5, 0.25)))
    np.testing.assert_allclose(near.scores, expected)
    assert near.line == np.nanargmax(expected)


@pytest.mark.slow
def test_innovations_mend_a_model_that_is_wrong() -> None:
    one = make_slice(shape=(32, 32))
    noise = 2 * one.noise_variance * 32
    wrong = np.log(300.0)
    late = {}
    for online in (True, False):
        steps = design(one, Calibrated(error_model=model(wrong, 3.0), online=online)).trace.steps[3:]
        known = [(s, s.forecast.corrected) for s in steps if s.forecast.corrected is not None]
        pairs = [(corrected[s.line], s.actual_energy - noise) for s, corrected in known]
        late[online] = float(np.median([np.log(p / a) for p, a in pairs]))
    assert late[False] > np.log(10)  # far too large, and it stays so
    assert abs(late[True]) < np.log(2)


def test_measured_lines_keep_the_posterior_s_own_energy() -> None:
    step = design(make_slice(shape=(32, 32)), Calibrated(error_model=model(2.0)), 9).trace.steps[0]
    np.testing.assert_array_equal(step.forecast.corrected[list(START)], step.forecast.expected[list(START)])
    left = np.setdiff1d(np.arange(32), START)
    assert np.all(step.forecast.corrected[left] > step.forecast.expected[left])
    assert np.isnan(step.predicted_error)  # nothing was predicted and then measured
    tested = replace(step.forecast, tested=1.0)
    assert tested.predicted_error == pytest.approx(
        np.sqrt(tested.corrected.sum() / (tested.image_energy + tested.corrected.sum()))
    )


def test_blocks_teach_what_their_start_had_predicted() -> None:
    """By hand: features as they were when a block began, innovations against the mean of that moment."""
    one = make_slice(shape=(32, 32))
    start = model(1.0, 2.0)
    rule = Calibrated(error_model=start)
    trace = design(one, rule, 16, block=4).trace
    assert [step.choice.pending for step in trace.steps] == [0, 1, 2, 3, 0, 1, 2, 3]
    energies = np.sum(np.abs(one.kspace) ** 2, axis=(0, 2), dtype=np.float64)
    noise = 2 * one.noise_variance * 32
    noise_sd = noise / np.sqrt(32)
    rows, found, variances = [], [], []
    for i, step in enumerate(trace.steps):
        first = 4 * (i // 4)
        measured = np.zeros(32, dtype=bool)
        measured[list(trace.lines[: len(START) + first])] = True
        expected = trace.steps[first].forecast.expected
        known = LineKnowledge(measured, np.where(trace.mask(), energies, 0), noise, expected)
        energy = max(step.actual_energy - noise, 0.5 * noise_sd)
        rows.append(line_features(known, [step.line])[0])
        found.append(np.log(energy / known.unit))
        variances.append((noise_sd / energy) ** 2)
    by_hand = start.given(np.array(rows), np.array(found), np.array(variances))
    posterior = md.DoubleLoop(ControlVariate(4)).infer(one.model(trace.lines), np.random.default_rng(0))
    view = DesignView(LineCandidates(one.measured, trace.lines, 16), [posterior], trace.steps)
    before, after = rule.error_models(view)
    assert before is start
    np.testing.assert_allclose(after.mean, by_hand.mean, rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(rule.error_models(replace(view, steps=()))[1].mean, start.mean)
    before = md.DoubleLoop(ControlVariate(4)).infer(one.model(trace.lines[:12]), np.random.default_rng(0))
    pending = replace(view, posteriors=[before], pending=4)  # not measured yet: its lines teach nothing
    first_block = start.given(np.array(rows[:4]), np.array(found[:4]), np.array(variances[:4]))
    np.testing.assert_allclose(rule.error_models(pending)[1].mean, first_block.mean, rtol=1e-5, atol=1e-8)


def test_uncertain_weights_raise_the_score_of_a_line_and_not_its_prediction() -> None:
    one = make_slice(shape=(32, 32))
    doubtful = model(slack=1e-4)
    doubtful.covariance[(at := FEATURES.index("k near -16")), at] = 50.0
    rules = (Calibrated(error_model=each, neighbours=()) for each in (model(slack=1e-4), doubtful))
    sure, unsure = (design(one, rule, 9).trace.steps[0] for rule in rules)
    raised = unsure.choice.scores / sure.choice.scores
    np.testing.assert_allclose(raised[0], np.exp(LARGEST_DOUBT / 2), rtol=1e-5)  # k = -16
    np.testing.assert_allclose(raised[20:], 1, rtol=1e-5)  # the other side
    np.testing.assert_array_equal(unsure.forecast.corrected, sure.forecast.corrected)


@pytest.mark.parametrize("name", ["one coil", "one coil, phase-aware", "several coils"])
def test_shipped_models_are_sound(name: str) -> None:
    shipped = shipped_error_model(name)  # type: ignore[arg-type]
    assert np.linalg.eigvalsh(shipped.covariance).min() > 0
    assert 0.1 < shipped.spread < 1
    conjugate = FEATURES.index("-k measured")
    assert shipped.mean[conjugate] < 0  # a line whose opposite was measured is partly known


def test_models_that_do_not_fit_are_refused() -> None:
    n = len(FEATURES)
    for mean, spread in ((np.zeros(n - 1), 0.3), (np.full(n, np.nan), 0.3), (np.zeros(n), 0.0)):
        with refused("error model"):
            ErrorModel(mean, np.eye(n), spread)
