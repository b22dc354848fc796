"""The command line's own process calculates on one thread, unless its user has decided otherwise."""

import os
import subprocess
import sys

import pytest

CODE = (
    "import os, sys\n"
    "sys.argv = ['mri-design', '--version']\n"
    "from mri_design.cli.start import main\n"
    "try: main()\n"
    "except SystemExit: pass\n"
    "import numpy, threadpoolctl\n"
    "most = max(p['num_threads'] for p in threadpoolctl.threadpool_info())\n"
    "print('threads:', most, os.environ.get('OMP_NUM_THREADS'))"
)


@pytest.mark.parametrize(("given", "said"), [({}, "threads: 1 1"), ({"OPENBLAS_NUM_THREADS": "2"}, "None")])
def test_it_calculates_on_one_thread_unless_told_otherwise(given: dict[str, str], said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")} | given
    found = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1].endswith(said)
