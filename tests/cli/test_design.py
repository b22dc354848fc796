import hashlib
import json
import re
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from mri_design.evaluation.run_folder import OUTPUTS
from mri_design.runs.verdicts import RelativeError
from tests.cli.folders import Designed, Run, Spawn, manifest, order, page, rows, settings
from tests.interruptions import interrupted

OPTIONS = ("--lines", 12, "--start", 6, "--recipe", "quick.toml")


def test_it_says_how_it_ended_and_where_the_report_is(designed: Designed) -> None:
    out, result = designed
    assert result.exit_code == 0
    said, pair = result.stdout.splitlines()
    assert said == f"12 lines, converged: {out / 'report.html'}"
    error = RelativeError.from_settings(settings(out))
    (row,) = [row for row in rows(out / "metrics.csv") if row["method"] == "mean"]
    assert error is not None and error.predicted is not None and error.found is not None
    assert pair == error.words and pair in page(out)  # of the terminal, the headline, and the slider's last step
    assert f'"error":{json.dumps(str(error))}' in page(out)
    assert (float(row["predicted_error"]), float(row["found_error"])) == pytest.approx(
        (error.predicted, error.found), rel=1e-4
    )
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
        "state.npz",
        "std.npy",
        "steps.csv",
    }
    assert names - {"figures", ".mri-design.json"} <= OUTPUTS.keys()
    figures = {path.name for path in (out / "figures").iterdir()}
    for shown in ("mask", "mask-growth", "order", "scores", "information", "predicted-error", "innovations", "images"):
        assert f"{shown}.svg" in figures
    assert {"errors.svg", "std.svg", "calibration.svg", "prediction-lines.svg"} <= figures


def test_metrics_are_those_of_the_saved_image(designed: Designed, work: Path) -> None:
    out, _ = designed
    first, second = rows(out / "metrics.csv")
    assert (first["method"], second["method"]) == ("mean", "zero-filled")
    assert (first["lines"], first["acceleration"], first["converged"]) == ("12", "2", "yes")
    truth = np.abs(np.load(work / "scan.npz")["reference"][0])
    error = np.linalg.norm(np.abs(np.load(out / "recon.npy")) - truth) / np.linalg.norm(truth)
    assert float(first["relative_l2"]) == pytest.approx(error, rel=1e-4)


def test_the_manifest_tells_the_run_without_places(designed: Designed, work: Path) -> None:
    out, _ = designed
    text, told = (out / "manifest.json").read_text(), manifest(out)
    assert " ".join(sorted(told)) == "command inputs lines seed settings status versions wall_seconds"
    assert told["inputs"] == [
        {"name": "scan.npz", "sha256": hashlib.sha256((work / "scan.npz").read_bytes()).hexdigest()}
    ]
    assert told["lines"] == order(out)
    assert (told["seed"], told["status"]) == (0, "converged")
    assert told["settings"]["inference"]["samples"] == 6
    assert (told["settings"]["start"], told["settings"]["slice"]) == (6, 0)
    assert told["settings"]["noise_sd_per_real_component"] == pytest.approx(0.007)
    assert told["settings"]["signal_level"] > 0
    assert {"python", "numpy", "mri-design"} <= set(told["versions"])
    assert told["wall_seconds"] > 0
    assert str(work) not in text and str(work.parent) not in text


def test_the_report_is_one_file(designed: Designed, work: Path) -> None:
    out, _ = designed
    shown = page(out)
    drawn = {path.name for path in (out / "figures").iterdir()}
    assert shown.count('<div class="plot"><svg') == len(drawn) and {name[-4:] for name in drawn} == {".svg"}
    for outside in ("http://", "https://", 'src="figures', "<script src", "<link", str(work)):
        assert outside not in shown
    assert "Line design: scan" in shown
    told = json.loads(shown.split('<script type="application/json">')[1].split("</script>")[0])
    assert [*told["start"], *(step["line"] for step in told["steps"])] == order(out)
    assert told["images"] and all(image["mean"] and image["deviation"] for image in told["images"])
    assert "Not converged" not in shown


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
    assert stdout.startswith("12 lines, converged: fresh/report.html\n") and len(stdout.splitlines()) == 2


def test_quiet_says_nothing(run: Run, tmp_path: Path) -> None:
    words = ("--lines", 12, "--strategy", "low-pass", "--recipe", "fast.toml", "--quiet")
    result = run("design", "scan.npz", *words, "--out", tmp_path / "x")
    assert (result.exit_code, result.output) == (0, "")
    assert order(tmp_path / "x") == [12, 11, 13, 10, 14, 9, 15, 8, 16, 7, 17, 6]


