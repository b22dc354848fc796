"""`recon --calibrated-on FOLDER`: within how many standard deviations the pixels of other subjects' scans are."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mri_design as md
from mri_design.evidence.regions import Distances, shipped_distances
from mri_design.runs import recon as recon_run
from tests.cli.folders import Run, manifest, rows, settings
from tests.interruptions import stopping

QUIETLY = ("--jobs", 1, "--no-report")
WORDS = ("--recipe", "quick-local.toml", "--mask")


def subject(seed: int) -> dict[str, Any]:
    """A complete scan of an object of its own, of which no true image is told."""
    data = md.load_phantom("brain", shape=(24, 20), noise=0.02, rng=np.random.default_rng(seed))
    changed = data.kspace * np.exp(0.3j * seed) + 0.2 * seed * np.roll(data.kspace, seed, axis=-1)
    return {"kspace": changed, "noise_variance": data.noise_variance}


@pytest.fixture(scope="module")
def group(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three that can serve, the scan itself twice, what cannot serve, and what is no scan; beside it, a mask."""
    folder = tmp_path_factory.mktemp("group") / "subjects"
    folder.mkdir()
    for seed in (1, 2, 3):
        np.savez(folder / f"{seed}.npz", **subject(seed))
    shutil.copy(work / "scan.npz", folder / "copy.npz")
    own = np.load(work / "scan.npz")
    np.savez(folder / "scaled.npz", kspace=own["kspace"] * 7, noise_variance=49 * own["noise_variance"])
    np.savez(folder / "small.npz", kspace=subject(4)["kspace"][..., :16, :], noise_variance=1e-4)
    holes = subject(5)
    holes["kspace"][..., 3, :] = 0
    np.savez(folder / "holes.npz", **holes)
    (folder / "notes.txt").write_text("who they are")
    (folder / "broken.npz").write_text("no archive")
    np.save(folder.parent / "mask.npy", np.isin(np.arange(24), [2, 5, 8, *range(9, 16), 18, 21]))
    return folder


def test_the_radii_are_told_everywhere_and_the_image_is_the_same(run: Run, group: Path, tmp_path: Path) -> None:
    asked = ("recon", "scan.npz", *WORDS, group.parent / "mask.npy", "--jobs", 1)
    run(*asked, "--calibrated-on", group, "--out", tmp_path / "with", code=(0, 4))
    run(*asked, "--no-report", "--out", tmp_path / "without", code=(0, 4))
    for name in ("recon.npy", "std.npy"):
        np.testing.assert_array_equal(*(np.load(tmp_path / out / name) for out in ("with", "without")))
    found = settings(tmp_path / "with")["coverage"]
    assert found["images"] == ["1.npz", "2.npz", "3.npz"] and "coverage" not in settings(tmp_path / "without")
    table = rows(tmp_path / "with" / "coverage.csv")
    assert [row["level"] for row in table] == ["50", "80", "95"]
    assert [float(row["radius"]) for row in table] == pytest.approx([one["radius"] for one in found["radii"]], rel=1e-5)
    assert float(table[2]["promised"]) == pytest.approx(71.25)
    assert [file["name"] for file in manifest(tmp_path / "with")["inputs"]][:2] == ["scan.npz", "mask.npy"]
    refused = {text.partition(" ")[0] for text in found["refused"]}
    assert refused == {"copy.npz", "scaled.npz", "small.npz", "holes.npz", "broken.npz"}
    given = ("--calibrated-on", group, "--noise", 0.3, "--no-report")  # of the scan: those of the group have theirs
    run(*asked, *given, "--out", tmp_path / "given", code=(0, 4))
    assert rows(tmp_path / "given" / "coverage.csv") == table
    run(*asked, "--out", tmp_path / "with", "--overwrite", "--no-report", code=(0, 4))
    assert not (tmp_path / "with" / "coverage.csv").exists()


def test_intervals_of_regions_are_those_of_the_scans_of_the_folder(run: Run, group: Path, tmp_path: Path) -> None:
    """Where draws are made; the verb measure and Python go by them."""
    asked = ("recon", "scan.npz", *WORDS, group.parent / "mask.npy", *QUIETLY, "--draws", 8)
    inside = np.zeros((24, 20), dtype=int)
    inside[9:13, 8:12] = 1
    np.save(tmp_path / "lesion.npy", inside)
    found = {}
    for name, more in (("usual", ()), ("with", ("--calibrated-on", group))):
        run(*asked, *more, "--out", tmp_path / name, code=(0, 4))
        run("measure", tmp_path / name, "--region", tmp_path / "lesion.npy", "--no-report")
        found[name] = rows(tmp_path / name / "measures.csv")[0]
    kept = settings(tmp_path / "with")["coverage"]["regions"]
    known = Distances.kept(kept)
    lengths = {name: float(row["to 95 %"]) - float(row["from 95 %"]) for name, row in found.items()}
    assert found["with"]["sd"] == found["usual"]["sd"]
    ratio = known.within(0.95, 16) / shipped_distances().within(0.95, 16)
    assert lengths["with"] / lengths["usual"] == pytest.approx(ratio, rel=1e-3)
    (mean,) = md.load_run(tmp_path / "with").measure(inside)
    assert mean.distances == known


def test_the_radius_is_that_of_errors_against_true_images_where_these_are_known(work: Path, tmp_path: Path) -> None:
    lines = list(range(6, 18))
    over, names = [], ("scan", "head")
    (tmp_path / "known").mkdir()
    for name in names:
        shutil.copy(work / f"{name}.npz", tmp_path / "known")
        made = md.load(work / f"{name}.npz", recipe=work / "quick-local.toml").reconstruct(lines)
        over.append(np.abs(made.array - np.load(work / f"{name}.npz")["reference"][0]) / made.std)
    np.savez(tmp_path / "other.npz", **subject(1))
    scan = md.load(tmp_path / "other.npz", recipe=work / "quick-local.toml")
    found = scan.reconstruct(lines, calibrated_on=tmp_path / "known").coverage
    assert found.images == ("head.npz", "scan.npz")
    for level in (50, 80, 95):
        assert found.radius(level) == pytest.approx(np.quantile(over, level / 100), rel=0.02)
    assert scan.reconstruct(lines).coverage is None


def test_slices_share_the_radii_which_an_interrupted_run_keeps(run: Run, group: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", kspace=np.concatenate([subject(6)["kspace"], subject(7)["kspace"]]))
    asked = ("recon", tmp_path / "two.npz", *WORDS, group.parent / "mask.npy", "--calibrated-on", group, *QUIETLY)
    with stopping(recon_run, "slice_image", 0):
        run(*asked, "--out", tmp_path / "x", code=130)
    with stopping(recon_run, "coverage_of", 0):
        run(*asked, "--out", tmp_path / "x", "--resume", code=(0, 4))
    found = settings(tmp_path / "x")["coverage"]
    assert found["images"] == ["1.npz", "2.npz", "3.npz", "copy.npz", "scaled.npz"]
    assert len(rows(tmp_path / "x" / "coverage.csv")) == 3
