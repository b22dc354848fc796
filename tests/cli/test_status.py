"""`mri-design info` of a run that is running, stopped or finished, and of a folder of runs; nothing is written."""

from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation import RunFolder, run_statuses
from tests.cli.folders import Designed, Run, files, manifest
from tests.interruptions import interrupted


def told(run: Run, folder: Path) -> str:
    return " ".join(run("info", folder, code=0).output.split())


def test_of_an_interrupted_run_the_command_that_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["design", "scan.npz", "--lines", "10", "--start", "6", "--strategy", "random"]
    command += ["--recipe", "fast.toml", "--out", str(tmp_path / "runs" / "a")]
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("sys.argv", ["mri-design", *command])
    with interrupted("random", 1):
        run(*command, code=130)
    before = files(tmp_path / "runs")
    (found,) = run_statuses(tmp_path / "runs")
    assert (found.state, found.kept) == ("stopped", ["checkpoint.npz"])
    assert f"mri-design {' '.join(command)} --resume" in told(run, tmp_path / "runs")
    assert f"mri-design {' '.join(command)} --resume" in told(run, tmp_path / "runs" / "a")
    assert files(tmp_path / "runs") == before
    run(*command, "--resume", code=0)
    assert [found.state for found in run_statuses(tmp_path / "runs")] == ["finished"]


def test_folders_of_folders_are_listed_and_others_refused(run: Run, designed: Designed, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "manifest.json").write_text('{"status": "mine"}')
    assert run_statuses(tmp_path) == []
    for missing in (tmp_path, tmp_path / "nowhere"):
        run("info", missing, code=3)
    for name in ("one", "two/three"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_bytes((designed[0] / "manifest.json").read_bytes())
    (tmp_path / "link").symlink_to(tmp_path / "one")
    text, ended = told(run, tmp_path), f"finished, {manifest(designed[0])['status']}"
    assert "2 finished" in text and all(f"{name} {ended}" in text for name in ("one", "two/three"))


def test_a_refused_run_leaves_the_progress_of_the_one_before(run: Run, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "a", command=["design", "x"]) as folder:
        folder.write_array("mask.npy", np.ones(4, bool))
        folder.progress.show("designing", 1, 4)
        before = (tmp_path / "a" / ".progress.json").read_bytes()
    (tmp_path / "a" / ".progress.json").write_bytes(before)  # as if it had been killed
    with RunFolder(tmp_path / "a", command=["recon", "y"]) as folder:
        folder.progress.show("reading", 0, 1)
        assert (tmp_path / "a" / ".progress.json").read_bytes() == before
        folder.begin()
        assert b'"reading"' in (tmp_path / "a" / ".progress.json").read_bytes()
