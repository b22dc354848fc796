"""The benchmark of `info`: a smoke run leaves its files. No time is asserted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.conftest import rows_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.mark.slow
def test_a_smoke_run_measures_every_file(tmp_path: Path) -> None:
    pytest.importorskip("nibabel")
    pytest.importorskip("pydicom")
    command = [sys.executable, str(BENCHMARKS / "info.py"), "--repeats", "1", "--smaller", "16"]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "info.csv")
    kinds = ["ISMRMRD", "ISMRMRD", "fastMRI", "array", "archive", "BART", "NIfTI", "NIfTI", "DICOM"]
    assert [row["file"].split(",")[0] for row in rows] == kinds
    assert all(float(row["processor s"]) > 0 and float(row["peak MiB"]) > 20 for row in rows)
    assert "| ISMRMRD, a volume |" in (tmp_path / "info.md").read_text()
