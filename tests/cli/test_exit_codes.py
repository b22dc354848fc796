import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design.evaluation.run_folder import RunFolder

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
        (["design", "scan.npz", "--lines", "many", "--out", "x"], "'many' is no whole number"),
        (["design", "scan.npz", "--lines", "0", "--out", "x"], "Invalid value for '--lines'"),
        (["design", "scan.npz", "--lines", "8", "--seed", "-1", "--out", "x"], "Invalid value for '--seed'"),
        (["design", "scan.npz", "--lines", "8", "--shiny", "--out", "x"], "No such option"),
        (["design", "scan.npz", "--lines", "8", "--strategy", "magic", "--out", "x"], "unknown strategy 'magic'"),
        (["design", "scan.npz", "--lines", "8", "--strategy", "random:2", "--out", "x"], "takes no power"),
        (["recon", "scan.npz", "--method", "magic", "--out", "x"], "unknown method 'magic'"),
        (["compare", "scan.npz", "--lines", "8,x", "--out", "x"], "give positive whole numbers"),
        (["compare", "scan.npz", "--lines", "0,8", "--out", "x"], "give positive whole numbers"),
        (["compare", "scan.npz", "--lines", "", "--out", "x"], "give positive whole numbers"),
        (["design", "scan.npz", "--lines", "8", "--strategy", "residual-greedy", "--out", "x"], "mri-design protocol"),
        (["compare", "scan.npz", "--lines", "8", "--strategies", "residual-greedy", "--out", "x"], "--train"),
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


LOW = ["--strategies", "low-pass", "--jobs", "1"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["design", "scan.npz", "--lines", "25"], "--lines: number of lines: got 25; wanted at most 24"),
        (["design", "scan.npz", "--lines", "8", "--start", "9"], "--start: start lines: got 9"),
        (["design", "scan.npz", "--lines", "8", "--slice", "3"], "--slice: got 3; wanted 0 to 0"),
        (["recon", "scan.npz", "--slice", "7"], "--slice: got 7; wanted 0 to 0"),
        (["compare", "scan.npz", "--lines", "25", *LOW], "--lines: number of lines: got 25"),
        (["protocol", "scan.npz", "--lines", "25"], "--lines: number of lines: got 25"),
        (["train", "scan.npz", "--lines", "25"], "--lines: number of lines: got 25"),
        (["compare", "scan.npz#4", "--lines", "8"], "INPUT: slices: got 4; wanted 0 to 0"),
        (["compare", "scan.npz", "--slices", "4", "--lines", "8"], "--slices: got 4"),
        (["design", "scan.npz#2", "--lines", "8"], "scan.npz --slice 2"),
        (["recon", "scan.npz#0"], "scan.npz --slice 0"),
        (["info", "scan.npz#2"], "info tells about all slices"),
        (["compare", "scan.npz", "--lines", "8", "--maps", "other.npz=maps.npy"], "--maps other.npz=maps.npy: give"),
    ],
)
def test_what_is_wrong_with_the_arguments_alone_ends_with_2(
    run: Run, work: Path, tmp_path: Path, words: list[str], complaint: str
) -> None:
    words = [str(work / word) if "#" in word else word for word in words]
    out = [] if words[0] == "info" else ["--out", tmp_path / "x"]
    assert_refused(run(*words, *out), 2, complaint)
    assert not (tmp_path / "x").exists()


def test_wrong_arguments_are_told_before_whose_folder_it_is(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "x"
    assert run("design", "scan.npz", "--strategy", "low-pass", "--lines", 8, "--out", out).exit_code == 0
    for words in (
        ("--lines", 25),
        ("--lines", 8, "--slice", 3),
        ("--until-error", "nan"),
        ("--lines", 8, "--forbid", "a"),
    ):
        result = run("design", "scan.npz", "--strategy", "low-pass", *words, "--out", out)
        assert_refused(result, 2, words[-2])
        assert "finished run" not in result.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["info", "absent.npy"], "absent.npy"),
        (["design", "absent.npy", "--lines", "8"], "absent.npy"),
        (["recon", "absent.npy"], "absent.npy"),
        (["compare", "absent.npy", "--lines", "8"], "absent.npy"),
        (["info", "phantom:nobody"], "phantom:nobody"),
        (["design", "scan.npz", "--lines", "8", "--recipe", "absent.toml"], "recipe absent.toml: got No such file"),
        (["recon", "scan.npz", "--mask", "absent-mask.npy"], "absent-mask.npy"),
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


