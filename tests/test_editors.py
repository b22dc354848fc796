"""What type checkers see of the public names, which are looked up when first used."""

import json
import subprocess
import sys
from pathlib import Path

import jedi
import pytest

REPOSITORY = Path(__file__).parents[1]
SCRIPT = """import mri_design as md

scan = md.load("x")
image = scan.design(lines=20).reconstruct()
reveal_type(scan)
reveal_type(image.std)
reveal_type(md.operators.Dense)
scan.no_such_method()
"""


def test_mypy_sees_a_scan(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [str(Path(sys.executable).with_name("mypy")), "--cache-dir", str(REPOSITORY / ".mypy_cache")]
    command.append(str(tmp_path / "script.py"))
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=300).stdout
    revealed = [line.rpartition('type is "')[2].rstrip('"') for line in told.splitlines() if "Revealed" in line]
    assert revealed[0] == "mri_design.interactive.scan.LoadedScan"
    assert revealed[1].startswith("numpy.ndarray") and "mri_design.operators.elementary.Dense" in revealed[2]
    assert "no_such_method" in told and "[attr-defined]" in told


def test_jedi_sees_a_scan_and_completes_it() -> None:
    completed = "image.to_ni\nmd.lo\nmd.sites.Lapl\nmd.exchange.to_ba\n"
    script = jedi.Script(SCRIPT + completed, project=jedi.Project(REPOSITORY))
    (scan,) = script.infer(3, 2)
    assert scan.full_name == "mri_design.interactive.scan.LoadedScan"
    assert [one.name for one in script.complete(9, 11)] == ["to_nifti"]
    assert "load" in [one.name for one in script.complete(10, 5)]
    assert [one.name for one in script.complete(11, 13)] == ["Laplace"]
    assert [one.name for one in script.complete(12, 17)] == ["to_bart"]


STORY = """
# %%
# %matplotlib inline
import numpy as np

import mri_design as md

md.load("phantom:t2w", matrix=16).reconstruct(np.ones(16, dtype=bool), method="zero-filled").plot()
"""


@pytest.mark.slow
def test_jupytext_executes_a_notebook_and_its_pictures_are_seen(tmp_path: Path) -> None:
    (tmp_path / "story.py").write_text(STORY)
    command = [sys.executable, "-m", "jupytext", "--quiet", "--to", "ipynb", "--set-kernel", "python3", "--execute"]
    ended = subprocess.run([*command, "story.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    cells = json.loads((tmp_path / "story.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = [kind for cell in cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert shown.count("image/png") == 1
