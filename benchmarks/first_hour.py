"""How long the commands of a first hour take: help, info, and masks without a scan, as whole processes.

    python benchmarks/first_hour.py

writes results/first-hour/commands.csv: seconds of processor and of wall time, medians over five processes of each
command after one that fills the caches of the file system. A machine with more to do than it has cores takes more of
both: the load that it had is in the table, too.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mri_design.evaluation.tables import Row, write_csv

OUT = Path(__file__).parents[1] / "results/first-hour/commands.csv"
COMMANDS = (
    "--help",
    "info --help",
    "mask --help",
    "design --help",
    "info scan.npy",
    "info mask.npy",
    "mask --kind vd --shape 256 --acceleration 8 --calibration 24 --seed 3 --out lines.npy",
    "mask --kind regular --shape 256x180 --acceleration 4 --calibration 24 --out regular.cfl",
    "mask --kind caipi --shape 256x180 --acceleration 6 --calibration 24 --out caipi.npy",
    "mask --kind poisson-disc --shape 256x180 --acceleration 8 --calibration 24 --seed 3 --out mask.npy",
    "mask --kind radial --shape 256 --acceleration 8 --out radial.npy",
)
"""Arguments of the program, in a folder with scan.npy (256 x 256, eight coils) and mask.npy."""


def measured(words: list[str], folder: Path, repeats: int) -> Row:
    """Medians over processes."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as where they are installed
    walls, processor = list[float](), list[float]()
    for number in range(repeats + 1):
        for made in folder.glob("*"):
            if number and made.name not in ("scan.npy", "mask.npy"):
                made.unlink()
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-m", "mri_design.cli.start", *words, *(["--overwrite"] if "--out" in words else [])]
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        if number:
            walls.append(time.perf_counter() - began)
            processor.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    seconds = {"processor_s": statistics.median(processor), "wall_s": statistics.median(walls)}
    return {"command": f"mri-design {' '.join(words)}", **seconds, "load": os.getloadavg()[0]}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="the table")
    parser.add_argument("--repeats", type=int, default=5, help="processes of each command")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), np.random.default_rng(0)
        kspace = rng.standard_normal((8, 256, 256)) + 1j * rng.standard_normal((8, 256, 256))
        np.save(folder / "scan.npy", kspace.astype(np.complex64))
        np.save(folder / "mask.npy", rng.random((256, 180)) < 0.1)
        rows = [measured(command.split(), folder, chosen.repeats) for command in COMMANDS]
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    write_csv(chosen.out, rows, formats={"processor_s": ".2f", "wall_s": ".2f", "load": ".1f"})


if __name__ == "__main__":
    main()
