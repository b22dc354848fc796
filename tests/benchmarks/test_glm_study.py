"""The frame of the studies on generalized linear models: targets that follow from numbers, rows of other parts kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.benchmarks.conftest import rows_of

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_verdicts_follow_from_the_numbers(glm):
    target = glm("targets").Target
    assert target("error", 0.1, 0.1, "1").row("p") == {
        "name": "p: error", "target": "<= 0.1", "measured": 0.1, "unit": "1", "met": True,
    }  # fmt: skip
    assert not target("error", 0.1, 0.2, "1").row("p")["met"]
    assert target("speed", 10, 11, "times", at_least=True).row("p")["met"]
    assert not target("speed", 10, 9, "times", at_least=True).row("p")["met"]
    assert not target("speed", 10, None, "times", at_least=True).row("p")["met"]
    assert not target("speed", 10, float("nan"), "times", at_least=True).row("p")["met"]
    assert target("count", None, 3, "1").row("p")["target"] == "reported"


def test_rows_of_parts_that_did_not_run_are_kept(glm, tmp_path):
    targets = glm("targets")
    path, parts = tmp_path / "targets.csv", ["first", "second"]
    one, two = targets.Target("bound", 1e-6, 386.9484012345, "nats"), targets.Target("b", 1, 0.5, "1")
    targets.write_targets(path, parts, {"second": [two]})
    targets.write_targets(path, parts, {"first": [one, two]})
    targets.write_targets(path, parts, {"first": [one]})
    assert path.read_text(encoding="utf-8") == (
        "name,target,measured,unit,met\nfirst: bound,<= 1e-06,386.9484012,nats,no\nsecond: b,<= 1,0.5,1,yes\n"
    )


def test_a_part_leaves_its_four_files_and_no_machine_path(glm, tmp_path):
    given = tmp_path / "a9a"
    given.write_text("+1 1:1\n", encoding="utf-8")
    folder = glm("part_folder").PartFolder(tmp_path / "out", "active-learning")
    rows = [{"seed": 0, "error": 0.25}]
    folder.write("It works.", rows, {"curves.png": Figure()}, settings={"seeds": [0]}, inputs=[given])
    assert {path.name for path in folder.path.iterdir()} == {"README.md", "table.csv", "curves.png", "manifest.json"}
    manifest = json.loads((folder.path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["inputs"][0]["name"] == "a9a" and len(manifest["inputs"][0]["sha256"]) == 64
    assert rows_of(folder.path / "table.csv") == [{"seed": "0", "error": "0.25"}]
    texts = [path.read_text(encoding="utf-8") for path in folder.path.iterdir() if path.suffix != ".png"]
    assert not any(str(tmp_path) in text for text in texts)


def test_a_smoke_run_is_refused_the_folder_of_the_full_study():
    command = [sys.executable, str(BENCHMARKS / "glm_study.py"), "--quick"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and "--out FOLDER" in done.stderr
