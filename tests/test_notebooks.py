"""The environment that `make` builds runs a notebook by the command people know."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
