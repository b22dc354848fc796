"""Progress can be read at any time, and what cannot be read is no progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from mri_design.evaluation import run_status as progress_file
from mri_design.evaluation.run_status import ProgressFile, RunProgress, Stage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress_file.time, "time", lambda: now[0])
    return now


def written(file: ProgressFile) -> list[Stage]:
    stored = RunProgress.read(file.path)
    assert stored is not None
    return list(stored.stages)


def test_time_left_is_that_of_the_pieces_done_since_the_work_went_on(tmp_path: Path, clock: list[float]) -> None:
    file = ProgressFile(tmp_path / "p.json", ["design", "scan.h5"])
    assert RunProgress.read(file.path) is None
    file.show("designing", 20, 56)  # resumed: what was done before says nothing of the speed
    assert [stage.seconds_left for stage in written(file)] == [None]
    for done in (21, 22, 23):
        clock[0] += 40
        file.show("designing", done, 56)
    (stage,) = written(file)
    assert (stage.done, stage.total, stage.already) == (23, 56, 20)
    assert stage.seconds_a_piece == pytest.approx(40)
    assert stage.seconds_left == pytest.approx(33 * 40)
    stored = RunProgress.read(file.path)
    assert stored is not None and stored.command == ["design", "scan.h5"]


def test_work_that_was_announced_begins_when_it_is_begun(tmp_path: Path, clock: list[float]) -> None:
    file = ProgressFile(tmp_path / "p.json")
    file.show("reconstructing", 0, 10)
    clock[0] += 100
    file.show("reconstructing", 0, 10)
    clock[0] += 5
    file.show("reconstructing", 1, 10)
    assert written(file)[0].seconds_left == pytest.approx(45)
    file.show("reconstructing", 10, 10)
    assert written(file)[0].seconds_left == 0
    file.show("reconstructing", 1, 8)  # the same work anew, on something else
    clock[0] += 2
    file.show("reconstructing", 2, 8)
    assert written(file)[0].seconds_left == pytest.approx(12)


def test_a_total_that_is_expected_otherwise_leaves_the_pace(tmp_path: Path, clock: list[float]) -> None:
    file = ProgressFile(tmp_path / "p.json")
    file.show("designing", 0, 120)
    for done, total in ((1, 120), (2, 40), (3, 36)):
        clock[0] += 10
        file.show("designing", done, total)
    (stage,) = written(file)
    assert (stage.done, stage.total) == (3, 36) and stage.seconds_left == pytest.approx(330)


def test_a_file_is_not_written_for_every_piece(tmp_path: Path, clock: list[float]) -> None:
    file = ProgressFile(tmp_path / "p.json")
    file.show("a", 0, 100)
    for done in range(1, 50):
        clock[0] += 0.01
        file.show("a", done, 100)
    assert written(file)[0].done == 0
    clock[0] += 1
    file.show("a", 50, 100)
    assert written(file)[0].done == 50


@pytest.mark.parametrize("content", ["", "[]", "{", '{"command": [], "stages": [{"name": "a"}]}', '{"stages": 3}'])
def test_a_damaged_file_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "p.json").write_text(content)
    assert RunProgress.read(tmp_path / "p.json") is None


def test_a_disk_that_does_not_take_it_stops_nobody(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "nowhere" / "p.json")
    file.show("a", 1, 2)
    file.remove()
    assert not (tmp_path / "nowhere").exists()
