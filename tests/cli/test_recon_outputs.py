"""What `recon` leaves beside an image: errors against a given truth, draws, and what noise does to it."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom, measure
from tests.cli.folders import Run, manifest, rows, settings

FAST = ("--recipe", "fast.toml")


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
    told, pair = settings(tmp_path / "run"), settings(tmp_path / "run")["error"]
    assert (pair["of"], pair["against"]) == ("modulus", "truths.npy")
    assert "reference_noise" not in told and "ranks" not in table[0]
    assert pair["found"] == pytest.approx(np.mean([float(row["found_error"]) for row in table[:2]]), rel=1e-4)


def test_draws_and_the_reference_stand_beside_an_image_that_they_do_not_change(run: Run, tmp_path: Path) -> None:
    words = ("recon", "scan.npz", "--recipe", "quick-local.toml", "--no-report")
    run(*words, "--out", tmp_path / "plain", code=(0, 4))
    run(*words, "--out", tmp_path / "x", "--draws", 5, code=(0, 4))
    plain, out = tmp_path / "plain", tmp_path / "x"
    drawn, image = np.load(out / "draws.npy"), np.load(out / "recon.npy")
    assert drawn.shape == (5, 24, 20) and drawn.dtype == np.complex64
    assert manifest(out)["settings"]["reconstruction"]["draws"] == 5
    for name in ("recon.npy", "std.npy"):
        np.testing.assert_array_equal(np.load(out / name), np.load(plain / name))
    power = np.mean(np.abs(drawn - image) ** 2, axis=0)
    np.testing.assert_allclose(power.sum(), np.sum(np.load(out / "std.npy") ** 2), rtol=1e-3)
    assert np.load(out / "reference.npy").shape == (24, 20) and not (plain / "reference.npy").exists()
    run("recon", "scan.npz", "--recipe", "fast.toml", "--no-report", "--out", out, "--overwrite", code=(0, 4))
    assert not (out / "draws.npy").exists() and not (out / "reference.npy").exists()


def test_slices_have_independent_draws_of_their_own_and_other_methods_none(
    run: Run, work: Path, tmp_path: Path
) -> None:
    one = np.load(work / "scan.npz")
    twice = {name: np.stack([one[name][0]] * 2) for name in ("kspace", "reference")}
    np.savez(tmp_path / "two.npz", **twice, noise_variance=one["noise_variance"])
    words = ("recon", tmp_path / "two.npz", "--recipe", "quick-local.toml", "--no-report", "--draws", 4)
    run(*words, "--out", tmp_path / "x", code=(0, 4))
    drawn, image = np.load(tmp_path / "x" / "draws.npy"), np.load(tmp_path / "x" / "recon.npy")
    assert drawn.shape == (2, 4, 24, 20) and np.load(tmp_path / "x" / "reference.npy").shape == (2, 24, 20)
    first, second = drawn - image[:, None]
    assert np.abs(np.vdot(first, second)) < 0.2 * np.vdot(first, first).real


STEP = 2


@pytest.fixture(scope="module")
def coils(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slices that four coils measured on every second line, with their maps and noise."""
    scan = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(0))
    assert scan.coil_maps is not None
    kspace = np.repeat(scan.kspace, 2, axis=0)
    kspace[:, :, 1::STEP] = 0
    path = tmp_path_factory.mktemp("coils") / "coils.npz"
    np.savez(path, kspace=kspace, coil_maps=np.repeat(scan.coil_maps, 2, axis=0), noise_variance=5e-5)
    return path


def test_least_squares_leave_noise_and_g_factor_beside_the_image_and_nothing_without_the_flag(
    run: Run, coils: Path, tmp_path: Path
) -> None:
    out, words = tmp_path / "x", ("recon", coils, "--slices", 0, "--method", "least-squares")
    run(*words, "--noise-map", "--out", out, code=0)
    g_factor, noise = np.load(out / "g_factor.npy"), np.load(out / "noise.npy")
    assert g_factor.shape == noise.shape == (24, 20) and g_factor.min() > 0.99 and g_factor.max() > 1.01
    # In the file's units a pixel of the complete scan has the noise of a sample: brightness is the coils' own.
    assert np.median(noise / g_factor) == pytest.approx(np.sqrt(2 * 5e-5 * STEP), rel=0.02)
    run("export", out, "--to", "nifti", "--out", tmp_path / "x.nii", code=0)
    assert (tmp_path / "x_noise.nii").is_file() and (tmp_path / "x_g_factor.nii").is_file()
    run(*words, "--out", out, "--overwrite", code=0)
    assert not (out / "g_factor.npy").exists() and not (out / "noise.npy").exists()


def test_a_volume_has_the_maps_of_its_slices(run: Run, coils: Path, tmp_path: Path) -> None:
    words = ("recon", coils, "--method", "least-squares", "--noise-map")
    run(*words, "--out", tmp_path / "both", code=0)
    run(*words, "--slices", 1, "--out", tmp_path / "one", code=0)
    for name in ("noise.npy", "g_factor.npy"):
        both = np.load(tmp_path / "both" / name)
        assert both.shape == (2, 24, 20)
        np.testing.assert_array_equal(both[1], np.load(tmp_path / "one" / name))
