"""`mri-design status`: what runs, what is done, what is left; nothing is written."""

import os
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.run_status import ProgressFile
from tests.cli.folders import Designed, Run, files, manifest
from tests.interruptions import interrupted

QUICK = ("--recipe", "quick-local.toml")


def test_of_a_finished_run_it_tells_how_it_ended(run: Run, designed: Designed) -> None:
    folder, _ = designed
    before = files(folder)
    told = run("status", folder, code=0)
    assert told.output.startswith(f"{folder.name}: finished, {manifest(folder)['status']}, took ")
    assert files(folder) == before and not (folder / ".progress.json").exists()


def test_of_an_interrupted_run_it_tells_how_to_go_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["design", "scan.npz", "--lines", "10", "--start", "6", "--strategy", "random"]
    command += ["--recipe", "fast.toml", "--out", str(tmp_path / "runs" / "a")]
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("sys.argv", ["mri-design", *command])
    with interrupted("random", 1):
        run(*command, code=130)
    told = run("status", tmp_path / "runs")
    assert told.output.startswith("a: stopped; designing 1 of 4, ")
    assert f"go on with: mri-design {' '.join(command)} --resume" in told.output.replace("\n", "")
    run(*command, "--resume", code=0)
    assert run("status", tmp_path / "runs").output.startswith("a: finished, ")


def test_of_a_running_one_it_tells_what_is_left_and_who_has_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunFolder(tmp_path / "b", command=["compare"]) as folder:
        folder.output_path("progress.json").write_text("{}")
        start = time.time() - 300
        with monkeypatch.context() as patch:
            patch.setattr("time.time", lambda: start)
            folder.progress.show("reconstructing", 0, 30)
            folder.progress.show("designing masks", 0, 8)
            patch.setattr("time.time", lambda: start + 300)
            folder.progress.show("designing masks", 3, 8)
        told = run("status", tmp_path / "b").output
    assert told.startswith("b: running; designing masks 3 of 8, 1.7 min each, about 8.3 min left; ")
    assert f"then reconstructing (30); process {os.getpid()} on host {socket.gethostname()}" in told
    assert not (tmp_path / "b" / ".progress.json").exists()


def test_folders_of_folders_are_counted_and_others_left_out(run: Run, designed: Designed, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "manifest.json").write_text('{"status": "mine"}')
    assert run("status", tmp_path).output == f"no run in {tmp_path.name}\n"
    for name in ("one", "two/three"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_bytes((designed[0] / "manifest.json").read_bytes())
    (tmp_path / "link").symlink_to(tmp_path / "one")
    lines = run("status", tmp_path).output.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["one", "two/three", "2 runs"]
    assert lines[-1] == "2 runs: 2 finished"


def test_what_is_no_folder_is_refused(run: Run, tmp_path: Path) -> None:
    run("status", tmp_path / "nowhere", code=3)


def test_a_reconstruction_says_which_part_it_is_at(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, show = list[str](), ProgressFile.show

    def show_and_look(self: ProgressFile, name: str, done: int, total: int) -> None:
        show(self, name, done, total)
        self.write()
        told.append(run("status", tmp_path / "a").output)

    with monkeypatch.context() as patch:
        patch.setattr(ProgressFile, "show", show_and_look)
        done = run("recon", "scan.npz", *QUICK, "--out", tmp_path / "a", "--no-report")
    assert done.exit_code in (0, 4)
    for part in ("reading", "calibrating", "choosing the model", "error bars", "report"):
        assert f"{part}: " not in done.output  # a line for each would be noise in a log
        assert any(line.startswith(f"a: running; {part}") for line in told), part
    assert any("; outer loops 2 of " in line and "then error bars, report" in line for line in told)
    assert any("; calibrating, for " in line for line in told)
    assert any("then choosing the model, outer loops, error bars, report; process" in line for line in told)
    assert run("status", tmp_path / "a").output.startswith("a: finished")


def test_a_refused_run_leaves_the_progress_of_the_one_before(run: Run, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "a", command=["design", "x"]) as folder:
        folder.write_mask(np.ones(4, bool))
        folder.progress.show("designing", 1, 4)
        before = (tmp_path / "a" / ".progress.json").read_bytes()
    (tmp_path / "a" / ".progress.json").write_bytes(before)  # as if it had been killed
    with RunFolder(tmp_path / "a", command=["recon", "y"]) as folder:
        folder.progress.show("reading", 0, 1)
        assert (tmp_path / "a" / ".progress.json").read_bytes() == before
        folder.begin()
        assert b'"reading"' in (tmp_path / "a" / ".progress.json").read_bytes()


def test_info_understands_a_folder_of_runs_as_the_demo_leaves_it(run: Run, designed: Designed, tmp_path: Path) -> None:
    demo = tmp_path / "demo-run"
    for name in ("compare", "design"):
        (demo / name).mkdir(parents=True)
        (demo / name / "manifest.json").write_bytes((designed[0] / "manifest.json").read_bytes())
    (demo / "report.html").write_text("<p>")
    told = run("info", demo, code=0)
    text = " ".join(told.output.split())
    ended = manifest(designed[0])["status"]
    assert f"name demo-run runs 2: compare (finished, {ended}), design (finished, {ended})" in text
    assert f"next open {demo / 'report.html'}; mri-design info {demo / 'compare'} tells of one run" in text
    (tmp_path / "empty").mkdir()
    refused = run("info", tmp_path / "empty", code=3)
    assert "without a run of this program" in refused.output
    with RunFolder(tmp_path / "now", command=["recon"]) as folder:
        folder.progress.show("reading", 0, 1)
        text = " ".join(run("info", tmp_path / "now").output.split())
        assert "run running: there is no result yet" in text and f"mri-design status {tmp_path / 'now'}" in text
