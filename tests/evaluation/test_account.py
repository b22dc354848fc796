"""What a design expected of its lines, beside what they held: information, innovations."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design.design.trace import DesignTrace
from mri_design.evaluation.account import WINDOW, ExpectedInformation, expected_information, innovations
from tests.design_steps import changed, design_step
from tests.short_trace import SHARE, TRACE, step


def test_gains_are_those_of_the_steps_and_bounds_for_rules_that_do_not_compute_them() -> None:
    known = expected_information(TRACE)
    assert (known.gains.tolist(), known.upper_bound) == ([2.0, 1.5], False)
    bound = expected_information(replace(TRACE, strategy="expected-error"))
    assert (bound.gains.tolist(), bound.upper_bound) == ([2.0, 1.5], True)


def test_information_adds_up_over_the_lines_that_were_predicted() -> None:
    known = ExpectedInformation(np.array([1.0, np.nan, 3.0, 2.0]), False)
    assert known.predicted.tolist() == [1, 3, 2]
    assert (known.total, known.lines_for_half) == (6.0, 2)


def test_rules_that_know_nothing_tell_nothing() -> None:
    blind = DesignTrace("random", 8, (4,), (design_step(6), design_step(0)))
    assert np.isnan(expected_information(blind).gains).all()
    assert innovations(blind) is None
    assert innovations(replace(blind, steps=())) is None


def test_innovations_and_their_running_ratio() -> None:
    found = innovations(TRACE)
    assert found is not None
    assert found.predicted.tolist() == [30, 15]
    assert found.measured.tolist() == [30, 60]
    assert found.noise == pytest.approx([SHARE, SHARE])
    assert found.running_ratio == pytest.approx([1, 0.5])
    steps = (step(0, 20.0), *(step(0, 5.0) for _ in range(WINDOW)))
    long = innovations(replace(TRACE, steps=steps))
    assert long is not None and long.running_ratio[-1] == pytest.approx(0.5)  # the first one is forgotten


def test_the_ratio_is_the_geometric_mean() -> None:
    found = innovations(TRACE)
    assert found is not None and found.known.all()
    assert found.ratio == pytest.approx(0.5)  # (30/30 * 15/60)^(1/2)


def test_a_line_that_came_in_by_an_exchange_hides_nothing_of_the_others() -> None:
    exchanged = replace(TRACE, steps=(*TRACE.steps, design_step(1)))
    found = innovations(exchanged)
    assert found is not None
    assert found.running_ratio == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert found.measured == pytest.approx([30, 60, np.nan], nan_ok=True)


def test_what_the_strategy_believes_is_what_counts() -> None:
    believing = changed(TRACE.steps[0], corrected=np.full(8, 50.0))
    found = innovations(replace(TRACE, steps=(believing,)))
    assert found is not None and found.predicted.tolist() == [60]


def test_in_a_block_the_prediction_is_that_of_its_start() -> None:
    """Later steps of a block expect less; what they are held against is a mean from before the block."""
    second = changed(step(6, 5.0, pending=1), predicted_energy=20.0 + SHARE)
    trace = replace(TRACE, steps=(step(5, 20.0), second))
    found = innovations(trace)
    assert found is not None
    assert found.noise == pytest.approx([SHARE, SHARE])
    believing = (changed(trace.steps[0], corrected=np.full(8, 40.0)), changed(second, corrected=np.full(8, 7.0)))
    corrected = innovations(replace(trace, steps=believing))
    assert corrected is not None and corrected.predicted == pytest.approx([50, 50])
