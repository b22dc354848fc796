"""The benchmark of planes tunes, judges, goes on where it stopped, and says what part was run."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.benchmarks.conftest import BENCHMARKS, rows_of

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


STEP = "warm design step in the plane, 16 x 16, 1 coil, CPU time"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("plane_encoding", None)
    return importlib.import_module("plane_encoding")


@pytest.mark.slow
def test_a_small_run_makes_its_tables_and_goes_on(benchmark: ModuleType, tmp_path: Path) -> None:
    setting = benchmark.Setting(
        "phantom:t2w",
        matrix=16,
        coils=(1,),
        accelerations=(4.0,),
        training=(0,),
        tests=(0,),
        draws=2,
        series=(4.0,),
        powers=lambda family: (2.0, 6.0),
        block=12,
    )
    benchmark.compute(setting, tmp_path, seconds=0.0)
    assert not benchmark.document(setting, tmp_path, "the command")[0]["met"]
    text = (tmp_path / "README.md").read_text()
    assert "ended early" in text and "1 coil, 4x, vd-polynomial: not tuned." in text
    benchmark.compute(setting, tmp_path, part=benchmark.Part(strategies=("calibrated",), draws=1))
    assert benchmark.missing(setting, tmp_path) == [
        "1 coil, 4x, vd-polynomial: 1 of 2 masks.",
        "1 coil, 4x, lines, vd-polynomial: 1 of 2 masks.",
        *(f"1 coil, 4x, {name}: 0 of 1 images." for name in ("oracle-hole", "expected-error", "earlier-frame")),
    ]
    benchmark.compute(setting, tmp_path)
    before = (tmp_path / "cells.csv").read_text()
    benchmark.compute(setting, tmp_path)
    assert (tmp_path / "cells.csv").read_text() == before
    targets = benchmark.document(setting, tmp_path, "the command")
    measured = {target["name"]: target["measured"] for target in targets}
    assert measured["series, 1 coil, 4x: mask of an earlier frame, one position, mean change"] is not None
    for name in ("series, 1 coil, 4x: mask of an earlier frame, eight positions, mean change", STEP):
        assert measured[name] is None
    assert list(targets[0]) == ["name", "target", "measured", "unit", "met"]
    changes = {row["strategy"]: row for row in rows_of(tmp_path / "changes.csv")}
    assert float(changes["vd-polynomial, tuned"]["change_percent"]) == 0
    cells = [row for row in rows_of(tmp_path / "cells.csv") if row["strategy"] == "calibrated"]
    ratio = float(cells[0]["error"]) / float(changes["vd-polynomial, tuned"]["error"]) - 1
    assert float(changes["calibrated"]["change_percent"]) == pytest.approx(100 * ratio, rel=1e-3)
    text = (tmp_path / "README.md").read_text()
    assert "the command" in text and "lines, vd-polynomial, tuned" in text and "Everything" in text
    assert float(changes["vd-polynomial, tuned"]["masks"]) == 2
    lines = float(changes["lines, vd-polynomial, tuned"]["error"])
    found = measured["1 coil, 4x: tuned samples of a plane against tuned lines"]
    assert found == pytest.approx(100 * (float(changes["vd-polynomial, tuned"]["error"]) / lines - 1), rel=1e-3)


@pytest.mark.slow
def test_masks_are_judged_under_both_recipes(benchmark: ModuleType, tmp_path: Path) -> None:
    setting = benchmark.Setting(
        "phantom:t2w", 16, (1,), (4.0,), training=(0,), tests=(0,), powers=lambda family: (4.0, 6.0), block=12
    )
    tuned = benchmark.Kept.open(tmp_path / "tuning.csv")
    for row in benchmark.tuning(setting):
        tuned.keep({**row, "error": abs(float(str(row["strategy"]).partition(":")[2]) - 6) + 1})
    densities = benchmark.recipe_densities(setting, tmp_path)
    assert densities == {(1, 4.0): "vd-polynomial:6"}
    masks, kept = benchmark.recipe_masks(setting), benchmark.Kept.open(tmp_path / "default-cells.csv")
    masks.compute(kept, densities, seconds=-1.0)
    assert not kept.rows and not benchmark.recipe_changes(setting, tmp_path)
    masks.compute(kept, densities)
    rows = {row["strategy"]: row for row in rows_of(tmp_path / "default-cells.csv")}
    assert set(rows) == {"vd-polynomial:6", "calibrated"} and {row["chosen"] for row in rows.values()} == {"64"}
    cell = {"matrix": 16, "coils": 1, "acceleration": 4.0, "strategy": "calibrated", "image": 0, "draw": 0}
    local = benchmark.measured(setting, benchmark._scan(setting, cell, 0), cell)
    assert float(rows["calibrated"]["local_error"]) == pytest.approx(local["error"], rel=1e-4)  # the same mask
    assert float(rows["calibrated"]["error"]) != pytest.approx(local["error"], rel=1e-4)
    targets = {row["name"]: row["measured"] for row in benchmark.document(setting, tmp_path, "the command")}
    changes = {row["recipe"]: float(row["change_percent"]) for row in rows_of(tmp_path / "default-changes.csv")}
    for recipe, column in (("default", "error"), ("local", "local_error")):
        ratio = float(rows["calibrated"][column]) / float(rows["vd-polynomial:6"][column])
        assert changes[recipe] == pytest.approx(100 * (ratio - 1), abs=1e-2)
    name = "1 coil, 4x, default recipe: calibrated against tuned vd-polynomial, mean change"
    assert targets[name] == pytest.approx(changes["default"], abs=1e-3)


def test_the_best_power_has_the_least_mean_error(benchmark: ModuleType, tmp_path: Path) -> None:
    setting = benchmark.Setting(
        "phantom:t2w", coils=(8,), accelerations=(8.0,), training=(0, 1), powers=lambda family: (1.0, 2.0, 3.0)
    )
    kept = benchmark.Kept.open(tmp_path / "tuning.csv")
    for row in benchmark.tuning(setting):
        power = float(str(row["strategy"]).partition(":")[2])
        kept.keep({**row, "error": abs(power - 2.0) + 0.1 * int(str(row["image"]))})
    best = benchmark.best_powers(setting, benchmark.Kept.open(tmp_path / "tuning.csv"))
    assert best == {(8, 8.0, "poisson-disc"): 2.0, (8, 8.0, "vd-polynomial"): 2.0}


def _volume(folder: Path) -> Path:
    """Discs of several sizes, one for each of twelve readout positions."""
    rows, columns = np.mgrid[-12:12, -10:10]
    radii = np.linspace(4, 9, 12)[:, None, None]
    path = folder / "volume.npz"
    np.savez(path, image=((rows**2 + columns**2 < radii**2) * (2.0 + np.cos(rows))).astype(np.float32))
    return path


@pytest.mark.slow
def test_positions_share_each_mask_and_have_their_own_errors(benchmark: ModuleType, tmp_path: Path) -> None:
    shared = benchmark.SharedMasks(_volume(tmp_path), 16, positions=(2, 5, 9), draws=2, block=12)
    setting = benchmark.Setting(
        "phantom:t2w",
        16,
        (1,),
        (4.0,),
        training=(0,),
        series=(4.0,),
        powers=lambda family: (4.0, 6.0),
        shared=shared,
    )
    tuned = benchmark.Kept.open(tmp_path / "tuning.csv")
    for row in benchmark.tuning(setting):
        tuned.keep({**row, "error": abs(float(str(row["strategy"]).partition(":")[2]) - 6) + 1})
    benchmark.compute_shared(setting, tmp_path)
    rows = rows_of(tmp_path / "positions.csv")
    masks = [(row["strategy"], row["draw"]) for row in rows]
    powers = [("vd-polynomial:4", "0"), ("vd-polynomial:6", "0"), ("vd-polynomial:6", "1")]
    designed = [(name, "0") for name in ("calibrated", "calibrated, earlier scan seen", "earlier-frame")]
    assert sorted(set(masks)) == [*designed, *powers]
    assert len(masks) == 18 and {row["chosen"] for row in rows} == {"64"}
    before = (tmp_path / "positions.csv").read_text()
    benchmark.compute_shared(setting, tmp_path)
    assert (tmp_path / "positions.csv").read_text() == before
    targets = {row["name"]: row for row in benchmark.document(setting, tmp_path, "the command")}
    errors = {name: [float(row["error"]) for row in rows if row["strategy"] == name] for name, _ in masks}
    density = np.mean(np.reshape(errors["vd-polynomial:6"], (2, 3)), axis=0)
    change = 100 * float(np.mean(errors["earlier-frame"] / density - 1))
    found = targets["series, 1 coil, 4x: mask of an earlier frame, eight positions, mean change"]
    assert found["measured"] == pytest.approx(change, rel=1e-3)
    rows = rows_of(tmp_path / "positions-changes.csv")
    best = min((4, 6), key=lambda power: np.mean(errors[f"vd-polynomial:{power}"]))
    assert [row["power"] for row in rows] == ["6", f"{best:g}", "", "", ""]
    seen = targets[
        "series, 1 coil, 4x: calibrated, earlier scan seen, against the tuned density, eight positions, mean change"
    ]
    assert seen["measured"] == pytest.approx(
        100 * float(np.mean(errors["calibrated, earlier scan seen"] / density - 1)), rel=1e-3
    )
    assert "Planes 2, 5, 9 of the volume `volume`" in (tmp_path / "README.md").read_text()


@pytest.mark.slow
def test_masks_after_an_earlier_scan_are_held_against_those_without(benchmark: ModuleType, tmp_path: Path) -> None:
    setting = benchmark.Setting(
        "phantom:t2w",
        24,
        (1,),
        (4.0,),
        training=(0,),
        tests=(0,),
        series=(4.0,),
        powers=lambda family: (4.0,),
        block=12,
    )
    tuned = benchmark.Kept.open(tmp_path / "tuning.csv")
    for row in benchmark.tuning(setting):
        tuned.keep({**row, "error": 1.0})
    densities = benchmark.seen_densities(setting, tmp_path)
    assert densities == {(1, 4.0): "vd-polynomial:4"}
    kept = benchmark.Kept.open(tmp_path / "seen-cells.csv", benchmark.SEEN_KEY)
    masks = benchmark.seen_masks(setting)
    masks.compute(kept, densities, seconds=-1.0)
    assert not kept.rows and not benchmark.seen_changes(setting, tmp_path)
    masks.compute(kept, densities)
    rows = rows_of(tmp_path / "seen-cells.csv")
    now = ["other noise", "shifted by (2.3, 1.2) pixels", "turned by 3 degrees", "another object"]
    assert [(row["scan now"], row["strategy"]) for row in rows] == [
        (name, mask) for name in now for mask in ("vd-polynomial:4", "calibrated", "calibrated, earlier scan seen")
    ]
    same = benchmark.measured(setting, benchmark._scan(setting, rows[1], 1), {**rows[1]})
    assert float(rows[1]["error"]) == pytest.approx(same["error"], rel=1e-4)
    targets = {row["name"]: row["measured"] for row in benchmark.document(setting, tmp_path, "the command")}
    found = rows_of(tmp_path / "seen-changes.csv")
    ratio = float(rows[2]["error"]) / float(rows[0]["error"])
    assert float(found[1]["change_percent"]) == pytest.approx(100 * (ratio - 1), abs=1e-2)
    assert found[0]["against"] == "calibrated" and 0 <= float(found[0]["explained"]) <= 1
    name = "series, 1 coil, 4x: calibrated, earlier scan seen, against the tuned density, one position, mean change"
    assert targets[name] == pytest.approx(100 * (ratio - 1), abs=1e-2)


def test_frames_differ_in_their_noise_only(benchmark: ModuleType, tmp_path: Path) -> None:
    shared = benchmark.SharedMasks(_volume(tmp_path), 16, positions=(2, 9), draws=1, block=12)
    scans, frames = shared.scans(), shared.scans(benchmark.EARLIER_SEED)
    for scan, frame in zip(scans, frames, strict=True):
        np.testing.assert_array_equal(scan.reference, frame.reference)
        noise = scan.prepared.data.kspace - frame.prepared.data.kspace
        assert np.std(noise) == pytest.approx(2 * 0.007, rel=0.2)
    assert not np.allclose(np.angle(scans[0].reference), np.angle(scans[1].reference))


@pytest.mark.slow
@pytest.mark.parametrize("coils", [1, 2])
def test_steps_of_both_designs_measure_as_many_samples(benchmark: ModuleType, tmp_path: Path, coils: int) -> None:
    setting = benchmark.Setting("phantom:t2w", 32, (coils,), (8.0,), training=(0,), tests=(0,))
    benchmark.measure_steps(setting, tmp_path, steps=2)
    lines, plane = rows_of(tmp_path / "steps.csv")
    assert (lines["measured"], plane["measured"]) == ("lines", "plane")
    assert lines["samples"] == plane["samples"] == f"{2 * 32} to {6 * 32}"
    assert lines["coils"] == str(coils) and float(plane["products per step"]) > 0
    ratio = float(plane["CPU s per step"]) / float(lines["CPU s per step"])
    targets = benchmark.document(setting, tmp_path, "the command")
    found = next(row for row in targets if str(row["name"]).startswith("warm design step"))
    assert found["measured"] == pytest.approx(ratio) and found["met"] == (ratio <= 2)
    assert f"{coils} coil" in found["name"] and "line steps" in (tmp_path / "README.md").read_text()
