import csv
import hashlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design.evaluation.run_folder import OUTPUTS

Run = Callable[..., Result]
Spawn = Callable[..., "subprocess.Popen[str]"]
Designed = tuple[Path, Result]
OPTIONS = ("--lines", 12, "--start", 6, "--recipe", "quick.toml")


def order(folder: Path) -> list[int]:
    with (folder / "lines.csv").open(newline="") as stream:
        return [int(row["line"]) for row in csv.DictReader(stream)]


def test_it_says_how_it_ended_and_where_the_report_is(designed: Designed) -> None:
    out, result = designed
    assert result.exit_code == 0
    assert result.stdout == f"12 lines, converged: {out / 'report.html'}\n"
    assert "designing: 6 of 6" in result.stderr.splitlines()  # no terminal: plain lines


def test_the_folder_holds_what_is_promised_and_nothing_else(designed: Designed) -> None:
    out, _ = designed
    names = {path.name for path in out.iterdir()}
    assert names == {
        ".mri-design.json",
        "figures",
        "lines.csv",
        "manifest.json",
        "mask.npy",
        "metrics.csv",
        "prediction-lines.csv",
        "prediction.csv",
        "recon.npy",
        "report.html",
        "scores.csv",
        "std.npy",
        "steps.csv",
    }
    assert names - {"figures", ".mri-design.json"} <= OUTPUTS.keys()
    figures = {path.name for path in (out / "figures").iterdir()}
    for shown in ("mask", "mask-growth", "order", "scores", "information", "predicted-error", "innovations", "images"):
        assert f"{shown}.svg" in figures
    assert {"errors.svg", "std.svg", "calibration.svg", "prediction-lines.svg"} <= figures


