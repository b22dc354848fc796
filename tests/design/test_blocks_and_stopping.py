from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    Choice,
    ControlVariate,
    DesignEngine,
    DesignView,
    DoubleLoop,
    InformationGain,
)
from tests.design.conftest import SliceMaker
from tests.refusals import refused

START = (8, 7, 9, 6)


def test_a_block_infers_once_and_never_takes_a_line_twice(make_slice: SliceMaker) -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), DoubleLoop(ControlVariate(4)), block=3)
    calls: list[int] = []
    state = engine.run([one], engine.begin([one], START), 12, lambda s: calls.append(len(s.trace.lines)))
    assert calls == [7, 10, 12]  # the last block is cut short by the target
    assert [step.choice.pending for step in state.trace.steps] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert len(set(state.trace.lines)) == 12


def test_a_block_of_one_is_the_plain_design(make_slice: SliceMaker) -> None:
    one = make_slice()
    plain, blocked = (DesignEngine(InformationGain(), DoubleLoop(ControlVariate(4)), block=k) for k in (1, 2))
    start = plain.begin([one], START)
    assert plain.run([one], start, 5).trace.lines == blocked.run([one], start, 5).trace.lines
    with refused("block"):
        DesignEngine(InformationGain(), block=0)


def test_energies_of_a_block_are_those_of_its_start(make_slice: SliceMaker) -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), DoubleLoop(ControlVariate(8)), block=4)
    steps = engine.run([one], engine.begin([one], START), 8).trace.steps
    noise = one.noise_variance * 2 * one.shape[1]
    assert steps[0].forecast.expected is not None and steps[3].forecast.expected is not None
    for step in steps:
        assert step.outcome.predicted_energy == pytest.approx(steps[0].forecast.expected[step.line] + noise)
    assert steps[3].forecast.expected.sum() < steps[0].forecast.expected.sum()  # what is pending will have been learnt


class Halved(InformationGain):
    """Believes in half of what the posterior expects."""

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        made = super().choose(view, rng)
        expected = made.forecast.expected
        assert expected is not None
        return replace(made, forecast=replace(made.forecast, corrected=expected / 2))


@pytest.mark.parametrize("block", [1, 3])
def test_the_energy_predicted_of_a_line_is_what_its_strategy_believes(make_slice: SliceMaker, block: int) -> None:
    one = make_slice()
    engine = DesignEngine(Halved(), DoubleLoop(ControlVariate(8)), block=block)
    trace = engine.run([one], engine.begin([one], START), 7).trace
    noise = one.noise_variance * 2 * one.shape[1]
    for index, step in enumerate(trace.steps):
        believed = trace.block_start(index).forecast.corrected
        assert believed is not None
        assert step.outcome.predicted_energy == pytest.approx(believed[step.line] + noise)
        assert step.found
