"""The benchmark of designs: a smoke run leaves its files. No time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = [
    pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution"),
    pytest.mark.slow,
]


def test_a_smoke_run_compares_two_checkouts(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "design_time.py"), "--quick", "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent), "OMP_NUM_THREADS": "1"}
    words = [*command, "--against", str(BENCHMARKS.parent)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "design-time.csv")
    assert [row["design"] for row in rows] == [
        "32 x 32, one coil, 8 to 10 lines",
        "32 x 32, 2 coils, 8 to 10 lines",
    ]
    assert all(row["products, here"] == row["products, there"] for row in rows)  # the same code chose the same lines
    assert "| design |" in (tmp_path / "design-time.md").read_text()
    assert not (tmp_path / "targets.csv").exists()
