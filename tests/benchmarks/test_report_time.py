"""The benchmark of reports: a smoke run leaves its files. No time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_a_smoke_run_compares_every_way(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "report_time.py"), "--repeats", "1", "--out", str(tmp_path)]
    command += ["--matrix", "16", "--lines", "6"]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ways = [row["report"] for row in rows_of(tmp_path / "report-time.csv")]
    assert ways == ["now, the first of a process", "before", "now", "--no-report"]
    assert "| --no-report |" in (tmp_path / "report-time.md").read_text()
