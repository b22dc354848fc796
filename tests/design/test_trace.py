"""Decisions and their history: what is predicted, chosen and found, and what a decision may tell at most."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from mri_design import Choice, DesignEngine, DoubleLoop, Exact, Forecast, InformationGain, MRSlice, information_gain
from mri_design.design import (
    DesignStep,
    DesignTrace,
    ExpectedError,
    LineOutcome,
    StepCost,
    Strategy,
    columns,
    most_information,
)
from mri_design.design.trace import relative_error
from tests.design_steps import changed, design_step
from tests.slow_cases import slow_case


def test_columns_are_the_marked_fields_in_their_order() -> None:
    step = design_step(3, image_energy=2.0, converged=False, matvecs=5, seconds=9.0, actual_energy=1.0)
    assert columns(step) == {"image_energy": 2.0, "converged": False, "matvecs": 5}
    assert list(columns(step)) == ["image_energy", "converged", "matvecs"]
    assert columns(Forecast(image_energy=4.0)) == {"image_energy": 4.0}


def test_the_fields_of_all_parts_have_names_of_their_own() -> None:
    """So that a table of them has no column twice."""
    names = [each.name for part in (Choice, Forecast, LineOutcome, StepCost) for each in fields(part)]
    assert len(set(names)) == len(names)
    assert [each.name for each in fields(DesignStep)] == ["choice", "outcome", "cost"]
    assert all(is_dataclass(part) for part in vars(design_step(0)).values())


def test_what_a_stop_rule_asks_is_that_of_the_forecast() -> None:
    step = design_step(1, expected=np.array([1.0, 3.0]), image_energy=12.0)
    assert step.forecast.predicted_level == 16.0
    assert step.predicted_error == step.forecast.predicted_error == pytest.approx(0.5)
    believing = changed(step, corrected=np.array([0.0, 4.0])).forecast
    assert believing.predicted is believing.corrected


def test_errors_are_relative_to_an_image_that_has_the_energy_of_the_error_too() -> None:
    assert relative_error(1.0, 15.0) == 0.25 and relative_error(3.0, 0.0) == 1.0
    assert np.isnan(relative_error(0.0, 0.0)) and np.isnan(relative_error(1.0, float("nan")))


SCORES = np.array([np.nan, 4.0, 2.0, np.nan])
TRACE = DesignTrace("rule", 4, (2,), (design_step(1, scores=SCORES), design_step(3)))


def test_lines_are_in_acquisition_order_start_first_and_a_mask_is_of_the_first() -> None:
    assert TRACE.lines == (2, 1, 3)
    assert TRACE.mask().tolist() == [False, True, True, True]
    assert TRACE.mask(2).tolist() == [False, True, True, False]
    assert TRACE.mask(0).tolist() == [False] * 4


def test_innovation_energies_are_of_the_lines_that_were_predicted() -> None:
    steps = (design_step(1, actual_energy=2.0), design_step(3), design_step(0, actual_energy=0.5))
    assert DesignTrace("rule", 4, (2,), steps).innovation_energies == {1: 2.0, 0: 0.5}


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
        assert step.forecast.information == pytest.approx(exact, rel=0.06)
    else:
        assert exact < step.forecast.information < 1.5 * exact
