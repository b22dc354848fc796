"""The environment that `make` builds runs a notebook by the command people know."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.slow
def test_jupytext_executes_a_notebook_and_its_pictures_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = "03_design_a_scan"
    shutil.copy(NOTEBOOKS / f"{story}.py", tmp_path)
    monkeypatch.setenv("MRI_DESIGN_NOTEBOOK_SIZE", "small")
    command = [sys.executable, "-m", "jupytext", "--quiet", "--to", "ipynb", "--execute", f"{story}.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    cells = json.loads((tmp_path / f"{story}.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = [kind for cell in cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert shown.count("image/png") == 3


def test_notebooks_stay_short() -> None:
    for story in sorted(NOTEBOOKS.glob("*.py")):
        assert len(story.read_text(encoding="utf-8").splitlines()) < 150, story.name
