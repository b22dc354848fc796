"""`recon --reference FILE`: errors against an image of the user, of one slice, of a volume, and along a trajectory."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import measure
from tests.cli.folders import Run, manifest, rows, settings

FAST = ("--recipe", "fast.toml")


@pytest.fixture(scope="module")
def truth(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The true image of scan.npz, in other units and without its phase."""
    path = tmp_path_factory.mktemp("reference") / "truth.npy"
    np.save(path, 40 * np.abs(np.load(work / "scan.npz")["reference"][0]))
    return path


def test_errors_are_those_of_the_image_against_the_scaled_file(run: Run, truth: Path, tmp_path: Path) -> None:
    run("recon", "scan.npz", "--reference", truth, *FAST, "--out", tmp_path / "run")
    image, given = np.abs(np.load(tmp_path / "run" / "recon.npy")), np.load(truth)
    factor = np.vdot(given, image) / np.vdot(given, given)
    by_hand = measure(image, factor * given)
    (row,) = rows(tmp_path / "run" / "metrics.csv")
    for name in ("relative_l2", "psnr", "ssim"):
        assert float(row[name]) == pytest.approx(getattr(by_hand, name), rel=1e-4)
    told = settings(tmp_path / "run")
    assert "reference_noise" not in told and told["error"]["of"] == "modulus" and "ranks" not in row
    assert row["found_error"] == row["relative_l2"]
    assert [file["name"] for file in manifest(tmp_path / "run")["inputs"]] == ["scan.npz", "truth.npy"]


def test_every_slice_of_a_volume_has_its_own_image(run: Run, work: Path, tmp_path: Path) -> None:
    scan = np.load(work / "scan.npz")
    kspace = np.concatenate([scan["kspace"], 2 * scan["kspace"]])
    np.savez(tmp_path / "two.npz", kspace=kspace, noise_variance=scan["noise_variance"])
    truths = np.abs(np.concatenate([scan["reference"], scan["reference"]]))
    truths[1, :4] = 0
    np.save(tmp_path / "truths.npy", truths)
    words = ("recon", tmp_path / "two.npz", "--reference", tmp_path / "truths.npy", *FAST, "--jobs", 1)
    run(*words, "--out", tmp_path / "run")
    images = np.load(tmp_path / "run" / "recon.npy")
    table = rows(tmp_path / "run" / "metrics.csv")
    scales = settings(tmp_path / "run")["reference_scales"]
    for number in range(2):
        expected = measure(np.abs(images[number]), scales[number] * truths[number]).relative_l2
        assert float(table[number]["relative_l2"]) == pytest.approx(expected, rel=1e-4)
    assert scales[1] == pytest.approx(2 * scales[0], rel=0.1)
    pair = settings(tmp_path / "run")["error"]
    assert (pair["of"], pair["against"]) == ("modulus", "truths.npy")
    assert pair["found"] == pytest.approx(np.mean([float(row["found_error"]) for row in table[:2]]), rel=1e-4)
