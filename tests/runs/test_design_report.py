"""The report of a design shows what is known, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mri_design as md
from mri_design.design import DesignTrace, map_lines
from mri_design.design.frames import Frame, arrays_of, frames_of
from mri_design.evaluation import DesignAccount, PredictionCheck, RelativeError, RunFolder, page, read_csv_texts
from mri_design.evaluation.plots.pictures import object_top, scale_top
from mri_design.evaluation.predictions import INNER
from mri_design.experiment import Image, in_acquisition_order
from mri_design.operators import to_kspace
from mri_design.readouts import LineReadouts, PlaneReadouts, ShotReadouts
from mri_design.runs.design_report import (
    Stage,
    acquisition_facts,
    course,
    design_facts,
    score_rows,
    stages_of,
    step_content,
    step_rows,
)
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.watching import with_phase_of_end
from tests import short_trace
from tests.design_steps import changed, design_step

LINES = LineReadouts((8, 6))


def scores(**values: float) -> np.ndarray:
    """Of 8 lines: _6=9.5 for line 6."""
    table = np.full(8, np.nan)
    for line, value in values.items():
        table[int(line[1:])] = value
    return table


TRACE = DesignTrace(
    "information-gain",
    8,
    (4, 3),
    (
        design_step(6, scores=scores(_6=9.5, _0=1), predicted_energy=3.0, actual_energy=6.0, information=9.5 / 2),
        design_step(0, scores=scores(_0=2.25, _7=1), predicted_energy=4.0, actual_energy=2.0, information=2.25 / 2),
    ),
)
BLIND = DesignTrace("random", 8, (4,), (design_step(6), design_step(0)))
KNOWING = replace(TRACE, steps=tuple(changed(s, expected=np.full(8, 2.0), image_energy=1584.0) for s in TRACE.steps))
IMAGE = np.outer(np.arange(8.0), np.ones(6)) * (1 + 1j)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def checks(**more: object) -> list[PredictionCheck]:
    """The error of the two decisions, with the measured lines' error unknown."""
    known = {"predicted_level": 1600.0, "actual_level": 1600.0, "inner": LINES.radius < INNER, **more}
    masks = {count: KNOWING.mask(count) for count in (2, 3)}
    hidden = {count: np.where(mask, np.nan, 8.0) for count, mask in masks.items()}
    return [PredictionCheck(count, np.full(8, 2.0), hidden[count], masks[count], **known) for count in masks]


def table(folder: RunFolder, name: str) -> list[dict[str, str]]:
    return read_csv_texts(folder.path / name)


@pytest.mark.parametrize(
    ("trace", "written"),
    [(TRACE, {"steps.csv", "scores.csv"}), (replace(TRACE, steps=()), set()), (BLIND, {"steps.csv"})],
)
def test_a_design_writes_what_its_rule_knows(folder: RunFolder, trace: DesignTrace, written: set[str]) -> None:
    design_facts(folder, DesignAccount(trace), LINES, 1.0)
    assert {path.name for path in folder.path.glob("*.csv")} - {"lines.csv"} == written
    mask = np.load(folder.path / "mask.npy")
    assert mask.dtype == bool and set(np.flatnonzero(mask)) == set(trace.lines)
    if trace is TRACE:
        rows = [tuple(row.values()) for row in table(folder, "lines.csv")]
        assert rows == [("0", "4", "0", ""), ("1", "3", "-1", ""), ("2", "6", "2", "9.5"), ("3", "0", "-4", "2.25")]


def test_with_a_truth_the_report_says_how_right_it_was(folder: RunFolder) -> None:
    account = DesignAccount(KNOWING, checks())
    facts = design_facts(folder, account, LINES, 2.0)
    assert [row["predicted_error"] for row in table(folder, "steps.csv")] == ["0.1", "0.1"]
    assert [row["lines"] for row in table(folder, "prediction.csv")] == ["2", "3"]
    assert [row["ratio"] for row in table(folder, "prediction.csv")] == ["0.5", "0.5"]
    assert account.fractions[0]["cases"] == 2 and account.fractions[0]["within_factor_2"] == 1.0
    np.testing.assert_allclose(facts["innovations"]["predicted"], [1.5, 2.0])
    rows = table(folder, "prediction-lines.csv")
    assert len(rows) == 16
    assert rows[4] == {"lines": "2", "line": "4", "ky": "0", "measured": "yes", "predicted": "2", "actual": ""}
    assert rows[8] == {"lines": "3", "line": "0", "ky": "-4", "measured": "no", "predicted": "2", "actual": "8"}


