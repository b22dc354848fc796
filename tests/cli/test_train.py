import json
from pathlib import Path

import pytest

from mri_design.experiment import load_trained
from mri_design.runs import train as training_run
from tests.cli.folders import Designed, Run
from tests.interruptions import stopping

OPTIONS = ("--lines", 9, "--method", "zero-filled", "--recipe", "quick-local.toml", "--jobs", 1)


@pytest.fixture(scope="module")
def learnt(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Designed:
    out = tmp_path_factory.mktemp("train") / "order.npz"
    return out, run("train", "scan.npz", "head.npz", *OPTIONS, "--out", out)


def test_one_file_says_what_it_was_learnt_from(learnt: Designed, work: Path) -> None:
    out, result = learnt
    assert result.exit_code == 0, result.output
    assert [path.name for path in out.parent.iterdir()] == ["order.npz"]
    design = load_trained(out)
    assert (design.grid, len(design.lines), design.n_start, design.rule) == ((24, 20), 9, 4, "residual-greedy")
    assert design.training == ("scan[0]", "head[0]")
    assert design.reconstructions == 2 * 6
    assert set(design.settings["inputs"]) == {"scan.npz", "head.npz"}  # type: ignore[call-overload]
    assert str(work) not in json.dumps(dict(design.settings))


def test_the_order_is_what_a_design_measures(learnt: Designed, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("design", "scan.npz", "--strategy", f"trained:{learnt[0]}", *OPTIONS[:2], *OPTIONS[4:6], "--out", out, code=0)
    manifest = json.loads((out / "manifest.json").read_text())
    assert tuple(manifest["lines"]) == load_trained(learnt[0]).lines
    assert manifest["settings"]["design"]["strategy"] == "trained:order.npz"
    assert [entry["name"] for entry in manifest["inputs"]] == ["scan.npz", "order.npz"]
    text = (out / "manifest.json").read_text() + (out / "report.html").read_text()
    assert str(learnt[0].parent) not in text


def test_the_same_command_again_does_nothing_and_another_one_is_refused(learnt: Designed, run: Run) -> None:
    out, _ = learnt
    before = out.read_bytes()
    run("train", "scan.npz", "head.npz", *OPTIONS, "--out", out, code=0)
    run("train", "scan.npz", *OPTIONS, "--out", out, code=2)
    assert out.read_bytes() == before


def test_processes_and_interruptions_change_nothing(run: Run, tmp_path: Path) -> None:
    rule = ("--rule", "stochastic-lbcs", "--candidates", 3, "--scans", 1)
    command = ("train", "scan.npz", "head.npz", *OPTIONS, *rule)
    run(*command, "--out", tmp_path / "a.npz", code=0)
    whole = (tmp_path / "a.npz").read_bytes()
    run(*command, "--jobs", 2, "--out", tmp_path / "b.npz", code=0)
    assert (tmp_path / "b.npz").read_bytes() == whole
    with stopping(training_run, "trial_outcome", 17):
        run(*command, "--out", tmp_path / "c.npz", code=130)
    assert not (tmp_path / "c.npz").exists() and (tmp_path / "c.npz.unfinished").exists()
    run(*command, "--seed", 1, "--resume", "--out", tmp_path / "c.npz", code=2)
    run(*command, "--out", tmp_path / "c.npz", "--resume", "--overwrite", code=2)
    run(*command, "--out", tmp_path / "c.npz", "--resume", code=0)
    assert (tmp_path / "c.npz").read_bytes() == whole
    assert not (tmp_path / "c.npz.unfinished").exists()


def test_an_order_stays_until_there_is_another(run: Run, tmp_path: Path) -> None:
    """What refuses a training that would have overwritten it has not destroyed it."""
    out = tmp_path / "order.npz"
    words = ("--lines", 8, "--start", 6, "--recipe", "fast.toml", "--jobs", 1, "--out", out)
    run("train", "scan.npz", *words, code=0)
    before = out.read_bytes()
    run("train", "scan.npz", "phantom:t2w", *words, "--overwrite", code=3)  # another grid
    assert out.read_bytes() == before
