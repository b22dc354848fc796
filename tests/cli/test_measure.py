"""`measure`: means of regions and differences, in one run and between two, and what it needs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.evaluation import read_csv
from mri_design.runs.stored_run import read_run
from tests.cli.folders import Run
from tests.stored_runs import left


@pytest.fixture(scope="module")
def drawn(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with draws: x of every second line, and both, its image as that of two slices."""
    folder = tmp_path_factory.mktemp("drawn")
    kept = np.zeros(24, dtype=bool)
    kept[::2] = kept[9:15] = True
    np.save(folder / "mask.npy", kept)
    words = ("--mask", folder / "mask.npy", "--recipe", "quick-local.toml", "--no-report", "--draws", 8)
    run("recon", "scan.npz", *words, "--out", folder / "x", code=(0, 4))
    one = read_run(folder / "x")
    stacks = {part: np.stack([getattr(one, part)] * 2) for part in ("image", "std", "draws", "pull", "reference")}
    left(folder / "both", replace(one, **stacks, maps=None, numbers=(0, 1)))
    labels = np.zeros((24, 20), dtype=np.int16)
    labels[8:12, 6:10], labels[14:17, 8:14] = 1, 2
    np.save(folder / "labels.npy", labels)
    np.save(folder / "flags.npy", labels == 2)
    return folder


def test_regions_and_their_difference_stand_in_the_run_and_in_python_alike(
    run: Run, work: Path, drawn: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = run("measure", drawn / "x", "--region", drawn / "labels.npy", "--out", out, drawn=True, code=0).stdout
    rows = read_csv(out / "measures.csv")
    assert [row["region"] for row in rows] == ["labels 1", "labels 2", "labels 1 - labels 2"]
    image, draws, truth = (np.abs(np.load(drawn / "x" / f"{name}.npy")) for name in ("recon", "draws", "reference"))
    inside = np.load(drawn / "labels.npy") == 1
    pull = np.load(drawn / "x" / "pull.npy")[inside].mean()
    away = draws[:, inside].mean(axis=1) - image[inside].mean() + pull
    assert rows[0]["mean"] == pytest.approx(image[inside].mean(), rel=1e-5)
    assert rows[0]["true"] == pytest.approx(truth[inside].mean(), rel=1e-5)
    assert rows[0]["sd"] == pytest.approx(np.sqrt(away.mean() ** 2 + away.var(ddof=1)), rel=1e-4)
    assert "labels 1 - labels 2" in said and "from 90 %" in said and "from 50 %" in rows[0]
    assert (out / "figures" / "regions.svg").is_file()
    recipe = work / "quick-local.toml"
    same = md.load(work / "scan.npz", recipe=recipe).reconstruct(np.load(drawn / "mask.npy"), draws=8)
    found = same.measure(drawn / "labels.npy")
    assert [one.name for one in found] == [row["region"] for row in rows]
    assert [one.sd for one in found] == pytest.approx([row["sd"] for row in rows], rel=1e-4)


def test_one_slice_of_a_volume_two_runs_and_another_mask_are_held_against_each_other(
    run: Run, drawn: Path, tmp_path: Path
) -> None:
    words = ("--region", drawn / "labels.npy", "--out", tmp_path, "--no-report")
    run("measure", drawn / "both", *words, "--slice", 1, "--against", drawn / "flags.npy", code=0)
    rows = {row["region"]: row for row in read_csv(tmp_path / "measures.csv")}
    assert list(rows) == ["labels 1", "labels 2", "flags", "labels 1 - flags", "labels 2 - flags"]
    assert rows["labels 2 - flags"]["sd"] == 0 and rows["labels 2 - flags"]["mean"] == 0
    run("measure", drawn / "x", *words, "--and", drawn / "x", code=0)
    rows = {row["region"]: row for row in read_csv(tmp_path / "measures.csv")}
    assert rows["labels 1: this - other"]["mean"] == 0 and "labels 2 of other" in rows
    scatter = np.load(drawn / "x" / "draws.npy")[:, np.load(drawn / "labels.npy") == 1]
    assert rows["labels 1: this - other"]["sd"] == pytest.approx(
        np.sqrt(2) * np.abs(scatter).mean(axis=1).std(ddof=1), rel=1e-4
    )


def test_every_region_that_is_given_is_measured_to_the_level_that_is_asked_for(
    run: Run, drawn: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "a" / "flags.npy", np.load(drawn / "labels.npy") == 1)
    regions = (drawn / "flags.npy", tmp_path / "a" / "flags.npy")
    words = [word for one in regions for word in ("--region", one)]
    out = tmp_path / "out"
    run("measure", drawn / "x", *words, "--level", "60", "--out", out, "--no-report", code=0)
    rows = read_csv(out / "measures.csv")
    assert [row["region"] for row in rows] == ["flags", "flags (2)", "flags - flags (2)"]
    assert rows[0]["from 50 %"] > rows[0]["from 60 %"] > rows[0]["from 80 %"] > rows[0]["from 90 %"]
    found = md.load_run(drawn / "x").measure([np.load(one) for one in regions])
    assert [one.name for one in found] == ["region 1", "region 2", "region 1 - region 2"]
    assert [one.value for one in found] == pytest.approx([row["mean"] for row in rows], rel=1e-4)
    run("measure", drawn / "x", *words, "--level", "1.2", "--out", out, code=2)


def test_what_is_missing_or_lies_elsewhere_is_said_with_the_cure(run: Run, drawn: Path, tmp_path: Path) -> None:
    words = ("--region", drawn / "labels.npy", "--out", tmp_path / "out", "--no-report")
    run("measure", drawn / "both", *words, code=3)
    plain = tmp_path / "plain"
    run("recon", "scan.npz", "--recipe", "fast.toml", "--no-report", "--out", plain, code=(0, 4))
    run("measure", plain, *words, code=2)
    assert not (tmp_path / "out").exists()
