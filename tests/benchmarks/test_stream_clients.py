"""Clients of other projects: a run on a small phantom, with one of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.mark.slow
def test_a_client_leads_to_the_lines_of_the_replayed_file(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "stream_clients.py"), "--matrix", "48", "--lines", "26"]
    command += ["--clients", "1", "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "clients.csv")
    assert [row["sends"] for row in rows] == ["plain", "calibration", "config text", "waveforms"]
    for row in rows:
        assert row["lines"] == "26" and row["same lines as design"] == "yes", row
        assert row["told that it is done, then closed"] == "yes"
    assert "1 of 1 clients lead" in (tmp_path / "clients.md").read_text()
