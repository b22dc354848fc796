"""The benchmark of planes tunes, judges, goes on where it stopped, and says what part was run."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.benchmarks.conftest import BENCHMARKS, rows_of

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("plane_encoding", None)
    return importlib.import_module("plane_encoding")


@pytest.mark.slow
def test_a_small_run_makes_its_tables_and_goes_on(benchmark: ModuleType, tmp_path: Path) -> None:
    setting = benchmark.Setting(
        "phantom:t2w",
        matrix=16,
        coils=(1,),
        accelerations=(4.0,),
        training=(0,),
        tests=(0,),
        draws=2,
        series=(4.0,),
        powers=lambda family: (2.0, 6.0),
        block=12,
    )
    benchmark.compute(setting, tmp_path, seconds=0.0)
    assert not benchmark.document(setting, tmp_path, "the command")[0]["met"]
    text = (tmp_path / "README.md").read_text()
    assert "ended early" in text and "1 coil, 4x, vd-polynomial: not tuned." in text
    benchmark.compute(setting, tmp_path, part=benchmark.Part(strategies=("calibrated",), draws=1))
    assert benchmark.missing(setting, tmp_path) == [
        "1 coil, 4x, vd-polynomial: 1 of 2 masks.",
        "1 coil, 4x, lines, vd-polynomial: 1 of 2 masks.",
        *(f"1 coil, 4x, {name}: 0 of 1 images." for name in ("oracle-hole", "expected-error", "earlier-frame")),
    ]
    benchmark.compute(setting, tmp_path)
    before = (tmp_path / "cells.csv").read_text()
    benchmark.compute(setting, tmp_path)
    assert (tmp_path / "cells.csv").read_text() == before
    targets = benchmark.document(setting, tmp_path, "the command")
    assert targets[-1]["measured"] is None and not targets[-1]["met"]
    assert targets[-2]["measured"] is not None
    assert list(targets[0]) == ["name", "target", "measured", "unit", "met"]
    changes = {row["strategy"]: row for row in rows_of(tmp_path / "changes.csv")}
    assert float(changes["vd-polynomial, tuned"]["change_percent"]) == 0
    cells = [row for row in rows_of(tmp_path / "cells.csv") if row["strategy"] == "calibrated"]
    ratio = float(cells[0]["error"]) / float(changes["vd-polynomial, tuned"]["error"]) - 1
    assert float(changes["calibrated"]["change_percent"]) == pytest.approx(100 * ratio, rel=1e-3)
    text = (tmp_path / "README.md").read_text()
    assert "the command" in text and "lines, vd-polynomial, tuned" in text and "Everything" in text
    assert float(changes["vd-polynomial, tuned"]["masks"]) == 2
    lines = float(changes["lines, vd-polynomial, tuned"]["error"])
    assert f"{100 * (float(changes['vd-polynomial, tuned']['error']) / lines - 1):+.1f} % at 4x" in text


def test_the_best_power_has_the_least_mean_error(benchmark: ModuleType, tmp_path: Path) -> None:
    setting = benchmark.Setting(
        "phantom:t2w", coils=(8,), accelerations=(8.0,), training=(0, 1), powers=lambda family: (1.0, 2.0, 3.0)
    )
    kept = benchmark.Kept.open(tmp_path / "tuning.csv")
    for row in benchmark.tuning(setting):
        power = float(str(row["strategy"]).partition(":")[2])
        kept.keep({**row, "error": abs(power - 2.0) + 0.1 * int(str(row["image"]))})
    best = benchmark.best_powers(setting, benchmark.Kept.open(tmp_path / "tuning.csv"))
    assert best == {(8, 8.0, "poisson-disc"): 2.0, (8, 8.0, "vd-polynomial"): 2.0}
