"""A run has its folder to itself, every file is complete or absent, and nobody else's is touched."""

from __future__ import annotations

import csv
import fcntl
import json
import multiprocessing
import os
import resource
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design import InputError, UsageError
from mri_design.evaluation.folder_lock import SILENCE, FolderLock, Holder
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.run_status import CHECKPOINT, PROGRESS
from tests.command_line import called

FORK = multiprocessing.get_context("fork")  # a child that need not import anything again
HOSTILE_NAMES = ["../escape.npy", "/escape.npy", "a\\b.npy", ".lock.npy", "", "nul\0.npy", "-rf.npy", "C:recon.npy"]
HOSTILE_NAMES += ["a" * 200 + ".npy"]


@pytest.mark.parametrize("words", [
    ["design", "phantom:brain", "--lines", "8", "--out", "reslts/run"],
    ["train", "phantom:brain", "--lines", "8", "--out", "reslts/order.npz"],
    ["mask", "--kind", "vd", "--shape", "16", "--lines", "8", "--out", "reslts/mask.npy"],
    ["convert", "phantom:brain", "--out", "reslts/scan.npz"],
    ["convert", "phantom:brain", "reslts/scan.npz"],
])  # fmt: skip
def test_no_folder_is_made_for_a_mistyped_name(tmp_path: Path, monkeypatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    result = called(words)
    assert result.exit_code == 2 and "Did you mean results?" in result.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["results"]


@pytest.fixture
def folder(tmp_path):
    with RunFolder(tmp_path / "brain-01") as opened:
        yield opened


def ask_for_lock(folder: Path, gate: Any, answers: Any) -> None:
    gate.wait(30)
    lock = None
    with suppress(InputError):
        lock = FolderLock(folder)
    answers.put("refused" if lock is None else "held")
    gate.wait(30)  # nobody lets go before all have asked


def hold(folder: Path, held: Any) -> None:
    with RunFolder(folder):
        held.set()
        time.sleep(60)


def write_under_a_limit(folder: Path, message: Any) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with RunFolder(folder) as opened:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            opened.write_image("recon.npy", np.zeros((256, 256), complex))
        except OSError as error:
            message.put(str(error))
        else:
            message.put("no error")


def test_a_run_that_is_refused_before_it_writes_leaves_no_folder(tmp_path):
    for path, kept in ((tmp_path / "new", False), (tmp_path / "mine", True)):
        if kept:
            path.mkdir()
        with pytest.raises(InputError), RunFolder(path):
            raise InputError(field="input", got="nothing", wanted="a scan")
        assert path.exists() == kept
    with pytest.raises(InputError), RunFolder(tmp_path / "begun") as folder:
        folder.write_table("rows.csv", [{"a": 1}])
        raise InputError(field="input", got="nothing", wanted="a scan")
    assert (tmp_path / "begun" / "rows.csv").exists()


@pytest.fixture
def holder(tmp_path):
    held = FORK.Event()
    running = FORK.Process(target=hold, args=(tmp_path / "run", held))
    running.start()
    assert held.wait(30)
    yield running
    running.kill()
    running.join()


class TestFiles:
    def test_arrays_come_back_as_written(self, folder):
        mask = np.arange(10) % 3 == 0
        image = np.arange(12.0).reshape(4, 3) * (1 + 2j)
        assert folder.write_mask(mask) == folder.path / "mask.npy"
        folder.write_image("recon.npy", image)
        folder.write_std("std.npy", np.abs(image))
        np.testing.assert_array_equal(np.load(folder.path / "mask.npy"), mask)
        recon, std = np.load(folder.path / "recon.npy"), np.load(folder.path / "std.npy")
        assert (recon.dtype, std.dtype) == (np.complex64, np.float32)
        np.testing.assert_array_equal(recon, image)

    def test_metrics_and_manifest(self, folder):
        folder.write_table("metrics.csv", [{"strategy": "design", "psnr": 31.25}])
        with open(folder.path / "metrics.csv", newline="") as stream:
            assert list(csv.DictReader(stream)) == [{"strategy": "design", "psnr": "31.25"}]
        folder.write_manifest({"seed": 1, "command": ["design"]})
        assert json.loads((folder.path / "manifest.json").read_text()) == {"command": ["design"], "seed": 1}

    @pytest.mark.parametrize("png", [False, True])
    def test_figures_are_svg_or_png_too_and_repeat_exactly(self, tmp_path, png):
        figure = Figure(figsize=(1, 1))
        figure.subplots().plot([1, 2])
        with RunFolder(tmp_path / "run", png=png) as folder:
            path = folder.write_figure("curve", figure)
            assert path == folder.path / "figures" / "curve.svg"
            first = {file.name: file.read_bytes() for file in path.parent.iterdir()}
            assert set(first) == {"curve.svg"} | ({"curve.png"} if png else set())
            assert b"<svg" in first["curve.svg"] and (not png or first["curve.png"].startswith(b"\x89PNG"))
            folder.write_figure("curve", figure)
            assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == first

    def test_a_png_of_an_earlier_run_does_not_stay_beside_another_figure(self, tmp_path):
        figure = Figure(figsize=(1, 1))
        with RunFolder(tmp_path / "run", png=True) as folder:
            folder.write_figure("curve", figure)
        (tmp_path / "run" / "figures" / "mine.png").write_bytes(b"mine")
        with RunFolder(tmp_path / "run") as folder:
            for name in ("curve", "mine"):
                folder.write_figure(name, figure)
        left = {path.name for path in (tmp_path / "run" / "figures").iterdir()}
        assert left == {"curve.svg", "mine.svg", "mine.png"}

    @pytest.mark.parametrize(
        "write",
        [
            lambda folder: folder.write_mask(np.ones(4)),
            lambda folder: folder.write_mask(np.ones((4, 4, 4), bool)),
            lambda folder: folder.write_image("recon.npy", np.ones((4, 4))),
            lambda folder: folder.write_image("recon.npy", np.full((4, 4), np.nan + 0j)),
            lambda folder: folder.write_image("recon.npy", np.full((4, 4), 1e39 + 0j)),
            lambda folder: folder.write_image("manifest.json", np.ones((4, 4), complex)),
            lambda folder: folder.write_std("std.npy", -np.ones((4, 4))),
        ],
    )
    def test_what_is_no_result_is_refused_and_leaves_no_file(self, folder, write):
        with pytest.raises(InputError):
            write(folder)
        assert sorted(entry.name for entry in folder.path.iterdir()) == [".lock", ".mri-design.json"]

    def test_reopening_keeps_results_and_removes_stale_temporaries(self, folder, monkeypatch):
        folder.write_figure("curve", Figure(figsize=(1, 1)))
        folder.write_mask(np.ones(4, bool))

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("os.replace", stop)
            patch.setattr("pathlib.Path.unlink", stop)  # as after kill -9: nobody tidies up
            for write in (
                lambda: folder.write_mask(np.zeros(4, bool)),
                lambda: folder.write_figure("other", Figure(figsize=(1, 1))),
            ):
                with pytest.raises(KeyboardInterrupt):
                    write()
        folder.close()
        assert len(list(folder.path.rglob("*.partial"))) == 2
        with RunFolder(folder.path):
            assert list(folder.path.rglob("*.partial")) == []
            assert np.load(folder.path / "mask.npy").all()
            assert (folder.path / "figures" / "curve.svg").exists()


class TestTwoRuns:
    def test_second_process_is_refused_and_told_the_holder(self, holder, tmp_path):
        with pytest.raises(InputError, match=rf"in use by process {holder.pid}\b"):
            RunFolder(tmp_path / "run")

    def test_lock_of_a_killed_process_is_taken_over(self, holder, tmp_path):
        holder.kill()
        holder.join()
        assert (tmp_path / "run" / ".lock").read_text().split() == [str(holder.pid), socket.gethostname()]
        with RunFolder(tmp_path / "run") as folder:
            assert (folder.path / ".lock").read_text().split() == [str(os.getpid()), socket.gethostname()]
            assert folder.taken_over == ""

    def test_the_lock_of_another_host_holds_while_it_gives_signs_of_life(self, tmp_path):
        (tmp_path / ".lock").write_text("12 elsewhere\n")
        with pytest.raises(InputError, match=r"in use by process 12 on host elsewhere, heard of \d s ago"):
            FolderLock(tmp_path)
        assert (tmp_path / ".lock").read_text() == "12 elsewhere\n"

    def test_the_lock_of_a_silent_host_is_taken_over_and_said(self, tmp_path):
        (tmp_path / ".lock").write_text("12 elsewhere\n")
        long_ago = time.time() - 2 * SILENCE
        os.utime(tmp_path / ".lock", (long_ago, long_ago))
        with RunFolder(tmp_path, overwrite=True) as folder:
            assert "was held by process 12 on host elsewhere, silent for 10 min" in folder.taken_over
            assert (tmp_path / ".lock").read_text().split()[0] == str(os.getpid())

    def test_who_holds_a_lock_gives_signs_of_life(self, tmp_path, monkeypatch):
        monkeypatch.setattr("mri_design.evaluation.folder_lock.HEARTBEAT", 0.01)
        lock = FolderLock(tmp_path)
        os.utime(tmp_path / ".lock", (0, 0))
        until = time.monotonic() + 5
        while (tmp_path / ".lock").stat().st_mtime == 0 and time.monotonic() < until:
            time.sleep(0.005)
        known = Holder.of(tmp_path / ".lock")
        assert known is not None and known.alive and known.is_here and known.silent < 5
        lock.release()
        assert Holder.of(tmp_path / ".lock") is None

    def test_second_opening_in_one_process_is_refused_until_the_first_closes(self, folder):
        with pytest.raises(InputError, match=f"process {os.getpid()}"):
            RunFolder(folder.path)
        folder.close()
        folder.close()
        assert not (folder.path / ".lock").exists()
        RunFolder(folder.path).close()

    def test_the_lock_goes_with_an_exception(self, tmp_path):
        with pytest.raises(ZeroDivisionError), RunFolder(tmp_path / "run"):
            raise ZeroDivisionError
        RunFolder(tmp_path / "run").close()

    def test_of_many_processes_starting_at_once_one_wins(self, tmp_path):
        gate, answers = FORK.Barrier(6), FORK.Queue()
        running = [FORK.Process(target=ask_for_lock, args=(tmp_path, gate, answers)) for _ in range(6)]
        for process in running:
            process.start()
        given = [answers.get(timeout=30) for _ in running]
        for process in running:
            process.join(timeout=30)
        assert sorted(given) == ["held"] + 5 * ["refused"]

    def test_a_lock_file_removed_before_it_was_locked_does_not_count(self, tmp_path, monkeypatch):
        lock_file, flock = tmp_path / ".lock", fcntl.flock
        first = FolderLock(tmp_path)

        def release_meanwhile(descriptor: int, operation: int) -> None:
            monkeypatch.setattr("fcntl.flock", flock)
            first.release()  # removes the file that was just opened
            flock(descriptor, operation)

        monkeypatch.setattr("fcntl.flock", release_meanwhile)
        second = FolderLock(tmp_path)
        assert lock_file.exists()
        with pytest.raises(InputError):
            FolderLock(tmp_path)
        second.release()


class TestNames:
    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_a_name_that_is_not_plain_is_refused(self, folder, tmp_path, name):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError):
            folder.write_image(name, np.ones((4, 4), complex))
        with pytest.raises(InputError):
            folder.output_path(name)
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize("name", ["../curve", "/curve", "a/b", "", ".hidden"])
    def test_a_figure_cannot_leave_its_folder(self, folder, name):
        with pytest.raises(InputError):
            folder.write_figure(name, Figure(figsize=(1, 1)))
        assert list(folder.path.parent.rglob("*.svg")) == []

    def test_a_symbolic_link_is_not_followed(self, folder, tmp_path):
        secret = tmp_path / "secret"
        secret.write_text("untouched")
        (folder.path / "recon.npy").symlink_to(secret)
        with pytest.raises(InputError, match="symbolic link"):
            folder.write_image("recon.npy", np.ones((4, 4), complex))
        assert secret.read_text() == "untouched"

    def test_a_linked_figures_folder_is_not_followed(self, folder, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (folder.path / "figures").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UsageError, match="symbolic link"):
            folder.write_figure("curve", Figure(figsize=(1, 1)))
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_linked_lock_is_not_followed(self, tmp_path):
        (tmp_path / "secret").write_text("untouched")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / ".lock").symlink_to(tmp_path / "secret")
        with pytest.raises(InputError, match=r"\.lock"):
            RunFolder(tmp_path / "run")
        assert (tmp_path / "secret").read_text() == "untouched"

    def test_a_linked_run_folder_is_refused(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path)
        with pytest.raises(UsageError, match="link is a symbolic link"):
            RunFolder(tmp_path / "link", overwrite=True)

    def test_a_folder_that_holds_links_is_refused_before_anything_is_written(self, tmp_path):
        (tmp_path / "secret").write_text("untouched")
        with RunFolder(tmp_path / "run") as folder:
            folder.write_mask(np.ones(4, bool))
        (tmp_path / "run" / "report.html").symlink_to(tmp_path / "secret")
        for overwrite in (False, True):
            with pytest.raises(UsageError, match=r"holds the link report\.html"):
                RunFolder(tmp_path / "run", overwrite=overwrite)
        assert not (tmp_path / "run" / ".lock").exists()


