"""Memory of arrays that come and go is asked for once."""

import os
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from mri_design.model.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        several = [np.ones(1 << 18) for _ in range(4)]  # 2 MiB each
        del several
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a limit of glibc")
def test_arrays_that_come_again_cost_no_pages():
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}

    def faults(how: str, **limits: str) -> int:
        command = [sys.executable, "-c", FAULTS, how]
        return int(subprocess.run(command, env=plain | limits, capture_output=True, text=True, check=True).stdout)

    given_back = faults("given back")
    assert faults("kept") < 0.05 * given_back
    # Limits that somebody has set in the environment stay.
    assert faults("kept", MALLOC_TRIM_THRESHOLD_="131072") > 0.5 * given_back