def test_a_design_over_a_plane_is_told_block_by_block(folder: RunFolder) -> None:
    plane = PlaneReadouts((2, 4))
    design_facts(folder, DesignAccount(KNOWING, checks(unit="sample")), plane, 1.0)
    assert np.load(folder.path / "mask.npy").shape == (2, 4)
    samples = [(row["sample"], row["ky"], row["kz"], row["block"]) for row in table(folder, "samples.csv")]
    assert samples == [("4", "0", "-2", "0"), ("3", "-1", "1", "0"), ("6", "0", "0", "1"), ("0", "-1", "-2", "2")]
    blocks = table(folder, "blocks.csv")
    told = [[row[name] for name in ("samples", "chosen", "predicted", "found")] for row in blocks]
    assert told == [["2", "1", "3", "6"], ["3", "1", "4", "2"]]
    assert table(folder, "prediction.csv")[0]["samples"] == "2"


def test_a_design_over_shots_shows_their_angles(folder: RunFolder) -> None:
    angles = md.operators.equispaced_angles(8)
    shots = ShotReadouts(
        (8, 8), md.operators.turned(md.operators.radial_spokes(8, [0.0])[0], angles), "radial", tuple(angles)
    )
    design_facts(folder, DesignAccount(TRACE), shots, 1.0)
    rows = table(folder, "shots.csv")
    assert [row["shot"] for row in rows] == ["4", "3", "6", "0"]
    assert [row["information_nats"] for row in rows] == ["", "", "4.75", "1.125"]


def test_steps_add_up_and_exchanged_lines_leave_gaps() -> None:
    trace = short_trace.TRACE
    first, second, third = step_rows(DesignAccount(replace(trace, steps=(*trace.steps, design_step(1)))))
    assert (first["lines"], second["lines"]) == (2, 3)
    assert (second["line"], second["ky"], second["score"]) == (0, -4, 3.0)
    assert (second["gain_nats"], second["total_nats"], third["total_nats"]) == (1.5, 3.5, None)
    assert first["predicted_error"] == pytest.approx(np.sqrt(8 * 20 / (1000 + 8 * 20)))
    assert (second["predicted"], second["found"], third["found"]) == (15, 60, None)
    assert "at_most_nats" in step_rows(DesignAccount(replace(trace, strategy="x")))[0]
    scores = score_rows(trace)[0]
    assert list(scores) == ["lines", "line", *(f"ky={k}" for k in range(-4, 4))]
    assert (scores["ky=2"], scores["ky=1"]) == (4.0, None)
    first = step_rows(DesignAccount(BLIND))[0]
    assert (first["lines"], first["line"], first["ky"], first["score"]) == (1, 6, 2, None)
    assert (first["predicted_error"], first["found"], first["running_ratio"]) == (None, None, None)
    assert score_rows(BLIND) == []


@pytest.fixture
def known() -> KnownSlice:
    kspace, lines = to_kspace(2 * IMAGE)[None, None], np.ones(8, bool)
    noiseless = md.KSpaceData(kspace, lines, reference=2 * IMAGE[None], noise_variance=1e-6)
    scan = md.calibrate(noiseless, md.Recipe())
    return KnownSlice(scan=scan, slice_model=scan.slice_model(), signal=1.0)


def test_stages_lead_from_the_frames_to_the_image_of_the_run(known: KnownSlice) -> None:
    frames = [Frame(n, TRACE.lines[: 2 + n], (), n * IMAGE, None, error) for n, error in ((0, np.nan), (1, 0.4))]
    last = NamedImage("mean", Image(1.5 * IMAGE, np.abs(IMAGE), md.Convergence(md.Status.CONVERGED, 1, 0.0)))
    last = replace(last, error=RelativeError(0.3, 0.25))
    stages = stages_of([*frames, Frame(2, TRACE.lines, (), IMAGE, None, 0.3)], TRACE, known, last)
    assert [one.count for one in stages] == [2, 3, len(TRACE.lines)]
    assert [one.error.predicted for one in stages] == [None, 0.4, 0.3]
    assert [one.error.found for one in stages] == pytest.approx([1, 0.5, 0.25])
    some = replace(known, scan=replace(known.scan, reference=None, measured=np.arange(8) > 2))
    assert [one.error.found for one in stages_of(frames, TRACE, some, last)] == [None, None, 0.25]
    (image,), (bars,) = course(stages, LINES, None)  # those without error bars are left out
    assert bars.error and not image.error
    (_, _, (wrong,)) = course(stages, LINES, known.shown_reference)
    found, most = np.abs(0.5 * IMAGE) * 100 / object_top([1.5 * np.abs(IMAGE)]), scale_top([bars.image])
    np.testing.assert_allclose(wrong.image, np.minimum(found, most))  # on the scale of the error bars
    assert not course(stages[:1], LINES, None)
    whole = [Stage(count, IMAGE, np.abs(IMAGE), last.error, whole=count % 5 == 0) for count in range(4, 31)]
    assert [panel.title.split()[0] for panel in course(whole, LINES, None)[0]] == ["5", "10", "15", "25", "30"]


