"""Innovations and information of a design, and how often its predictions are right."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.predictions import (
    WINDOW,
    ExpectedInformation,
    PredictionCheck,
    expected_information,
    how_often_right,
    innovations,
)
from mri_design.evaluation.tables import csv_text
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
    believing = changed(TRACE.steps[0], corrected=np.full(8, 50.0), predicted_energy=50.0 + SHARE)
    found = innovations(replace(TRACE, steps=(believing,)))
    assert found is not None and found.predicted.tolist() == [60] and found.noise.tolist() == [SHARE]
    not_yet = changed(TRACE.steps[0], corrected=np.full(8, np.nan), predicted_energy=float("nan"))
    assert not_yet.found and innovations(replace(TRACE, steps=(not_yet,))) is None


def test_in_a_block_the_prediction_is_that_of_its_start() -> None:
    """Later steps of a block expect less; what they are held against is a mean from before the block."""
    second = changed(step(6, 5.0, pending=1), predicted_energy=20.0 + SHARE)
    trace = replace(TRACE, steps=(step(5, 20.0), second))
    found = innovations(trace)
    assert found is not None
    assert found.noise == pytest.approx([SHARE, SHARE])
    believing = (
        changed(trace.steps[0], corrected=np.full(8, 40.0), predicted_energy=40.0 + SHARE),
        changed(second, corrected=np.full(8, 7.0), predicted_energy=40.0 + SHARE),
    )
    corrected = innovations(replace(trace, steps=believing))
    assert corrected is not None and corrected.noise == pytest.approx([SHARE, SHARE])


def check(count: int = 3, predicted: float = 1.0, actual: float = 1.0) -> PredictionCheck:
    """Equal energies on 12 lines of which ``count`` around the centre are measured; relative to 100."""
    acquired = np.zeros(12, bool)
    acquired[6 : 6 + count] = True
    return PredictionCheck(
        count, np.full(12, predicted), np.full(12, actual), acquired, predicted_level=100.0, actual_level=100.0
    )


def test_how_often_right_by_hand() -> None:
    ratios = (0.4, 0.5, 0.7, 0.9, 1.2, 2.5)
    cases = [check(2 + i % 2, predicted=ratio**2) for i, ratio in enumerate(ratios)]
    (row,) = how_often_right(cases)
    assert (row["lines"], row["cases"]) == ("all", 6)
    assert row["within_factor_2"] == pytest.approx(4 / 6)
    assert row["within_factor_1.25"] == pytest.approx(2 / 6)
    assert row["median_ratio"] == pytest.approx(0.8)
    assert (row["least"], row["largest"]) == pytest.approx((0.4, 2.5))
    assert row["median_line_ratio"] == pytest.approx(0.49)  # of the three with enough lines: .16, .49, 1.44
    assert row["median_rank_correlation"] is None
    two, three, every = how_often_right(cases, by_lines=True)
    assert (two["lines"], two["cases"], two["median_ratio"]) == (2, 3, pytest.approx(0.7))
    assert (three["lines"], three["within_factor_1.25"]) == (3, pytest.approx(1 / 3))
    assert every == row
    text = csv_text([case.as_row() for case in cases], formats={"ratio": ".17g", "line_ratio": ".17g"})
    again = how_often_right(csv.DictReader(text.splitlines()), by_lines=True)
    assert again == [two, three, every]
    assert how_often_right([*cases, {"lines": 5, "ratio": None}]) == [row]
    with pytest.raises(InputError, match="none"):
        how_often_right([])


def test_tables_of_a_plane_count_samples_and_read_back_as_such() -> None:
    cases = [replace(check(2 + i % 2, predicted=ratio**2), unit="sample") for i, ratio in enumerate((0.5, 0.7, 0.9))]
    rows = how_often_right(cases, by_lines=True)
    assert [row["samples"] for row in rows] == [2, 3, "all"]
    assert not any("line" in name for row in (*rows, cases[0].as_row()) for name in row)
    assert rows[-1]["median_sample_ratio"] == pytest.approx((0.25 + 0.81) / 2)  # of the two with enough samples
    text = csv_text([case.as_row() for case in cases], formats={"ratio": ".17g", "sample_ratio": ".17g"})
    assert how_often_right(csv.DictReader(text.splitlines()), by_lines=True) == rows
