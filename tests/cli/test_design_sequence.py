"""Constraints, echo trains and stop rules of `design`, as a user gives them."""

import csv
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import Result

from mri_design.design.echo_trains import ORDERS
from mri_design.experiment.recipe import DesignRecipe

Run = Callable[..., Result]
QUICK = ("--recipe", "quick.toml")


def column(path: Path, name: str) -> list[int]:
    with path.open(newline="") as stream:
        return [int(row[name]) for row in csv.DictReader(stream)]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_orders_of_the_help_are_the_real_ones(run: Run) -> None:
    assert DesignRecipe.kinds()["order"].choices == ORDERS
    text = " ".join(run("design", "--help").output.split())
    assert all(f"--{name}" in text for name in ("forbid", "partial-fourier", "max-jump", "block", "until-error"))


def test_lines_obey_what_was_asked(run: Run, tmp_path: Path) -> None:
    asked = ("--forbid", "14,20-23", "--partial-fourier", 0.75, "--require", "9", "--max-jump", 4, "--start", 2)
    result = run("design", "scan.npz", *QUICK, "--lines", 12, *asked, "--out", tmp_path / "x")
    assert result.exit_code == 0, result.output
    lines = column(tmp_path / "x" / "lines.csv", "line")
    assert len(set(lines)) == 12 and 9 in lines
    assert not set(lines) & {14, 20, 21, 22, 23, *range(6)}
    assert max(abs(b - a) for a, b in pairwise(lines)) <= 4
    settings = json.loads((tmp_path / "x" / "manifest.json").read_text())["settings"]
    assert settings["constraints"]["forbid"] == "14,20-23"
    assert settings["constraints"]["max_jump"] == 4


def test_echo_trains_are_written_and_shown(run: Run, tmp_path: Path) -> None:
    trains = ("--block", 4, "--order", "interleaved")
    result = run("design", "scan.npz", *QUICK, "--lines", 12, "--start", 4, *trains, "--out", tmp_path / "x")
    assert result.exit_code == 0, result.output
    measured = column(tmp_path / "x" / "acquisition.csv", "line")
    assert sorted(measured) == sorted(column(tmp_path / "x" / "lines.csv", "line"))
    assert column(tmp_path / "x" / "acquisition.csv", "echo") == [1, 2, 3, 4] * 3
    assert "3 echo trains of 4 lines" in (tmp_path / "x" / "report.html").read_text()


@pytest.fixture(scope="module")
def stopped(run: Run, work: Path) -> tuple[Path, Result]:
    """A design that ended at a generous predicted error."""
    out = work / "stopped-early"
    return out, run("design", "scan.npz", *QUICK, "--start", 4, "--until-error", 0.065, "--out", out)


def test_a_small_predicted_error_ends_the_design(stopped: tuple[Path, Result]) -> None:
    out, result = stopped
    lines = column(out / "lines.csv", "line")
    assert result.exit_code == 0, result.output
    assert 4 < len(lines) < 24
    first, second = result.stdout.splitlines()
    assert first.startswith(f"stopped after {len(lines)} of at most 24 lines: predicted error ")
    assert first.endswith(" % <= 6.5 %")
    assert second == f"{len(lines)} lines, converged: {out / 'report.html'}"
    assert json.loads((out / "manifest.json").read_text())["settings"]["ended"] == first
    assert first.replace("<", "&lt;") in (out / "report.html").read_text()


def test_a_stopped_design_is_finished_and_another_rule_is_another_design(
    run: Run, stopped: tuple[Path, Result]
) -> None:
    out, first = stopped
    again = ("design", "scan.npz", *QUICK, "--start", 4, "--out", out, "--resume")
    assert run(*again, "--until-error", 0.065).stdout == "nothing to do\n" + first.stdout.splitlines()[1] + "\n"
    for other in (
        ("--until-error", 0.2),
        ("--until-error", 0.065, "--block", 2),
        ("--until-error", 0.065, "--forbid", "3"),
        ("--until-error", 0.065, "--order", "ascending"),
    ):
        assert run(*again, *other).exit_code == 2


@pytest.mark.parametrize("lines", [(), ("--lines", 24)])
def test_an_error_below_the_noise_ends_the_design_and_says_so(
    run: Run, tmp_path: Path, lines: tuple[object, ...]
) -> None:
    wanted = ("--start", 4, "--until-error", 0.005, *lines)
    result = run("design", "scan.npz", *QUICK, *wanted, "--out", tmp_path / "x")
    assert result.exit_code == 4, result.output
    first = result.stdout.splitlines()[0]
    assert first.startswith("stopped after 8 of at most 24 lines: an error of 0.5 % is out of reach: every line")
    status = json.loads((tmp_path / "x" / "manifest.json").read_text())["status"]
    assert status in first
    assert status.startswith("an error of 0.5 % is out of reach")
    assert "out of reach" in (tmp_path / "x" / "report.html").read_text()