def test_a_wrong_recipe_is_not_taken_for_an_option_beside_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[design]\nstrategy = 'magic'\nstratgy = 'random'\n")
    words = ("--strategy", "low-pass", "--recipe", tmp_path / "mine.toml", "--out", tmp_path / "x")
    assert_refused(run("design", "scan.npz", "--lines", 8, *words), 3, "mine.toml: design.stratgy: got an unknown")
    (tmp_path / "mine.toml").write_text("[design]\nstratgy = 'random'\n")
    assert_refused(run("design", "scan.npz", "--lines", 8, *words), 3, "Did you mean design.strategy?")


def test_a_folder_in_use_is_refused_with_its_holder(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "busy"
    with RunFolder(out):
        for verb in (
            ["design", "scan.npz", "--lines", 8],
            ["recon", "scan.npz"],
            ["compare", "scan.npz", "--lines", 8],
        ):
            assert_refused(run(*verb, "--out", out), 3, "a folder in use by process")
    assert [path.name for path in out.iterdir()] == [".mri-design.json"]


@pytest.mark.parametrize("name", ["lines.csv", "report.html", "notes.txt"])
@pytest.mark.parametrize(
    "verb",
    [
        ("design", "scan.npz", "--lines", 8, "--strategy", "low-pass"),
        ("recon", "scan.npz", "--method", "zero-filled"),
        ("compare", "scan.npz", "--lines", 8),
        ("protocol", "scan.npz", "--lines", 8),
        ("demo",),
    ],
    ids=lambda verb: verb[0],
)
def test_a_folder_of_others_is_refused_untouched(run: Run, tmp_path: Path, verb: tuple[object, ...], name: str) -> None:
    (tmp_path / name).write_text("mine")
    assert_refused(run(*verb, "--out", tmp_path), 2, f"holds {name}", "--overwrite")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_overwriting_leaves_other_files_of_the_folder(run: Run, tmp_path: Path) -> None:
    for name in ("report.html", "notes.txt"):
        (tmp_path / name).write_text("mine")
    verb = ("recon", "scan.npz", "--method", "zero-filled", "--out", tmp_path, "--overwrite")
    assert run(*verb).exit_code == 0
    assert "Reconstruction" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_nothing_is_written_through_a_link(run: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "order.npz").symlink_to(tmp_path / "elsewhere" / "order.npz")
    for verb in (
        ("recon", "scan.npz", "--out", tmp_path / "link", "--overwrite"),
        ("train", "scan.npz", "--lines", 8, "--out", tmp_path / "order.npz", "--overwrite"),
    ):
        assert_refused(run(*verb), 2, "symbolic link")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_trained_order_does_not_replace_another_file(run: Run, tmp_path: Path) -> None:
    verb = ("train", "scan.npz", "--lines", 6, "--start", 4, "--method", "zero-filled", "--jobs", 1)
    (tmp_path / "order.npz").write_text("mine")
    assert_refused(run(*verb, "--out", tmp_path / "order.npz"), 2, "order.npz is no trained design", "--overwrite")
    assert (tmp_path / "order.npz").read_text() == "mine"
    assert run(*verb, "--out", tmp_path / "order.npz", "--overwrite").exit_code == 0


def test_an_out_that_is_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert_refused(run("recon", "scan.npz", "--out", tmp_path / "file"), 3, "a file in the place of a folder")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_interruption_ends_with_130_in_words(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mri_design.runs.recon import run as recon_run

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recon_run, "reconstruct", interrupt)
    monkeypatch.setattr("sys.argv", ["mri-design", "recon", "scan.npz", "--out", "x"])
    said = "interrupted; there is nothing to go on from; begin again with: mri-design recon scan.npz --out x"
    assert_refused(run("recon", "scan.npz", "--out", tmp_path / "x"), 130, said)
    assert not (tmp_path / "x").exists()


def test_ctrl_c_ends_a_process_with_130_and_the_command_that_goes_on(work: Path, spawn: Spawn) -> None:
    """A real signal, workers included."""
    words = ("compare", "scan.npz", "--lines", "8,9,10,11,12", "--strategies", "random,low-pass", "--jobs", 2)
    process = spawn(*words, "--seeds", 100, "--recipe", "quick-local.toml", "--out", "broken off")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("reconstructing") and not line.startswith("reconstructing: 0"):
            break
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    last = stderr.splitlines()[-1]
    assert last.startswith("mri-design: interrupted; broken off/progress.json holds what is finished; go on with: ")
    assert last.endswith("--out 'broken off'")


def test_a_full_disk_ends_with_1_and_names_the_path(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mri_design.scan.io import atomic

    real, left = os.fsync, [4]  # the mark on the folder, and that there will be a checkpoint

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(descriptor)

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
    assert ("mri-design:" in stderr or "Usage:" in stderr) == (code != 4)
    assert "Traceback" not in stderr
