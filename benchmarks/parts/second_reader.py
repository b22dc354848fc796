"""Places and labels of all samples of a Pulseq file, as pypulseqpp, a reader in C++, finds them.

It runs in a process of its own, because importing it changes what pypulseq computes in the same process (its check of
the timing then finds faults that are none). ``pip install pypulseqpp`` brings it; this package does not need it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_PROGRAM = """
import sys
import numpy as np
import pypulseqpp
sequence = pypulseqpp.Sequence()
sequence.read(sys.argv[1])
labels = {name: np.asarray(values) for name, values in sequence.evaluate_labels(evolution="adc").items()}
np.savez(sys.argv[2], places=np.asarray(sequence.calculate_kspace()[0]), **labels)
"""


def read_by_pypulseqpp(path: Path) -> tuple[NDArray[np.float64], Mapping[str, list[int]]]:
    """Places of all samples along x, y and z, (3, sample), in cycles per metre, and labels of all readouts by name."""
    out = path.with_suffix(".npz")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(path), str(out)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"pypulseqpp does not read {path.name}: {done.stderr[-400:]}")
    with np.load(out) as found:
        return found["places"], {name: found[name].tolist() for name in found.files if name != "places"}
