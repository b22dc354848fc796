"""Scripts that measure cost and accuracy run at toy size. No time is asserted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mri_design import Exact
from mri_design.model.precision import PosteriorPrecision
from tests.benchmarks.conftest import BENCHMARKS, Tables

Module = Callable[[str], ModuleType]
pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_the_bias_of_variances_is_stated_and_covers(tables_of: Callable[..., Tables]) -> None:
    rows = tables_of("variances", "--quick")["variances"]
    for row in (row for row in rows if row["table"] == "Bias"):
        assert 0 < int(row["for the bias"]) <= 0.1 * int(row["products"])
        assert float(row["rms"]) < 0.1 and float(row["covered, 8 draws"]) > 0.9
    covered = [(float(r["3 std_error"]), float(r["3 std_error + bias"])) for r in rows if r["table"] == "Many draws"]
    assert all(alone < 0.99 < with_bias for alone, with_bias in covered)
    exact = [row for row in rows if row["estimator"] == "exact by columns"]
    assert exact and all(float(row["median error"]) < 1e-5 for row in exact)


def test_dense_complex_algebra_agrees_with_the_real_reference(module: Module) -> None:
    model = module("parts.problem").scan_of(16, 2, 0).model(range(4, 12))
    rng = np.random.default_rng(2)
    pi = tuple(rng.uniform(0.1, 3.0, block.site_shape) for block in model.blocks)
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    exact = Exact()(precision, [block.analysis for block in model.blocks], rng, model.back_projection())
    ours = module("parts.dense_posterior").DensePosterior.of(precision)
    for block, z in zip(model.blocks, exact.values, strict=True):
        np.testing.assert_allclose(ours.variances(block.analysis), z, rtol=1e-5)


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART, a system package")
def test_bart_minimises_our_objective(module: Module, tmp_path: Path) -> None:
    tv_map, problem = module("tv_map"), module("parts.problem")
    one = problem.Problem.of(problem.scan_of(32, 1, 0), 0, tv_map.FiniteDifferences)
    tv = tv_map.TotalVariationProblem(one, isotropic=True)
    lowest, drift = tv_map.smallest_value(tv, 4000)
    found = tv_map.BartTotalVariation(one, True, tmp_path).run(8000, 0.01)
    assert drift < 1e-6
    assert -1e-5 < tv.value(found.image) / lowest - 1 < 2e-5


@pytest.mark.thorough
def test_total_variation_is_timed_beside_other_programs(module: Module) -> None:
    rows = module("tv_map").peer_rows(32, 1, 200, 1, 0.1, 0, (0.003,))
    assert {row["solver"] for row in rows} == {"ours", "BART pics -R T", "SigPy TV"}
    assert any(row["s"] is not None for row in rows if row["solver"] == "ours")


@pytest.mark.thorough
def test_two_versions_are_timed_in_turns(
    module: Module, tables_of: Callable[..., Tables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speed = module("speed")
    for name in ("timed_image", "timed_design"):  # once for both, which are the same here
        once = cache(partial(getattr(speed, name), speed.HERE))
        monkeypatch.setattr(speed, name, lambda _, *asked, once=once: once(*asked))
    tables = tables_of("speed", "--quick", "--against", str(BENCHMARKS.parent))
    (image,), (step,) = tables["images"], tables["steps"]
    assert float(image["error, change in %"]) == float(image["variances, change in %"]) == 0
    assert float(image["default / local, here"]) > 1 and step["same lines"] == "yes"
    assert "there is commit" in (tmp_path / "README.md").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_ways_of_one_command_have_the_same_results(module: Module, tmp_path: Path) -> None:
    scale = module("scale")
    scan = scale.stack(tmp_path / "stack.npy", 2, 24)
    words = ["compare", str(scan), "--slices", "all", "--lines", "8", "--strategies", "low-pass"]
    rows = scale.job_rows("compare", [*words, "--method", "zero-filled"], ("serial", "two jobs"), tmp_path)
    assert [row["same results"] for row in rows] == [True, True] and rows[0]["times as fast"] == 1
    grids = [
        {"grid": grid, "coils": 1, "CPU s": products * (grid / 64) ** 2.4, "products": products}
        for grid, products in ((64, 50), (128, 90), (256, 70))
    ]
    assert scale.exponents(grids) == pytest.approx((1.2, 1.2))


def test_modules_of_a_start_are_counted(tables_of: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("startup.VERBS", ("info",), raising=False)
    tables = tables_of("startup", "--repeats", "1", "--verbs", "info")
    rows = {row["what"]: int(row["of this package"]) for row in tables["startup"]}
    assert rows["import mri_design"] == 1
    assert rows["mri-design info --help"] < rows["mri-design info small.npy (64 x 64)"]
    assert int(tables["startup-modules"][0]["of this package"]) > rows["mri-design info --help"]


def test_the_demo_s_strategies_are_put_in_order(module: Module) -> None:
    demo = module("demo")
    errors = [
        {"recipe": recipe, "lines": count, "strategy": name, "relative_l2": error}
        for recipe in demo.RECIPES
        for count in demo.demo.COUNTS
        for name, error in (("a", 0.2), ("b", 0.1))
    ]
    rows = demo.orders(errors)
    assert len(rows) == len(demo.RECIPES) * len(demo.demo.COUNTS)
    assert all(str([*row.values()][-1]).startswith("b 10.0, a 20.0") for row in rows)
