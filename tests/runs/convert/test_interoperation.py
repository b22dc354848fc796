"""A designed mask, data and coil maps lead BART, SigPy and plain linear algebra to the same image."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, UsageError, load_phantom, read
from mri_design.runs.convert import convert_file
from mri_design.runs.export import ExportRequest, export_run
from mri_design.runs.made_files import write_made_files
from mri_design.scan.centred_fft import to_kspace
from mri_design.scan.io.atomic import write_npz
from mri_design.scan.io.bart import read_pair

SHAPE, LINES, WEIGHT = (16, 12), [1, 3, 5, 6, 7, 8, 9, 10, 13, 15], 0.05
needs_bart = pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART, a system package")


def _bart(folder: Path, *words: str) -> None:
    subprocess.run(["bart", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60)


@pytest.fixture
def data(tmp_path: Path) -> KSpaceData:
    """A scan of some lines as scan.cfl, its maps as scan_maps.cfl, and the mask of a run as mask.cfl."""
    scan = load_phantom("brain", shape=SHAPE, n_coils=4, rng=np.random.default_rng(0))
    measured = np.zeros(SHAPE[0], dtype=bool)
    measured[LINES] = True
    scan = replace(scan, kspace=np.where(measured[:, np.newaxis], scan.kspace, 0), measured=measured)
    assert scan.coil_maps is not None
    write_npz(tmp_path / "scan.npz", {"kspace": scan.kspace, "coil_maps": scan.coil_maps})
    write_made_files(convert_file(str(tmp_path / "scan.npz"), tmp_path / "scan.cfl", Recipe()))
    (tmp_path / "run").mkdir()
    np.save(tmp_path / "run/mask.npy", measured)
    np.save(tmp_path / "run/recon.npy", np.zeros(SHAPE, np.complex64))
    (tmp_path / "run/manifest.json").write_text(json.dumps({"lines": LINES, "settings": {}}))
    write_made_files(export_run(ExportRequest(tmp_path / "run", "cfl", tmp_path / "mask.cfl")))
    return scan


@pytest.fixture
def expected(data: KSpaceData) -> np.ndarray:
    """The image that minimises |A u - y|^2 + weight |u|^2, from the normal equations."""
    assert data.coil_maps is not None
    pixels = np.eye(SHAPE[0] * SHAPE[1]).reshape(-1, 1, *SHAPE)
    columns = to_kspace(data.coil_maps[0] * pixels)[:, :, data.measured].reshape(len(pixels), -1)
    precision = columns.conj() @ columns.T + WEIGHT * np.eye(len(pixels))
    solved: np.ndarray = np.linalg.solve(precision, columns.conj() @ data.kspace[0][:, data.measured].ravel())
    return solved.reshape(SHAPE)


@needs_bart
def test_bart_s_transform_of_the_file_is_ours(data: KSpaceData, tmp_path: Path) -> None:
    _bart(tmp_path, "fft", "-u", "-i", "3", "scan", "coil_images")
    images = read_pair(tmp_path / "coil_images").squeeze().T
    np.testing.assert_allclose(to_kspace(images), data.kspace[0], atol=1e-5 * np.abs(data.kspace).max())


@needs_bart
def test_bart_reconstructs_from_mask_data_and_maps(data: KSpaceData, expected: np.ndarray, tmp_path: Path) -> None:
    options = ["-d0", "-S", "-l2", "-r", str(WEIGHT), "-i", "200", "-p", "mask"]
    _bart(tmp_path, "pics", *options, "scan", "scan_maps", "image")
    image = read_pair(tmp_path / "image").squeeze().T
    assert np.linalg.norm(image - expected) < 1e-3 * np.linalg.norm(expected)


@pytest.mark.slow
def test_sigpy_reconstructs_from_the_same_files(data: KSpaceData, expected: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("sigpy")
    from sigpy.mri.app import SenseRecon

    mask, scan, maps = (read_pair(tmp_path / name).squeeze().T for name in ("mask", "scan", "scan_maps"))
    solved = SenseRecon(scan, maps, lamda=WEIGHT, weights=mask.real, max_iter=200, show_pbar=False).run()
    assert np.linalg.norm(solved - expected) < 1e-3 * np.linalg.norm(expected)


@needs_bart
def test_a_plane_of_bart_goes_there_and_back(tmp_path: Path) -> None:
    """BART undersamples and reconstructs the plane that `convert` wrote, and its mask chooses our samples."""
    scan = load_phantom("brain", shape=(16, 12), n_coils=4, rng=np.random.default_rng(0))
    write_npz(tmp_path / "scan.npz", {"kspace": scan.kspace, "coil_maps": scan.coil_maps})
    plane = Recipe().replacing("design", encoding="plane")
    write_made_files(convert_file(str(tmp_path / "scan.npz"), tmp_path / "plane.cfl", plane))
    assert read_pair(tmp_path / "plane").shape[:4] == read_pair(tmp_path / "plane_maps").shape[:4] == (1, 16, 12, 4)
    _bart(tmp_path, "pics", "-d0", "-S", "-l2", "-r", "1e-4", "-i", "100", "plane", "plane_maps", "image")
    image = read_pair(tmp_path / "image").reshape(16, 12)
    assert scan.reference is not None
    assert np.linalg.norm(image - scan.reference[0]) < 0.1 * np.linalg.norm(scan.reference)
    _bart(tmp_path, "fft", "-u", "6", "image", "again")  # rows and columns are BART's axes 1 and 2
    back = read(tmp_path / "again.cfl")
    assert isinstance(back, KSpaceData) and "plane (ky, kz)" in back.card["volume"]
    np.testing.assert_allclose(back.kspace[0, 0], to_kspace(image), atol=1e-4 * np.abs(back.kspace).max())


def test_a_volume_goes_to_bart_and_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    stored = (rng.standard_normal((3, 8, 6, 12)) + 1j * rng.standard_normal((3, 8, 6, 12))).astype(np.complex64)
    stored[:, 2, 3] = 0
    np.save(tmp_path / "volume.npy", stored)
    (tmp_path / "volume.json").write_text(json.dumps({"dims": ["coil", "ky", "kz", "kx"], "noise_variance": 0.5}))
    write_made_files(convert_file(str(tmp_path / "volume.npy"), tmp_path / "bart.cfl", Recipe()))
    np.testing.assert_allclose(read_pair(tmp_path / "bart").squeeze(), stored.transpose(3, 1, 2, 0), atol=1e-5)
    first, again = read(tmp_path / "volume.npy"), read(tmp_path / "bart.cfl")
    assert isinstance(first, KSpaceData) and isinstance(again, KSpaceData) and again.noise_variance == 0.5
    np.testing.assert_allclose(again.kspace, first.kspace, atol=1e-5)
    assert np.argwhere(~again.samplings[0].samples).tolist() == [[2, 3]]
    write_made_files(convert_file(str(tmp_path / "bart.cfl"), tmp_path / "one.cfl", Recipe(), index=4))
    assert read_pair(tmp_path / "one").shape[:4] == (1, 8, 6, 3)
    alone = read(tmp_path / "one.cfl")  # noise alone, which does not look like a plane: the card says it
    assert isinstance(alone, KSpaceData)
    np.testing.assert_allclose(alone.kspace, first.kspace[4:5], atol=1e-5)


def test_slices_are_no_plane(tmp_path: Path) -> None:
    kspace = np.ones((3, 1, 8, 6), dtype=np.complex64)
    np.save(tmp_path / "slices.npy", kspace)
    plane = Recipe().replacing("design", encoding="plane")
    with pytest.raises(UsageError, match=r"3 slices, and a plane .* is one: choose it with --slice"):
        convert_file(str(tmp_path / "slices.npy"), tmp_path / "a.cfl", plane)
    convert_file(str(tmp_path / "slices.npy"), tmp_path / "a.cfl", plane, index=1)
