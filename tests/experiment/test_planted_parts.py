"""A strategy and a family of trajectories, each one file and one line of registration in a copy of the package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mri_design

PACKAGE = Path(mri_design.__file__).parent
STRATEGY = '''"""The lines farthest from the centre of k-space."""

from dataclasses import dataclass

import numpy as np

from mri_design.design.blocks import ChoosesByScore, Scores


@dataclass(frozen=True, kw_only=True)
class Outermost(ChoosesByScore):
    """The outermost lines first."""

    name: str = "outermost"
    needs_posterior = False

    def default_start(self, readouts, target, n_coils=1):
        return readouts.start(target, 4)

    def scored(self, view, rng):
        return Scores(np.abs(view.candidates.frequencies).astype(float))
'''
TRAJECTORY = '''"""Rosettes: petals through the centre of k-space."""

import numpy as np


def petal(settings, matrix, count):
    """One petal that begins and ends at DC."""
    turn = np.linspace(0, np.pi, 2 * matrix, endpoint=False)
    radius = matrix / 2 * np.sin(turn)
    return np.stack([radius * np.sin(turn / 2), radius * np.cos(turn / 2)], axis=1)
'''


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a package with both parts."""
    folder = tmp_path_factory.mktemp("planted")
    package = folder / "mri_design"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    if not (package / "phantoms").exists():
        shutil.copytree(PACKAGE.parent / "phantoms", folder / "phantoms")
    (package / "design" / "strategies" / "outermost.py").write_text(STRATEGY)
    with (package / "experiment" / "strategy_names.py").open("a") as names:
        names.write('_ship("outermost", "outermost", "Outermost", random=False)\n')
    (package / "experiment" / "trajectories" / "rosettes.py").write_text(TRAJECTORY)
    with (package / "kinds.py").open("a") as kinds:
        kinds.write(
            'KINDS["rosette"] = Kind("petal", "shots", "petals", 2 * math.pi, '
            'Shipped("experiment.trajectories.rosettes", "petal"))\n'
        )
    return folder


def run(folder: Path, *words: str) -> str:
    """The program of the copy, in a process of its own."""
    recipe = folder / "small.toml"
    recipe.write_text("[simulation]\nmatrix = 16\n")
    command = [sys.executable, "-m", "mri_design.cli.main", *words, "--recipe", str(recipe)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_planted_strategy_designs_and_is_reported(planted: Path) -> None:
    run(planted, "design", "phantom:brain", "--lines", "6", "--strategy", "outermost", "--out", "outer")
    rows = (planted / "outer" / "lines.csv").read_text().splitlines()
    chosen = [int(row.split(",")[rows[0].split(",").index("line")]) for row in rows[1:]]
    assert chosen[-2:] == [0, 1]
    assert "outermost" in (planted / "outer" / "report.html").read_text()


@pytest.mark.slow
def test_a_planted_trajectory_is_designed_reconstructed_and_reported(planted: Path) -> None:
    pytest.importorskip("finufft")
    words = ("design", "phantom:brain", "--encoding", "rosette", "--shots", "5", "--angles", "10", "--out", "petals")
    run(planted, *words)
    assert "petal" in (planted / "petals" / "report.html").read_text()
    run(planted, "recon", "petals/trajectory.npz", "--out", "image")
    assert (planted / "image" / "report.html").exists()