def test_predictions_reach_to_the_end_and_two_quantities_have_two_names(run: Run, tmp_path: Path) -> None:
    """Only of images whose truth is known is the error on measured lines known too."""
    for source, known in (("phantom:t2w", True), ("scan.npz", False)):
        out = tmp_path / f"x-{known}"
        assert run("design", source, *QUICK, "--lines", 10, "--start", 4, "--out", out).exit_code == 0
        steps, checks = (rows(out / name) for name in ("steps.csv", "prediction.csv"))
        assert [row["lines"] for row in steps] == [str(n) for n in range(4, 11)]
        assert steps[-1]["line"] == "" and checks[-1]["lines"] == "10"
        by_lines = {row["lines"]: row["predicted_error"] for row in steps}
        assert all(by_lines[row["lines"]] == row["predicted_error"] for row in checks)  # one name, one quantity
        assert all(bool(row["actual_error"]) == known for row in checks)
        for row in checks:
            assert 0 < float(row["unmeasured_predicted_error"]) < float(row["predicted_error"])


def test_a_limit_that_is_not_reached_is_said_and_no_failure(run: Run, tmp_path: Path) -> None:
    few = ("--strategy", "information-gain", "--lines", 8, "--start", 4, "--until-gain", 0.01)
    result = run("design", "scan.npz", *QUICK, *few, "--out", tmp_path / "x")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("not stopped early: all 8 lines measured, gain of the best line ")
    assert "nats >= 0.01 nats" in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "when does the design end?"),
        (("--until-error", 0.1, "--strategy", "random"), 2, "'random' predicts no error"),
        (("--until-gain", 1, "--strategy", "low-pass"), 2, "'low-pass' knows no information gain"),
        (("--until-error", -1), 2, "--until-error: got -1.0; wanted a finite number, above 0 and below 1."),
        (("--until-error", 5), 2, "Five per cent are 0.05."),
        (("--until-error", "nan"), 2, "--until-error: got nan"),
        (("--until-gain", "inf", "--lines", 8), 2, "--until-gain: got inf"),
        (("--lines", 8, "--strategy", "randm"), 2, "--strategy: got 'randm': unknown strategy 'randm' (did you mean"),
        (("--lines", 8, "--order", "spiral"), 2, "--order: got unknown order 'spiral'"),
        (("--lines", 8, "--order", "interleaved"), 2, "interleaved without echo trains"),
        (("--lines", 8, "--partial-fourier", 0.3), 2, "--partial-fourier: got 0.3; wanted a finite number, 0.5 to 1"),
        (("--lines", 8, "--forbid", "x"), 2, "--forbid: got 'x'; wanted numbers and ranges from 0"),
        (("--lines", 8, "--forbid", "3", "--require", "3"), 2, "line 3 forbidden and required"),
        (("--lines", 8, "--max-jump", 3, "--block", 2, "--order", "interleaved"), 2, "with jumps of 3 at most"),
    ],
)
def test_what_contradicts_itself_is_refused_without_a_folder(
    run: Run, tmp_path: Path, words: tuple[object, ...], code: int, said: str
) -> None:
    result = run("design", "scan.npz", *QUICK, *words, "--out", tmp_path / "x")
    assert (result.exit_code, said in result.stderr) == (code, True), result.output
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--lines", 20, "--partial-fourier", 0.6), "--lines: number of lines: got 20; wanted at most 15"),
        (("--lines", 8, "--forbid", "0-23"), "no line of 24 left"),
        (("--lines", 8, "--forbid", "24"), "forbidden lines: got line 24; wanted lines from 0 to 23"),
        (("--lines", 8, "--start", 6, "--forbid", "13"), "forced centre: got 6 lines, of which line 13"),
        (("--lines", 8, "--forbid", "12"), "line 12, the centre of k-space"),
        (("--lines", 20, "--start", 6, "--max-jump", 3), "lines within jumps of 3"),
    ],
)
def test_what_contradicts_the_scan_is_refused(run: Run, tmp_path: Path, words: tuple[object, ...], said: str) -> None:
    result = run("design", "scan.npz", *QUICK, *words, "--out", tmp_path / "x")
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "wrong", ["until_error = 2.0", "until_error = -1.0", "strategy = 'oracle-greedy'", "block = 0"]
)
def test_the_same_in_a_recipe_is_bad_input(run: Run, tmp_path: Path, wrong: str) -> None:
    (tmp_path / "mine.toml").write_text(f"[design]\n{wrong}\n")
    result = run("design", "scan.npz", "--lines", 8, "--recipe", tmp_path / "mine.toml", "--out", tmp_path / "x")
    assert (result.exit_code, "recipe mine.toml: design." in result.stderr) == (3, True), result.output


@pytest.mark.parametrize(
    ("verb", "why"), [("compare", "equal numbers of lines"), ("protocol", "as many lines as are asked for")]
)
def test_verbs_of_a_number_of_lines_take_no_rule(run: Run, work: Path, tmp_path: Path, verb: str, why: str) -> None:
    recipe = tmp_path / "early.toml"
    recipe.write_text((work / "quick.toml").read_text() + "[design]\nuntil_error = 0.1\n")
    result = run(verb, "scan.npz", "--lines", "8", "--recipe", recipe, "--out", tmp_path / "x")
    assert (result.exit_code, f"{why}; take until_error and until_gain" in result.stderr) == (2, True)