def test_steps_scores_and_images_follow_the_trace(known: KnownSlice, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [Stage(count, IMAGE, np.full((8, 6), 4 / count), RelativeError(0.3, 0.5)) for count in (2, 4)]

    def content(known: KnownSlice, trace: DesignTrace = TRACE) -> dict[str, Any]:
        return json.loads(page._templates().filters["json"](step_content(stages, known, trace)))

    made = content(known)
    assert made["lines"] == TRACE.n_lines and tuple(made["start"]) == TRACE.start
    for step, chosen in zip(made["steps"], TRACE.steps, strict=True):
        np.testing.assert_allclose(np.array(step["scores"], dtype=float), chosen.choice.scores, rtol=5e-3)
    assert [image["count"] for image in made["images"]] == [2, 4]
    assert made["scale"] == pytest.approx(1 / object_top([np.abs(IMAGE)]), rel=5e-3)  # of the last error bars
    noisy = replace(known, slice_model=replace(known.slice_model, noise_variance=4.0))
    energies = content(noisy, replace(KNOWING, strategy="calibrated"))
    np.testing.assert_allclose(4 * energies["steps"][0]["scores"][0], made["steps"][0]["scores"][0], rtol=1e-2)
    assert all(image["difference"] and image["deviation"] for image in made["images"])
    some = replace(known, scan=replace(known.scan, reference=None, measured=np.arange(8) > 2))
    assert not any(image["difference"] for image in content(some)["images"])
    monkeypatch.setattr("mri_design.runs.design_report.MOST_NUMBERS", 8)  # scores of one step of 8 lines
    assert [step["scores"] is None for step in content(known)["steps"]] == [False, True]


def test_trains_are_written_with_their_echoes(folder: RunFolder) -> None:
    recipe = md.Recipe().replacing("design", order="interleaved", block=3)
    acquisition_facts(folder, in_acquisition_order((4, 3, 6, 0, 1), LINES, recipe))
    rows = [[int(cell) for cell in row.values()] for row in table(folder, "acquisition.csv")]
    assert rows == [[0, 0, 1, 0, -4], [1, 0, 2, 3, -1], [2, 0, 3, 6, 2], [3, 1, 1, 1, -3], [4, 1, 2, 4, 0]]
    recipe = md.Recipe().replacing("design", encoding="plane", order="centre-out", block=3)
    made = in_acquisition_order((27, 36, 35, 44, 8, 63), PlaneReadouts((8, 8)), recipe)
    acquisition_facts(folder, made)
    placed = table(folder, "acquisition.csv")
    assert {(row["sample"], row["ky"], row["kz"]) for row in placed} >= {("36", "0", "0"), ("8", "-3", "-4")}
    assert [row["echo"] for row in placed] == ["1", "2", "3"] * 2
    # nothing stays where lines are measured as chosen
    acquisition_facts(folder, in_acquisition_order((4, 3, 6, 0, 1), LINES, md.Recipe()))
    assert not (folder.path / "acquisition.csv").exists()


@pytest.mark.parametrize("known", [True, False])
def test_images_along_a_design_have_the_phase_of_its_last_coil_maps(known: bool) -> None:
    rng = np.random.default_rng(0)
    truth, coils = (rng.standard_normal((*size, 8, 6)) + 1j * rng.standard_normal((*size, 8, 6)) for size in ((), (3,)))

    def turn(count: int, rough: bool) -> np.ndarray:
        return np.exp(1j * np.arange(8)[:, None] * (count + 0.5 * rough))

    def calibrated(lines: tuple[int, ...], rough: bool = False) -> SimpleNamespace:
        return SimpleNamespace(maps=coils / turn(len(lines), rough))

    one = SimpleNamespace(own_maps=None if known else "of the lines", calibrated=calibrated)
    lines, frames = TRACE.lines, list[Frame]()
    for count, rough in ((2, True), (3, False), (3, True)):
        image = truth * turn(map_lines(2, count) if rough else count, rough)
        frames.append(Frame(count - 2, lines[:count], (), image.astype(np.complex64), None, whole=not rough))
    turned = with_phase_of_end(frames, one, TRACE)  # type: ignore[arg-type]
    for frame, seen in zip(frames, turned, strict=True):
        wanted = frame.image if known else truth * turn(4, False)
        np.testing.assert_allclose(seen.image, wanted, atol=2e-3 * np.abs(truth).max())  # in half precision
    kept = frames_of(arrays_of(frames))  # by a design that was killed
    after = with_phase_of_end(kept, one, TRACE)  # type: ignore[arg-type]
    for one_kept, seen in zip(arrays_of(after).values(), arrays_of(turned).values(), strict=True):
        np.testing.assert_array_equal(one_kept, seen)
