"""A complete scan is its own reference: nothing is compared with itself, and errors say whether they rank images."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import Recipe, load_phantom, prepare
from mri_design.evaluation.tables import read_csv_texts
from mri_design.experiment.inputs import load_input
from mri_design.operators.conventions import to_image
from tests.cli.folders import Run, settings

COILS = ("--dims", "coil,ky,kx")


@pytest.fixture
def coils(work: Path) -> np.ndarray:
    """A complete scan of four coils of unequal noise that says nothing of itself, as coils.npy."""
    scan = load_phantom("t2w", shape=(32, 32), noise=0.0, n_coils=4, rng=np.random.default_rng(0))
    noise = np.random.default_rng(1).standard_normal((2, 4, 32, 32)) * np.geomspace(0.005, 0.03, 4)[:, None, None]
    kspace = (scan.kspace[0] + noise[0] + 1j * noise[1]).astype(np.complex64)
    np.save(work / "coils.npy", kspace)
    np.save(work / "half.npy", np.abs(np.arange(32) - 16) < 8)
    return kspace


def rows(out: Path) -> list[dict[str, str]]:
    return read_csv_texts(out / "metrics.csv")


@pytest.mark.parametrize("method", ["least-squares", "zero-filled"])
def test_all_lines_are_not_compared_with_themselves(
    run: Run, work: Path, tmp_path: Path, coils: np.ndarray, method: str
) -> None:
    run("recon", "coils.npy", *COILS, "--method", method, "--out", tmp_path / "out", code=0)
    (row,) = rows(tmp_path / "out")
    assert (row["method"], row["relative_l2"], row["ssim"]) == (method, "", "")
    assert row["ranks"] == "no: it is the reference"
    image = np.abs(np.load(tmp_path / "out/recon.npy"))
    rss = np.linalg.norm(to_image(coils), axis=0)
    bright = rss > 0.3 * rss.max()
    np.testing.assert_allclose(np.median(image[bright] / rss[bright]), 1, atol=0.05)


def test_a_mean_of_all_lines_does_not_rank_and_of_some_says_both_errors(
    run: Run, work: Path, tmp_path: Path, coils: np.ndarray
) -> None:
    for name, more in (("all", ()), ("half", ("--mask", "half.npy"))):
        called = ("recon", "coils.npy", *COILS, "--recipe", "fast", *more, "--out", tmp_path / name)
        run(*called, code=0)
    (row,) = rows(tmp_path / "all")
    assert row["ranks"] == "no: made from the reference's own samples" and row["found_error"] == ""
    mean, zeros = rows(tmp_path / "half")
    assert zeros["method"] == "zero-filled"
    assert 0 < float(mean["found_error"]) < float(zeros["found_error"]) and zeros["predicted_error"] == ""
    told = settings(tmp_path / "half")["error"]
    assert (told["predicted"], told["found"]) == pytest.approx(
        (float(mean["predicted_error"]), float(mean["found_error"])), rel=1e-4
    )
    page = (tmp_path / "half/report.html").read_text(encoding="utf-8")
    assert "maps of its 24 central lines" in page


def test_samples_as_they_were_read_are_prepared_again_alike(coils: np.ndarray, work: Path) -> None:
    """As `adapt` keeps them: with the covariance and the maps of the coils as read."""
    recipe = Recipe()
    named = recipe.replacing("input", dims=("coil", "ky", "kx"))
    scan = prepare(load_input(work / "coils.npy", named), recipe)
    assert scan.data.coil_maps is not None
    kept = scan.as_read(scan.data.kspace[0], scan.data.coil_maps[0], 1.0)
    np.testing.assert_allclose(kept["kspace"][0], coils, atol=1e-5 * np.abs(coils).max())
    np.savez(work / "kept.npz", **kept)
    again = prepare(load_input(work / "kept.npz", recipe), recipe)
    assert again.noise_source == "given with the data"
    np.testing.assert_allclose(again.data.kspace, scan.data.kspace, atol=1e-4 * np.abs(scan.data.kspace).max())
    np.testing.assert_allclose(again.data.coil_maps, scan.data.coil_maps, atol=1e-4)
    np.testing.assert_allclose(again.image_unit(0), scan.image_unit(0), rtol=1e-3)
