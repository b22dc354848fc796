from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from mri_design import Choice, Forecast
from mri_design.design.trace import DesignStep, LineOutcome, StepCost, columns, relative_error
from tests.design_steps import changed, design_step


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
    step = design_step(1, expected=np.array([1.0, 3.0]), image_energy=12.0, information=2.5, least_error=0.25)
    assert step.forecast.predicted_level == 16.0
    assert (step.predicted_error, step.information, step.least_error) == (pytest.approx(0.5), 2.5, 0.25)
    believing = changed(step, corrected=np.array([0.0, 4.0])).forecast
    assert believing.predicted is believing.corrected


def test_errors_are_relative_to_an_image_that_has_the_energy_of_the_error_too() -> None:
    assert relative_error(1.0, 15.0) == 0.25 and relative_error(3.0, 0.0) == 1.0
    assert np.isnan(relative_error(0.0, 0.0)) and np.isnan(relative_error(1.0, float("nan")))
