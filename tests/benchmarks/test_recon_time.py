"""The benchmark of reconstructions' seconds: a smoke run leaves its files; no measured time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import BENCHMARKS, rows_of

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_a_smoke_run_times_every_recipe_on_every_grid(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "recon_time.py"), "--quick", "--out", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "recon-time.csv")
    assert [(row["grid"], row["lines"]) for row in rows] == [("16", "4")] * 2 + [("24", "6")] * 2
    for row in rows:
        seconds = [float(row[f"{name}, s"]) for name in ("local", "default, moduli", "default")]
        assert float(row["default / local"]) == pytest.approx(seconds[2] / seconds[0], rel=1e-4)
        assert float(row["default, moduli / local"]) == pytest.approx(seconds[1] / seconds[0], rel=1e-4)
    text = (tmp_path / "recon-time.md").read_text(encoding="utf-8")
    assert "| 24 | t2w 0 |" in text and "24 x 24, median over images | &lt;= 3 |" in text


def test_a_target_is_the_median_over_the_images_of_its_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import recon_time

    rows = [{"grid": 128, "default / local": value} for value in (2.0, 2.5, 9.0)]
    rows.append({"grid": 256, "default / local": 4.0})
    found = recon_time.target_rows(rows, (128, 256, 512))
    assert [(row["measured"], row["met"]) for row in found] == [(2.5, True), (4.0, False), (None, False)]
