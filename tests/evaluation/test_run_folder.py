"""A run has its folder to itself, files are complete or absent, nobody else's is touched; manifest and progress."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design import InputError, Status, UsageError
from mri_design.evaluation import (
    CHECKPOINT,
    PROGRESS,
    FolderLock,
    InputFile,
    RunFolder,
    RunProgress,
    manifest_text,
    run_folder,
    run_statuses,
)
from mri_design.evaluation.plots.style import panels
from tests.refusals import refused

FORK = multiprocessing.get_context("fork")  # a child that need not import anything again
OWN = {".lock", ".mri-design.json"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder(tmp_path / "run") as opened:
        yield opened


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def curve() -> Figure:
    figure, (axes,) = panels(1, width=1)
    axes.plot([1, 2])
    return figure


# ---- files ----


@pytest.mark.parametrize("png", [False, True])
def test_files_come_back_as_written_and_figures_repeat_exactly(tmp_path: Path, png: bool) -> None:
    image = np.arange(12.0).reshape(4, 3) * (1 + 2j)
    with RunFolder(tmp_path / "run", png=png) as folder:
        folder.write_array("mask.npy", np.arange(10) % 3 == 0)
        folder.write_array("recon.npy", image)
        folder.write_array("std.npy", np.abs(image))
        folder.write_stack("draws.npy", (np.full((2, 2), part, np.float32) for part in range(6)), 2, 3)
        folder.write_table("metrics.csv", [{"strategy": "design", "psnr": 31.25}])
        path = folder.write_figure("curve", curve())
        drawn = contents(path.parent)
        folder.write_figure("curve", curve())
        assert contents(path.parent) == drawn and set(drawn) == {"curve.svg"} | ({"curve.png"} if png else set())
    recon, std, draws = (np.load(folder.path / f"{name}.npy") for name in ("recon", "std", "draws"))
    assert (recon.dtype, std.dtype, draws.shape) == (np.complex64, np.float32, (2, 3, 2, 2))
    np.testing.assert_array_equal(recon, image)
    assert draws[1, 2, 0, 0] == 5 and np.load(folder.path / "mask.npy").sum() == 4
    assert (folder.path / "metrics.csv").read_text() == "strategy,psnr\ndesign,31.25\n"


def test_the_png_of_an_earlier_run_does_not_stay_beside_another_figure(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", png=True) as folder:
        folder.write_figure("curve", Figure(figsize=(1, 1)))
    (tmp_path / "run" / "figures" / "mine.png").write_bytes(b"mine")
    with RunFolder(tmp_path / "run") as folder:
        for name in ("curve", "mine"):
            folder.write_figure(name, Figure(figsize=(1, 1)))
    assert set(contents(tmp_path / "run" / "figures")) == {"curve.svg", "mine.svg", "mine.png"}


@pytest.mark.parametrize("value", [np.nan, 1e39])
def test_what_is_not_finite_is_refused_and_leaves_no_file(folder: RunFolder, value: float) -> None:
    for values in (np.full((4, 4), value), np.full((4, 4), value + 0j)):
        with refused("recon.npy"):
            folder.write_array("recon.npy", values)
    assert set(contents(folder.path)) == OWN


def test_a_write_that_was_killed_leaves_the_old_file_and_is_tidied_up(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_figure("curve", Figure(figsize=(1, 1)))
    folder.write_array("mask.npy", np.ones(4, bool))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", stop)
        patch.setattr("pathlib.Path.unlink", stop)  # as after kill -9: nobody tidies up
        for write in (
            lambda: folder.write_array("mask.npy", np.zeros(4, bool)),
            lambda: folder.write_figure("b", Figure((1, 1))),
        ):
            with pytest.raises(KeyboardInterrupt):
                write()
    folder.close()
    assert len(list(folder.path.rglob("*.partial"))) == 2
    with RunFolder(folder.path):
        assert list(folder.path.rglob("*.partial")) == []
        assert np.load(folder.path / "mask.npy").all() and (folder.path / "figures" / "curve.svg").exists()


# ---- two runs ----


def hold(folder: Path, held: Any) -> None:
    with RunFolder(folder):
        held.set()
        time.sleep(60)


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    held = FORK.Event()
    running = FORK.Process(target=hold, args=(tmp_path / "run", held))
    running.start()
    try:
        assert held.wait(30)
        with pytest.raises(InputError) as caught:
            RunFolder(tmp_path / "run")
        assert f"process {running.pid} " in caught.value.got
        (status,) = run_statuses(tmp_path)
        assert status.state == "running" and status.holder in caught.value.got
    finally:
        running.kill()
        running.join()
    assert (tmp_path / "run" / ".lock").exists() and run_statuses(tmp_path) == []
    with RunFolder(tmp_path / "run") as folder:
        assert f"process {os.getpid()} " in (folder.path / ".lock").read_text()
    assert not (folder.path / ".lock").exists()


def test_a_second_opening_in_one_process_is_refused_until_the_first_closes(folder: RunFolder) -> None:
    with pytest.raises(InputError):
        RunFolder(folder.path)
    folder.close()
    folder.close()
    with pytest.raises(ZeroDivisionError), RunFolder(folder.path):
        raise ZeroDivisionError
    RunFolder(folder.path).close()


def test_a_lock_file_removed_before_it_was_locked_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, flock = FolderLock(tmp_path), run_folder.fcntl.flock

    def release_meanwhile(descriptor: int, operation: int) -> None:
        monkeypatch.setattr("fcntl.flock", flock)
        first.release()  # removes the file that was just opened
        flock(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", release_meanwhile)
    second = FolderLock(tmp_path)
    with pytest.raises(InputError):
        FolderLock(tmp_path)
    second.release()


# ---- names, links and files of others ----

HOSTILE = ["../escape.npy", "/escape.npy", "a\\b.npy", ".lock.npy", "", "nul\0.npy", "-rf.npy", "C:recon.npy"]


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 200 + ".npy"])
def test_a_name_that_is_not_plain_is_refused(folder: RunFolder, tmp_path: Path, name: str) -> None:
    before = contents(tmp_path)
    for write in (folder.output_path, lambda name: folder.write_figure(name, Figure(figsize=(1, 1)))):
        with refused("output name"):
            write(name)
    assert contents(tmp_path) == before


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    secret = tmp_path / "there" / "secret"
    secret.write_text("untouched")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(UsageError):
        RunFolder(tmp_path / "link", overwrite=True)
    with RunFolder(tmp_path / "run") as folder:
        (folder.path / "recon.npy").symlink_to(secret)
        (folder.path / "figures").symlink_to(tmp_path / "there")
        with pytest.raises(InputError):
            folder.write_array("recon.npy", np.ones((4, 4), complex))
        with pytest.raises(UsageError):
            folder.write_figure("curve", Figure(figsize=(1, 1)))
    for overwrite in (False, True):
        with pytest.raises(UsageError):  # which now holds links
            RunFolder(tmp_path / "run", overwrite=overwrite)
    assert not (tmp_path / "run" / ".lock").exists()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".lock").symlink_to(secret)
    with pytest.raises(InputError):
        RunFolder(tmp_path / "new")
    assert contents(tmp_path / "there") == {"secret": b"untouched"}


@pytest.mark.parametrize(
    "ledger", [None, "{", "[]", '{"files": ["../secret"]}', '{"files": ["a/b"]}', '{"files": [3]}']
)
@pytest.mark.parametrize("name", ["lines.csv", "notes.txt"])
def test_a_folder_of_others_is_refused_and_untouched_unless_it_may_be_overwritten(
    tmp_path: Path, ledger: str | None, name: str
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "secret").write_text("untouched")
    (tmp_path / "run" / name).write_text("mine")
    if ledger is not None:
        (tmp_path / "run" / ".mri-design.json").write_text(ledger)
    before = contents(tmp_path)
    with pytest.raises(UsageError):
        RunFolder(tmp_path / "run")
    assert contents(tmp_path) == before
    with RunFolder(tmp_path / "run", overwrite=True) as folder:
        folder.begin()
        assert (folder.path / name).read_text() == "mine"
        folder.write_table("lines.csv", [{"a": 1}])
    assert contents(tmp_path)["secret"] == b"untouched" and contents(tmp_path)["run/lines.csv"] == b"a\n1\n"


def test_of_several_runs_in_a_folder_each_touches_what_runs_wrote(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".DS_Store").write_text("")  # hidden files are nobody's business
    with RunFolder(tmp_path / "run") as folder:
        folder.write_array("mask.npy", np.ones(4, bool))
        folder.write_figure("curve", Figure(figsize=(1, 1)))
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with RunFolder(tmp_path / "run") as folder:
        folder.begin()
        folder.write_array("mask.npy", np.zeros(4, bool))
        (folder.path / "std.npy").write_text("mine")
        with pytest.raises(UsageError):
            folder.write_array("std.npy", np.ones((4, 4)))
        folder.remove("std.npy")
        assert folder.existing("std.npy") is None and (folder.path / "std.npy").read_text() == "mine"
    with pytest.raises(UsageError):  # before the work, not after it
        RunFolder(tmp_path / "run")
    with RunFolder(tmp_path / "run", overwrite=True) as folder:
        assert (folder.path / "mask.npy").exists()  # not before the run begins: it may be refused
        folder.begin()
        assert set(contents(folder.path)) == {*OWN, ".DS_Store", "notes.txt", "std.npy"}


@pytest.mark.parametrize("error", [InputError(field="input", got="nothing", wanted="a scan"), KeyboardInterrupt()])
@pytest.mark.parametrize("made", [True, False])
def test_a_run_that_ends_before_it_writes_leaves_no_folder(tmp_path: Path, error: BaseException, made: bool) -> None:
    if made:
        (tmp_path / "run").mkdir()
    with pytest.raises(type(error)), RunFolder(tmp_path / "run") as folder:
        folder._figures()
        raise error
    assert (tmp_path / "run").exists() == made and not (tmp_path / "run" / "figures").exists()
    with pytest.raises(type(error)), RunFolder(tmp_path / "run") as folder:
        folder.write_table("rows.csv", [{"a": 1}])
        raise error
    assert (tmp_path / "run" / "rows.csv").exists()


def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run", tmp_path / "mistyped" / "run"):
        with pytest.raises(InputError):
            RunFolder(path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# ---- how a run ended ----


def test_the_same_run_tells_how_it_ended_and_other_folders_are_refused(folder: RunFolder) -> None:
    assert not folder.ended("me")
    manifest = {"status": "not converged", "lines": [3, 1], "settings": {"identity": "me", "beginning": "b"}}
    folder.write_text("manifest.json", json.dumps(manifest))
    assert folder.ended("me")
    assert not folder.ended("more", beginning="b", resume=True)
    with pytest.raises(UsageError):
        folder.ended("more", beginning="b")
    for text in ("{", "[]", "\xff", json.dumps(manifest | {"settings": 3})):
        (folder.path / "manifest.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(UsageError):
            folder.ended("me")


@pytest.mark.parametrize(("present", "own"), [(CHECKPOINT, PROGRESS), (PROGRESS, CHECKPOINT), (PROGRESS, "")])
def test_the_beginning_of_another_kind_of_run_is_refused(folder: RunFolder, present: str, own: str) -> None:
    (folder.path / present).write_bytes(b"")
    with pytest.raises(UsageError):
        folder.ended("me", own=own)
    assert not folder.ended("me", own=present)


# ---- manifest ----


def test_the_manifest_holds_plain_values_and_no_folder_of_the_machine(tmp_path: Path) -> None:
    scan = tmp_path / "scan.h5"
    scan.write_bytes(b"scan")
    with pytest.raises(InputError):
        InputFile.of(tmp_path / "gone.h5")
    inputs = [InputFile.of(scan)]
    assert inputs == [InputFile("scan.h5", hashlib.sha256(b"scan").hexdigest())]
    strategies = "random,trained:/a/b/c.npz,calibrated:../d.npz"
    command = ["/opt/x/mri-design", str(scan), "--out=../runs/a/", "--lines", "64", strategies, "C:\\Users\\me\\s.h5"]
    settings = {"tau": np.float32(0.5), "scan": scan, "maps": f"{tmp_path}/maps.npy", "status": Status.STALLED}
    settings |= {"nan": [float("nan"), np.inf], "input": inputs[0], "there": "C:\\me\\s.h5"}
    known = {"inputs": inputs, "settings": settings, "wall_seconds": 1.23456}
    text = manifest_text(command, seed=7, status="", lines=np.arange(2), **known)
    plain = json.loads(text)
    assert text == json.dumps(plain, indent=2, sort_keys=True) + "\n"
    assert plain["command"] == [
        *("mri-design", "scan.h5", "--out=a", "--lines", "64", "random,trained:c.npz,calibrated:d.npz", "s.h5")
    ]
    assert plain["settings"] == {
        "tau": 0.5, "scan": "scan.h5", "maps": "maps.npy", "status": Status.STALLED.value, "nan": ["nan", "inf"],
        "input": {"name": "scan.h5", "sha256": inputs[0].sha256}, "there": "s.h5",
    }  # fmt: skip
    assert (plain["lines"], plain["seed"], plain["wall_seconds"]) == ([0, 1], 7, 1.235)
    assert plain["versions"]["numpy"] == np.__version__


# ---- progress ----


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(run_folder.time, "time", lambda: now[0])
    return now


def test_the_time_left_follows_from_the_pieces_done_since_the_work_began_or_went_on(
    tmp_path: Path, clock: list[float]
) -> None:
    file = RunProgress(tmp_path / "p.json", ["design", "scan.h5"])

    def left() -> float | None:
        stored = RunProgress.read(file.path)
        assert stored is not None and stored.command == ["design", "scan.h5"]
        return stored.stages[0].seconds_left

    def after(seconds: float, done: int, total: int) -> float | None:
        clock[0] += seconds
        file.show("designing", done, total)
        return left()

    assert RunProgress.read(file.path) is None
    assert after(0, 0, 120) is None
    assert after(100, 0, 120) is None  # announced, and begun later
    assert after(10, 1, 120) == pytest.approx(1190)
    assert after(10, 2, 40) == pytest.approx(380)  # the total is expected otherwise
    assert after(0.1, 3, 40) == pytest.approx(380)  # not every piece is written
    assert after(0.1, 40, 40) == 0
    assert after(5, 20, 56) is None and after(40, 21, 56) == pytest.approx(35 * 40)  # another slice, which went on


def test_a_damaged_progress_file_is_none_and_a_full_disk_stops_nobody(tmp_path: Path) -> None:
    text = {"name": "a", "done": "a", "total": 1, "already": 0, "began": 0, "updated": 0}
    stages = (json.dumps({"command": [], "about": "", "stages": [stage]}) for stage in ({"name": "a"}, text))
    for content in ("", "[]", "{", '{"stages": 3}', *stages):
        (tmp_path / "p.json").write_text(content)
        assert RunProgress.read(tmp_path / "p.json") is None
    file = RunProgress(tmp_path / "nowhere" / "p.json")
    file.show("a", 1, 2)
    file.remove()
    assert not (tmp_path / "nowhere").exists()
