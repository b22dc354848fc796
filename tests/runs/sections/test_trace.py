"""The report of a design shows what is known, and nothing else."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design.design.trace import DesignTrace
from mri_design.evaluation.account import account_of
from mri_design.evaluation.page import Paragraph, ReportFigure, ReportTable, Section
from mri_design.evaluation.predictions import PredictionCheck
from mri_design.evaluation.run_folder import RunFolder
from mri_design.runs.design_sections import design_sections
from tests.design_steps import changed, design_step
from tests.evaluation.conftest import TRACE

ALWAYS = {"mask", "mask-growth", "order"}
SCORED = {"scores", "score-profiles", "information"}

BLIND = DesignTrace("random", 8, (4,), (design_step(6), design_step(0)))
KNOWING = replace(TRACE, steps=tuple(changed(s, expected=np.full(8, 2.0), image_energy=1584.0) for s in TRACE.steps))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


@pytest.fixture
def checks() -> list[PredictionCheck]:
    """The error of the two decisions, with the measured lines' error unknown."""
    masks = [KNOWING.mask(count) for count in (2, 3)]
    return [
        PredictionCheck(
            2 + i, np.full(8, 2.0), np.where(mask, np.nan, 8.0), mask, predicted_level=1600.0, actual_level=1600.0
        )
        for i, mask in enumerate(masks)
    ]


def figures(folder: RunFolder) -> set[str]:
    return {path.stem for path in (folder.path / "figures").glob("*.svg")}


def tables(folder: RunFolder) -> set[str]:
    return {path.name for path in folder.path.glob("*.csv")}


def texts(sections: list[Section]) -> str:
    return "\n".join(b.text for s in sections for b in s.blocks if isinstance(b, Paragraph))


@pytest.mark.slow
def test_a_design_with_scores_shows_them(folder: RunFolder) -> None:
    sections = design_sections(folder, account_of(TRACE), 1.0)
    assert figures(folder) == ALWAYS | SCORED | {"innovations", "calibration"}
    assert tables(folder) == {"steps.csv", "scores.csv"}
    assert [s.title for s in sections] == ["Design", "What was learned", "Was the prediction right?"]
    assert all(b.caption for s in sections for b in s.blocks if isinstance(b, ReportFigure))


@pytest.mark.slow
def test_a_rule_that_knows_nothing_shows_its_mask(folder: RunFolder) -> None:
    (section,) = design_sections(folder, account_of(BLIND), 1.0)
    assert section.title == "Design"
    assert figures(folder) == ALWAYS
    assert tables(folder) == {"steps.csv"}


@pytest.mark.slow
def test_a_design_without_a_step_shows_its_mask(folder: RunFolder) -> None:
    design_sections(folder, account_of(replace(TRACE, steps=())), 1.0)
    assert figures(folder) == ALWAYS
    assert tables(folder) == set()


@pytest.mark.slow
def test_the_information_adds_up(folder: RunFolder) -> None:
    text = texts(design_sections(folder, account_of(TRACE), 1.0))
    assert f"5.875 nats ({5.875 / np.log(2):.5g} bits), 2.938 nats a line" in text
    assert "at most" not in text
    other = texts(design_sections(folder, account_of(replace(KNOWING, strategy="expected-error")), 1.0))
    assert "at most" in other


@pytest.mark.slow
def test_calibration_is_predicted_over_found_as_a_geometric_mean(folder: RunFolder) -> None:
    text = texts(design_sections(folder, account_of(TRACE), 1.0))
    assert "geometric mean over lines: 1.00" in text  # (3/6 * 4/2)^(1/2)
    twice = replace(
        TRACE, steps=tuple(changed(s, predicted_energy=2 * s.outcome.predicted_energy) for s in TRACE.steps)
    )
    assert "geometric mean over lines: 2.00" in texts(design_sections(folder, account_of(twice), 1.0))


@pytest.mark.slow
def test_the_predicted_error_is_shown_without_a_truth(folder: RunFolder) -> None:
    design_sections(folder, account_of(KNOWING), 1.0)
    assert figures(folder) == ALWAYS | SCORED | {"innovations", "calibration", "predicted-error"}
    with (folder.path / "steps.csv").open(newline="") as stream:
        assert [row["predicted_error"] for row in csv.DictReader(stream)] == ["0.1", "0.1"]


@pytest.mark.slow
def test_with_a_truth_the_report_says_how_right_it_was(folder: RunFolder, checks: list[PredictionCheck]) -> None:
    sections = design_sections(folder, account_of(KNOWING, checks), 2.0)
    assert {"predicted-error", "prediction-lines"} <= figures(folder)
    along, often = (b for b in sections[1].blocks if isinstance(b, ReportTable))
    assert [row["lines"] for row in along.rows] == [2, 3]
    assert [row["ratio"] for row in along.rows] == pytest.approx([0.5, 0.5])
    assert often.rows[0]["cases"] == 2 and often.rows[0]["within_factor_2"] == 1.0
    caption = next(b.caption for b in sections[1].blocks if isinstance(b, ReportFigure) and "believed" in b.caption)
    assert "lines not yet measured" in caption
    with (folder.path / "prediction-lines.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 16
    assert rows[4] == {"lines": "2", "line": "4", "ky": "0", "measured": "yes", "predicted": "2", "actual": ""}
    assert rows[8] == {"lines": "3", "line": "0", "ky": "-4", "measured": "no", "predicted": "2", "actual": "8"}
    whole = [replace(check, actual=np.full(8, 8.0)) for check in checks]
    known = design_sections(folder, account_of(KNOWING, whole), 2.0)[1].blocks
    assert not any("not yet measured" in b.caption for b in known if isinstance(b, ReportFigure))
