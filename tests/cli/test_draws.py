"""`recon --draws`: images that the posterior holds possible, beside the image, of one slice and of several."""

from pathlib import Path

import numpy as np

from tests.cli.folders import Run, manifest


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
