import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from mri_design import Recipe, UntilError
from mri_design.design.decision import DesignStep
from mri_design.design.trace import DesignTrace
from mri_design.evaluation.page import Paragraph
from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.ending import how_it_ended, in_acquisition_order, what_was_missed
from mri_design.operators.encodings import LineEncoding, PlaneEncoding
from mri_design.runs.design_sections import save_acquisition
from tests.design_steps import changed, design_step


def step(line: int, error: float, pending: int = 0) -> DesignStep:
    return design_step(line, expected=np.array([error**2]), image_energy=1 - error**2, pending=pending)


TRACE = DesignTrace("information-gain", 8, (4, 3), (step(6, 0.5), step(0, 0.25), step(1, 0.1, 1)))
RULE = UntilError(0.2)
LINES = LineEncoding((8, 8))


def test_the_end_is_told_in_a_sentence() -> None:
    assert how_it_ended(TRACE, None, 5) == ""
    ended = replace(TRACE, closing=step(0, 0.21).forecast)
    assert how_it_ended(ended, RULE, 5) == "not stopped early: all 5 lines measured, predicted error 21 % > 20 %"
    assert what_was_missed(ended, RULE) == ""  # more lines might do it
    stopped = DesignTrace("information-gain", 8, (4, 3), TRACE.steps, step(2, 0.125))
    assert how_it_ended(stopped, RULE, 8) == "stopped after 5 of at most 8 lines: predicted error 12.5 % <= 20 %"
    at_once = DesignTrace("information-gain", 8, (4, 3), (), step(2, 0.125))
    assert how_it_ended(at_once, RULE, 8).startswith("stopped after 2 of at most 8 lines")
    assert "all 2 lines are those of the start" in how_it_ended(DesignTrace("information-gain", 8, (4, 3)), RULE, 2)


def test_one_spoke_is_told_in_the_singular() -> None:
    one = DesignTrace("information-gain", 8, (4,), (), step(2, 0.125))
    assert how_it_ended(one, RULE, 1, "spoke").startswith("stopped after 1 of at most 1 spoke: ")


def test_what_cannot_be_reached_is_said_at_any_end() -> None:
    everything = replace(TRACE, closing=replace(step(0, 0.21).forecast, least_error=0.21, recent_fall=0.0))
    assert what_was_missed(everything, RULE).startswith("an error of 20 % is out of reach: every line that may be")
    assert "21 % with every" not in what_was_missed(replace(everything, closing=step(0, 0.19).forecast), RULE)
    hopeless = replace(TRACE, declined=changed(step(2, 0.4), least_error=0.3))
    assert "would leave some 30 %" in what_was_missed(hopeless, RULE)
    assert "out of reach" in how_it_ended(hopeless, RULE, 8)
    assert what_was_missed(everything, None) == what_was_missed(TRACE, RULE) == ""


def test_trains_are_written_with_their_echoes(tmp_path: Path) -> None:
    recipe = Recipe().replacing("design", order="interleaved", block=3)
    with RunFolder(tmp_path / "run") as folder:
        sections = save_acquisition(folder, in_acquisition_order(TRACE.lines, LINES, recipe), recipe)
        with (folder.path / "acquisition.csv").open(newline="") as stream:
            rows = [tuple(row.values()) for row in csv.DictReader(stream)]
        assert rows == [
            ("0", "0", "1", "0", "-4"),
            ("1", "0", "2", "3", "-1"),
            ("2", "0", "3", "6", "2"),
            ("3", "1", "1", "1", "-3"),
            ("4", "1", "2", "4", "0"),
        ]
        paragraph = sections[0].blocks[0]
        assert isinstance(paragraph, Paragraph)
        assert "2 echo trains of 2 to 3 lines; echo 2 measures DC" in paragraph.text
        assert "Largest jump between consecutive lines: 5" in paragraph.text
        assert (folder.path / "figures" / "acquisition.svg").exists()


def test_trains_of_a_plane_are_written_and_drawn(tmp_path: Path) -> None:
    recipe = Recipe().replacing("design", encoding="plane", order="centre-out", train=3)
    made = in_acquisition_order((27, 36, 35, 44, 8, 63), PlaneEncoding((8, 8)), recipe)
    with RunFolder(tmp_path / "run") as folder:
        sections = save_acquisition(folder, made, recipe)
        with (folder.path / "acquisition.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert {(row["sample"], row["ky"], row["kz"]) for row in rows} >= {("36", "0", "0"), ("8", "-3", "-4")}
        assert [row["echo"] for row in rows] == ["1", "2", "3"] * 2
        paragraph = sections[0].blocks[0]
        assert isinstance(paragraph, Paragraph)
        assert "2 echo trains of 3 samples; echo 1 measures DC. The median jump" in paragraph.text
        assert (folder.path / "figures" / "acquisition.svg").exists()


def test_nothing_is_written_where_lines_are_measured_as_chosen(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        folder.output_path("acquisition.csv").write_text("of another run")
        assert save_acquisition(folder, in_acquisition_order(TRACE.lines, LINES, Recipe()), Recipe()) == []
        assert not list(folder.path.glob("acquisition*"))
