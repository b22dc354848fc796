"""Study part infomax: a smoke run leaves its files, and its readings of curves are right. No time is asserted."""

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


def test_a_smoke_run_leaves_tables_figures_manifest_and_targets(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "glm_study.py"), "--quick", "--only", "infomax", "--out", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    folder = tmp_path / "infomax"
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "table.csv", "runs.csv", "times.csv", "encoding.csv", "manifest.json"),
        *("error-and-variance.png", "time.png"),
    }
    runs = rows_of(folder / "runs.csv")
    assert {row["way"] for row in runs} == {"infomax", "independent"} and {row["seed"] for row in runs} == {"0", "1"}
    targets = rows_of(tmp_path / "targets.csv")
    assert len(targets) >= 10 and all(row["name"].startswith("infomax: ") for row in targets)
    for row in rows_of(folder / "encoding.csv"):
        assert (
            float(row["mean line"])
            <= float(row["best line"])
            <= float(row["best free rows, a line's number and energy"])
        )
        assert float(row["best sample, energy 1"]) <= float(row["best free vector, energy 1"])
    assert all(float(row["largest loss of score"]) < 1e-6 for row in rows_of(folder / "times.csv"))


def test_trials_needed_are_read_off_the_mean_curve_for_good(glm):
    needed = glm("query_runs").trials_needed
    trials, errors = np.array([10, 20, 40, 80]), np.array([[1.0, 0.4, 0.6, 0.1]])
    np.testing.assert_allclose(needed(trials, errors, 0.6**0.5 * 0.1**0.5), 40 * 2**0.5)  # the dip at 20 does not count
    assert needed(trials, errors, 2.0) == 10
    assert needed(trials, errors, 0.05) == np.inf


def test_the_exponent_is_the_slope(glm):
    rows = [{"n": n, "ms": 3 * n**2.1} for n in (10, 20, 40)]
    np.testing.assert_allclose(glm("query_runs").exponent(rows, "ms"), 2.1)
    assert glm("query_runs").checkpoints(800)[-1] == 800


def test_tables_are_measured_once(glm, tmp_path):
    once, calls = glm("kept_table").measured_once, []

    def measure():
        calls.append(1)
        return [{"a": 1, "b": 0.25, "c": True, "d": None, "e": "x"}]

    for anew in (False, False, True):
        rows = once(tmp_path / "t.csv", measure, anew)
        assert rows == [{"a": 1, "b": 0.25, "c": True, "d": None, "e": "x"}]
    assert len(calls) == 2


def test_names_that_look_like_formulas_are_read_back(glm, tmp_path):
    once = glm("kept_table").measured_once
    assert once(tmp_path / "table.csv", lambda: [{"-log bound": 2.5}], False) == [{"-log bound": 2.5}]
