"""`recon --noise-map`: arrays, report and export of what noise does to an image."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run, manifest

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
    assert manifest(out)["settings"]["noise"]["exact"]
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
