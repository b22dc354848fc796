"""All readout positions of a 3-D scan with many coils, from disk: seconds and memory, with and without compression.

    OMP_NUM_THREADS=1 python -m benchmarks.positions --positions 160 --measured 8 --coils 8,32 --compress 0,12

writes a volume (position, coil, ky, kz) of 256 x 256 to a temporary folder, a Poisson disc of acceleration 8 with a
calibration square, and reconstructs one position and some of them with `mri-design recon --jobs 1`, each in a process
of its own; the rest of the volume lies on disk beside them. A row for each case goes into results/coils/positions.csv:
seconds of the processor without those that the program needs to start, peak memory, positions per core and hour, and
hours of the whole volume on one core and on 100 machines of two cores, which share nothing but the files.
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

RESULT = Path(__file__).parents[1] / "results" / "coils" / "positions.csv"
_MIB = 1024
_CORES = 200


def write_volume(path: Path, positions: int, coils: int, side: int) -> None:
    """Positions of one head, each with its own noise and a little brighter than the one before."""
    rng = np.random.default_rng(0)
    kspace = load_phantom("brain", shape=(side, side), noise=5e-3, n_coils=coils, rng=rng).kspace[0]
    stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.complex64, shape=(positions, *kspace.shape))
    for number in range(positions):
        noise = 1e-3 * rng.standard_normal((*kspace.shape, 2), dtype=np.float32).view(np.complex64)[..., 0]
        stored[number] = kspace * (1 + 1e-3 * number) + noise
    stored.flush()


def run(*words: str) -> tuple[float, float]:
    """Seconds of the processor and peak memory in MiB of one command."""
    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-m", "mri_design.cli.start", *words])
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 4):
        raise SystemExit(f"mri-design {' '.join(words)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / _MIB


def rows(folder: Path, asked: argparse.Namespace, coils: int) -> list[Row]:
    """One row for every number of virtual coils."""
    side, made = asked.side, list[Row]()
    volume, mask = folder / "volume.npy", folder / "mask.npy"
    write_volume(volume, asked.positions, coils, side)
    quiet = ("--quiet", "--overwrite", "--out")
    shape = ("--shape", f"{side}x{side}", "--acceleration", str(asked.acceleration), "--calibration", "24")
    run("mask", "--kind", "poisson-disc", *shape, "--no-picture", *quiet, str(mask))
    for virtual in (count for count in map(int, asked.compress.split(",")) if count < coils):
        fewer = ("--compress-coils", str(virtual)) if virtual else ()
        words = ("recon", str(volume), "--mask", str(mask), "--method", asked.method, *fewer, "--jobs", "1")
        report = ("--no-report", *quiet, str(folder / "run"))
        one, alone = run(*words, "--slices", "0", *report)
        some, together = run(*words, "--slices", f"0-{asked.measured - 1}", *report)
        each = (some - one) / (asked.measured - 1)
        made.append(
            {
                "matrix": f"{side} x {side} x {asked.positions}",
                "coils": coils,
                "virtual_coils": virtual or coils,
                "method": asked.method,
                "acceleration": asked.acceleration,
                "seconds_a_position": round(each, 2),
                "mib_one": round(alone),
                "mib_several": round(together),
                "positions_per_core_hour": round(3600 / each, 1),
                "hours_one_core": round(each * asked.positions / 3600, 2),
                "minutes_100_machines": round(each * -(-asked.positions // _CORES) / 60, 2),
            }
        )
        print(made[-1], flush=True)
    return made


def main() -> None:
    """Measure, and keep the rows of other cases that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=160)
    parser.add_argument("--measured", type=int, default=8)
    parser.add_argument("--coils", default="8,32")
    parser.add_argument("--compress", default="0,12")
    parser.add_argument("--method", default="least-squares")
    parser.add_argument("--acceleration", type=float, default=8.0)
    parser.add_argument("--side", type=int, default=256)
    asked = parser.parse_args()
    for coils in map(int, asked.coils.split(",")):
        with tempfile.TemporaryDirectory() as name:
            new = rows(Path(name), asked, coils)
        case = ("matrix", "coils", "virtual_coils", "method", "acceleration")
        there = read_csv_texts(RESULT) if RESULT.exists() else []
        made = {tuple(str(row[name]) for name in case) for row in new}
        kept = [old for old in there if tuple(old[name] for name in case) not in made]
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        write_csv(RESULT, [*kept, *new])


if __name__ == "__main__":
    main()
