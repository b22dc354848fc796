"""A folder with the files that the pages speak of, small, and figures without contents."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest

import mri_design as md
from mri_design.runs.compare import WEIGHTS
from tests.docs.pages import REPOSITORY
from tests.quick_recipes import quickened
from tests.read_here import read_here
from tests.scan.io.conftest import MrdFile
from tests.simulated_scanner import stream_of
from tests.undrawn import undrawn

__all__ = ["read_here"]

LINES, SAMPLES = 32, 24
"""Side of the small scans; the pages' examples are for scans eight times as large."""
SMALL = """
[input]
matrix = 32
[inference]
samples = 4
variances = "control-variate:0.1"
loops = 4
tolerance = 0.3
solver = "automatic:3e-3"
"""


def _write_heads(path: Path, count: int, seed: int) -> None:
    """A fastMRI file of random heads with a little noise."""
    rng = np.random.default_rng(seed)
    heads = np.stack([md.scan.random_head((LINES, SAMPLES), rng) for _ in range(count)])
    axes = (-2, -1)
    kspace = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(heads, axes), norm="ortho"), axes)
    noise = rng.standard_normal(kspace.shape) + 1j * rng.standard_normal(kspace.shape)
    kspace += 0.01 * np.percentile(np.abs(heads), 99.5) * noise
    with h5py.File(path, "w") as file:
        file["kspace"] = kspace.swapaxes(-1, -2).astype(np.complex64)  # phase encoding along the columns


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, made once."""
    folder = tmp_path_factory.mktemp("pages")
    for seed, (name, count) in enumerate({"scan.h5": 1, "heads.h5": 2, "other.h5": 1}.items()):
        _write_heads(folder / name, count, seed)
    _write_heads(folder / "earlier.h5", 1, 0)
    (folder / "volunteers").mkdir()
    for seed in (7, 8):
        _write_heads(folder / "volunteers" / f"{seed}.h5", 1, seed)
    coils = md.load_phantom("brain", shape=(LINES, SAMPLES), n_coils=3, rng=np.random.default_rng(0))
    np.savez(folder / "coils.npz", kspace=coils.kspace, noise_variance=np.float64(coils.noise_variance or 0))
    assert coils.coil_maps is not None
    np.save(folder / "maps.npy", coils.coil_maps[0])
    (folder / "readouts.mrd").write_bytes(stream_of(coils.kspace[0, :1]))
    raw = MrdFile(folder, nx=SAMPLES, ny=LINES, rx=SAMPLES)
    for number in range(2):
        raw.add_scan(coils.kspace[:, :1], repetition=number)
    raw.write("dynamic.h5")
    (folder / "small.toml").write_text(SMALL)
    (folder / "small-local.toml").write_text(quickened("local", SMALL))
    return folder


@pytest.fixture
def desk(tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder with these files, and the place where a page's code runs."""
    for file in written.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def blank_figures() -> Iterator[None]:
    """No figure is drawn."""
    with undrawn():
        yield


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """No report opens in the browser of the machine."""
    monkeypatch.setattr("webbrowser.open", lambda _: True)


@pytest.fixture(autouse=True)
def short_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textbook rivals of `compare` choose between two weights and take few steps: hundreds of images otherwise."""
    monkeypatch.setattr("mri_design.runs.compare.WEIGHTS", WEIGHTS[2:4])
    for name in ("ITERATIONS", "SHIFTED"):
        monkeypatch.setattr(f"mri_design.estimation.compressed_sensing.{name}", 10)


@pytest.fixture
def build_pages() -> ModuleType:
    """The script of `make docs`, whose file is no module of the package."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("build_pages", REPOSITORY / "docs" / "build_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
