import os
import signal
from pathlib import Path

import pytest

from mri_design.scan.io import atomic
from tests.cli.folders import Run, Spawn
from tests.command_line import Result


def assert_refused(result: Result, code: int) -> None:
    assert result.exit_code == code, result.output
    assert result.stdout == ""


def test_a_trained_order_does_not_replace_another_file(run: Run, tmp_path: Path) -> None:
    words = ("scan.npz", "--lines", 6, "--start", 4, "--method", "zero-filled", "--jobs", 1)
    verb = ("protocol", "--rule", "residual-greedy", *words)
    (tmp_path / "order.npz").write_text("mine")
    assert_refused(run(*verb, "--out", tmp_path / "order.npz"), 2)
    assert (tmp_path / "order.npz").read_text() == "mine"
    run(*verb, "--out", tmp_path / "order.npz", "--overwrite", code=0)


@pytest.mark.parametrize("words", [("recon", "scan.npz"), ("design", "scan.npz"), ("compare", "--seeds", 2)])
def test_a_misspelt_option_is_named_before_one_that_is_missing(run: Run, words: tuple[object, ...]) -> None:
    for misspelt, nearest in (("--sliices", "--slices"), ("--sliices=1", "--slices")):
        result = run(*words, misspelt, *([] if "=" in misspelt else [1]))
        assert_refused(result, 2)
        assert "--sliices" in result.stderr and nearest in result.stderr and "--out" not in result.stderr


def test_ctrl_c_ends_a_process_with_130_and_the_command_that_goes_on(work: Path, spawn: Spawn) -> None:
    """A real signal, workers included."""
    words = ("compare", "scan.npz", "--lines", "8,9,10,11,12", "--strategies", "random,low-pass", "--jobs", 2)
    process = spawn(*words, "--seeds", 100, "--recipe", "fast.toml", "--out", "broken off")
    for line in process.stderr:
        if line.startswith("reconstructing") and not line.startswith("reconstructing: 0"):
            break
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    last = stderr.splitlines()[-1]
    assert "broken off/progress.json" in last and last.endswith("--out 'broken off' --resume")


def test_a_full_disk_ends_with_1_and_names_the_path(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = os.fsync, [4]  # the mark on the folder, and that there will be a checkpoint

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", full)
    result = run("design", "scan.npz", "--lines", 8, "--start", 5, "--out", tmp_path / "x")
    assert_refused(result, 1)
    assert not (tmp_path / "x").exists()
