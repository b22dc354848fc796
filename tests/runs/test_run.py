"""How every run begins and ends, and that computing leaves the writing to the report."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from mri_design import Recipe, UsageError
from mri_design.evaluation import Page, RunFolder
from mri_design.runs.design import design_scan
from mri_design.runs.design_report import design_in_folder, report_design
from mri_design.runs.design_request import DesignRequest
from mri_design.runs.store import FolderKeep, Record, Report, Run
from mri_design.runs.stored_run import StoredRun
from mri_design.runs.work import Progress
from tests.evaluation.pages import templates

KEPT = "checkpoint.npz"
PLAIN = '{% extends "page.html.j2" %}{% block title %}A title{% endblock %}'


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(folder=RunFolder(tmp_path / "out"), command=["design", "x"], seed=3)


def visible(run: Run) -> set[str]:
    return {path.name for path in run.folder.path.iterdir() if not path.name.startswith(".")}


def end(run: Run, identity: str = "me", done: Sequence[str] = ()) -> tuple[int, ...]:
    """The lines of a run that ends."""
    ended = StoredRun(mask=np.ones(2, dtype=bool), chosen=(4, 3), readouts="lines", status="converged")
    report = Report(result=ended, page=Page("plain", {}), done=done)
    with templates(plain=PLAIN):
        return run.save(Record(identity, [], {"a": 1}), report).chosen


def test_the_end_is_in_the_manifest_and_on_the_page(run: Run) -> None:
    run.folder.output_path(KEPT).write_text("lines so far")
    assert end(run, done=[KEPT]) == (4, 3)
    assert visible(run) == {"manifest.json", "result.npz", "report.html"}
    manifest = json.loads((run.folder.path / "manifest.json").read_text())
    assert (manifest["command"], manifest["seed"], manifest["lines"]) == (["design", "x"], 3, [4, 3])
    assert manifest["settings"] == {"a": 1, "identity": "me"}
    assert manifest["wall_seconds"] >= 0
    page = (run.folder.path / "report.html").read_text()
    assert "A title" in page and "seconds" in page


def test_a_run_that_is_stopped_before_its_page_is_whole_is_not_finished(run: Run) -> None:
    interrupted = mock.patch("mri_design.evaluation.page.write_page", side_effect=KeyboardInterrupt)
    with interrupted, pytest.raises(KeyboardInterrupt):
        end(run)
    assert replace(run, resume=True).finished("me", checkpoint=KEPT, resumed="design") is None
    assert "manifest.json" not in visible(run)


def test_a_finished_run_is_left_alone_unless_it_is_to_be_made_again(run: Run) -> None:
    said: list[str] = []
    watched = replace(run, resume=True, progress=Progress(say=said.append))
    assert watched.finished("me", checkpoint=KEPT, resumed="design") is None
    end(run)
    assert watched.finished("me", checkpoint=KEPT, resumed="design").chosen == (4, 3)
    report = run.folder.path / "report.html"
    assert len(said) == 1 and str(report) in said[0]
    watched = replace(watched, resume=False)
    assert watched.finished("me", checkpoint=KEPT, resumed="design").chosen == (4, 3)
    assert len(said) == 2
    report.unlink()
    assert watched.finished("me", checkpoint=KEPT, resumed="design") is None  # to make the report that it lacks
    assert watched.finished("me") is None  # and so are those that nobody resumes
    with pytest.raises(UsageError):
        watched.finished("you", checkpoint=KEPT, resumed="design")


def test_an_unfinished_run_is_refused_unless_it_is_to_be_resumed(run: Run) -> None:
    run.folder.output_path(KEPT).write_text("lines so far")
    with pytest.raises(UsageError):
        run.finished("me", checkpoint=KEPT, resumed="protocol")
    assert replace(run, resume=True).finished("me", checkpoint=KEPT, resumed="protocol") is None
    assert run.finished("me", checkpoint=KEPT) is None  # the same command goes on by itself
    end(run)
    assert replace(run, resume=True).finished("me", checkpoint=KEPT, resumed="design") is None  # its beginning counts


def test_a_seed_makes_another_run_and_processes_do_not(run: Run) -> None:
    identity = run.identity("design", {"lines": 4})
    assert replace(run, jobs=2).identity("design", {"lines": 4}) == identity
    others = [replace(run, seed=4).identity("design", {"lines": 4}), run.identity("protocol", {"lines": 4})]
    assert identity not in others


def test_computing_leaves_the_writing_to_the_report(run: Run, tiny: Recipe) -> None:
    request = DesignRequest("phantom:brain", tiny.replacing("design", start=4), 6)
    result = design_scan(request, run, FolderKeep(run, request.record(run)))
    assert visible(run) == {KEPT, "frames.npz"}
    ended = run.save(request.record(run), report_design(run.folder, result))
    assert (ended.chosen, ended.error) == (result.trace.lines, result.images[0].error) and str(ended.error)
    assert KEPT not in visible(run) and {"lines.csv", "recon.npy", "report.html", "manifest.json"} <= visible(run)
    before = (run.folder.path / "manifest.json").read_bytes()
    again = replace(run, resume=True)
    assert design_in_folder(request, again).chosen == ended.chosen
    assert (run.folder.path / "manifest.json").read_bytes() == before