class TestOwners:
    def contents(self, folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    @pytest.mark.parametrize("name", ["lines.csv", "report.html", "notes.txt", "manifest.json"])
    def test_a_folder_of_others_is_refused_and_untouched(self, tmp_path, name):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / name).write_text("mine")
        with pytest.raises(UsageError, match=rf"run holds {name}, and no run of this program; .*overwrite"):
            RunFolder(tmp_path / "run")
        assert self.contents(tmp_path / "run") == {name: b"mine"}

    def test_it_may_be_overwritten_file_by_file(self, tmp_path):
        (tmp_path / "run").mkdir()
        for name in ("mask.npy", "notes.txt"):
            (tmp_path / "run" / name).write_text("mine")
        with RunFolder(tmp_path / "run", overwrite=True) as folder:
            folder.begin()
            assert (folder.path / "mask.npy").read_text() == "mine"
            folder.write_mask(np.ones(4, bool))
        assert np.load(tmp_path / "run" / "mask.npy").all()
        assert (tmp_path / "run" / "notes.txt").read_text() == "mine"

    def test_hidden_files_are_nobody_s_business(self, tmp_path):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / ".DS_Store").write_text("")
        RunFolder(tmp_path / "run").close()

    def test_files_of_others_in_the_folder_of_a_run_stay(self, tmp_path):
        with RunFolder(tmp_path / "run") as folder:
            folder.write_mask(np.ones(4, bool))
        (tmp_path / "run" / "notes.txt").write_text("mine")
        with RunFolder(tmp_path / "run") as folder:
            folder.write_mask(np.zeros(4, bool))  # the run's own
            (folder.path / "std.npy").write_text("mine")
            with pytest.raises(UsageError, match=r"holds a file std\.npy that no run of this program wrote"):
                folder.write_std("std.npy", np.ones((4, 4)))
            folder.remove("std.npy")
            assert folder.existing("std.npy") is None
            assert (folder.path / "std.npy").read_text() == "mine"
        with pytest.raises(UsageError, match=r"holds a file std\.npy"):  # before the work, not after it
            RunFolder(tmp_path / "run")
        assert (tmp_path / "run" / "notes.txt").read_text() == "mine"

    def test_beginning_anew_removes_what_runs_left_and_nothing_else(self, tmp_path):
        with RunFolder(tmp_path / "run") as folder:
            folder.write_mask(np.ones(4, bool))
            folder.write_figure("curve", Figure(figsize=(1, 1)))
        (tmp_path / "run" / "notes.txt").write_text("mine")
        with RunFolder(tmp_path / "run") as folder:
            folder.begin()
            assert (folder.path / "mask.npy").exists()
        with RunFolder(tmp_path / "run", overwrite=True) as folder:
            assert (folder.path / "mask.npy").exists()  # not before the run begins: it may be refused
            folder.begin()
            found = {path.name for path in folder.path.rglob("*") if path.is_file()}
            assert found == {".lock", ".mri-design.json", "notes.txt"}

    def test_a_run_of_the_first_version_which_kept_no_ledger_is_a_run(self, tmp_path):
        (tmp_path / "manifest.json").write_text('{"settings": {"identity": "of that run"}}')
        with RunFolder(tmp_path):
            pass
        (tmp_path / ".mri-design.json").unlink(missing_ok=True)
        (tmp_path / "manifest.json").write_text("{}")
        with pytest.raises(UsageError, match="no run of this program"):
            RunFolder(tmp_path)

    @pytest.mark.parametrize(
        "ledger", ["{", "[]", '{"files": ["../secret"]}', '{"files": ["a/b/c"]}', '{"files": [3]}']
    )
    def test_a_ledger_that_is_none_owns_nothing(self, tmp_path, ledger):
        (tmp_path / "secret").write_text("untouched")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "lines.csv").write_text("mine")
        (tmp_path / "run" / ".mri-design.json").write_text(ledger)
        with pytest.raises(UsageError, match="no run of this program"):
            RunFolder(tmp_path / "run")
        with RunFolder(tmp_path / "run", overwrite=True) as folder:
            folder.begin()
        assert (tmp_path / "run" / "lines.csv").read_text() == "mine"
        assert (tmp_path / "secret").read_text() == "untouched"


