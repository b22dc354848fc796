"""What a volume costs for each of its slices, beside what a slice costs alone: time, and memory.

    OMP_NUM_THREADS=1 python benchmarks/volumes.py --slices 100 --coils 1,8 --method least-squares

writes scans of 256 x 256 to a temporary folder, reconstructs one slice and all of them with
`mri-design recon --jobs 1`, each in a process of its own, and puts a row for each number of coils into
results/first-hour/volumes.csv. Seconds are of the processor; those that the program needs to start are measured on a
scan of 32 x 32 and taken off. Memory is the largest resident size of the process. Scans are .npy files: those in HDF5
are read by a second process, which holds one slice too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from mri_design import load_phantom
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv

RESULT = Path(__file__).parents[1] / "results" / "first-hour" / "volumes.csv"
_MIB = 1024  # kibibytes, in which Linux counts


def write_scan(path: Path, slices: int, coils: int, side: int) -> None:
    """Slices of one head, each a little brighter than the one before, with every second outer line missing."""
    rng = np.random.default_rng(0)
    kspace = load_phantom("brain", shape=(side, side), noise=5e-3, n_coils=coils, rng=rng).kspace[0]
    outer = np.r_[0 : 3 * side // 8 : 2, 5 * side // 8 : side : 2]
    kspace[:, outer] = 0
    shape = (slices, *kspace.shape)
    stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.complex64, shape=shape)
    for number in range(slices):
        stored[number] = kspace * (1 + 1e-3 * number)
    stored.flush()


def measured(scan: Path, method: str, folder: Path) -> tuple[float, float]:
    """Seconds of the processor and peak memory in MiB of one reconstruction."""
    words = ["recon", str(scan), "--method", method, "--jobs", "1", "--quiet", "--overwrite", "--out", str(folder)]
    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-m", "mri_design.cli.start", *words])
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 4):
        raise SystemExit(f"recon of {scan.name} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / _MIB


def row(slices: int, coils: int, method: str, side: int) -> Row:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count, size, scan in ((1, 32, "start"), (1, side, "one"), (slices, side, "all")):
            write_scan(folder / f"{scan}.npy", count, coils, size)
        start, (one, alone), (every, together) = (
            measured(folder / f"{scan}.npy", method, folder / "run") for scan in ("start", "one", "all")
        )
    each, own = (every - start[0]) / slices, one - start[0]
    return {
        "matrix": f"{side} x {side}",
        "coils": coils,
        "method": method,
        "slices": slices,
        "seconds_alone": round(own, 2),
        "seconds_a_slice": round(each, 2),
        "seconds_ratio": round(each / own, 3),
        "mib_alone": round(alone),
        "mib_together": round(together),
        "memory_ratio": round(together / alone, 3),
    }


def main() -> None:
    """Measure, and keep the rows of other cases that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=100)
    parser.add_argument("--coils", default="1,8")
    parser.add_argument("--method", default="least-squares")
    parser.add_argument("--side", type=int, default=256)
    asked = parser.parse_args()
    for coils in map(int, asked.coils.split(",")):
        new = row(asked.slices, coils, asked.method, asked.side)
        case = ("matrix", "coils", "method")
        there = read_csv_texts(RESULT) if RESULT.exists() else []
        kept = [old for old in there if any(old[name] != str(new[name]) for name in case)]
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        write_csv(RESULT, [*kept, new])
        print(new)


if __name__ == "__main__":
    main()
