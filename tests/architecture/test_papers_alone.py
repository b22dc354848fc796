"""The packages of the papers need few libraries and nothing of the shell; import contracts see what breaks them."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAPERS = ("operators", "readouts", "sites", "krylov", "model", "estimation")
PAPERS += ("variances", "inference", "calibration", "design", "evidence", "glm")
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "pywt", "lazy_loader")
SHELL = ("scan", "sequences", "experiment", "evaluation", "runs", "cli", "interactive")
ALONE = """
import importlib, pkgutil, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        first, _, rest = name.partition(".")
        known = first in {*sys.stdlib_module_names, *libraries, "mri_design"} or first.startswith("_")
        if not known or (first == "mri_design" and rest.partition(".")[0] in shell):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Refused())
for package in papers:
    front = importlib.import_module(f"mri_design.{package}")
    for module in pkgutil.walk_packages(getattr(front, "__path__", []), f"{front.__name__}."):
        importlib.import_module(module.name)

import numpy as np
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.slice import SliceModel

rng = np.random.default_rng(0)
image = np.kron(rng.random((4, 3)), np.ones((4, 4)))
clean = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(image), norm="ortho"))
noise = 0.01 * (rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape))
one = SliceModel((clean + noise)[None].astype(np.complex64), np.ones(16, bool), 1e-4)
posterior = DoubleLoop().infer(one.model([2, 5, 6, 7, 8, 9, 10, 12]), rng)
error, bars = np.abs(posterior.mean - image), np.sqrt(posterior.image_variances)
assert np.linalg.norm(error) < 0.5 * np.linalg.norm(image) and (bars > 0).all() and np.isfinite(bars).all()
"""


def test_every_module_of_the_papers_is_imported_and_a_model_is_solved_with_five_libraries() -> None:
    names = f"papers, libraries, shell = {PAPERS}, {LIBRARIES}, {SHELL}"
    done = subprocess.run([sys.executable, "-c", names + ALONE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def written(folder: Path, files: dict[str, str]) -> None:
    """Modules with what they import, and the packages around them."""
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for package in path.relative_to(folder).parents[:-1]:
            (folder / package / "__init__.py").touch()


def test_contracts_see_an_import_upwards_a_circle_in_the_depth_and_a_library_out_of_its_place(tmp_path: Path) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [layer for line in contracts[0]["layers"] for layer in line.split(" | ")]
    written(tmp_path, {f"mri_design/{layer}/part": "" for layer in layers})
    sound = {"scan/io/hdf5": "import h5py, ismrmrd", "cli/main": "import cyclopts, rich"}
    sound["evaluation/plots/images"] = "import matplotlib"
    written(tmp_path / "mri_design", sound)
    assert broken(tmp_path) == set()
    breaches = {"model/part": "import mri_design.scan.part", "design/part": "import sigpy, matplotlib"}
    breaches |= {"scan/io/one": "import mri_design.scan.io.two", "scan/io/two": "import mri_design.scan.io.one"}
    breaches |= {"runs/part": "import h5py, cyclopts, random"}
    written(tmp_path / "mri_design", breaches)
    assert broken(tmp_path) == {contract["name"] for contract in contracts}


def broken(folder: Path) -> set[str]:
    """Names of the contracts that the package in a folder breaks."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert any(line.startswith("Contracts: ") for line in lines), done.stdout + done.stderr
    return {line.removesuffix(" BROKEN") for line in lines if line.endswith(" BROKEN")}
