"""What several experiments of the papers share: eigenvectors after a change of rank one, SMO, a kernel's factor."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp

from mri_design.errors import InputError
from mri_design.glm.variational import VariationalGaussian
from mri_design.variances.base import Exact

Module = Callable[[str], ModuleType]
RNG = np.random.default_rng(0)
N = 40
SPECTRA = {
    "apart": RNG.normal(size=N),
    "all equal": np.ones(N),
    "clusters": np.repeat([1.0, 2, 5, 9], N // 4),
    "clusters within rounding": np.repeat([1.0, 2, 5, 9], N // 4) + 1e-15 * RNG.normal(size=N),
    "clusters nearly": np.repeat([1.0, 2, 5, 9], N // 4) + 1e-10 * RNG.normal(size=N),
    "chains": np.cumsum(np.full(N, 1.5e-15)) + 1,
    "over many decades": np.exp(-0.8 * np.arange(N)),
    "zero": np.zeros(N),
    "one": np.array([3.0]),
}


@pytest.mark.parametrize("rho", [1.0, -0.3, 1e6, -1e-9, 1e-19, 0.0])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("z", ["dense", "falling", "zero"])
def test_updated_eigenvectors_are_those_of_eigh(module: Module, spectrum: str, rho: float, z: str) -> None:
    d = SPECTRA[spectrum]
    direction = {"dense": np.cos(np.arange(len(d))), "falling": 0.1 ** np.arange(len(d)), "zero": np.zeros(len(d))}[z]
    change = module("papers.eigen_update").RankOne.of(d, direction, rho)
    T = change.times(np.eye(len(d)))
    wanted = np.diag(d) + rho * np.outer(direction, direction)
    exact = np.linalg.eigvalsh(wanted)
    scale = max(np.abs(exact).max(), 1e-300)
    np.testing.assert_allclose(T.T @ T, np.eye(len(d)), atol=1e-13)
    assert np.abs((T * change.values) @ T.T - wanted).max() <= 1e-13 * scale
    assert np.abs(np.sort(change.values) - exact).max() <= 1e-13 * scale
    y = np.arange(1.0, len(d) + 1)
    np.testing.assert_allclose(change.apply(y), T @ y, atol=1e-12 * len(d))
    np.testing.assert_allclose(change.transposed(y), T.T @ y, atol=1e-12 * len(d))


def test_equal_eigenvalues_deflate(module: Module) -> None:
    change = module("papers.eigen_update").RankOne.of(SPECTRA["clusters"], np.ones(N), -0.1)
    assert len(change.kept) == 4
    with pytest.raises(InputError) as caught:
        module("papers.eigen_update").RankOne.of(np.ones(3), np.ones(2), 1.0)
    assert caught.value.field == "update"


def machine(module: Module, cases: int = 60) -> tuple[ModuleType, sp.csr_array, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    rows = sp.csr_array((rng.random((cases, 12)) < 0.4).astype(float))
    labels = np.where(rows[:, [0]].toarray().ravel() + 0.5 * rng.normal(size=cases) > 0.3, 1.0, -1.0)
    points = rows.toarray()
    K = np.exp(-((points[:, None] - points) ** 2).sum(-1) / 10)
    return module("papers.smo"), rows, labels, labels[:, None] * K * labels


@pytest.mark.parametrize("second_order", [False, True])
def test_smo_finds_the_dual_optimum_from_any_feasible_start(module: Module, second_order: bool) -> None:
    smo, rows, labels, H = machine(module)
    alphas = []
    start = np.zeros(len(labels))
    start[[np.argmax(labels), np.argmin(labels)]] = 0.7
    for first in (None, start):
        found = smo.smo(smo.Columns(rows, len(labels)), labels, 1.0, start=first, second_order=second_order)
        gradient = H @ found.alpha - 1
        np.testing.assert_allclose(found.gradient, gradient, atol=1e-12)
        score, up = -labels * gradient, np.where(labels > 0, found.alpha < 1, found.alpha > 0)
        down = np.where(labels > 0, found.alpha > 0, found.alpha < 1)
        assert score[up].max() - score[down].min() <= smo.GAP and abs(labels @ found.alpha) < 1e-12
        alphas.append(0.5 * found.alpha @ (gradient - 1))
    np.testing.assert_allclose(*alphas, rtol=1e-4)


def test_a_chunk_sees_the_others_by_a_linear_term(module: Module) -> None:
    smo, rows, labels, H = machine(module)
    whole = smo.smo(smo.Columns(rows, 60), labels, 1.0)
    part, rest = np.arange(30), np.arange(30, 60)
    seen = H[np.ix_(part, rest)] @ whole.alpha[rest]  # y times what the others add to f
    again = smo.smo(smo.Columns(rows[part], 60), labels[part], 1.0, start=whole.alpha[part], linear=seen)
    assert again.steps == 0
    with pytest.raises(InputError) as caught:
        smo.smo(smo.Columns(rows, 60), np.ones(60), 1.0)
    assert caught.value.field == "labels"
    with pytest.raises(InputError) as caught:
        smo.smo(smo.Columns(rows, 60), labels, 1.0, start=np.full(60, 2.0))
    assert caught.value.field == "start"


def test_a_whole_incomplete_cholesky_factor_gives_the_kernel(module: Module) -> None:
    _, rows, labels, H = machine(module)
    F, left = module("papers.kernels").incomplete_cholesky(rows, 60, tolerance=1e-14)
    np.testing.assert_allclose(F @ F.T, labels[:, None] * H * labels, atol=1e-7)
    assert left.min() >= 0
    with pytest.raises(InputError) as caught:
        module("papers.kernels").incomplete_cholesky(rows, 61)
    assert caught.value.field == "rank"


def test_the_bound_has_one_optimum_over_cholesky_factors_and_by_natural_gradients(module: Module) -> None:
    digits, told = module("papers.digits"), list[float]()
    points, labels = digits.digits(None, 12, 0)
    model = digits.classification(digits.kernel(points, 100.0, 1.0), labels)
    engine = VariationalGaussian(Exact(), tolerance=1e-8, iterations=300)
    wanted = engine.infer(model, np.random.default_rng(0))
    found = digits.cholesky(model, np.random.default_rng(0), told.append, tolerance=1e-8)
    assert told[-1] == pytest.approx(wanted.criterion[-1] / 2, rel=1e-6)
    np.testing.assert_allclose(found[:12], wanted.mean, atol=1e-5)