def test_lines_mask_and_images_agree(designed: Designed) -> None:
    out, _ = designed
    with (out / "lines.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["order", "line", "ky", "score"]
    assert [int(row["order"]) for row in rows] == list(range(12))
    assert all(int(row["ky"]) == int(row["line"]) - 12 for row in rows)
    assert [row["score"] == "" for row in rows] == [True] * 6 + [False] * 6
    assert all(float(row["score"]) > 0 for row in rows[6:])
    mask = np.load(out / "mask.npy")
    assert (mask.dtype, mask.shape) == (np.bool_, (24,))
    assert np.flatnonzero(mask).tolist() == sorted(order(out))
    recon, std = np.load(out / "recon.npy"), np.load(out / "std.npy")
    assert (recon.dtype, recon.shape) == (np.complex64, (24, 20))
    assert (std.dtype, std.shape) == (np.float32, (24, 20))
    assert (std > 0).all()


def test_metrics_are_those_of_the_saved_image(designed: Designed, work: Path) -> None:
    out, _ = designed
    with (out / "metrics.csv").open(newline="") as stream:
        first, second = csv.DictReader(stream)
    assert (first["method"], second["method"]) == ("mean", "zero-filled")
    assert (first["lines"], first["acceleration"], first["converged"]) == ("12", "2", "yes")
    truth = np.abs(np.load(work / "scan.npz")["reference"][0])
    error = np.linalg.norm(np.abs(np.load(out / "recon.npy")) - truth) / np.linalg.norm(truth)
    assert float(first["relative_l2"]) == pytest.approx(error, rel=1e-4)


def test_the_manifest_tells_the_run_without_places(designed: Designed, work: Path) -> None:
    out, _ = designed
    text = (out / "manifest.json").read_text()
    manifest = json.loads(text)
    assert set(manifest) == {
        "command",
        "inputs",
        "lines",
        "seed",
        "settings",
        "status",
        "versions",
        "wall_seconds",
    }
    assert manifest["inputs"] == [
        {"name": "scan.npz", "sha256": hashlib.sha256((work / "scan.npz").read_bytes()).hexdigest()}
    ]
    assert manifest["lines"] == order(out)
    assert (manifest["seed"], manifest["status"]) == (0, "converged")
    assert manifest["settings"]["inference"]["samples"] == 6
    assert (manifest["settings"]["start"], manifest["settings"]["slice"]) == (6, 0)
    assert manifest["settings"]["noise_sd_per_real_component"] == pytest.approx(0.007)
    assert manifest["settings"]["signal_level"] > 0
    assert {"python", "numpy", "mri-design"} <= set(manifest["versions"])
    assert manifest["wall_seconds"] > 0
    assert str(work) not in text and str(work.parent) not in text


def test_the_report_is_one_file(designed: Designed, work: Path) -> None:
    out, _ = designed
    page = (out / "report.html").read_text()
    drawn = {path.name for path in (out / "figures").iterdir()}
    assert page.count('<div class="plot"><svg') == len(drawn) and {name[-4:] for name in drawn} == {".svg"}
    for outside in ("http://", "https://", 'src="figures', "<script src", "<link", str(work)):
        assert outside not in page
    assert "Line design: scan" in page
    told = json.loads(page.split('<script type="application/json">')[1].split("</script>")[0])
    assert [*told["start"], *(step["line"] for step in told["steps"])] == order(out)
    assert told["images"] and all(image["mean"] and image["deviation"] for image in told["images"])
    assert "Not converged" not in page


@pytest.fixture(scope="module")
def fresh(spawn: Spawn, work: Path, designed: Designed) -> tuple[Path, str, str]:
    """The same design in a process of its own with two threads, and what it said."""
    process = spawn("design", "scan.npz", *OPTIONS, "--out", "fresh", threads=2)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0
    return work / "fresh", stdout, stderr


def test_another_process_gives_the_same_bytes(designed: Designed, fresh: tuple[Path, str, str]) -> None:
    out, _ = designed
    tables = ("lines.csv", "metrics.csv", "steps.csv", "scores.csv", "prediction.csv", "prediction-lines.csv")
    for name in ("mask.npy", "recon.npy", "std.npy", *tables):
        assert (fresh[0] / name).read_bytes() == (out / name).read_bytes(), name


def test_without_a_terminal_progress_comes_in_plain_lines(fresh: tuple[Path, str, str]) -> None:
    _, stdout, stderr = fresh
    assert stderr.splitlines()[0] == "designing: 0 of 6"
    assert all(re.fullmatch(r"[a-z ]+: \d+ of \d+", line) for line in stderr.splitlines())
    assert stdout == "12 lines, converged: fresh/report.html\n"


def test_quiet_says_nothing(run: Run, tmp_path: Path) -> None:
    result = run("design", "scan.npz", *OPTIONS, "--strategy", "low-pass", "--quiet", "--out", tmp_path / "x")
    assert (result.exit_code, result.output) == (0, "")
    assert order(tmp_path / "x") == [12, 11, 13, 10, 14, 9, 15, 8, 16, 7, 17, 6]


def test_a_design_that_did_not_converge_says_so_everywhere(run: Run, work: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "hasty.toml"
    recipe.write_text((work / "quick.toml").read_text().replace("loops = 8", "loops = 1").replace("0.1", "1e-9"))
    result = run("design", "scan.npz", "--lines", 8, "--start", 6, "--recipe", recipe, "--out", tmp_path / "x")
    assert result.exit_code == 4
    assert "8 lines, not converged" in result.stdout
    manifest = json.loads((tmp_path / "x" / "manifest.json").read_text())
    assert manifest["status"].startswith("not converged (stopped at the iteration limit")
    assert "Not converged (stopped at the iteration limit" in (tmp_path / "x" / "report.html").read_text()
    assert ",no," in (tmp_path / "x" / "metrics.csv").read_text()


def test_a_step_that_did_not_converge_says_so_where_the_image_did(run: Run, work: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "blunt.toml"
    quick = (work / "quick.toml").read_text() + 'method = "zero-filled"\n'
    recipe.write_text(quick.replace("[inference]", "[inference]\ninner_iterations = 1\ninner_tolerance = 1e-12"))
    result = run("design", "scan.npz", "--lines", 8, "--start", 6, "--recipe", recipe, "--out", tmp_path / "x")
    assert result.exit_code == 4
    assert json.loads((tmp_path / "x" / "manifest.json").read_text())["status"] == (
        "not converged (2 of 2 design steps)"
    )


def interrupted_at(lines: int) -> Callable[..., object]:
    from mri_design import DesignOptions, DesignState, run_design

    def stopping(*arguments: object, options: DesignOptions, **settings: object) -> object:
        def until(state: DesignState) -> None:
            assert options.callback is not None
            options.callback(state)
            if len(state.trace.lines) == lines:
                raise KeyboardInterrupt

        return run_design(*arguments, options=replace(options, callback=until), **settings)  # type: ignore[arg-type]

    return stopping


@pytest.fixture
def stopped(run: Run, tmp_path: Path) -> Path:
    """A design that was interrupted after nine lines."""
    from mri_design.runs.design import run as design_run

    out = tmp_path / "stopped"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design_run, "run_design", interrupted_at(9))
        patch.setattr("sys.argv", ["mri-design", "design", "scan.npz", "--lines", "12", "--out", "a b", "--overwrite"])
        result = run("design", "scan.npz", *OPTIONS, "--out", out)
    assert result.exit_code == 130
    last = result.stderr.splitlines()[-1]
    assert last == (
        f"mri-design: interrupted; {out / 'checkpoint.npz'} holds what is finished; go on with: "
        "mri-design design scan.npz --lines 12 --out 'a b' --resume"
    )
    assert sorted(path.name for path in out.iterdir()) == [".mri-design.json", ".progress.json", "checkpoint.npz"]
    return out


def test_an_interrupted_design_is_resumed_to_the_same_lines(run: Run, stopped: Path, designed: Designed) -> None:
    assert run("design", "scan.npz", *OPTIONS, "--out", stopped, "--resume").exit_code == 0
    for name in ("lines.csv", "mask.npy", "recon.npy", "prediction.csv"):
        assert (stopped / name).read_bytes() == (designed[0] / name).read_bytes()
    assert not (stopped / "checkpoint.npz").exists()


def test_an_unfinished_design_is_not_overwritten_by_accident(run: Run, stopped: Path) -> None:
    before = (stopped / "checkpoint.npz").read_bytes()
    result = run("design", "scan.npz", *OPTIONS, "--out", stopped)
    assert result.exit_code == 2
    assert "add --resume" in result.stderr
    assert (stopped / "checkpoint.npz").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        ["--seed", 1],
        ["--start", 5],
        ["--lines", 13],
        ["--strategy", "random"],
        ["--recipe", "default"],
        ["head.npz"],
    ],
)
def test_another_design_does_not_go_on_from_it(run: Run, stopped: Path, change: list[object]) -> None:
    source = "head.npz" if change == ["head.npz"] else "scan.npz"
    changed = [] if source == "head.npz" else change
    result = run("design", source, *OPTIONS, *changed, "--out", stopped, "--resume")
    assert result.exit_code == 2
    assert "a design with another input, recipe, seed, start, number of lines" in " ".join(result.stderr.split())


