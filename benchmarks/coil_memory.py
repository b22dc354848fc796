"""Peak memory of a design of lines with many coils, under maps of the lines measured and under known maps.

    OMP_NUM_THREADS=1 python -m benchmarks.coil_memory --coils 32 --side 256 --lines 64

writes a simulated head to a temporary folder, once with its coil maps and once without, and designs and reconstructs
each with `mri-design design` in a process of its own. Rows go into results/coils/memory.csv: peak memory in MiB, also
over the bytes of the samples, and seconds of the processor.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.positions import run
from mri_design import load_phantom
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv

RESULT = Path(__file__).parents[1] / "results" / "coils" / "memory.csv"
OWN, KNOWN = "own", "known"


def rows(folder: Path, asked: argparse.Namespace, coils: int) -> list[Row]:
    """One row for either kind of maps."""
    rng = np.random.default_rng(0)
    head = load_phantom("t2w", shape=(asked.side, asked.side), noise=5e-3, n_coils=coils, rng=rng)
    samples = head.kspace.nbytes / 2**20
    known = {"coil_maps": head.coil_maps, "noise_variance": np.float64(head.noise_variance or 0)}
    np.savez(folder / f"{KNOWN}.npz", kspace=head.kspace, **known)
    np.savez(folder / f"{OWN}.npz", kspace=head.kspace)
    del head, known
    made = list[Row]()
    for maps in (OWN, KNOWN):
        words = ("design", str(folder / f"{maps}.npz"), "--lines", str(asked.lines), "--jobs", "1", "--no-report")
        seconds, peak = run(*words, "--quiet", "--overwrite", "--out", str(folder / "run"))
        made.append(
            {
                "matrix": f"{asked.side} x {asked.side}",
                "coils": coils,
                "lines": asked.lines,
                "maps": maps,
                "mib": round(peak),
                "mib_of_samples": round(samples),
                "cpu_seconds": round(seconds),
            }
        )
        print(made[-1], flush=True)
    return made


def main() -> None:
    """Measure, and keep the rows of other cases that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coils", default="8,32")
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--lines", type=int, default=64)
    asked = parser.parse_args()
    for coils in map(int, asked.coils.split(",")):
        with tempfile.TemporaryDirectory() as name:
            new = rows(Path(name), asked, coils)
        case = ("matrix", "coils", "lines")
        there = read_csv_texts(RESULT) if RESULT.exists() else []
        kept = [old for old in there if any(old[name] != str(new[0][name]) for name in case)]
        write_csv(RESULT, [*kept, *new])


if __name__ == "__main__":
    main()
