"""The study on Laplace propagation: its smoke run, its small SMO and its kernel factor. No time is asserted."""

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def toy(count: int = 40):
    rng = np.random.default_rng(count)
    rows = rng.standard_normal((count, 3))
    labels = np.where(rows[:, 0] + 0.5 * rng.standard_normal(count) > 0.3, 1.0, -1.0)
    return rows, labels


def test_a_smoke_run_writes_its_folder_and_meets_its_targets(glm, tmp_path) -> None:
    targets = glm("propagation").run(tmp_path, None, True)
    folder = tmp_path / "propagation"
    assert {path.name for path in folder.iterdir()} == {"README.md", "table.csv", "sweeps.png", "manifest.json"}
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["section"] for row in rows} == {"sweeps", "memory", "kernel", "seeds"}
    serial = [row for row in rows if row["section"] == "sweeps" and row["schedule"] == "serial" and row["sweep"] == "3"]
    bounded = [target for target in targets if target.bound is not None]
    assert len(bounded) == 3 and all(target.row("p")["met"] for target in bounded)
    assert bounded[0].measured == pytest.approx(max(float(row["largest error"]) for row in serial))
    assert "where it loses" in (folder / "README.md").read_text(encoding="utf-8").lower()
    assert str(tmp_path) not in (folder / "manifest.json").read_text(encoding="utf-8")


def test_the_full_study_wants_its_data(glm, tmp_path) -> None:
    with pytest.raises(ValueError, match="--data"):
        glm("propagation").run(tmp_path, None, False)


@pytest.mark.parametrize("second_order", [True, False])
def test_smo_finds_the_dual_optimum_from_any_start(glm, second_order) -> None:
    small, kernel = glm("small_smo"), glm("low_rank_kernel")
    rows, labels = toy()
    K, price = kernel.gaussian_kernel(rows, rows), 0.7
    H = labels[:, None] * K * labels
    exact = scipy.optimize.minimize(
        lambda a: 0.5 * a @ H @ a - a.sum(),
        np.full(len(labels), 0.1),
        jac=lambda a: H @ a - 1,
        bounds=[(0, price)] * len(labels),
        constraints={"type": "eq", "fun": lambda a: labels @ a, "jac": lambda a: labels},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    cold = small.smo(K, labels, price, gap=1e-8, second_order=second_order)
    seed = small.usable_start(np.random.default_rng(0).uniform(-0.2, 1, len(labels)), labels, price)
    warm = small.smo(K, labels, price, seed, gap=1e-8, second_order=second_order)
    for machine in (cold, warm):
        assert machine.objective == pytest.approx(exact.fun, rel=1e-7)
        assert machine.objective == pytest.approx(0.5 * machine.alpha @ H @ machine.alpha - machine.alpha.sum())
        assert abs(labels @ machine.alpha) < 1e-9
    assert small.smo(K, labels, price, cold.alpha, gap=1e-6).steps == 0


def test_a_start_is_clipped_and_balanced_by_few_changes(glm) -> None:
    small = glm("small_smo")
    labels = np.array([1.0, 1, 1, -1, -1])
    found = small.usable_start(np.array([1.5, 1.0, 0.4, 1.0, -2.0]), labels, 1.0)
    np.testing.assert_allclose(np.sort(found[:3]), [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(found[2:], [0, 1, 0], atol=1e-12)
    found = small.usable_start(np.array([1.0, 0.5, 0.25, 1.0, 0.6]), labels, 1.0)
    assert found @ labels == pytest.approx(0) and (found == [1.0, 0.35, 0.25, 1.0, 0.6]).sum() >= 4
    with pytest.raises(ValueError, match="feasible"):
        small.smo(np.eye(5), labels, 1.0, np.ones(5))


def test_the_incomplete_factor_becomes_the_kernel(glm) -> None:
    kernel = glm("low_rank_kernel")
    rows, _ = toy()
    K = kernel.gaussian_kernel(rows, rows)
    np.testing.assert_allclose(K[3, 5], np.exp(-np.sum((rows[3] - rows[5]) ** 2) / 10))
    errors = []
    for rank in (3, 10, 40):
        factor, left = kernel.incomplete_cholesky(rows, rank, tolerance=1e-14)
        np.testing.assert_allclose(np.diag(K - factor @ factor.T), left, atol=1e-10)
        errors.append(np.abs(K - factor @ factor.T).max())
    assert errors[0] > errors[1] > errors[2] and errors[2] < 1e-5


def test_a_seed_in_one_chunk_is_the_whole_machine(glm) -> None:
    seeds, kernel, small = glm("smo_seeds"), glm("low_rank_kernel"), glm("small_smo")
    rows, labels = toy()
    factor, _ = kernel.incomplete_cholesky(rows, 40, tolerance=1e-14)
    alpha = seeds.hinge_seed(factor, labels, 0.7, 1, "serial")
    machine = small.smo(kernel.gaussian_kernel(rows, rows), labels, 0.7, gap=1e-8)
    np.testing.assert_allclose(alpha, machine.alpha, atol=0.02)  # the offset has a wide prior, not none
