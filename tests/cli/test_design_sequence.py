"""Constraints, echo trains and stop rules of `design`, as a user gives them."""

from pathlib import Path

import numpy as np
import pytest

from mri_design.runs.design import run as design_run
from tests.cli.folders import Designed, Run, manifest, rows, settings
from tests.interruptions import stopping

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
    assert 4 < len(lines) < 24 and settings(out)["ended"] and manifest(out)["status"] == "converged"
    assert settings(out)["error"]["predicted"] <= 0.065


def test_the_image_that_ended_a_design_is_the_result_after_a_resume_too(
    run: Run, stopped: Designed, tmp_path: Path
) -> None:
    out, asked = tmp_path / "x", ("design", "scan.npz", *QUICK, "--start", 4, "--until-error", 0.065)
    with stopping(design_run, "reconstruct_prepared") as again:
        with stopping(design_run, "concluded", 0):
            run(*asked, "--out", out, code=130)
        assert not (out / "recon.npy").exists()
        run(*asked, "--out", out, "--resume", code=0)
    assert not again
    for name in ("recon.npy", "std.npy"):
        np.testing.assert_array_equal(np.load(out / name), np.load(stopped[0] / name))


def test_an_error_below_the_noise_ends_the_design_and_says_so(run: Run, tmp_path: Path) -> None:
    wanted = ("--start", 4, "--until-error", 0.005, "--lines", 24)
    run("design", "scan.npz", *QUICK, *wanted, "--out", tmp_path / "x", code=4)
    assert len(manifest(tmp_path / "x")["lines"]) == 8 and settings(tmp_path / "x")["ended"]


def test_spokes_end_by_the_error_of_their_image(run: Run, tmp_path: Path) -> None:
    """Which their own predictions, of spokes that overlap, do not know; shots.csv has every look at it."""
    out = tmp_path / "spokes"
    words = ("--encoding", "radial", "--shots", 20, "--until-error", 0.12, "--no-report", "--out", out)
    run("design", "scan.npz", *QUICK, *words, code=(0, 4))
    looked = [float(row["image_error"]) for row in rows(out / "shots.csv") if row["image_error"]]
    assert looked and all(error > 0.12 for error in looked) and settings(out)["error"]["predicted"] <= 0.12
