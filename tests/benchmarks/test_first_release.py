"""The benchmark runs and writes its tables; a design on the usual grid stays small. No time is asserted."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def run(script: Path, *arguments: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a smoke run has left its tables."""
    out = tmp_path_factory.mktemp("benchmarks") / "new"
    run(BENCHMARKS / "first_release.py", "--quick", "--out", str(out))
    return out


def test_our_map_ends_near_the_common_minimum(tables):
    with (tables / "first-release.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "to the same objective"]
    assert {row["SigPy"] for row in rows} == {"TotalVariationRecon", "L1WaveletRecon"}
    for row in rows:
        assert 0 <= float(row["gap"]) < 5e-3
        assert row["converged"] == "yes" and int(row["MVMs"]) > 10


def test_the_tables_name_no_machine(tables):
    text = (tables / "first-release.md").read_text(encoding="utf-8")
    for title in ("To the same objective", "Posterior mean", "Design step", "Memory"):
        assert f"## {title}" in text
    assert "sigpy 0." in text and "seed: 0" in text
    assert os.uname().nodename not in text and str(tables.parent) not in text and "home" not in text


def test_a_design_step_at_256_takes_less_than_a_gibibyte():
    found = json.loads(run(BENCHMARKS / "parts" / "peak_memory.py", "information-gain", "256", "0", "3"))
    assert found["grid"] == 256 and found["steps"] == 3
    assert found["of which before the design"] < found["peak MiB"] < 1024
