"""A small scan on disk, a quick recipe, and ways to call the command line."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.command_line import Result, called
from tests.quick_recipes import quickened
from tests.read_here import read_here

__all__ = ["read_here"]

REPOSITORY = Path(__file__).parents[2]
QUICK = """
[input]
matrix = 16
[inference]
samples = 6
loops = 8
tolerance = 0.1
"""
COARSE = """
[input]
matrix = 16
[inference]
samples = 4
loops = 2
[reconstruction]
method = "zero-filled"
"""
FAST = """
[input]
matrix = 16
noise = 0.007
[inference]
samples = 2
loops = 1
tolerance = 0.5
[reconstruction]
method = "zero-filled"
"""


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scan.npz (24 x 20, one coil, noise and truth known), its like head.npz, and quick recipes.

    quick.toml has the default prior; quick-local.toml that of the shipped recipe `local`, for what reconstructs many
    times; coarse.toml and fast.toml make zero-filled images, fast.toml without any doubt about the noise.
    """
    folder = tmp_path_factory.mktemp("work")
    for name, phantom in (("scan", "brain"), ("head", "shepp-logan")):
        data = load_phantom(phantom, shape=(24, 20), rng=np.random.default_rng(0))
        known = {"reference": data.reference, "noise_variance": np.float64(data.noise_variance)}
        np.savez(folder / f"{name}.npz", kspace=data.kspace, **known)
    (folder / "quick.toml").write_text(QUICK)
    (folder / "fast.toml").write_text(FAST)
    (folder / "coarse.toml").write_text(COARSE)
    (folder / "quick-local.toml").write_text(quickened("local", QUICK))
    return folder


@pytest.fixture(scope="session")
def run(work: Path) -> Callable[..., Result]:
    """Call the command line in this process; names of files in the work folder become paths, with slices behind or not.

    Its exit code is that of ``code``, or one of them, where any is given. Figures stay empty unless ``drawn`` is asked
    for.
    """

    def call(*words: object, code: int | tuple[int, ...] = (), drawn: bool = False) -> Result:
        known = {path.name for path in work.iterdir()}
        placed = [f"{work}/{word}" if str(word).partition("#")[0] in known else word for word in words]
        result = called(placed, drawn=drawn)
        assert code == () or result.exit_code in (code if isinstance(code, tuple) else (code,)), result.output
        return result

    return call


@pytest.fixture(scope="session")
def spawn(work: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start the command line in a process of its own, in the work folder, with pipes for what goes in and out."""

    def start(*words: object, threads: int = 1) -> "subprocess.Popen[str]":
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-m", "mri_design.cli.main", *map(str, words)]
        return subprocess.Popen(
            command,
            cwd=work,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored of tests in the background
        )

    return start


@pytest.fixture(scope="session")
def designed(work: Path, run: Callable[..., Result]) -> tuple[Path, Result]:
    """A finished design of 12 lines, and what the command said."""
    out = work / "designed"
    arguments = ("design", "scan.npz", "--lines", 12, "--start", 6, "--recipe", "quick.toml")
    return out, run(*arguments, "--out", out)
