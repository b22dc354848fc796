"""The same image in other programs: a run on a small grid, with those programs that are installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.mark.slow
def test_every_program_that_is_there_makes_the_same_image(tmp_path: Path) -> None:
    for package in ("sigpy", "pylops"):
        pytest.importorskip(package)
    command = [sys.executable, str(BENCHMARKS / "same_image.py"), "--matrix", "32", "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "same-image.csv")
    assert {row["coils"] for row in rows} == {"1", "8"}
    assert {"SciPy with our X", "PyLops with our X", "SigPy SenseRecon"} <= {row["solver"] for row in rows}
    for row in rows:
        assert float(row["difference"]) < 1e-3 and float(row["objective over the least, minus 1"]) < 1e-3
