"""Killed verbs: a small run of the benchmark, in which everything goes on to identical results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_killed_verbs_go_on_to_identical_results(tmp_path: Path) -> None:
    chosen = ["--verbs", "train,export", "--kills", "4", "--matrix", "16"]
    command = [sys.executable, str(BENCHMARKS / "kills.py"), *chosen, "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["verb"]: row for row in rows_of(tmp_path / "kills.csv")}
    assert set(rows) == {"train", "export"}
    for row in rows.values():
        assert row["kills"] == row["identical"] == "2" and row["not compared"] == "" and row["files"] == "1"
