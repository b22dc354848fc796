"""When a design has enough lines; and blocks of lines that are chosen before they are measured."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    Calibrated,
    Choice,
    DesignEngine,
    DesignState,
    DesignView,
    ExpectedError,
    Forecast,
    InformationGain,
    LowPass,
    StopRule,
    Within,
)
from mri_design.model import PosteriorPrecision
from mri_design.readouts import LineConstraints
from mri_design.variances import ControlVariate, Exact
from tests.design.conftest import make_slice
from tests.design_steps import changed
from tests.refusals import refused
from tests.slow_cases import slow_case

START = (8, 7, 9, 6)
FAST = md.DoubleLoop(ControlVariate(4))


def step(error: float = float("nan"), gain: float = float("nan")) -> Forecast:
    return Forecast(np.array([0.0, error**2]), image_energy=1 - error**2, information=gain)


NAN = float("nan")
EITHER = StopRule(error=0.05, gain=5.0)


@pytest.mark.parametrize(
    ("rule", "error", "gain", "stops"),
    [
        (StopRule(error=0.05), 0.04, NAN, True),
        (StopRule(error=0.05), 0.05, NAN, True),
        (StopRule(error=0.05), 0.0501, NAN, False),
        (StopRule(error=0.05), NAN, NAN, False),
        (StopRule(gain=5.0), NAN, 4.9, True),
        (StopRule(gain=5.0), NAN, 5.0, False),
        (StopRule(gain=5.0), NAN, NAN, False),
        (EITHER, 0.01, 9.0, True),
        (EITHER, 0.9, 1.0, True),
        (EITHER, 0.9, 9.0, False),
    ],
)
def test_a_rule_stops_once_its_number_is_small(rule: StopRule, error: float, gain: float, stops: bool) -> None:
    assert rule(step(error, gain)) is stops


@pytest.mark.parametrize("limit", [0.0, -1.0, NAN, float("inf"), 1.5])
def test_limits_are_above_zero_and_those_of_errors_below_one(limit: float) -> None:
    for name in ("error", *([] if limit == 1.5 else ["gain"])):
        with refused(f"until_{name}"):
            StopRule(**{name: limit})


@pytest.mark.parametrize(
    ("now", "least", "fall", "stops", "missed"),
    [
        (0.2, 0.03, 0.0, False, False),  # noise leaves less than wanted
        (0.2, 0.055, 0.1, False, False),  # above what is wanted, but predictions fall: perhaps not in the end
        (0.055, 0.055, 0.1, False, False),
        (0.055, 0.055, np.nan, False, False),  # too early to tell
        (0.2, 0.07, 0.1, True, True),  # far above it
        (0.056, 0.055, 0.01, True, True),  # predictions have come to rest
        (0.06, 0.07, 0.0, True, True),  # and all lines leave no more than those so far
        (0.06, 0.07, 0.1, False, False),
        (0.05, 0.055, 0.0, True, False),  # reached, whatever the look ahead said
        (0.2, np.nan, np.nan, False, False),
    ],
)
def test_an_error_that_noise_does_not_allow_is_out_of_reach(
    now: float, least: float, fall: float, stops: bool, missed: bool
) -> None:
    rule, seen = StopRule(error=0.05), changed(step(now), least_error=least, recent_fall=fall)
    assert rule.looks_ahead
    assert (rule(seen), rule.out_of_reach(seen)) == (stops, missed)
    (fact,) = rule.facts(seen)
    assert (fact.code, fact.limit) == ("out of reach" if missed else "error", 0.05)
    assert fact.value == pytest.approx(now) and (fact.least == min(least, now)) is missed


def test_another_rule_that_is_met_makes_good_for_one_out_of_reach() -> None:
    both = StopRule(error=0.05, gain=5.0)
    seen = changed(step(0.2, 9.0), least_error=0.1)
    assert both.looks_ahead and both.out_of_reach(seen)
    assert both(changed(seen, information=1.0)) and not both.out_of_reach(changed(seen, information=1.0))
    assert not StopRule(gain=5.0).looks_ahead


@pytest.mark.parametrize("coils", [1, slow_case(2)])
def test_the_error_that_every_line_leaves_is_that_of_the_dense_posterior(coils: int) -> None:
    one = make_slice(n_coils=coils, shape=(12, 10), name="shepp-logan")
    engine = DesignEngine(ExpectedError(draws=4000), md.DoubleLoop(Exact()))
    start = md.readouts.centre_lines(one.measured, 4)
    state = engine.run([one], engine.begin([one], start), 6, stop=StopRule(0.5, ends=lambda forecast: True))
    seen = state.trace.declined.forecast
    followed = engine.inference_of(one, state.signals[0])
    followed.update(tuple(start))
    held = followed.posterior.precision  # whose site precisions stay
    full = PosteriorPrecision(one.encoding(range(12)), held.blocks, held.site_precisions)
    left = one.noise_variance * np.trace(np.linalg.inv(full.dense_real()))
    assert seen.least_error == pytest.approx(np.sqrt(left / (seen.image_energy + left)), rel=0.05)
    assert seen.least_error < changed(seen, tested=1.0).predicted_error


def test_lines_that_may_never_be_measured_stay_in_the_error() -> None:
    one = make_slice()
    rule = StopRule(error=0.001)
    free, bound = (
        DesignEngine(InformationGain(), FAST, constraints=LineConstraints(forbidden))
        for forbidden in ((), (4, 5, 11, 12))
    )
    least = []
    for engine in (free, bound):
        state = engine.run([one], engine.begin([one], START), 10, stop=rule)
        assert state.trace.declined is not None and len(state.trace.lines) == len(START) + rule.fewest
        least.append(state.trace.declined.forecast.least_error)
    assert least[1] > 1.5 * least[0]


@pytest.mark.slow
def test_the_end_is_predicted_where_it_is_asked_for() -> None:
    one = make_slice()
    engine = DesignEngine(Calibrated(), FAST)
    start = engine.begin([one], START)
    plain = engine.run([one], start, 16)
    closed = engine.run([one], start, 16, closing=True)
    assert plain.trace.lines == closed.trace.lines and plain.trace.closing is None
    end = closed.trace.forecast(16)
    assert end is not None and end is closed.trace.closing
    assert end.predicted_error < closed.trace.steps[-1].predicted_error
    assert end.least_error == end.predicted_error  # nothing is left to measure
    fewer = engine.run([one], start, 9, closing=True).trace
    assert fewer.closing is not None and np.isnan(fewer.closing.least_error)
    longer = closed.trace.steps[5].forecast
    assert fewer.closing.predicted_error == pytest.approx(longer.predicted_error, rel=1e-6)
    low_pass = replace(engine, strategy=LowPass())
    assert low_pass.run([one], low_pass.begin([one], START), 9, closing=True).trace.closing is None


@pytest.mark.parametrize(("tested", "stops"), [(0.0, False), (3.0, False), (4.0, True), (float("nan"), True)])
def test_no_rule_believes_what_has_not_been_tested(tested: float, stops: bool) -> None:
    """Reached, out of reach, or of little gain: before four lines were predicted and found nothing ends a design."""
    reached, hopeless = changed(step(0.01, 9.0), tested=tested), changed(step(0.2), least_error=0.1, tested=tested)
    useless = changed(step(0.2, 1.0), tested=tested)
    for rule, seen in (
        (StopRule(error=0.05), reached),
        (StopRule(error=0.05), hopeless),
        (StopRule(gain=5.0), useless),
    ):
        assert rule(seen) is stops
    assert StopRule(error=0.05).out_of_reach(hopeless) is stops
    assert StopRule(gain=5.0, fewest=0)(useless)


def test_what_the_start_predicts_of_the_image_is_no_prediction() -> None:
    """The engine counts what was found; the first line is chosen by what is believed, and nothing else comes of it."""
    one = make_slice()
    engine = DesignEngine(Calibrated(), FAST)
    begun = engine.begin([one], START)
    trace = engine.run([one], begun, 10, stop=StopRule(error=0.9)).trace
    assert [each.forecast.tested for each in trace.steps] == [0, 1, 2, 3]  # then 90 % are believed
    assert trace.declined is not None and trace.declined.forecast.tested == 4
    first = trace.steps[0]
    assert first.forecast.predicted is not None and np.isfinite(first.predicted_energy)
    assert np.isnan(first.predicted_error) and trace.forecast(len(START)) is None
    assert changed(first, tested=1.0).predicted_error < 0.9  # it would have ended the design
    assert trace.steps[1].predicted_error > 0 and trace.forecast(len(START) + 1) is not None
    unmoved = engine.run([one], begun, len(START), closing=True).trace
    assert unmoved.closing is not None and np.isnan(unmoved.closing.predicted_error)


@pytest.mark.parametrize(
    ("image", "stops", "missed"),
    [
        (0.05, True, False),  # whatever the design predicts
        (0.051, False, False),
        (float("nan"), False, False),  # nobody has looked
        (0.15, True, True),  # every line would leave three quarters of .1, as much less as the image's error is less
        (0.1, False, False),  # half of .1
    ],
)
def test_the_error_of_the_image_ends_a_design(image: float, stops: bool, missed: bool) -> None:
    rule = StopRule(error=0.05, by_image=True)
    seen = changed(step(0.2), image_error=image, least_error=0.1, recent_fall=0.1)
    assert (rule(seen), rule.out_of_reach(seen)) == (stops, missed)
    larger = changed(step(0.01), image_error=0.06)
    assert not rule(larger) and StopRule(error=0.05)(larger)


def test_the_image_is_looked_at_where_its_error_may_be_small_enough() -> None:
    rule = StopRule(error=0.05, by_image=True)
    both = replace(rule, gain=5.0)
    for predicted, ratio, asks in ((0.06, 0.9, True), (0.06, 1.1, False), (0.05, 1.1, True), (NAN, 1.0, True)):
        seen = step(predicted)
        assert rule.needs_image_error(seen, ratio) == both.needs_image_error(seen, ratio) == asks
        assert not rule.needs_image_error(changed(seen, tested=3.0), ratio)
        assert not any(one.needs_image_error(seen, ratio) for one in (StopRule(error=0.05), StopRule(gain=5.0)))
    hopeless = changed(step(0.2), least_error=0.07, recent_fall=0.1)
    assert rule.needs_image_error(hopeless, 1.0)  # out of reach, unless the image knows better


def test_designs_look_now_and_then_and_end_by_what_they_see() -> None:
    """Looks come with the first prediction that is near, and a sixteenth of the lines later, at least one."""
    one, looked = make_slice(), []

    def image_error(slices: Sequence[md.SliceModel], state: DesignState) -> float:
        looked.append(len(state.trace.lines))
        assert list(slices) == [one]
        return (0.95, 0.9, 0.7)[len(looked) - 1]

    rule = StopRule(error=0.75, fewest=1, by_image=True)
    engine = DesignEngine(Calibrated(), FAST, image_error=image_error)
    state = engine.run([one], engine.begin([one], START), 14, stop=rule)
    trace = state.trace
    assert trace.declined is not None and trace.declined.forecast.image_error == 0.7 and looked[-1] == len(trace.lines)
    errors = [step.forecast.image_error for step in trace.steps]
    seen = {len(START) + n: error for n, error in enumerate(errors) if np.isfinite(error)}
    assert list(seen) == looked[:-1] and list(seen.values())[:2] == [0.95, 0.9]
    blind = replace(engine, image_error=lambda slices, state: float("nan"))  # where nothing is known of the image
    ended = blind.run([one], blind.begin([one], START), 14, stop=rule).trace.declined
    assert ended is not None and ended.forecast.image_error == ended.predicted_error <= 0.75
    same = engine.run([one], engine.begin([one], START), 14).trace  # looking changes no line
    assert same.lines[: len(trace.lines)] == trace.lines


def test_looks_lie_apart_and_the_last_is_at_the_end() -> None:
    one, looked = make_slice(shape=(64, 16)), []

    def image_error(slices: Sequence[md.SliceModel], state: DesignState) -> float:
        looked.append(len(state.trace.lines))
        return 0.55

    rule = StopRule(error=0.5, fewest=0, by_image=True)
    engine = DesignEngine(Calibrated(), FAST, image_error=image_error)
    trace = engine.run(
        [one], engine.begin([one], md.readouts.centre_lines(one.measured, 33)), 38, stop=rule, closing=True
    ).trace
    assert trace.closing is not None and trace.closing.image_error == 0.55
    assert looked[-1] == 38 and all(later - earlier > 1 for earlier, later in pairwise(looked[:-1]))


def known(*halves: float, error: float = NAN) -> Forecast:
    """Intervals of these half lengths, around 2 units in regions of that brightness."""
    return changed(step(error), intervals=np.array([(2.0, half, 2.0) for half in halves]))


def test_a_design_ends_when_all_intervals_are_short_enough() -> None:
    share, absolute = StopRule(within=Within(0.1)), StopRule(within=Within(0.1, relative=False))
    for rule, ends, not_yet, code in ((share, 0.2, 0.21, "interval"), (absolute, 0.1, 0.11, "length")):
        assert rule(known(0.01, ends)) and not rule(known(0.01, not_yet)) and not rule(step(0.01, 0.1))
        assert not rule(changed(known(ends), tested=3.0))
        (fact,) = rule.facts(known(0.01, ends))
        assert (fact.code, fact.limit) == (code, 0.1) and fact.value == pytest.approx(0.1)
    nothing = changed(step(), intervals=np.array([(0.0, 0.1, 0.0)]))
    assert not share(nothing) and absolute(nothing)  # no fraction of nothing
    assert StopRule(0.05, within=Within(0.1))(step(0.04))  # either ends it


@pytest.mark.parametrize(("length", "relative"), [(0.0, True), (-1.0, False), (1.0, True), (NAN, False)])
def test_intervals_that_cannot_be_are_refused(length: float, relative: bool) -> None:
    with refused("until_interval"):
        Within(length, relative)


@pytest.mark.parametrize(
    ("now", "lines", "asks"),
    [(0.10, 4, False), (0.10, 5, True), (0.125, 5, False), (0.125, 10, True), (NAN, 5, True), (NAN, 4, False)],
)
def test_regions_are_looked_at_where_their_intervals_may_be_short_enough(now: float, lines: int, asks: bool) -> None:
    """They were twice as long as wanted, with a predicted error of 20 %, and fall with it."""
    rule, last = StopRule(within=Within(0.05)), known(0.2, error=0.2)
    assert rule.needs_intervals(step(now), last, lines) is asks
    assert rule.needs_intervals(step(now), None, 0) and not StopRule(0.05).needs_intervals(step(now), None, 0)
    assert not rule.needs_intervals(changed(step(now), tested=3.0), None, 0)


def test_a_design_looks_at_its_regions_every_fifth_line_at_most() -> None:
    one, looked = make_slice(shape=(64, 16)), []

    def intervals(slices: Sequence[md.SliceModel], state: DesignState) -> np.ndarray:
        looked.append(len(state.trace.lines))
        return np.array([(1.0, 0.3 / len(looked), 1.0)])

    engine = DesignEngine(Calibrated(), FAST, intervals=intervals)
    start = engine.begin([one], md.readouts.centre_lines(one.measured, 8))
    trace = engine.run([one], start, 60, stop=StopRule(within=Within(0.1), fewest=2)).trace
    assert looked[0] == 10 and len(looked) == 3 and trace.declined is not None
    assert all(5 <= later - earlier <= 10 for earlier, later in pairwise(looked))
    seen = [len(start.trace.lines) + n for n, each in enumerate(trace.steps) if each.forecast.intervals is not None]
    assert seen == looked[:-1] and len(trace.lines) == looked[-1]
    same = engine.run([one], start, len(trace.lines)).trace  # looking changes no line
    assert same.lines == trace.lines and len(looked) == 3


@pytest.mark.parametrize("block", [1, 2])
def test_the_declined_decision_is_the_first_that_meets_the_rule(block: int) -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), FAST, block=block)
    whole = engine.run([one], engine.begin([one], START), 14).trace
    asked = [s for s in whole.steps if not s.choice.pending]
    rule = StopRule(gain=float(np.median([s.choice.score / 2 for s in asked])))
    first = next(i for i, s in enumerate(asked) if rule(s.forecast))
    stopped = engine.run([one], engine.begin([one], START), 14, stop=rule).trace
    assert stopped.lines == whole.lines[: len(START) + first * block]
    assert stopped.declined.line == asked[first].line and stopped.declined.line not in stopped.lines
    assert rule(stopped.declined.forecast)


def test_a_block_infers_once_and_never_takes_a_line_twice() -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), FAST, block=3)
    calls: list[int] = []
    state = engine.run([one], engine.begin([one], START), 12, lambda s: calls.append(len(s.trace.lines)))
    assert calls == [7, 10, 12]  # the last block is cut short by the target
    assert [step.choice.pending for step in state.trace.steps] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert len(set(state.trace.lines)) == 12
    plain = replace(engine, block=1).run([one], engine.begin([one], START), 5)
    assert plain.trace.lines == state.trace.lines[:5]
    with refused("block"):
        DesignEngine(InformationGain(), block=0)


class Halved(InformationGain):
    """Believes in half of what the posterior expects."""

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        made = super().choose(view, rng)
        expected = made.forecast.expected
        return replace(made, forecast=replace(made.forecast, corrected=expected / 2))


@pytest.mark.parametrize("block", [1, 3])
def test_the_energy_predicted_of_a_line_is_what_its_strategy_believes(block: int) -> None:
    one = make_slice()
    engine = DesignEngine(Halved(), md.DoubleLoop(ControlVariate(8)), block=block)
    trace = engine.run([one], engine.begin([one], START), 7).trace
    noise = one.noise_variance * 2 * one.shape[1]
    for index, step in enumerate(trace.steps):
        believed = trace.block_start(index).forecast.corrected
        assert step.predicted_energy == pytest.approx(believed[step.line] + noise)
        assert step.found
    sums = [step.forecast.expected.sum() for step in trace.steps[:block]]
    assert sums == sorted(sums, reverse=True)  # what is pending will have been learnt
