"""Shares of right predictions, by hand."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from mri_design import InputError
from mri_design.evaluation.account import how_often_right
from mri_design.evaluation.predictions import PredictionCheck
from mri_design.evaluation.tables import csv_text


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