class TestDisk:
    def test_a_path_through_a_file_is_refused_by_name(self, tmp_path):
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "run"):
            with pytest.raises(InputError, match="file"):
                RunFolder(path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
    def test_a_read_only_parent_is_refused_by_name(self, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="run"):
            RunFolder(tmp_path / "run")
        tmp_path.chmod(0o700)

    def test_file_size_limit_keeps_the_old_file_and_names_it(self, tmp_path):
        with RunFolder(tmp_path / "run") as folder:
            folder.write_image("recon.npy", np.ones((4, 4), complex))
        before = (tmp_path / "run" / "recon.npy").read_bytes()
        message = FORK.Queue()
        limited = FORK.Process(target=write_under_a_limit, args=(tmp_path / "run", message))
        limited.start()
        assert str(tmp_path / "run" / "recon.npy") in message.get(timeout=30)
        limited.join()
        assert (tmp_path / "run" / "recon.npy").read_bytes() == before
        assert list((tmp_path / "run").glob(".mri-design-*")) == []


@pytest.mark.parametrize("new", [True, False])
def test_an_interruption_before_the_first_figure_leaves_a_folder_that_can_be_used_again(
    tmp_path: Path, new: bool
) -> None:
    out = tmp_path / "run"
    if not new:
        out.mkdir()
    with pytest.raises(KeyboardInterrupt), RunFolder(out) as folder:
        folder._figures()
        raise KeyboardInterrupt
    assert out.exists() != new and not (out / "figures").exists()
    with RunFolder(out) as folder:
        folder.begin()


def test_the_same_run_tells_how_it_ended_and_an_empty_folder_is_free(folder):
    assert folder.ended("me") is None
    folder.write_manifest({"status": "not converged", "lines": [3, 1], "settings": {"identity": "me"}})
    assert folder.ended("me") == ("not converged", (3, 1), {"identity": "me"})


@pytest.mark.parametrize(
    "manifest", ["{", "[]", json.dumps({"status": "converged", "lines": [], "settings": {"identity": "you"}}), "\xff"]
)
def test_a_folder_that_another_run_finished_is_refused(folder, manifest):
    (folder.path / "manifest.json").write_bytes(manifest.encode("latin-1"))
    with pytest.raises(UsageError, match="brain-01 holds a finished run; give another folder"):
        folder.ended("me")


@pytest.mark.parametrize(("present", "own"), [(CHECKPOINT, PROGRESS), (PROGRESS, CHECKPOINT), (PROGRESS, "")])
def test_the_beginning_of_another_kind_of_run_is_refused(folder, present, own):
    (folder.path / present).write_bytes(b"")
    with pytest.raises(UsageError, match="an unfinished run"):
        folder.ended("me", own=own)
    assert folder.ended("me", own=present) is None
