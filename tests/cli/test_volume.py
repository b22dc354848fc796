"""`recon` of a 3-D Cartesian scan in an MRD file: planes (ky, kz), one mask for all readout positions."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import Result

from mri_design import load_phantom
from mri_design.runs.stored_run import read_run
from tests.cli.folders import rows
from tests.scan.io.conftest import MrdFile

pytest.importorskip("ismrmrd")
Run = Callable[..., Result]
NY, NZ, NX = 16, 12, 4
RECIPE = """
[noise]
variance = 4.9e-5
[reconstruction]
method = "map"
[[prior]]
kind = "pixels"
scale = 100.0
tau_limit = 0.4
[[prior]]
kind = "differences"
scale = 10.0
"""


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """A head (x, y, z) whose brightness falls along the readout."""
    plane = load_phantom("brain", shape=(NY, NZ), noise=0.0, rng=np.random.default_rng(0)).reference
    assert plane is not None
    return np.linspace(1.0, 0.7, NX)[:, None, None] * plane[0]


@pytest.fixture(scope="module")
def mask() -> np.ndarray:
    flags = np.random.default_rng(0).uniform(size=(NY, NZ)) < 0.5
    flags[4:12, 3:9] = True
    return flags


def centred(u: np.ndarray, axis: int) -> np.ndarray:
    return np.fft.fftshift(np.fft.fft(np.fft.ifftshift(u, axis), axis=axis, norm="ortho"), axis)


@pytest.fixture(scope="module")
def files(images: np.ndarray, mask: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The whole volume, and one of which the readouts of the mask were measured only."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("volumes")
    volume = centred(centred(centred(images, 1), 2), 0).transpose(1, 2, 0)  # (ky, kz, kx)
    volume = volume + 0.007 * (rng.standard_normal(volume.shape) + 1j * rng.standard_normal(volume.shape))
    paths = []
    for name, flags in (("whole", np.ones_like(mask)), ("masked", mask)):
        raw = MrdFile(folder, nx=NX, ny=NY, nz=NZ, rx=NX, fovz=60)
        for ky, kz in np.argwhere(flags):
            raw.add(volume[None, ky, kz].astype(np.complex64), kspace_encode_step_1=ky, kspace_encode_step_2=kz)
        paths.append(raw.write(f"{name}.h5"))
    return paths[0], paths[1]


def test_info_tells_that_slices_are_readout_positions(run: Run, files: tuple[Path, Path]) -> None:
    text = " ".join(run("info", files[1]).output.split())
    assert f"{NY} x {NZ} phase encodes (ky, kz)" in text and "readout samples" not in text
    assert f"{NX} readout positions, each a plane (ky, kz) of ({NY}, {NZ})" in text


@pytest.mark.slow
def test_a_position_is_reconstructed_from_the_mask_of_all(
    run: Run, files: tuple[Path, Path], images: np.ndarray, mask: np.ndarray, tmp_path: Path
) -> None:
    recipe, out = tmp_path / "map.toml", tmp_path / "x"
    recipe.write_text(f"{RECIPE}[design]\nencoding = 'plane'\n")
    result = run("recon", files[1], "--slice", 3, "--recipe", recipe, "--out", out)
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(np.load(out / "mask.npy"), mask)
    found, true = np.abs(np.load(out / "recon.npy")), np.abs(images[3])
    assert np.linalg.norm(found - true) < 0.15 * np.linalg.norm(true)


@pytest.mark.slow
def test_the_mask_as_a_file_gives_the_image_of_the_scan_with_holes(
    run: Run, files: tuple[Path, Path], mask: np.ndarray, tmp_path: Path
) -> None:
    recipe = tmp_path / "map.toml"
    recipe.write_text(RECIPE)
    np.save(tmp_path / "mask.npy", mask)
    words = ("--slice", 2, "--recipe", recipe)
    masked = run("recon", files[0], "--mask", tmp_path / "mask.npy", *words, "--out", tmp_path / "masked")
    holed = run("recon", files[1], "--mask", tmp_path / "mask.npy", *words, "--out", tmp_path / "holed")
    assert masked.exit_code == holed.exit_code == 0, masked.output + holed.output
    found = [np.load(tmp_path / name / "recon.npy") for name in ("masked", "holed")]
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    errors = [float(row["relative_l2"]) for row in rows(tmp_path / "masked" / "metrics.csv")]
    assert errors[0] < 0.15 and errors[0] < 0.7 * errors[1]  # MAP and zero-filled, against the whole scan's image
    assert [row["relative_l2"] for row in rows(tmp_path / "holed" / "metrics.csv")] == ["", ""]


def test_a_mask_that_the_scan_does_not_hold_is_refused(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.ones((NY, NZ), dtype=bool))
    result = run("recon", files[1], "--mask", tmp_path / "mask.npy", "--out", tmp_path / "refused")
    assert result.exit_code == 3 and "hold no data" in " ".join(result.output.split())


def test_info_recon_and_export_count_the_samples_of_a_plane_alike(
    run: Run, files: tuple[Path, Path], mask: np.ndarray, tmp_path: Path
) -> None:
    with h5py.File(files[0], "r") as file:
        stored = {name: file["dataset"][name][()] for name in ("xml", "data")}
    every_second = stored["data"]["head"]["idx"]
    every_second = (every_second["kspace_encode_step_1"] % 2 == 0) & (every_second["kspace_encode_step_2"] % 2 == 0)
    half = tmp_path / "half.h5"
    with h5py.File(half, "w") as file:
        file["dataset/xml"] = stored["xml"]
        file.create_dataset("dataset/data", data=stored["data"][every_second], dtype=stored["data"].dtype)
    for path, count in ((files[1], int(mask.sum())), (half, int(every_second.sum()))):
        told = run("info", path).stdout
        assert f"\nsamples         {count} of {NY * NZ}, " in told and f"acceleration {NY * NZ / count:.3g}" in told
        out = tmp_path / path.stem
        assert run("recon", path, "--slice", 2, "--recipe", "fast.toml", "--out", out).exit_code == 0
        assert f"\nsamples         {count}: " in run("info", out).stdout
        assert read_run(out).measured == f"{count} of {NY * NZ} samples"
