"""Constraints, echo trains and stop rules of `design`, as a user gives them."""

from pathlib import Path

import numpy as np
import pytest

from mri_design.runs.design import run as design_run
from tests.cli.folders import Designed, Run, manifest, page, rows, settings

QUICK = ("--recipe", "quick.toml")


def column(path: Path, name: str) -> list[int]:
    return [int(row[name]) for row in rows(path)]


@pytest.fixture(scope="module")
def stopped(run: Run, work: Path) -> Designed:
    """A design that ended at a generous predicted error."""
    out = work / "stopped-early"
    return out, run("design", "scan.npz", *QUICK, "--start", 4, "--until-error", 0.065, "--out", out)


def test_a_small_predicted_error_ends_the_design(stopped: Designed) -> None:
    out, result = stopped
    lines = column(out / "lines.csv", "line")
    assert result.exit_code == 0, result.output
    assert 4 < len(lines) < 24
    first, second, _ = result.stdout.splitlines()
    assert first.startswith(f"stopped after {len(lines)} of at most 24 lines: predicted error ")
    assert first.endswith(" % <= 6.5 %")
    assert second == f"{len(lines)} lines, converged: {out / 'report.html'}"
    assert settings(out)["ended"] == first
    assert first.replace("<", "&lt;") in page(out)


def test_the_image_that_ended_a_design_is_the_result_after_a_resume_too(
    run: Run, stopped: Designed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, asked = tmp_path / "x", ("design", "scan.npz", *QUICK, "--start", 4, "--until-error", 0.065)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the image is made once more")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(design_run, "reconstruct_prepared", never)
    with monkeypatch.context() as patched:
        patched.setattr(design_run, "concluded", killed)
        run(*asked, "--out", out)
    assert not (out / "recon.npy").exists()
    run(*asked, "--out", out, "--resume", code=0)
    for name in ("recon.npy", "std.npy"):
        np.testing.assert_array_equal(np.load(out / name), np.load(stopped[0] / name))


def test_a_stopped_design_is_finished_and_another_rule_is_another_design(run: Run, stopped: Designed) -> None:
    out, first = stopped
    again = ("design", "scan.npz", *QUICK, "--start", 4, "--out", out, "--resume")
    said, *ended = run(*again, "--until-error", 0.065).stdout.splitlines()
    assert said.startswith("nothing to do: this design is finished") and ended == first.stdout.splitlines()[1:]
    for other in (
        ("--until-error", 0.2),
        ("--until-error", 0.065, "--block", 2),
        ("--until-error", 0.065, "--forbid", "3"),
        ("--until-error", 0.065, "--order", "ascending"),
    ):
        run(*again, *other, code=2)


def test_an_error_below_the_noise_ends_the_design_and_says_so(run: Run, tmp_path: Path) -> None:
    wanted = ("--start", 4, "--until-error", 0.005, "--lines", 24)
    result = run("design", "scan.npz", *QUICK, *wanted, "--out", tmp_path / "x", code=4)
    first = result.stdout.splitlines()[0]
    assert first.startswith("stopped after 8 of at most 24 lines: an error of 0.5 % is out of reach: every line")
    status = manifest(tmp_path / "x")["status"]
    assert status in first
    assert status.startswith("an error of 0.5 % is out of reach")
    assert "out of reach" in page(tmp_path / "x")


def test_predictions_reach_to_the_end_and_two_quantities_have_two_names(
    run: Run, designed: Designed, tmp_path: Path
) -> None:
    """Only of images whose truth is known is the error on measured lines known too."""
    known = tmp_path / "x"
    run("design", "phantom:t2w", *QUICK, "--lines", 8, "--start", 4, "--out", known, code=0)
    for out, counts in ((known, range(4, 9)), (designed[0], range(6, 13))):
        steps, checks = (rows(out / name) for name in ("steps.csv", "prediction.csv"))
        assert [row["lines"] for row in steps] == [str(n) for n in counts]
        assert steps[-1]["line"] == "" and checks[-1]["lines"] == steps[-1]["lines"]
        by_lines = {row["lines"]: row["predicted_error"] for row in steps}
        assert all(by_lines[row["lines"]] == row["predicted_error"] for row in checks)  # one name, one quantity
        assert all(bool(row["actual_error"]) == (out == known) for row in checks)
        for row in checks:
            assert 0 < float(row["unmeasured_predicted_error"]) < float(row["predicted_error"])


def test_a_limit_that_is_not_reached_is_said_and_no_failure(run: Run, tmp_path: Path) -> None:
    few = ("--strategy", "information-gain", "--lines", 8, "--start", 4, "--until-gain", 0.01)
    result = run("design", "scan.npz", *QUICK, *few, "--out", tmp_path / "x", code=0)
    assert result.stdout.startswith("not stopped early: all 8 lines measured, gain of the best line ")
    assert "nats >= 0.01 nats" in result.stdout


def test_an_error_that_the_last_line_reaches_is_met(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "last"
    result = run("design", "scan.npz", *QUICK, "--start", 4, "--lines", 8, "--until-error", 0.9, "--out", out)
    assert result.stdout.startswith("not stopped early: all 8 lines measured, predicted error ")
    assert "The target was met" in page(out) and "not reached" not in page(out)


def test_spokes_end_by_the_error_of_their_image(run: Run, tmp_path: Path) -> None:
    """Which their own predictions, of spokes that overlap, do not know; shots.csv has every look at it."""
    out = tmp_path / "spokes"
    words = ("--encoding", "radial", "--shots", 14, "--until-error", 0.25, "--out", out)
    said = run("design", "scan.npz", *QUICK, *words).stdout.splitlines()[0]
    shots = rows(out / "shots.csv")
    assert said.startswith(f"stopped after {len(shots)} of at most 14 spokes: predicted error ")
    assert "The target was met" in page(out)
    looked = [float(row["image_error"]) for row in shots if row.get("image_error")]
    assert all(error > 0.25 for error in looked)
