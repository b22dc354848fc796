"""The benchmark of starting: a smoke run leaves its files. No time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


def test_a_smoke_run_counts_modules_of_every_verb(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "startup.py"), "--repeats", "1", "--out", str(tmp_path)]
    command += ["--verbs", "info", "recon"]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: int(row["of this package"]) for row in rows_of(tmp_path / "startup.csv")}
    assert rows["import mri_design"] == 1
    assert all(f"mri-design {verb} --help" in rows for verb in ("info", "design", "train"))
    assert rows["mri-design design --help"] < rows["mri-design info small.npy (64 x 64)"]
    assert "| mri-design design --help |" in (tmp_path / "startup.md").read_text()
    counts = {row["what"]: int(row["of this package"]) for row in rows_of(tmp_path / "startup-modules.csv")}
    assert rows["mri-design info --help"] < counts["mri-design info"] < counts["mri-design recon"]
