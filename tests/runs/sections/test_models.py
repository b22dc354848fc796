"""Which model a design went by: rows, totals, manifest, and nothing where there was one model."""

import csv
from pathlib import Path

import numpy as np
import pytest

from mri_design.design.decision import DesignStep
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.account import account_of, model_totals, model_use
from mri_design.evaluation.page import Paragraph
from mri_design.evaluation.run_folder import RunFolder
from mri_design.runs.design_sections import model_rows, model_sections, model_settings
from tests.design_steps import design_step

NAMES = ("modulus", "phase-aware 2")
NAN = float("nan")


def step(line: int, models: tuple[int, ...], energies: list[list[float]] | None) -> DesignStep:
    return design_step(line, models=models, model_energies=None if energies is None else np.array(energies))


TRACE = DesignTrace(
    "rule",
    8,
    (4,),
    (
        step(5, (0, 0), None),
        step(3, (0, 0), [[np.e, 1.0], [1.0, np.e**2]]),
        step(6, (1, 0), [[np.e**3, 1.0], [1.0, np.e**2]]),
        step(2, (1, 0), [[NAN, 7.0], [1.0, np.e**2]]),
    ),
)
ALONE = DesignTrace("rule", 8, (4,), (step(5, (0,), None), step(3, (0,), None)))


def test_rows_name_the_model_and_what_each_one_missed() -> None:
    rows = model_rows(TRACE, NAMES)
    assert [(r["lines"], r["ky"], r["slice"]) for r in rows[:3]] == [(1, 1, 0), (1, 1, 1), (2, -1, 0)]
    assert [r["model"] for r in rows[::2]] == ["modulus", "modulus", "phase-aware 2", "phase-aware 2"]
    assert (rows[0]["found, modulus"], rows[0]["found, phase-aware 2"]) == (None, None)
    assert (rows[6]["found, modulus"], rows[6]["found, phase-aware 2"]) == (None, 7.0)


def test_gains_are_means_over_paired_lines() -> None:
    totals = model_totals(TRACE, NAMES)
    assert [t["lines_chosen"] for t in totals] == [2, 2, 4, 0]
    assert [t["paired_lines"] for t in totals] == [2, 2, 3, 3]
    assert [t["gain"] for t in totals] == pytest.approx([0, 2, 0, -2])
    assert totals[1]["gain_error"] == pytest.approx(1.0)


def test_the_report_says_how_often_it_changed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    (section,) = model_sections(folder, account_of(TRACE, models=NAMES))
    assert isinstance(section.blocks[0], Paragraph)
    assert "changed 1 times" in section.blocks[0].text
    with (folder.path / "models.csv").open(newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 8
    assert model_settings(model_use(TRACE, NAMES)) == {"lines_chosen_under": {"modulus": 6, "phase-aware 2": 2}}


@pytest.mark.parametrize("trace", [ALONE, DesignTrace("random", 8, (4,), (design_step(5),)), DesignTrace("r", 8, (4,))])
def test_designs_with_one_model_say_nothing(tmp_path: Path, trace: DesignTrace) -> None:
    assert model_sections(RunFolder(tmp_path / "run"), account_of(trace, models=NAMES)) == []
    assert model_settings(model_use(trace, NAMES)) == {}
    assert not (tmp_path / "run" / "models.csv").exists()