def test_a_design_that_did_not_converge_says_so_everywhere(run: Run, work: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "hasty.toml"
    recipe.write_text((work / "quick.toml").read_text().replace("loops = 8", "loops = 1").replace("0.1", "1e-9"))
    result = run("design", "scan.npz", "--lines", 8, "--start", 6, "--recipe", recipe, "--out", tmp_path / "x", code=4)
    assert "8 lines, not converged" in result.stdout
    assert manifest(tmp_path / "x")["status"].startswith("not converged (stopped at the iteration limit")
    assert "Not converged (stopped at the iteration limit" in page(tmp_path / "x")
    assert ",no," in (tmp_path / "x" / "metrics.csv").read_text()


def test_a_step_that_did_not_converge_says_so_where_the_image_did(run: Run, work: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "blunt.toml"
    quick = (work / "quick.toml").read_text() + 'method = "zero-filled"\n'
    recipe.write_text(quick.replace("[inference]", "[inference]\ninner_iterations = 1\ninner_tolerance = 1e-12"))
    run("design", "scan.npz", "--lines", 8, "--start", 6, "--recipe", recipe, "--out", tmp_path / "x", code=4)
    assert manifest(tmp_path / "x")["status"] == "not converged (2 of 2 design steps)"


@pytest.fixture(scope="module")
def cut(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A design that was interrupted after nine lines."""
    out = tmp_path_factory.mktemp("cut") / "stopped"
    with pytest.MonkeyPatch.context() as patch, interrupted("calibrated", 3):
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


@pytest.fixture
def stopped(cut: Path, tmp_path: Path) -> Path:
    """A copy of its folder."""
    return Path(copytree(cut, tmp_path / "stopped"))


def test_an_interrupted_design_is_resumed_to_the_same_lines(run: Run, stopped: Path, designed: Designed) -> None:
    run("design", "scan.npz", *OPTIONS, "--out", stopped, "--resume", code=0)
    for name in ("lines.csv", "mask.npy", "recon.npy", "prediction.csv"):
        assert (stopped / name).read_bytes() == (designed[0] / name).read_bytes()
    assert not (stopped / "checkpoint.npz").exists()


def test_neither_the_same_nor_another_design_goes_on_from_it_by_accident(run: Run, cut: Path) -> None:
    before = (cut / "checkpoint.npz").read_bytes()
    assert "add --resume" in run("design", "scan.npz", *OPTIONS, "--out", cut, code=2).stderr
    for scan, *change in (("scan.npz", "--seed", 1), ("scan.npz", "--start", 5), ("head.npz", "--start", 6)):
        other = run("design", scan, *OPTIONS, *change, "--out", cut, "--resume", code=2)
        assert "a design with another input, recipe, seed, start, number of lines" in " ".join(other.stderr.split())
    assert (cut / "checkpoint.npz").read_bytes() == before


def test_a_finished_design_is_left_as_it_is(run: Run, designed: Designed) -> None:
    out, first = designed
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    finished = (
        f"nothing to do: this design is finished; its report is {out / 'report.html'} (--overwrite makes it again)"
    )
    for resume in (["--resume"], []):
        result = run("design", "scan.npz", *OPTIONS, "--out", out, *resume, code=0)
        assert result.stdout == f"{finished}\n{first.stdout}"
    for other in (["--seed", 1], ["--lines", 13], ["--resume", "--start", 5]):
        refused = run("design", "scan.npz", *OPTIONS, *other, "--out", out, code=2)
        assert "designed holds a finished run; " in refused.stderr
        assert ("--resume" in refused.stderr) == ("--lines" in other)
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def test_a_damaged_checkpoint_is_refused(run: Run, stopped: Path) -> None:
    (stopped / "checkpoint.npz").write_bytes(b"PK\x03\x04 not really")
    result = run("design", "scan.npz", *OPTIONS, "--out", stopped, "--resume", code=3)
    assert "an unreadable checkpoint" in result.stderr and "Delete it." in result.stderr


def test_overwriting_begins_anew_and_leaves_nothing_of_the_run_before(
    run: Run, stopped: Path, designed: Designed, tmp_path: Path
) -> None:
    run("design", "scan.npz", *OPTIONS, "--lines", 99, "--out", stopped, "--overwrite", code=2)
    assert (stopped / "checkpoint.npz").exists()  # refused before anything is removed
    copytree(designed[0], tmp_path / "done")
    low = (*OPTIONS, "--strategy", "low-pass", "--recipe", "fast.toml", "--overwrite")
    for out in (stopped, tmp_path / "done"):
        (out / "notes.txt").write_text("mine")
        run("design", "scan.npz", *low, "--out", out, code=0)
        names = {path.name for path in out.iterdir()}
        assert not names & {"scores.csv", "std.npy", "checkpoint.npz"}  # this strategy has none, nor a posterior
        assert (out / "notes.txt").read_text() == "mine" and len(order(out)) == 12


def test_resume_without_a_checkpoint_begins(run: Run, tmp_path: Path) -> None:
    options = ("--lines", 8, "--strategy", "random", "--recipe", "fast.toml", "--resume")
    run("design", "scan.npz", *options, "--out", tmp_path / "x", code=0)
