"""What the coil maps of a comparison's masks rest on stands in its tables, its manifest and its report."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, load_phantom
from mri_design.calibration import maps_from_lines
from mri_design.evaluation import RunFolder, read_csv_texts
from mri_design.experiment import ScanSource, SliceChoice
from mri_design.runs.compare import ComparisonRequest, run_comparison_of
from mri_design.runs.store import Run
from mri_design.runs.work import Progress

RECIPE = Recipe.of({"reconstruction": {"method": "zero-filled"}, "input": {"noise": 0.01}})


@pytest.fixture(scope="module")
def scan() -> KSpaceData:
    """Four coils whose maps are not known."""
    data = load_phantom("brain", shape=(40, 24), n_coils=4, rng=np.random.default_rng(0))
    return replace(data, coil_maps=None)


def compared(data, folder, strategies, lines, recipe=RECIPE):
    """Warnings and manifest."""
    warnings = list[str]()
    sources = [ScanSource("memory:scan", SliceChoice("all"), loaded=data)]
    request = ComparisonRequest(
        sources=sources, recipe=recipe, strategies=strategies.split(","), lines=[lines], seeds=2
    )
    with RunFolder(folder) as kept:
        run_comparison_of(request, Run(folder=kept, progress=Progress(warn=warnings.append)))
    return warnings, json.loads((folder / "manifest.json").read_text())["settings"]


def test_every_mask_says_what_its_maps_rest_on(scan: KSpaceData, tmp_path: Path) -> None:
    warnings, told = compared(scan, tmp_path / "run", "low-pass,vd-polynomial:2", 32)
    for row in read_csv_texts(tmp_path / "run" / "metrics.csv"):
        masks = json.loads((tmp_path / "run" / "masks.json").read_text())
        names = ("strategy", "draw", "centre")
        order = next(m["order"] for m in masks if all(str(m[name]) == row[name] for name in names))
        estimate = maps_from_lines(scan.kspace[0] / 1e-2, np.isin(np.arange(40), order))
        assert (row["maps"], int(row["maps_lines"])) == (estimate.method, estimate.lines)
    by_strategy = {row["strategy"]: row for row in told["coil_maps_of_masks"]}  # type: ignore[attr-defined]
    centres = {str(row["centre"]) for row in told["coil_maps_of_masks"]}  # type: ignore[attr-defined]
    assert centres == {row["centre"] for row in read_csv_texts(tmp_path / "run" / "metrics.csv")} and len(centres) == 2
    assert by_strategy["low-pass"]["maps"] == "espirit" and by_strategy["low-pass"]["maps_lines"] == "24"
    assert by_strategy["low-pass"]["maps_error"] < 0.2 and by_strategy["vd-polynomial:2"]["masks"] == 2
    assert warnings == []


def test_maps_that_predict_badly_are_counted_and_said(scan: KSpaceData, tmp_path: Path) -> None:
    """Coils of random phase have no smooth maps."""
    turned = scan.kspace * np.exp(2j * np.pi * np.random.default_rng(0).random(scan.kspace.shape))
    warnings, told = compared(replace(scan, kspace=turned.astype(np.complex64)), tmp_path / "run", "low-pass", 16)
    (row,) = told["coil_maps_of_masks"]  # type: ignore[misc]
    assert (row["maps"], row["badly"], row["maps_lines"]) == ("nlinv", 1, "16") and row["maps_error"] > 0.5
    assert len(warnings) == 1


def test_fixed_masks_have_the_centre_lines_of_designs_and_those_they_usually_have_and_the_better_counts(scan, tmp_path):
    compared(scan, tmp_path, "calibrated,regular,fastmri-random,low-pass", 14)
    masks = json.loads((tmp_path / "masks.json").read_text())
    begun = {name: sorted({m["centre"] for m in masks if m["strategy"] == name}) for name in ("calibrated", "regular")}
    (designed,) = begun["calibrated"]
    assert begun["regular"] == [designed, 12]
    assert {m["centre"] for m in masks if m["strategy"] == "fastmri-random"} == {designed, 8}  # 8 % of 40, 8 at least
    assert len([m for m in masks if m["strategy"] == "low-pass"]) == 1  # which is the same with any centre
    for mask in masks:
        centre = mask["centre"]
        assert set(mask["order"][:centre]) == set(range(20 - centre // 2, 20 + (centre + 1) // 2))

    summary = read_csv_texts(tmp_path / "summary.csv")
    regular = {row["counts"]: float(row["relative_l2"]) for row in summary if row["strategy"] == "regular"}
    assert regular["yes"] < regular["no"]
    best = min((row for row in summary if row["strategy"] != "calibrated"), key=lambda row: float(row["relative_l2"]))
    (paired,) = read_csv_texts(tmp_path / "paired.csv")
    assert (paired["against"], best["counts"]) == (best["strategy"], "yes")
    (gains,) = read_csv_texts(tmp_path / "gains.csv")
    usual = min((row for row in summary if row["centre"] == "12"), key=lambda row: float(row["relative_l2"]))
    assert (gains["usual_mask"], gains["usual_error"]) == (usual["strategy"], usual["relative_l2"])
    few = [float(row["relative_l2"]) for row in summary if row["centre"] != "12" and row["strategy"] != "calibrated"]
    assert float(gains["few_error"]) == min(few)


def test_a_start_that_is_asked_for_is_that_of_every_mask(scan: KSpaceData, tmp_path: Path) -> None:
    compared(scan, tmp_path, "regular,fastmri-random", 14, RECIPE.replacing("design", start=10))
    masks = json.loads((tmp_path / "masks.json").read_text())
    assert {mask["centre"] for mask in masks} == {10} and len(masks) == 4
    assert not (tmp_path / "gains.csv").exists()
    known = load_phantom("brain", shape=(40, 24), n_coils=4, rng=np.random.default_rng(0))
    _, told = compared(known, tmp_path / "known", "low-pass", 16)
    assert "coil_maps_of_masks" not in told and not (tmp_path / "known" / "maps.csv").exists()
    assert "maps" not in read_csv_texts(tmp_path / "known" / "metrics.csv")[0]
