import hashlib
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.evaluation.run_folder import OUTPUTS
from mri_design.experiment import shipped_recipes
from tests.cli.folders import Designed, Run, Spawn, manifest, order, rows
from tests.interruptions import interrupted

OPTIONS = ("--lines", 12, "--start", 6, "--recipe", "quick.toml")


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


def test_another_process_gives_the_same_bytes(designed: Designed, spawn: Spawn, work: Path) -> None:
    """With two threads."""
    out, _ = designed
    process = spawn("design", "scan.npz", *OPTIONS, "--out", "fresh", threads=2)
    process.communicate(timeout=120)
    assert process.returncode == 0
    tables = ("lines.csv", "metrics.csv", "steps.csv", "scores.csv", "prediction.csv", "prediction-lines.csv")
    for name in ("mask.npy", "recon.npy", "std.npy", *tables):
        assert (work / "fresh" / name).read_bytes() == (out / name).read_bytes(), name


def test_a_design_that_did_not_converge_says_so_everywhere(run: Run, work: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "hasty.toml"
    recipe.write_text((work / "quick.toml").read_text().replace("loops = 8", "loops = 1").replace("0.1", "1e-9"))
    run("design", "scan.npz", "--lines", 8, "--start", 6, "--recipe", recipe, "--out", tmp_path / "x", code=4)
    assert manifest(tmp_path / "x")["status"].startswith("not converged (stopped at the iteration limit")


@pytest.fixture(scope="module")
def cut(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A design that was interrupted after nine lines."""
    out = tmp_path_factory.mktemp("cut") / "stopped"
    with pytest.MonkeyPatch.context() as patch, interrupted("calibrated", 3):
        patch.setattr("sys.argv", ["mri-design", "design", "scan.npz", "--lines", "12", "--out", "a b", "--overwrite"])
        result = run("design", "scan.npz", *OPTIONS, "--out", out)
    assert result.exit_code == 130
    assert result.stderr.endswith("mri-design design scan.npz --lines 12 --out 'a b' --resume\n")
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
    for scan, *change in (("scan.npz", "--seed", 1), ("scan.npz", "--start", 5), ("head.npz", "--start", 6)):
        run("design", scan, *OPTIONS, *change, "--out", cut, "--resume", code=2)
    assert (cut / "checkpoint.npz").read_bytes() == before


def test_a_finished_design_is_left_as_it_is(run: Run, designed: Designed) -> None:
    out, _ = designed
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    for resume in (["--resume"], []):
        run("design", "scan.npz", *OPTIONS, "--out", out, *resume, code=0)
    for other in (["--seed", 1], ["--lines", 13], ["--resume", "--start", 5]):
        run("design", "scan.npz", *OPTIONS, *other, "--out", out, code=2)
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


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


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_design_with_a_shipped_recipe_converges(tmp_path: Path, run: Run, name: str) -> None:
    data = load_phantom("brain", shape=(29, 24), rng=np.random.default_rng(0))
    np.save(tmp_path / "odd.npy", data.kspace)
    words = ("--lines", 13, "--start", 10, "--recipe", name, "--no-report", "--out", tmp_path / "o")
    run("design", tmp_path / "odd.npy", *words, code=0)
    assert (
        manifest(tmp_path / "o")["status"] == "converged" and np.isfinite(np.load(tmp_path / "o" / "recon.npy")).all()
    )
