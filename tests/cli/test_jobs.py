"""Results do not depend on who computes them: one process, several, or the workers of a dask cluster."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run, files

QUICK = ("--recipe", "quick-local.toml")
PLANE = """
[simulation]
matrix = 16
[inference]
samples = 2
loops = 2
tolerance = 0.1
[reconstruction]
method = "zero-filled"
[design]
encoding = "plane"
"""


@pytest.fixture(scope="module")
def commands(work: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, ...]]:
    folder = tmp_path_factory.mktemp("volume")
    kspace = [load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(seed)).kspace[0] for seed in (0, 1)]
    np.save(folder / "volume.npy", np.stack(kspace))
    (folder / "plane.toml").write_text(PLANE)
    plane = ("--slices", "all", "--samples", 50, "--block", 20, "--recipe", folder / "plane.toml")
    tested = ("--test", "head.npz", "--against", "low-pass", "--strategy", "expected-error", "--no-report")
    return {
        "design": ("design", folder / "volume.npy", *plane, "--no-report"),
        "protocol": ("protocol", "scan.npz", "--lines", 8, *tested, *QUICK, "--method", "zero-filled"),
    }


@pytest.fixture(scope="module")
def alone(run: Run, commands: dict[str, tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    for verb, command in commands.items():
        run(*command, "--jobs", 1, "--out", folder / verb, code=(0, 4))
    return folder


@pytest.mark.parametrize("verb", ["design", "protocol"])
def test_two_processes_give_the_same_bytes(
    run: Run, commands: dict[str, tuple[object, ...]], alone: Path, tmp_path: Path, verb: str
) -> None:
    run(*commands[verb], "--jobs", 2, "--out", tmp_path / "two", code=(0, 4))
    assert files(tmp_path / "two") == files(alone / verb) != {}


def test_a_dask_cluster_gives_the_same_bytes(
    run: Run, commands: dict[str, tuple[object, ...]], alone: Path, address: str, tmp_path: Path
) -> None:
    run(*commands["protocol"], "--executor", address, "--out", tmp_path / "far", code=(0, 4))
    assert files(tmp_path / "far") == files(alone / "protocol") != {}