def test_a_finished_design_is_left_as_it_is(run: Run, designed: Designed) -> None:
    out, first = designed
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    result = run("design", "scan.npz", *OPTIONS, "--out", out, "--resume")
    assert result.exit_code == 0
    assert result.stdout == f"nothing to do\n{first.stdout}"
    for other in (["--seed", 1], ["--lines", 13], ["--resume", "--start", 5]):
        refused = run("design", "scan.npz", *OPTIONS, *other, "--out", out)
        assert refused.exit_code == 2
        assert "designed holds a finished run; give another --out" in refused.stderr
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def test_a_damaged_checkpoint_is_refused(run: Run, stopped: Path) -> None:
    (stopped / "checkpoint.npz").write_bytes(b"PK\x03\x04 not really")
    result = run("design", "scan.npz", *OPTIONS, "--out", stopped, "--resume")
    assert result.exit_code == 3
    assert "an unreadable checkpoint" in result.stderr and "Delete it." in result.stderr


def test_overwriting_begins_anew_and_leaves_nothing_of_the_run_before(
    run: Run, stopped: Path, designed: Designed
) -> None:
    (stopped / "notes.txt").write_text("mine")
    both = run("design", "scan.npz", *OPTIONS, "--out", stopped, "--resume", "--overwrite")
    assert both.exit_code == 2 and "give one of them" in both.stderr
    wrong = run("design", "scan.npz", *OPTIONS, "--lines", 99, "--out", stopped, "--overwrite")
    assert wrong.exit_code == 2 and (stopped / "checkpoint.npz").exists()  # refused before anything is removed
    low = ("--strategy", "low-pass")
    assert run("design", "scan.npz", *OPTIONS, "--out", stopped, "--overwrite").exit_code == 0
    assert (stopped / "mask.npy").read_bytes() == (designed[0] / "mask.npy").read_bytes()
    assert run("design", "scan.npz", *OPTIONS, *low, "--out", stopped, "--overwrite").exit_code == 0
    assert not (stopped / "scores.csv").exists()  # this strategy has none
    assert (stopped / "notes.txt").read_text() == "mine"


def test_resume_without_a_checkpoint_begins(run: Run, tmp_path: Path) -> None:
    options = ("--lines", 8, "--strategy", "random", "--recipe", "quick.toml", "--resume")
    assert run("design", "scan.npz", *options, "--out", tmp_path / "x").exit_code == 0


def test_a_killed_design_goes_on_to_the_same_lines(work: Path, spawn: Spawn, run: Run) -> None:
    """kill -9 at three seeded moments, somewhere between two checkpoints or while one is written.

    `tests/experiment/test_killed_designs.py` kills fifty times.
    """
    command = ("design", "phantom:brain", "--lines", 20, "--start", 4, "--recipe", work / "killed.toml")
    recipe = (work / "quick.toml").read_text().replace("matrix = 16", "matrix = 24")
    (work / "killed.toml").write_text(recipe.replace("samples = 6", "samples = 12"))
    assert run(*command, "--out", work / "whole").exit_code == 0
    out, moments = work / "killed", np.random.default_rng(10)
    checkpoint, kills = out / "checkpoint.npz", 0
    while kills < 3:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = spawn(*command, "--out", out, "--resume")
        while process.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
            time.sleep(0.001)
        time.sleep(float(moments.uniform(0, 0.03)))
        process.kill()
        process.communicate()
        if process.returncode != -signal.SIGKILL:
            break
        kills += 1
    assert kills >= 2, "the design was too short to be killed often enough"
    result = run(*command, "--out", out, "--resume")
    assert result.exit_code == 0, result.output
    assert order(out) == order(work / "whole")
    for name in ("lines.csv", "mask.npy", "recon.npy", "std.npy"):
        assert (out / name).read_bytes() == (work / "whole" / name).read_bytes()
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == [".mri-design.json"]
