"""`recon` and `info` of a file with samples along a trajectory; the other verbs say that they take lines."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design import NonUniformFourier, load_phantom
from mri_design.operators import density_weights
from tests.cli.folders import Run, rows, settings

pytest.importorskip("finufft")
N, SPOKES = 24, 20


@pytest.fixture(scope="module")
def spoke_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    radius, angles = np.arange(-N, N) / 2, np.pi * np.arange(SPOKES)[:, None] / SPOKES
    trajectory = np.stack([radius * np.sin(angles), radius * np.cos(angles)], axis=-1)
    image = load_phantom("brain", shape=(N, N), rng=np.random.default_rng(0)).reference
    assert image is not None
    kspace, rng = NonUniformFourier(trajectory.reshape(-1, 2), (N, N))(image[0]), np.random.default_rng(1)
    kspace = kspace + 0.007 * (rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape))
    path = tmp_path_factory.mktemp("spokes") / "spokes.npz"
    np.savez(
        path, kspace=kspace.reshape(SPOKES, 2 * N), trajectory=trajectory, reference=image[0], noise_variance=0.007**2
    )
    return path


@pytest.mark.slow
def test_the_mean_comes_with_error_bars_and_the_trajectory(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "x"
    run("recon", spoke_file, "--recipe", "quick.toml", "--out", out, code=0)
    assert np.load(out / "recon.npy").shape == np.load(out / "std.npy").shape == (N, N)
    assert np.load(out / "mask.npy").tolist() == [True] * SPOKES
    mean, gridded = rows(out / "metrics.csv")
    assert (mean["method"], gridded["method"]) == ("mean", "gridded") and float(mean["relative_l2"]) < 0.15
    assert mean["readouts"] == "20" and mean["samples"] == "960"
    assert settings(out)["matrix"] == [N, N] and settings(out)["readouts"] == 20


def test_a_mask_chooses_readouts(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    mask, out = np.arange(SPOKES) % 2 == 0, tmp_path / "x"
    np.save(tmp_path / "mask.npy", mask)
    words = ("--mask", tmp_path / "mask.npy", "--method", "zero-filled")
    run("recon", spoke_file, *words, "--out", out, code=0)
    np.testing.assert_array_equal(np.load(out / "mask.npy"), mask)
    assert not (out / "std.npy").exists()
    first = rows(out / "metrics.csv")[0]
    assert (first["readouts"], first["method"]) == ("10", "gridded")


def test_the_gridded_image_uses_the_density_weights_of_the_file_in_any_unit(
    run: Run, spoke_file: Path, tmp_path: Path
) -> None:
    made = {}
    arrays = dict(np.load(spoke_file))
    ramp = np.maximum(np.abs(np.arange(-N, N) / 2), 0.125) + np.zeros((SPOKES, 1))
    for name, weights in {"none": None, "ramp": ramp, "scaled": 1e4 * ramp}.items():
        path = tmp_path / f"{name}.npz"
        np.savez(path, **arrays, **({} if weights is None else {"density": weights}))
        out = tmp_path / f"of-{name}"
        run("recon", path, "--method", "zero-filled", "--recipe", "quick.toml", "--out", out, code=0)
        made[name] = np.load(out / "recon.npy")
    np.testing.assert_allclose(made["scaled"], made["ramp"], rtol=1e-5, atol=1e-7)
    points, grid = arrays["trajectory"].reshape(-1, 2), (N, N)
    weights = ramp.ravel() * density_weights(points, grid).sum() / ramp.sum()
    gridded = NonUniformFourier(points, grid).adjoint(weights * arrays["kspace"].reshape(1, -1))
    np.testing.assert_allclose(made["ramp"], gridded, rtol=1e-4, atol=1e-4 * np.abs(gridded).max())
    assert np.linalg.norm(made["ramp"] - made["none"]) > 0.01 * np.linalg.norm(made["none"])


def test_a_matrix_that_the_file_does_not_say_can_be_given(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    held = dict(np.load(spoke_file))
    path = tmp_path / "short.npz"
    np.savez(path, kspace=held["kspace"], trajectory=held["trajectory"] * (1, 0.7), noise_variance=0.007**2)
    run("recon", path, "--method", "zero-filled", "--out", tmp_path / "none", code=3)
    words = ("--method", "zero-filled", "--recipe", "quick.toml", "--out", tmp_path / "run")
    run("recon", path, "--matrix", "32,28", *words, code=0)
    assert np.load(tmp_path / "run/recon.npy").shape == (32, 28)
    run("convert", path, tmp_path / "a.cfl", "--matrix", 32, code=0)
    assert json.loads((tmp_path / "a.json").read_text())["matrix"] == [32, 32]
    for value in ("3", "24,24,24", "8", "x", "٣٢"):
        run("info", path, "--matrix", value, code=(2, 3))
    run("info", "scan.npz", "--matrix", 24, code=2)
