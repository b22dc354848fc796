"""The Bloch simulation of exported sequences: where its programs are installed, a small run leads to the phantom."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.skipif(
    not BENCHMARKS.is_dir() or any(find_spec(name) is None for name in ("MRzeroCore", "pypulseqpp", "finufft")),
    reason="needs MRzeroCore, pypulseqpp and finufft",
)
def test_a_small_run_finds_every_sample_and_the_phantom(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(BENCHMARKS.parent), *sys.path])}
    command = [sys.executable, str(BENCHMARKS / "bloch.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    readers, images = rows_of(tmp_path / "readers.csv"), rows_of(tmp_path / "bloch.csv")
    assert len(readers) == 20 and max(float(row["largest error"]) for row in readers) < 1e-3
    assert {row["labels exact"] for row in readers} == {"yes", "not read"}
    for row in images:
        assert float(row["relative error"]) < float(row["of exact samples"]) + 0.03, row
