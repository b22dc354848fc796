"""Tables of a design, step by step."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design.design.trace import DesignTrace
from mri_design.evaluation.account import account_of
from mri_design.runs.design_sections import score_rows, step_rows
from tests.design_steps import design_step
from tests.short_trace import TRACE


def test_rules_that_know_nothing_leave_gaps() -> None:
    blind = DesignTrace("random", 8, (4,), (design_step(6), design_step(0)))
    first = step_rows(account_of(blind))[0]
    assert (first["lines"], first["line"], first["ky"], first["score"]) == (1, 6, 2, None)
    assert (first["predicted_error"], first["found"], first["running_ratio"]) == (None, None, None)
    assert score_rows(blind) == []


def test_a_line_that_came_in_by_an_exchange_leaves_gaps() -> None:
    rows = step_rows(account_of(replace(TRACE, steps=(*TRACE.steps, design_step(1)))))
    assert [row["found"] for row in rows] == [30, 60, None]
    assert [row["total_nats"] for row in rows] == [2.0, 3.5, None]


def test_rows_add_up() -> None:
    first, second = step_rows(account_of(TRACE))
    assert (first["lines"], second["lines"]) == (2, 3)
    assert (second["line"], second["ky"], second["score"]) == (0, -4, 3.0)
    assert (second["gain_nats"], second["total_nats"]) == (1.5, 3.5)
    assert first["predicted_error"] == pytest.approx(np.sqrt(8 * 20 / (1000 + 8 * 20)))
    assert (second["predicted"], second["found"]) == (15, 60)
    assert "at_most_nats" in step_rows(account_of(replace(TRACE, strategy="x")))[0]


def test_scores_stand_under_their_ky() -> None:
    first, _ = score_rows(TRACE)
    assert list(first) == ["lines", "line", *(f"ky={k}" for k in range(-4, 4))]
    assert (first["ky=2"], first["ky=1"]) == (4.0, None)
