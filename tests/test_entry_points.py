"""Parts of other installed packages are found by their entry points, without an import in the script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mri_design as md
from mri_design.registry import BLOCKS, SITES

MODULE = """
from dataclasses import dataclass
import numpy as np
import mri_design as md
from mri_design.design import Choice, Strategy
from mri_design.sites import Laplace

def wide(tau):
    return Laplace(tau / 2)

@dataclass(frozen=True)
class LowestFirst(Strategy):
    name: str = "lowest-first"
    needs_posterior = False
    encodings = ("lines",)

    def choose(self, view, rng):
        return Choice(int(np.flatnonzero(view.candidates.remaining)[0]))

def opened(path, options):
    kspace = np.frombuffer(path.read_bytes()[4:], np.complex64).reshape(1, 1, 8, 8)
    return md.KSpaceData(kspace, np.any(kspace, axis=(0, 1, 3)), name=path.stem)

reader = md.formats.Reader("toys", lambda path: path.read_bytes().startswith(b"TOY1"), opened)
"""
ENTRY_POINTS = """
[mri_design.sites]
wide = toy_parts:wide
laplace = toy_parts:wide
[mri_design.strategies]
lowest-first = toy_parts:LowestFirst
damaged = toy_parts:missing
[mri_design.readers]
toy = toy_parts:reader
"""
SCRIPT = """
import json, sys
import numpy as np
import mri_design as md
from mri_design.registry import SITES, Shipped

md.Recipe.of({"prior": [{"kind": "pixels", "rate": 1.0}]})
early = "toy_parts" in sys.modules
recipe = md.Recipe.of({"prior": [{"kind": "pixels", "rate": 1.0, "site": "wide"}]})
names = [type(md.make_strategy("lowest-first")).__name__, "lowest-first" in md.strategy_names()]
scan = md.formats.read("scan.toy")
print(json.dumps([early, recipe.prior[0].site, *names, scan.name, isinstance(SITES["laplace"], Shipped)]))
"""


@pytest.mark.slow
def test_parts_of_an_installed_package_are_known_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "toy_parts.py").write_text(MODULE)
    (tmp_path / "toy_parts-1.0.dist-info").mkdir()
    (tmp_path / "toy_parts-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: toy-parts\nVersion: 1.0\n")
    (tmp_path / "toy_parts-1.0.dist-info/entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "scan.toy").write_bytes(b"TOY1" + b"\1" * 512)
    path = os.pathsep.join([str(tmp_path), str(Path(md.__file__).parents[1])])
    command, around = [sys.executable, "-c", SCRIPT], {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, cwd=tmp_path, env=around, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [False, "wide", "LowestFirst", True, "scan", True]
    assert "toy_parts:missing" in ended.stderr


@pytest.mark.parametrize(
    ("register", "name"),
    [
        (md.register_site, next(iter(SITES))),
        (md.register_block, next(iter(BLOCKS))),
        (md.register_strategy, "calibrated"),
        (lambda name, make: md.register_trajectory(name, make, unit="spoke"), "radial"),
    ],
)
def test_a_part_of_this_package_is_not_replaced(register: object, name: str) -> None:
    with pytest.raises(md.InputError):
        register(name, lambda *_: None)  # type: ignore[operator]
