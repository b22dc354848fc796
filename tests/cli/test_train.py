import json
import signal
import time
from pathlib import Path

import pytest

from mri_design.evaluation.tables import read_csv_texts
from mri_design.experiment.stored_designs import load_trained
from mri_design.runs import train as training_run
from tests.cli.folders import Designed, Run, Spawn

OPTIONS = ("--lines", 9, "--method", "zero-filled", "--recipe", "quick-local.toml", "--jobs", 1)


@pytest.fixture(scope="module")
def learnt(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Designed:
    out = tmp_path_factory.mktemp("train") / "order.npz"
    return out, run("train", "scan.npz", "head.npz", *OPTIONS, "--out", out)


def test_it_says_how_it_ended_and_writes_one_file(learnt: Designed) -> None:
    out, result = learnt
    assert result.exit_code == 0, result.output
    assert result.stdout == f"9 lines by residual-greedy, converged: {out}\n"
    assert [path.name for path in out.parent.iterdir()] == ["order.npz"]


def test_the_file_says_what_it_was_learnt_from(learnt: Designed, work: Path) -> None:
    design = load_trained(learnt[0])
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


def test_a_design_says_how_much_the_training_scans_counted(learnt: Designed, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--lines", 12, "--recipe", "quick-local.toml", "--out", out)
    run("design", "scan.npz", "--strategy", f"calibrated:{learnt[0]}", *words, code=(0, 4))
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    weights = [float(row["side_information_weight"]) for row in read_csv_texts(out / "steps.csv")]
    assert len(weights) > 1 and all(0 < weight < 1 for weight in weights)
    assert settings["weight_of_training_scans"] == pytest.approx(weights[-1], rel=1e-4)
    assert "weight_of_earlier_scan" not in settings
    assert f"counts for {weights[-1]:.0%} of the choice at the end" in (out / "report.html").read_text()


def test_the_same_command_again_does_nothing_and_another_one_is_refused(learnt: Designed, run: Run) -> None:
    out, _ = learnt
    before = out.read_bytes()
    again = run("train", "scan.npz", "head.npz", *OPTIONS, "--out", out, code=0)
    assert again.stdout.startswith("nothing to do: ")
    other = run("train", "scan.npz", *OPTIONS, "--out", out, code=2)
    assert "another trained design" in other.stderr
    assert out.read_bytes() == before


def test_processes_and_interruptions_change_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ("--rule", "stochastic-lbcs", "--candidates", 3, "--scans", 1)
    command = ("train", "scan.npz", "head.npz", *OPTIONS, *rule)
    run(*command, "--out", tmp_path / "a.npz", code=0)
    whole = (tmp_path / "a.npz").read_bytes()
    run(*command, "--jobs", 2, "--out", tmp_path / "b.npz", code=0)
    assert (tmp_path / "b.npz").read_bytes() == whole
    calls = [0]
    real = training_run.trial_outcome

    def fails_late(material: object, trial: object) -> object:
        calls[0] += 1
        if calls[0] > 17:
            raise KeyboardInterrupt
        return real(material, trial)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(training_run, "trial_outcome", fails_late)
        run(*command, "--out", tmp_path / "c.npz", code=130)
    assert not (tmp_path / "c.npz").exists() and (tmp_path / "c.npz.unfinished").exists()
    other = run(*command, "--seed", 1, "--resume", "--out", tmp_path / "c.npz", code=2)
    assert "the beginning of another training" in other.stderr
    assert "--resume" in run(*command, "--out", tmp_path / "c.npz", code=2).stderr
    run(*command, "--out", tmp_path / "c.npz", "--resume", "--overwrite", code=2)
    run(*command, "--out", tmp_path / "c.npz", "--resume", code=0)
    assert (tmp_path / "c.npz").read_bytes() == whole
    assert not (tmp_path / "c.npz.unfinished").exists()


def test_a_scan_on_another_grid_is_refused(learnt: Designed, run: Run, tmp_path: Path) -> None:
    for family in ("trained", "calibrated"):
        result = run(
            "design", "phantom:brain", "--lines", 8, "--strategy", f"{family}:{learnt[0]}",
            "--recipe", "quick-local.toml", "--out", tmp_path / family, code=3)  # fmt: skip
        assert "a grid of 24 for a scan with 16 phase-encode lines" in result.stderr


def test_a_killed_training_is_stopped_and_goes_on(spawn: Spawn, run: Run, tmp_path: Path) -> None:
    """kill -9: nobody tidies up, and what was begun is found, told by `status`, and finished by the same command."""
    words = ("--lines", 22, "--rule", "lbcs", "--recipe", "fast.toml", "--jobs", 1, "--out")
    command = ("train", "scan.npz", *words)
    killed, whole, unfinished = (tmp_path / name for name in ("order.npz", "whole.npz", "order.npz.unfinished"))
    with spawn(*command, killed) as training:
        try:
            deadline = time.monotonic() + 60
            while not unfinished.exists() and training.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
            training.send_signal(signal.SIGSTOP)
            told = run("status", tmp_path).output
            assert told.startswith("order.npz: running; training ") and f"process {training.pid} on host" in told
            second = run(*command, killed, code=3)
            assert f"in use by process {training.pid} on host" in second.stderr
        finally:
            training.kill()
    told = run("status", tmp_path).output
    assert told.startswith("order.npz: stopped") and "go on with: mri-design train scan.npz" in told
    run(*command, killed, "--resume", code=0)
    run(*command, whole, code=0)
    assert killed.read_bytes() == whole.read_bytes()


def test_an_order_stays_until_there_is_another(run: Run, tmp_path: Path) -> None:
    """What refuses a training that would have overwritten it has not destroyed it."""
    out = tmp_path / "order.npz"
    words = ("--lines", 8, "--start", 6, "--recipe", "fast.toml", "--jobs", 1, "--out", out)
    run("train", "scan.npz", *words, code=0)
    before = out.read_bytes()
    run("train", "scan.npz", "phantom:t2w", *words, "--overwrite", code=3)  # another grid
    assert out.read_bytes() == before
