"""Study part active-learning: a smoke run leaves its files, its peers and tests are right, its reader keeps bounds."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from mri_design import InputError, LabelPool
from tests.benchmarks.conftest import rows_of

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a smoke run has left its files."""
    out = tmp_path_factory.mktemp("glm")
    command = [sys.executable, str(BENCHMARKS / "glm_study.py"), "--quick", "--only", "active-learning"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "--out", str(out)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def test_a_smoke_run_leaves_table_figure_manifest_and_targets(results):
    folder = results / "active-learning"
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "table.csv", "double-loop.csv", "test-error.png", "manifest.json"),
    }
    rows = rows_of(folder / "table.csv")
    strategies = {row["strategy"] for row in rows}
    assert {"random", "S_CU", "S_IG", "BALD", "uncertainty sampling on the MAP"} <= strategies
    assert {row["prior"] for row in rows} == {"Gaussian", "sparse"} and {row["seed"] for row in rows} == set("012")
    start = {(row["prior"], row["seed"]): set() for row in rows}
    for row in rows:
        start[row["prior"], row["seed"]].add(row["error at 10"])
    assert all(len(errors) == 1 for errors in start.values())  # the same first labels for everybody
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "Where S_CU loses" in text and str(results) not in text
    targets = rows_of(results / "targets.csv")
    assert targets and all(row["name"].startswith("active-learning: ") for row in targets)


def test_the_peer_fits_what_a_general_optimiser_does(glm):
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((30, 4)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    found = glm("pool_runs").map_weights(features, labels, np.zeros(4))

    def objective(w):
        return 0.5 * w @ w + np.logaddexp(0, -labels * (features @ w)).sum()

    best = scipy.optimize.minimize(objective, np.zeros(4), options={"gtol": 1e-10})
    np.testing.assert_allclose(found, best.x, atol=1e-5)


def test_the_peer_asks_the_nearest_case_that_has_no_label(glm):
    runs = glm("pool_runs")
    features = np.array([[1.0], [-1.0], [0.3], [0.2], [0.9]])
    task = runs.Task(LabelPool(features), np.array([1.0, -1.0, 1.0, 1.0, 1.0]), features, np.ones(5))
    assert list(runs.asked(runs.ON_THE_MAP, task, 2, 5, 3, 0)[0]) == [0, 1, 3, 2, 4]


def test_paired_differences_and_their_side(glm):
    curves = glm("learning_curves")
    errors = {"S_CU": (0.10, 0.11, 0.12), "random": (0.15, 0.17, 0.16)}
    rows = [
        {
            "data": "d",
            "prior": "p",
            "strategy": name,
            "seed": seed,
            "CPU seconds": 0,
            "error at 5": 0.5,
            "error at 9": e,
        }
        for name, values in errors.items()
        for seed, e in enumerate(values)
    ]
    found = curves.paired(rows, "d", "p", "S_CU", "random")
    assert found.difference == pytest.approx(-0.05) and found.wins == 3 and found.seeds == 3 and found.p < 0.01
    assert curves.paired(rows, "d", "p", "random", "S_CU").p > 0.99
    along = curves.paired(rows, "d", "p", "S_CU", "random", whole=True)
    assert along.difference == pytest.approx(-0.025)
    assert curves.paired(rows, "d", "p", "S_CU", "none") is None


@pytest.mark.parametrize(("seeds", "goal"), [(9, "reported"), (10, "<= 0")])
def test_a_comparison_over_few_seeds_decides_no_target(seeds, goal, glm):
    curves = glm("learning_curves")
    strategies = ("S_CU", "random", curves.ON_THE_MAP)
    rows = [
        {"data": "a9a", "prior": "Gaussian", "strategy": name, "seed": seed, "error at 9": 0.1 + 0.01 * seed * k}
        for k, name in enumerate(strategies)
        for seed in range(seeds)
    ]
    bounds = [{"variances": "exact", "rows": 40, "-log Z": 1.0, "CPU s": 1.0}]
    (row,) = [t.row("") for t in curves.targets_of(bounds, rows) if curves.ON_THE_MAP in t.name]
    assert row["target"] == goal and (f"({seeds} seeds)" in row["name"]) == (goal == "reported")


def test_finished_runs_are_read_back_as_they_were(glm, tmp_path):
    part = glm("active_learning")
    ledger = part.Ledger(tmp_path / "table.csv", [])
    row = {"data": "a9a", "prior": "sparse", "strategy": "S_CU", "seed": 3, "error at 5": 1 / 3, "error at 9": 0.1}
    ledger.add(row)
    assert part.kept_rows(tmp_path / "table.csv") == ledger.rows
    assert ledger.has(data="a9a", seed=3) and not ledger.has(data="a9a", seed=4)


def test_files_are_read(glm, tmp_path):
    path = tmp_path / "data"
    path.write_text("-1 1:1 4:0.5 \n+1 2:1e-1\n-1\n", encoding="ascii")
    features, labels = glm("libsvm_text").read_libsvm(path, 4)
    np.testing.assert_array_equal(features.toarray(), [[1, 0, 0, 0.5], [0, 0.1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(labels, [-1, 1, -1])


@pytest.mark.parametrize(
    "text",
    ["", "2 1:1\n", "+1 0:1\n", "+1 5:1\n", "+1 2:1 1:1\n", "+1 1:1 1:2\n", "+1 1\n", "+1 1:x\n", "+1 1:nan\n", "\n"],
)
def test_files_of_another_form_are_refused(text, glm, tmp_path):
    path = tmp_path / "data"
    path.write_text(text, encoding="ascii")
    with pytest.raises(InputError, match="data"):
        glm("libsvm_text").read_libsvm(path, 4)


def test_missing_and_huge_files_are_refused(glm, tmp_path, monkeypatch):
    reader = glm("libsvm_text")
    with pytest.raises(InputError, match="nothing"):
        reader.read_libsvm(tmp_path / "nothing", 4)
    path = tmp_path / "huge"
    path.write_text("+1 1:1\n", encoding="ascii")
    monkeypatch.setattr(reader, "MOST_BYTES", 3)
    with pytest.raises(InputError, match="huge"):
        reader.read_libsvm(path, 4)


def test_a_full_run_without_data_names_the_cure(glm, tmp_path):
    with pytest.raises(InputError, match="--data"):
        glm("active_learning").run(tmp_path, None, False)
