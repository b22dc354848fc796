import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design.evaluation import RunFolder

Run = Callable[..., Result]
Spawn = Callable[..., "subprocess.Popen[str]"]


def assert_refused(result: Result, code: int, *words: str) -> None:
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert all(word in " ".join(result.stderr.split()) for word in words), result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["dsign", "scan.npz"], "No such command"),
        (["design", "scan.npz", "--out", "x"], "when does the design end?"),
        (["design", "scan.npz", "--lines", "many", "--out", "x"], "should be a valid integer"),
        (["design", "scan.npz", "--lines", "0", "--out", "x"], "Invalid value for '--lines'"),
        (["design", "scan.npz", "--lines", "8", "--seed", "-1", "--out", "x"], "Invalid value for '--seed'"),
        (["design", "scan.npz", "--lines", "8", "--shiny", "--out", "x"], "No such option"),
        (["design", "scan.npz", "--lines", "8", "--strategy", "magic", "--out", "x"], "unknown strategy 'magic'"),
        (["design", "scan.npz", "--lines", "8", "--strategy", "random:2", "--out", "x"], "takes no power"),
        (["recon", "scan.npz", "--method", "magic", "--out", "x"], "unknown method 'magic'"),
        (["compare", "scan.npz", "--lines", "8,x", "--out", "x"], "give positive whole numbers"),
        (["compare", "scan.npz", "--lines", "0,8", "--out", "x"], "give positive whole numbers"),
        (["compare", "scan.npz", "--lines", "", "--out", "x"], "give positive whole numbers"),
        (["compare", "scan.npz", "--lines", "8", "--strategies", "random,magic", "--out", "x"], "unknown strategy"),
        (["compare", "scan.npz", "--lines", "8", "--strategies", ",", "--out", "x"], "unknown strategy ''"),
        (["compare", "scan.npz", "--lines", "8", "--method", "magic", "--out", "x"], "unknown method"),
    ],
)
def test_wrong_usage_ends_with_2_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(run(*words), 2, complaint)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["scan.npz", "scan.npz"], "two inputs have the same name and slice"),
        (["scan.npz", "--train", "scan.npz"], "scan[0] is both a test and a training image"),
        (["scan.npz", "--slices", "first"], "slices 'first'"),
        (["scan.npz#x"], "slices 'x'"),
    ],
)
def test_comparisons_that_cannot_be_fair_end_with_2(
    run: Run, work: Path, tmp_path: Path, options: list[str], complaint: str
) -> None:
    sources = [str(work / word) if "#" in word else word for word in options]
    assert_refused(run("compare", *sources, "--lines", "8", "--out", tmp_path / "x"), 2, complaint)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["info", "absent.npy"], "absent.npy"),
        (["design", "absent.npy", "--lines", "8"], "absent.npy"),
        (["recon", "absent.npy"], "absent.npy"),
        (["compare", "absent.npy", "--lines", "8"], "absent.npy"),
        (["info", "phantom:nobody"], "phantom:nobody"),
        (["design", "scan.npz", "--lines", "25"], "number of lines: got 25; wanted 8 (start lines) to 24"),
        (["design", "scan.npz", "--lines", "8", "--start", "9"], "start lines: got 9"),
        (["design", "scan.npz", "--lines", "8", "--slice", "3"], "slice: got 3; wanted 0 to 0"),
        (["design", "scan.npz", "--lines", "8", "--recipe", "absent.toml"], "recipe absent.toml: got No such file"),
        (["recon", "scan.npz", "--mask", "absent-mask.npy"], "absent-mask.npy"),
        (
            ["compare", "scan.npz", "--lines", "25", "--strategies", "low-pass", "--jobs", "1"],
            "number of lines: got 25",
        ),
        (["compare", "scan.npz#4", "--lines", "8"], "slices: got 4; wanted 0 to 0"),
    ],
)
def test_bad_input_ends_with_3_and_names_it(
    run: Run, work: Path, tmp_path: Path, words: list[str], complaint: str
) -> None:
    words = [str(work / word) if "#" in word else word for word in words]
    out = [] if words[0] == "info" else ["--out", tmp_path / "x"]
    assert_refused(run(*words, *out), 3, complaint)
    assert not list((tmp_path / "x").glob("*.npy"))


def test_a_truncated_scan_ends_with_3(run: Run, work: Path, tmp_path: Path) -> None:
    whole = (work / "scan.npz").read_bytes()
    for share in (0.1, 0.5, 0.99):
        cut = tmp_path / "cut.npz"
        cut.write_bytes(whole[: int(share * len(whole))])
        assert_refused(run("recon", cut, "--out", tmp_path / "x"), 3, "cut.npz")


@pytest.mark.parametrize(
    ("mask", "complaint"),
    [
        (np.ones(23, dtype=bool), "wanted bool (24,)"),
        (np.ones((24, 1), dtype=bool), "wanted bool (24,)"),
        (np.ones(24), "got float64 (24,)"),
        (np.zeros(24, dtype=bool), "got no line"),
    ],
)
def test_a_mask_that_is_none_ends_with_3(run: Run, tmp_path: Path, mask: np.ndarray, complaint: str) -> None:
    np.save(tmp_path / "mask.npy", mask)
    assert_refused(
        run("recon", "scan.npz", "--mask", tmp_path / "mask.npy", "--out", tmp_path / "x"), 3, "mask.npy", complaint
    )


def test_a_wrong_recipe_ends_with_3_and_names_the_setting(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[inference]\nloops = -1\n")
    result = run("design", "scan.npz", "--lines", 8, "--recipe", tmp_path / "mine.toml", "--out", tmp_path / "x")
    assert_refused(result, 3, "recipe mine.toml: inference.loops: got -1")


def test_a_folder_in_use_is_refused_with_its_holder(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "busy"
    with RunFolder(out):
        for verb in (
            ["design", "scan.npz", "--lines", 8],
            ["recon", "scan.npz"],
            ["compare", "scan.npz", "--lines", 8],
        ):
            assert_refused(run(*verb, "--out", out), 3, "a folder in use by process")
    assert not list(out.iterdir())


def test_an_out_that_is_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert_refused(run("recon", "scan.npz", "--out", tmp_path / "file"), 3, "File exists")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_interruption_ends_with_1_in_words(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mri_design.evaluation import recon_run

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recon_run, "reconstruct", interrupt)
    assert_refused(run("recon", "scan.npz", "--out", tmp_path / "x"), 1, "interrupted")


def test_a_full_disk_ends_with_1_and_names_the_path(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mri_design.io import atomic

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    result = run("design", "scan.npz", "--lines", 8, "--start", 5, "--out", tmp_path / "x")
    assert_refused(result, 1, "No space left on device", "checkpoint.npz")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["recon"], 2),
        (["recon", "absent.npy", "--out", "x"], 3),
        (["recon", "scan.npz", "--recipe", "hasty.toml", "--out", "hasty"], 4),
    ],
)
def test_a_process_ends_with_the_same_codes(work: Path, spawn: Spawn, words: list[str], code: int) -> None:
    (work / "hasty.toml").write_text("[inference]\nloops = 1\ntolerance = 1e-9\n")
    process = spawn(*words)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == code
    assert (stderr == "") == (code == 4)
    assert "Traceback" not in stderr
