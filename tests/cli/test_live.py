"""`--live`: what the buttons of the page do to a run and its folder, and an address that cannot be had."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.design import Moment
from mri_design.design.frames import Frame
from mri_design.runs.live import Live
from tests.cli.folders import Run, manifest, order, rows, settings
from tests.interruptions import interrupted
from tests.simulated_scanner import stream_of

OPTIONS = ("--lines", 12, "--start", 6, "--recipe", "quick.toml", "--no-report", "--live", 0)


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Buttons that somebody presses when so many lines have been measured."""
    buttons, show = dict[int, str](), Live.show

    def shown(page: Live, moment: Moment, frame: Frame | None) -> None:
        show(page, moment, frame)
        if (what := buttons.pop(len(moment.trace.lines), "")) and moment.steps:
            assert page.change(what)

    monkeypatch.setattr(Live, "show", shown)
    return buttons


def test_enough_ends_a_design_that_says_so_and_is_complete(run: Run, tmp_path: Path, pressed: dict[int, str]) -> None:
    pressed[8] = "enough"
    run("design", "scan.npz", *OPTIONS, "--out", tmp_path / "run", code=0)
    assert len(order(tmp_path / "run")) == 9
    assert settings(tmp_path / "run")["ended"] and manifest(tmp_path / "run")["status"] == "converged"


def test_ten_more_are_measured_also_past_an_error_that_is_reached(
    run: Run, tmp_path: Path, pressed: dict[int, str]
) -> None:
    plain = ("--until-error", 0.9, *OPTIONS[2:])
    run("design", "scan.npz", *plain[:-2], "--out", tmp_path / "plain", code=0)
    reached = len(order(tmp_path / "plain"))
    pressed[8] = "more"
    run("design", "scan.npz", *plain, "--out", tmp_path / "run", code=0)
    assert reached < 18 == len(order(tmp_path / "run"))


def test_a_resumed_design_keeps_the_number_that_was_raised(run: Run, tmp_path: Path, pressed: dict[int, str]) -> None:
    out = tmp_path / "run"
    pressed[7] = "more"
    with interrupted("calibrated", 9):
        run("design", "scan.npz", *OPTIONS, "--out", out, code=130)
    run("design", "scan.npz", *OPTIONS[:-2], "--out", out, "--resume", code=0)
    assert len(order(out)) == 22 and not (out / "amount.json").exists()
    run("design", "scan.npz", "--lines", 23, *OPTIONS[2:-2], "--out", out, "--resume", code=0)
    assert len(order(out)) == 23


def test_at_the_scanner_they_do_the_same(work: Path, run: Run, tmp_path: Path, pressed: dict[int, str]) -> None:
    (tmp_path / "readouts.mrd").write_bytes(stream_of(np.load(work / "scan.npz")["kspace"][0]))
    words = ("adapt", tmp_path / "readouts.mrd", "--lines", 8, *OPTIONS[2:])
    pressed[7] = "more"
    run(*words, "--out", tmp_path / "more", code=0)
    assert len(order(tmp_path / "more")) == 18
    pressed[7] = "enough"
    said = run(*words, "--lines", 12, "--out", tmp_path / "enough", code=0)
    assert len(order(tmp_path / "enough")) == 8
    assert json.loads(said.stdout.splitlines()[-1])["status"] == "enough"
    assert (tmp_path / "enough" / "frames.npz").exists() and rows(tmp_path / "enough" / "latency.csv")


def test_at_the_scanner_too_a_resumed_run_keeps_the_number(
    work: Path, run: Run, tmp_path: Path, pressed: dict[int, str]
) -> None:
    (tmp_path / "readouts.mrd").write_bytes(stream_of(np.load(work / "scan.npz")["kspace"][0]))
    words = ("adapt", tmp_path / "readouts.mrd", "--lines", 8, *OPTIONS[2:], "--out", tmp_path / "run")
    pressed[7] = "more"
    with interrupted("calibrated", 6):
        run(*words, code=130)
    run(*words, "--resume", code=0)
    assert len(order(tmp_path / "run")) == 18


@pytest.mark.parametrize(
    ("options", "pictures"),
    [
        (("--encoding", "plane", "--samples", 120, "--block", 40), 5),
        (("--encoding", "radial", "--shots", 6), 5),
        (("--strategy", "vd-polynomial", "--lines", 12, "--start", 4), 1),
    ],
    ids=["plane", "spokes", "no posterior"],
)
def test_whatever_is_chosen_has_its_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...], pictures: int
) -> None:
    pages, show = list[str](), Live.show
    if "radial" in options:
        pytest.importorskip("finufft")

    def shown(page: Live, moment: Moment, frame: Frame | None) -> None:
        show(page, moment, frame)
        pages.append(page.page().decode())

    monkeypatch.setattr(Live, "show", shown)
    given = ("--recipe", "quick.toml", "--no-report", "--live", 0, "--out", tmp_path / "run")
    run("design", "phantom:brain", *options, *given, code=(0, 4))
    assert pages[-1].count("data:image/png") == pictures and len(pages) > 2


def test_the_check_of_the_coil_maps_is_that_of_the_lines_so_far(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, learns = list[str](), Live.learns

    def learnt(page: Live, facts: Mapping[str, str]) -> None:
        learns(page, facts)
        told.append(facts["coil maps"])

    monkeypatch.setattr(Live, "learns", learnt)
    data = load_phantom("brain", shape=(48, 32), n_coils=4, rng=np.random.default_rng(0))
    np.savez(tmp_path / "coils.npz", kspace=data.kspace, noise_variance=np.float64(4.9e-5))
    words = ("--lines", 20, "--recipe", "quick.toml", "-s", "input.matrix=48", "--no-report", "--live", 0)
    run("design", tmp_path / "coils.npz", *words, "--out", tmp_path / "run", code=(0, 4))
    assert len(told) > 2 and len(set(told)) > 2 and len(told) < 20  # as often as maps are made anew


def test_the_address_is_printed_also_to_those_who_want_quiet_and_the_page_gets_a_report_that_is_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = list[Path]()
    monkeypatch.setattr(Live, "reported", lambda _, report: got.append(report))
    plain = ("design", "scan.npz", *OPTIONS[:6], "--quiet", "--overwrite", "--out", tmp_path / "run")
    for more in (["--live"], ["--live", "--no-report"]):  # without a number, at the end or before another option
        said = run(*plain, *more, code=0)
        assert said.stdout == "" and said.stderr.count("http://127.0.0.1:") == said.stderr.count("token=") == 1
    assert got == [tmp_path / "run" / "report.html"]


@pytest.mark.parametrize(
    "verb",
    [
        ("design", "scan.npz", "--lines", 8, "--live"),
        ("adapt", "--listen", 0, "--lines", 8, "--live"),
        ("adapt", "--lines", 8, "--listen"),
    ],
)
def test_a_port_in_use_is_refused_before_anything_else(run: Run, tmp_path: Path, verb: tuple[object, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = run(*verb, taken.getsockname()[1], "--out", tmp_path / "run", code=2)
    assert str(verb[-1]) in said.stderr and not (tmp_path / "run").exists()
