"""The benchmark of biased variances runs, and its tables show what they are for. No time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import BENCHMARKS, rows_of

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_a_smoke_run_shows_that_the_bias_is_stated_and_covers(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "variances.py"), "--quick", "--out", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = rows_of(tmp_path / "variances.csv")
    for row in (row for row in rows if row["table"] == "bias"):
        assert 0 < int(row["for the bias"]) <= 0.1 * int(row["products"])
        assert float(row["bias of the sum"]) < 0 and float(row["rms"]) < 0.1
        assert float(row["covered, 8 draws"]) > 0.9
    covered = [(float(r["3 std_error"]), float(r["3 std_error + bias"])) for r in rows if r["table"] == "many draws"]
    assert all(alone < 0.99 < with_bias for alone, with_bias in covered)
    text = (tmp_path / "variances.md").read_text(encoding="utf-8")
    assert "## Bias" in text and "## Many draws" in text and "benchmarks/variances.py --quick" in text
    assert os.uname().nodename not in text and str(tmp_path) not in text
