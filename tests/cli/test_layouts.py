"""Axes of arrays on the command line and in Python: `--dims`, and the frames that such axes number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design import load_phantom
from mri_design.errors import InputError
from tests.cli.folders import Run

PLAIN = '[reconstruction]\nmethod = "zero-filled"\n[noise]\nvariance = 4e-4\n'


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    """K-space (3 frames, 32 ky, 32 kx), each of another brightness."""
    one = load_phantom("brain", shape=(32, 32), noise=0.0, rng=np.random.default_rng(0)).kspace[0, 0]
    rng = np.random.default_rng(1)
    noise = 0.01 * (rng.standard_normal((3, 32, 32)) + 1j * rng.standard_normal((3, 32, 32)))
    return ((1 + np.arange(3))[:, None, None] * one + noise).astype(np.complex64)


@pytest.mark.parametrize(
    ("axis", "option"), [("frame", "--repetition"), ("rep", "--repetition"), ("echo", "--contrast")]
)
def test_all_frames_of_an_array_are_reconstructed(
    run: Run, tmp_path: Path, frames: np.ndarray, axis: str, option: str
) -> None:
    (tmp_path / "plain.toml").write_text(PLAIN)
    np.save(tmp_path / "frames.npy", frames)
    words = ("recon", tmp_path / "frames.npy", "--recipe", tmp_path / "plain.toml", "--dims", f"{axis},ky,kx")
    every = run(*words, option, "all", "--out", tmp_path / "all")
    assert every.exit_code == 0, every.output
    images = np.load(tmp_path / "all" / "recon.npy")
    assert images.shape == (3, 1, 32, 32)
    brightness = np.abs(images).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(brightness / brightness[0], [1, 2, 3], rtol=0.02)
    (tmp_path / "frames.json").write_text(json.dumps({"dims": [axis, "ky", "kx"]}))
    one = run(*words[:4], option, "1", "--out", tmp_path / "one")
    assert one.exit_code == 0, one.output
    np.testing.assert_allclose(np.load(tmp_path / "one" / "recon.npy"), images[1, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("verb", ["info", "recon", "design", "compare", "convert", "train", "protocol", "export"])
def test_verbs_that_read_take_the_names_of_axes(run: Run, verb: str) -> None:
    help_text = run(verb, "--help").output
    assert ("--dims" in help_text) == (verb != "export")  # which takes the folder of a run


def test_axes_that_the_samples_showed_are_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(PLAIN)
    coils = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(3)).kspace[0]
    np.save(tmp_path / "last.npy", np.moveaxis(coils, 0, -1))
    made = run("recon", tmp_path / "last.npy", "--recipe", tmp_path / "plain.toml", "--out", tmp_path / "out")
    assert made.exit_code == 0 and "(ky, kx, coil)" in made.stderr


def test_files_beside_the_input_have_axes_of_their_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(PLAIN)
    data = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(3))
    np.save(tmp_path / "last.npy", np.moveaxis(data.kspace[0], 0, -1))
    np.savez(tmp_path / "prescan.npz", kspace=data.kspace)
    np.save(tmp_path / "other.npy", np.ones((48, 40), np.float32) + np.eye(48, 40, dtype=np.float32))
    words = ("recon", tmp_path / "last.npy", "--dims", "ky,kx,coil", "--recipe", tmp_path / "plain.toml")
    made = run(*words, "--maps-from", tmp_path / "prescan.npz", "--out", tmp_path / "maps")
    assert made.exit_code == 0, made.output
    beside = ("--with", tmp_path / "other.npy", "--method", "map", "--out", tmp_path / "with")
    made = run(*words, *beside)
    assert made.exit_code in (0, 4), made.output


def test_arrays_in_memory_have_axes_as_files_have(frames: np.ndarray) -> None:
    scan = md.load(frames, dims=("slice", "ky", "kx"))
    assert scan.data.kspace.shape == (3, 1, 32, 32)
    assert md.load(np.stack([frames[0].real, frames[0].imag], -1)).data.kspace.shape == (1, 1, 32, 32)
    coils = load_phantom("brain", shape=(48, 40), noise=0.002, n_coils=4, rng=np.random.default_rng(3)).kspace[0]
    np.testing.assert_array_equal(md.load(np.moveaxis(coils, 0, -1)).data.kspace[0], coils)
    for array, dims in ((frames, ("ky", "kx")), (frames, ("what", "ky", "kx")), (frames[0].real, None)):
        with pytest.raises(InputError):
            md.load(array, dims=dims)
