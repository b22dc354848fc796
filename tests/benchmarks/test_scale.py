"""The benchmark of scale: exponents, speed-ups and the model of many machines follow from what was measured."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.benchmarks.conftest import BENCHMARKS

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_exponents_are_of_time_per_product(part: Callable[[str], ModuleType]) -> None:
    rows = [
        {"grid": grid, "coils": coils, "CPU s": factor * products * (grid / 64) ** 2.4, "products": products}
        for grid, coils, products, factor in ((64, 1, 50, 1.0), (128, 1, 90, 1.0), (256, 1, 70, 1.0), (64, 8, 50, 9.0))
    ]
    assert part("scaling.sizes").exponents(rows) == pytest.approx((1.2, 1.2))
    rows[2]["CPU s"] = 2 * float(str(rows[2]["CPU s"]))
    fitted, last = part("scaling.sizes").exponents(rows)
    assert last == pytest.approx(1.7) and 1.2 < fitted < last
    assert part("scaling.sizes").exponents(rows[:1]) == (None, None)


def test_the_model_stops_where_a_worker_has_one_slice_or_one_place_is_busy(part: Callable[[str], ModuleType]) -> None:
    model = part("scaling.model")
    slow = model.Sizes(task=100.0, start=2.0, hand_out=0.0, collect=0.0, slice_bytes=0)
    rows = {row["workers"]: row for row in model.model_rows(slow, 1000, (1, 100, 1000, 2000))}
    assert rows[1]["times as fast"] == 1 and rows[100]["times as fast"] == pytest.approx(100, rel=0.01)
    assert rows[2000]["hours"] == rows[1000]["hours"] == pytest.approx(102 / 3600)
    busy = model.Sizes(task=1.0, start=0.0, hand_out=0.01, collect=0.01, slice_bytes=0)
    assert model.most_workers(busy) == pytest.approx(50)
    assert busy.seconds(1000, 500) == pytest.approx(20.01) and busy.seconds(1000, 20) == pytest.approx(50.01)


@pytest.mark.slow
def test_a_quick_run_makes_a_page_with_its_targets(
    part: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    scale = part("scale")
    rows = [
        {"work": "compare, 2 images", "way": way, "s": s, "same results": True, "times as fast": 2 / s}
        for way, s in (("serial", 2.0), ("two jobs", 1.0))
    ]
    measured = {"task": 9.0, "start": 1.0, "hand_out": 0.001, "collect": 0.001, "slice_bytes": 1000}
    monkeypatch.setattr(
        scale, "SECTIONS", {"jobs": lambda quick: rows, "model": lambda quick: [{"grid": 32} | measured]}
    )
    monkeypatch.setattr("sys.argv", ["scale.py", "--quick", "--out", str(tmp_path)])
    scale.main()
    text = (tmp_path / "README.md").read_text()
    assert "compare, 2 images: two jobs against serial" in text and "1000 slices on many machines" in text
    assert "| compare, 2 images: two jobs against serial | >= 1.7 | 2 | times | yes |" in text
    assert (tmp_path / "targets.csv").read_text().count("\n") == 4


@pytest.mark.slow
def test_two_ways_of_one_command_have_the_same_results(part: Callable[[str], ModuleType], tmp_path) -> None:
    jobs = part("scaling.jobs")
    scan = jobs.stack(tmp_path / "stack.npy", 2, 24)
    words = (
        "compare",
        str(scan),
        "--slices",
        "all",
        "--lines",
        "8",
        "--strategies",
        "low-pass",
        "--method",
        "zero-filled",
    )
    rows = jobs.job_rows("compare", words, ("serial", "two jobs"), tmp_path)
    assert [row["same results"] for row in rows] == [True, True] and rows[0]["times as fast"] == 1
    assert jobs.results(tmp_path / "compare-serial")
