import numpy as np
import pytest

from mri_design.design import AnyOf, DesignEngine, DesignStep, InformationGain, UntilError, UntilGain
from mri_design.errors import InputError
from mri_design.inference import DoubleLoop
from mri_design.variances import ControlVariate
from tests.design.conftest import SliceMaker

START = (8, 7, 9, 6)


def step(error: float = float("nan"), gain: float = float("nan")) -> DesignStep:
    return DesignStep(1, expected=np.array([0.0, error**2]), image_energy=1 - error**2, information=gain)


@pytest.mark.parametrize(("error", "stops"), [(0.04, True), (0.05, True), (0.0501, False), (float("nan"), False)])
def test_an_error_stops_once_it_is_small(error: float, stops: bool) -> None:
    assert UntilError(0.05)(step(error)) is stops


@pytest.mark.parametrize(("gain", "stops"), [(4.9, True), (5.0, False), (float("nan"), False)])
def test_a_gain_stops_once_it_is_below_in_nats(gain: float, stops: bool) -> None:
    assert UntilGain(5.0)(step(gain=gain)) is stops


def test_an_empty_image_s_error_is_nothing_to_stop_at() -> None:
    with pytest.raises(InputError, match="less than 1"):
        UntilError(1.5)


@pytest.mark.parametrize("rule", [UntilError(0.1), UntilGain(1.0)])
def test_strategies_without_predictions_are_never_stopped(rule: UntilError | UntilGain) -> None:
    assert not rule(DesignStep(3))


def test_reasons_say_which_side_of_the_limit_it_is() -> None:
    assert UntilError(0.05).reason(step(0.0493)) == "predicted error 4.93 % <= 5 %"
    assert UntilError(0.05).reason(step(0.07)) == "predicted error 7 % > 5 %"
    assert UntilError(0.05).reason(step(0.0500001)) == "predicted error 5.00001 % > 5 %"
    assert UntilGain(5.0).reason(step(gain=4.25)) == "gain of the best line 4.25 nats < 5 nats"
    assert UntilGain(5.0).reason(step(gain=5.0)) == "gain of the best line 5 nats >= 5 nats"


def test_any_of_several_rules_stops_and_says_which() -> None:
    rule = AnyOf((UntilError(0.05), UntilGain(5.0)))
    assert rule(step(0.01, 9.0)) and rule(step(0.9, 1.0)) and not rule(step(0.9, 9.0))
    assert rule.reason(step(0.01, 9.0)) == "predicted error 1 % <= 5 %"
    assert rule.reason(step(0.01, 1.0)).count(" and ") == 1
    assert rule.reason(step(0.9, 9.0)) == "predicted error 90 % > 5 % and gain of the best line 9 nats >= 5 nats"


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_limits_are_above_zero(limit: float) -> None:
    with pytest.raises(InputError, match="error to stop at"):
        UntilError(limit)
    with pytest.raises(InputError, match="gain to stop at"):
        UntilGain(limit)


@pytest.mark.parametrize("block", [1, 2])
def test_the_declined_decision_is_the_first_that_meets_the_rule(make_slice: SliceMaker, block: int) -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), DoubleLoop(ControlVariate(4)), block=block)
    whole = engine.run([one], engine.begin([one], START), 14).trace
    asked = [s for s in whole.steps if not s.pending]
    rule = UntilGain(float(np.median([s.score / 2 for s in asked])))
    first = next(i for i, s in enumerate(asked) if rule(s))
    stopped = engine.run([one], engine.begin([one], START), 14, stop=rule).trace
    assert whole.declined is None and stopped.declined is not None
    assert stopped.lines == whole.lines[: len(START) + first * block]
    assert stopped.declined.line == asked[first].line and stopped.declined.line not in stopped.lines
    assert rule(stopped.declined)


def test_slices_are_added_up(make_slice: SliceMaker) -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), DoubleLoop(ControlVariate(4)))
    single, double = (engine.run(s, engine.begin(s, START), 5).trace.steps[0] for s in ([one], [one, one]))
    assert double.score == pytest.approx(2 * single.score, rel=0.1)
    assert double.predicted_error == pytest.approx(single.predicted_error, rel=0.1)
