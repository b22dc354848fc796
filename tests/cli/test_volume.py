"""`recon` of a 3-D Cartesian scan in an MRD file: planes (ky, kz), one mask for all readout positions."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run
from tests.scan.io.conftest import MrdFile

pytest.importorskip("ismrmrd")
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


@pytest.mark.slow
def test_a_position_is_reconstructed_from_the_mask_of_all(
    run: Run, files: tuple[Path, Path], images: np.ndarray, mask: np.ndarray, tmp_path: Path
) -> None:
    recipe, out = tmp_path / "map.toml", tmp_path / "x"
    recipe.write_text(f"{RECIPE}[design]\nencoding = 'plane'\n")
    run("recon", files[1], "--slice", 3, "--recipe", recipe, "--out", out, code=0)
    np.testing.assert_array_equal(np.load(out / "mask.npy"), mask)
    found, true = np.abs(np.load(out / "recon.npy")), np.abs(images[3])
    assert np.linalg.norm(found - true) < 0.15 * np.linalg.norm(true)
