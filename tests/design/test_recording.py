"""What a decision is expected to tell, in nats."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import DesignEngine, DoubleLoop, Exact, InformationGain, MRSlice, information_gain
from mri_design.design.slices import most_information
from mri_design.design.strategies.greedy import ExpectedError
from mri_design.design.strategy import Strategy
from tests.slow_cases import slow_case

SliceMaker = Callable[..., MRSlice]
START = (8, 7, 9, 6)


def test_a_line_tells_at_most_what_equal_independent_values_would() -> None:
    assert most_information(20.0, 10.0, 10) == pytest.approx(10 * np.log(3.0))
    variances = np.random.default_rng(0).gamma(0.3, size=10)
    exact = np.log1p(variances).sum()  # independent complex values under complex noise of energy 1 each
    assert exact < most_information(float(variances.sum()), 10.0, 10)


@pytest.mark.parametrize("coils", [1, slow_case(2)])
@pytest.mark.parametrize("rule", [InformationGain(draws=200), ExpectedError(draws=200)])
def test_information_of_a_decision_against_the_dense_determinant(
    make_slice: SliceMaker, coils: int, rule: Strategy
) -> None:
    one = make_slice(coils)
    loop = DoubleLoop(Exact(), outer_iterations=2)
    engine = DesignEngine(rule, loop)
    step = engine.run([one], engine.begin([one], START), 5).trace.steps[0]
    posterior = loop.infer(one.model(START), np.random.default_rng(0))
    exact = information_gain(posterior, step.line) / 2
    if isinstance(rule, InformationGain):
        assert step.information == pytest.approx(exact, rel=0.06)
    else:
        assert exact < step.information < 1.5 * exact
