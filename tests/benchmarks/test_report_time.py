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
    command += ["--matrix", "24", "--lines", "6", "--process-lines", "10", "--against", str(BENCHMARKS.parent)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ways = [row["report"] for row in rows_of(tmp_path / "report-time.csv")]
    usual, png = "figures as SVG", "figures as SVG and PNG, --png"
    assert ways == [f"{usual}, the first of a process", usual, png, "--no-report"]
    processes = rows_of(tmp_path / "process-time.csv")
    assert [(row["image"], row["report"], row["version"]) for row in processes] == [
        (image, report, version)
        for image in ("mean", "zero-filled")
        for report in ("report.html", "--no-report")
        for version in ("here", "there")
    ]
    for row in processes:
        whole, parts = float(row["whole process, s"]), float(row["design, s"]) + float(row["image, s"])
        assert 0 < parts < whole
        assert float(row["share that is neither, %"]) == pytest.approx(100 * (1 - parts / whole), abs=0.1)
    names = [row["name"] for row in rows_of(tmp_path / "targets.csv")]
    assert len(names) == 3 and names[0] == "processor time of a report"
    assert "| --no-report |" in (tmp_path / "report-time.md").read_text()
