"""Damaged files of every kind: a small run of the benchmark, in which nothing may crash, stall or change a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.mark.slow
def test_every_reader_refuses_or_reads_what_was_there(tmp_path: Path) -> None:
    for package in ("nibabel", "pydicom", "twixtools"):
        pytest.importorskip(package)
    command = [sys.executable, str(BENCHMARKS / "fuzz_readers.py"), "--cases", "256", "--seed", "2", "--out"]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run([*command, str(tmp_path)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["kind"]: row for row in rows_of(tmp_path / "fuzz.csv")}
    assert rows["all"]["cases"] == "256" and all(int(row["cases"]) == 8 for kind, row in rows.items() if kind != "all")
    for never in ("crashed", "stalled", "another error", "other files changed"):
        assert rows["all"][never] == "0", (tmp_path / "fuzz.md").read_text()
    assert int(rows["all"]["refused"]) > 50
    measured = {row["name"]: row["measured"] for row in rows_of(tmp_path / "fuzz-targets.csv")}
    assert measured["values that changed without an error, formats with a checksum"] == "0"
