"""Numbers of a design step by step: information, innovations, scores."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design.design.decision import DesignStep
from mri_design.design.trace import DesignTrace
from mri_design.runs.sections.steps import WINDOW, information_gains, innovations, score_rows, step_rows
from tests.design_steps import changed, design_step

NOISE = 0.5  # per real component
SHARE = 2 * NOISE * 10  # of a line of ten complex values


def step(line: int, expected: float, found: float = 30.0, score: float = 4.0, pending: int = 0) -> DesignStep:
    """Every line expected to hold ``expected``, noise apart."""
    scores = np.full(8, np.nan)
    scores[line] = score
    energies = np.full(8, expected)
    return design_step(
        line,
        scores=scores,
        predicted_energy=expected + SHARE,
        actual_energy=found,
        expected=energies,
        image_energy=1000.0,
        pending=pending,
        information=score / 2,
    )


TRACE = DesignTrace("information-gain", 8, (4, 3), (step(6, 20.0), step(0, 5.0, found=60.0, score=3.0)))


def test_gains_are_those_of_the_steps_and_bounds_for_rules_that_do_not_compute_them() -> None:
    gains, bounds = information_gains(TRACE)
    assert (gains.tolist(), bounds) == ([2.0, 1.5], False)
    gains, bounds = information_gains(replace(TRACE, strategy="expected-error"))
    assert (gains.tolist(), bounds) == ([2.0, 1.5], True)


def test_rules_that_know_nothing_tell_nothing() -> None:
    blind = DesignTrace("random", 8, (4,), (design_step(6), design_step(0)))
    assert np.isnan(information_gains(blind)[0]).all()
    assert innovations(blind) is None
    assert innovations(replace(blind, steps=())) is None
    first = step_rows(blind)[0]
    assert (first["lines"], first["line"], first["ky"], first["score"]) == (1, 6, 2, None)
    assert (first["predicted_error"], first["found"], first["running_ratio"]) == (None, None, None)
    assert score_rows(blind) == []


def test_innovations_and_their_running_ratio() -> None:
    news = innovations(TRACE)
    assert news is not None
    assert news["predicted"].tolist() == [30, 15]
    assert news["found"].tolist() == [30, 60]
    assert news["noise"] == pytest.approx([SHARE, SHARE])
    assert news["running"] == pytest.approx([1, 0.5])
    steps = (step(0, 20.0), *(step(0, 5.0) for _ in range(WINDOW)))
    long = innovations(replace(TRACE, steps=steps))
    assert long is not None and long["running"][-1] == pytest.approx(0.5)  # the first one is forgotten


def test_a_line_that_came_in_by_an_exchange_hides_nothing_of_the_others() -> None:
    exchanged = replace(TRACE, steps=(*TRACE.steps, design_step(1)))
    news = innovations(exchanged)
    assert news is not None
    assert news["running"] == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert news["found"] == pytest.approx([30, 60, np.nan], nan_ok=True)
    rows = step_rows(exchanged)
    assert [row["found"] for row in rows] == [30, 60, None]
    assert [row["total_nats"] for row in rows] == [2.0, 3.5, None]


def test_what_the_strategy_believes_is_what_counts() -> None:
    believing = changed(TRACE.steps[0], corrected=np.full(8, 50.0))
    news = innovations(replace(TRACE, steps=(believing,)))
    assert news is not None and news["predicted"].tolist() == [60]


def test_in_a_block_the_prediction_is_that_of_its_start() -> None:
    """Later steps of a block expect less; what they are held against is a mean from before the block."""
    second = changed(step(6, 5.0, pending=1), predicted_energy=20.0 + SHARE)
    trace = replace(TRACE, steps=(step(5, 20.0), second))
    news = innovations(trace)
    assert news is not None
    assert news["noise"] == pytest.approx([SHARE, SHARE])
    believing = (changed(trace.steps[0], corrected=np.full(8, 40.0)), changed(second, corrected=np.full(8, 7.0)))
    corrected = innovations(replace(trace, steps=believing))
    assert corrected is not None and corrected["predicted"] == pytest.approx([50, 50])


def test_rows_add_up() -> None:
    first, second = step_rows(TRACE)
    assert (first["lines"], second["lines"]) == (2, 3)
    assert (second["line"], second["ky"], second["score"]) == (0, -4, 3.0)
    assert (second["gain_nats"], second["total_nats"]) == (1.5, 3.5)
    assert first["predicted_error"] == pytest.approx(np.sqrt(8 * 20 / (1000 + 8 * 20)))
    assert (second["predicted"], second["found"]) == (15, 60)
    assert "at_most_nats" in step_rows(replace(TRACE, strategy="x"))[0]


def test_scores_stand_under_their_ky() -> None:
    first, _ = score_rows(TRACE)
    assert list(first) == ["lines", "line", *(f"ky={k}" for k in range(-4, 4))]
    assert (first["ky=2"], first["ky=1"]) == (4.0, None)
