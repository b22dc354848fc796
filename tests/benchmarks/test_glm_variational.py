"""Study part variational: a smoke run leaves its files, its engines agree, and its kernel is the one it says."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.conftest import rows_of

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_a_smoke_run_leaves_tables_figures_and_targets(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "glm_study.py"), "--quick", "--only", "variational"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    folder = tmp_path / "variational"
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "table.csv", "bounds.csv", "error-bars.csv", "manifest.json"),
        *("bound-against-time.png", "coverage.png"),
    }
    table = rows_of(folder / "table.csv")
    assert len(table) == 5
    converged = [row for row in table if row["ended"] == "converged" and "double loop" not in row["engine"]]
    assert len(converged) >= 3
    assert all(float(row["above the best, relative"]) < 1e-5 for row in converged)
    looser = next(row for row in table if "double loop" in row["engine"])
    assert float(looser["above the best, relative"]) > 1e-5
    assert all(len(row["-log bound"].split(".")[1]) == 10 for row in table)  # enough digits to tell 1e-6 by
    assert any(float(row["above the best, relative"]) > 0 for row in converged)
    targets = rows_of(tmp_path / "targets.csv")
    assert targets and all(row["name"].startswith("variational: ") for row in targets)
    assert str(tmp_path) not in (folder / "README.md").read_text(encoding="utf-8")


def test_the_kernel_and_its_model(glm):
    process = glm("gaussian_process")
    points, labels = process.digits(None, 6)
    K = process.kernel(points, 1.0, 0.5)
    distance = np.sum((points[1] - points[4]) ** 2)
    assert K[1, 4] == pytest.approx(np.exp(1.0) * np.exp(-0.5 * distance / np.exp(2.0)))
    model = process.classification(points, labels, 1.0, 0.5)
    root = model.blocks[0].analysis.matrix
    np.testing.assert_allclose(root @ root.T, K, atol=1e-6)


def test_one_converged_engine_alone_is_no_agreement(glm):
    module = glm("variational")
    rows = [
        {"case": "c", "engine": "one", "above the best, relative": 0.0, "ended": "converged"},
        {"case": "c", "engine": "two", "above the best, relative": 2e-6, "ended": "stopped at 30 s"},
    ]
    assert [target.row("")["met"] for target in module.targets_of(rows, [], [])] == [False]
    rows[1]["ended"] = "converged"
    (both,) = [target.row("") for target in module.targets_of(rows, [], [])]
    assert both["measured"] == 2e-6 and not both["met"]
    rows[1]["above the best, relative"] = 1e-7
    assert [target.row("")["met"] for target in module.targets_of(rows, [], [])] == [True]


def test_the_peer_is_held_to_its_fastest_rate_that_gets_there(glm):
    peer = glm("gpytorch_peer")
    rows = [{"case": "c", "engine": peer.NATURAL, "rate": None, "-log bound": "10", "CPU s": 0.5}]
    assert peer.times_as_long(rows, "c") is None
    for rate, bound, seconds in ((1.0, "12", 0.1), (0.5, "10.0004", 4.0), (0.1, "10", 9.0)):
        rows.append({"case": "c", "engine": "gpytorch", "rate": rate, "-log bound": bound, "CPU s": seconds})
    assert peer.times_as_long(rows, "c") == 8.0  # the quickest one stopped far from the others' bound
    assert peer.times_as_long(rows, "d") is None
