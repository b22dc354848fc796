"""`recon` and `info` of a file with samples along a trajectory; the other verbs say that they take lines."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design import NonUniformFourier, golden_angles, load_phantom, load_phantom_shots, measure, radial_spokes
from mri_design.operators.nonuniform import density_weights
from tests.cli.folders import Run, page, rows, settings

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
    run("recon", spoke_file, "--recipe", "quick.toml", "--out", out, drawn=True, code=0)
    assert np.load(out / "recon.npy").shape == np.load(out / "std.npy").shape == (N, N)
    assert np.load(out / "mask.npy").tolist() == [True] * SPOKES
    mean, gridded = rows(out / "metrics.csv")
    assert (mean["method"], gridded["method"]) == ("mean", "gridded") and float(mean["relative_l2"]) < 0.15
    assert mean["readouts"] == "20" and mean["samples"] == "960"
    assert settings(out)["matrix"] == [N, N] and settings(out)["readouts"] == 20
    assert (out / "figures" / "trajectory.svg").stat().st_size > 5000
    assert (out / "figures" / "point-spread.svg").stat().st_size > 5000
    for words in ("one curve for each readout", "orange curve is the first of the scan", "Point-spread function: what"):
        assert words in page(out)


def test_a_mask_chooses_readouts(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    mask, out = np.arange(SPOKES) % 2 == 0, tmp_path / "x"
    np.save(tmp_path / "mask.npy", mask)
    run("recon", spoke_file, "--mask", tmp_path / "mask.npy", "--method", "zero-filled", "--out", out, code=0)
    np.testing.assert_array_equal(np.load(out / "mask.npy"), mask)
    assert not (out / "std.npy").exists()
    first = rows(out / "metrics.csv")[0]
    assert (first["readouts"], first["method"]) == ("10", "gridded")


def test_errors_are_against_the_image_that_is_given(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    truth = np.abs(np.load(spoke_file)["reference"])
    np.save(tmp_path / "truth.npy", 7 * truth)
    words = (spoke_file, "--method", "zero-filled", "--reference", tmp_path / "truth.npy", "--out", tmp_path / "x")
    run("recon", *words, code=0)
    image = np.abs(np.load(tmp_path / "x" / "recon.npy"))
    expected = measure(image, np.vdot(truth, image) / np.vdot(truth, truth) * truth).relative_l2
    assert float(rows(tmp_path / "x" / "metrics.csv")[0]["relative_l2"]) == pytest.approx(expected, rel=1e-4)
    assert settings(tmp_path / "x")["reference_source"].startswith("truth.npy, its magnitude scaled by")
    assert "against truth.npy" in page(tmp_path / "x") and "Phase is not compared" in page(tmp_path / "x")


def test_a_mask_of_another_length_is_refused(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.ones(N, dtype=bool))
    result = run("recon", spoke_file, "--mask", tmp_path / "mask.npy", "--out", tmp_path / "x", code=3)
    assert "mask.npy: got bool (24,)" in result.stderr and "readout" in result.stderr


def test_design_takes_lines(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    result = run("design", spoke_file, "--lines", 4, "--out", tmp_path / "x", code=3)
    assert "samples along a trajectory" in result.stderr and "recon and info take such files" in result.stderr


def test_noise_that_signal_may_have_enlarged_is_said(run: Run, tmp_path: Path) -> None:
    spokes = radial_spokes(48, golden_angles(24))
    made = load_phantom_shots("brain", spokes, shape=48, rng=np.random.default_rng(0))
    parts = {"kspace": made.kspace.reshape(1, 24, -1), "trajectory": spokes}
    np.savez(tmp_path / "unknown.npz", **parts)
    np.savez(tmp_path / "known.npz", **parts, noise_variance=made.noise_variance)
    words = ("--method", "zero-filled", "--no-report", "--out")
    said = "its noise is estimated from the outermost samples, though power still falls with the distance"
    unknown = run("recon", tmp_path / "unknown.npz", *words, tmp_path / "unknown", code=0)
    assert said in " ".join(unknown.stderr.split())
    assert "though power still falls" in settings(tmp_path / "unknown")["noise_source"]
    known = run("recon", tmp_path / "known.npz", *words, tmp_path / "known", code=0)
    assert "its noise is" not in known.output
    assert "it may be too large" in run("info", tmp_path / "unknown.npz").stdout


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
        result = run("recon", path, "--method", "zero-filled", "--recipe", "quick.toml", "--out", out, code=0)
        assert "members not read" not in result.output
        made[name] = np.load(out / "recon.npy")
    np.testing.assert_allclose(made["scaled"], made["ramp"], rtol=1e-5, atol=1e-7)
    points, grid = arrays["trajectory"].reshape(-1, 2), (N, N)
    weights = ramp.ravel() * density_weights(points, grid).sum() / ramp.sum()
    gridded = NonUniformFourier(points, grid).adjoint(weights * arrays["kspace"].reshape(1, -1))
    np.testing.assert_allclose(made["ramp"], gridded, rtol=1e-4, atol=1e-4 * np.abs(gridded).max())
    assert np.linalg.norm(made["ramp"] - made["none"]) > 0.01 * np.linalg.norm(made["none"])
    assert "density weights those of the file" in " ".join(run("info", tmp_path / "ramp.npz").stdout.split())


def test_a_matrix_that_the_file_does_not_say_can_be_given(run: Run, spoke_file: Path, tmp_path: Path) -> None:
    held = dict(np.load(spoke_file))
    path = tmp_path / "short.npz"
    np.savez(path, kspace=held["kspace"], trajectory=held["trajectory"] * (1, 0.7), noise_variance=0.007**2)
    refused = run("recon", path, "--method", "zero-filled", "--out", tmp_path / "none", code=3)
    assert "Give the pixels (ky, kx) of the image: as --matrix N" in refused.stderr
    words = ("--method", "zero-filled", "--recipe", "quick.toml", "--out", tmp_path / "run")
    run("recon", path, "--matrix", "32,28", *words, code=0)
    assert np.load(tmp_path / "run/recon.npy").shape == (32, 28)
    assert "32 x 32 pixels (ky, kx)" in run("info", path, "--matrix", 32).stdout
    run("convert", path, tmp_path / "a.cfl", "--matrix", 32, code=0)
    assert json.loads((tmp_path / "a.json").read_text())["matrix"] == [32, 32]
    for value, said in (
        ("3", "4 or more"),
        ("24,24,24", "one or two"),
        ("8", "up to 4 and 4"),
        ("x", "one or two"),
        ("٣٢", "one or two"),
    ):
        result = run("info", path, "--matrix", value, code=(2, 3))
        assert said in result.stderr
    result = run("info", "scan.npz", "--matrix", 24, code=2)
    assert "24 x 24 pixels asked for of scan.npz, which says its own" in result.stderr


@pytest.mark.parametrize(("share", "folded"), [(1.0, False), (0.6, True)])
def test_an_image_that_folds_says_that_its_field_of_view_looks_too_small(
    run: Run, tmp_path: Path, share: float, folded: bool
) -> None:
    spokes = radial_spokes(40, golden_angles(40))
    made = load_phantom_shots("brain", spokes, shape=40, rng=np.random.default_rng(0))
    matrix = round(40 * share)
    path, out = tmp_path / "spokes.npz", tmp_path / "run"
    known = {"matrix": matrix, "noise_variance": made.noise_variance}
    np.savez(path, kspace=made.kspace.reshape(40, -1), trajectory=spokes * (matrix / 40), **known)
    result = run("recon", path, "--method", "map", "--recipe", "fast.toml", "--out", out, code=0)
    assert ("its field of view looks too small" in result.stderr) == folded
    assert ("field_of_view_doubt" in settings(out)) == folded
