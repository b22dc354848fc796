"""The benchmark of images with error bars and of design steps."""

import os
import subprocess
import sys

import pytest

from tests.benchmarks.conftest import BENCHMARKS, rows_of

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not part of the distribution")


@pytest.mark.slow
def test_a_quick_run_leaves_its_tables(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "speed.py"), "--quick", "--against", str(BENCHMARKS.parent)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(BENCHMARKS.parent)}
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (image,), (step,) = rows_of(tmp_path / "images.csv"), rows_of(tmp_path / "steps.csv")
    assert float(image["error, change in %"]) == float(image["variances, change in %"]) == 0
    assert float(image["default / local, here"]) > 1 and step["same lines"] == "yes"
    targets = (tmp_path / "targets.csv").read_text(encoding="utf-8")
    assert targets.startswith("name,target,measured,unit,met\n")
    assert "# What an image with error bars" in (tmp_path / "README.md").read_text(encoding="utf-8")
