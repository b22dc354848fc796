"""Raw-data files as scanners write them: each is read right, or refused with the reason.

    OMP_NUM_THREADS=1 python benchmarks/raw_files.py

writes mrd-variants.csv in results/reliability, one row for each variant of an MRD file (`raw/`), and the tables of
mrd-variants.md. Every file is written from the known k-space of a phantom, by the
ismrmrd package or by h5py alone, read as a user's file is (in a process of its own), and compared: k-space, measured
lines, coil calibration, noise covariance and trajectory, value by value. A file that cannot be read must be refused,
with its reason, and no reading may change a file. ``--here`` reads without processes of their own, which is faster.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from parts.pages import put_conditions, put_table
from raw.cases import COLUMNS
from raw.slices import SLICES
from raw.trajectories import TRAJECTORIES
from raw.volumes import VOLUMES

from mri_design.evaluation.tables import Row, write_csv

OUT = Path(__file__).parents[1] / "results/reliability"
CASES = (*SLICES, *VOLUMES, *TRAJECTORIES)
REFUSED = ["variant", "kind", "what the reader says"]


def variants(*, isolated: bool) -> list[Row]:
    """A row for every variant, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return [case.outcome(Path(folder), number, isolated=isolated) for number, case in enumerate(CASES)]


def kinds(rows: Sequence[Row]) -> list[Row]:
    """Counts for every kind of scan."""
    counts: list[Row] = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        right = [row["outcome"] for row in own if row["right"]]
        off = [float(row["largest difference"]) for row in own if row["outcome"] == "read"]  # type: ignore[arg-type]
        counts.append(
            {
                "kind": kind,
                "files": len(own),
                "read right": right.count("read"),
                "refused with the reason": right.count("refused"),
                "largest difference": max(off),
            }
        )
    return counts


def main() -> None:
    """Write the tables and the page, and print what was not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--here", action="store_true", help="read in this process")
    arguments = parser.parse_args()
    rows = variants(isolated=not arguments.here)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_csv(arguments.out / "mrd-variants.csv", rows, COLUMNS)
    page = arguments.out / "mrd-variants.md"
    put_table(page, "Variants", kinds(rows))
    put_table(page, "Refused", [row for row in rows if row["outcome"] == "refused"], REFUSED)
    put_conditions(page, "mri-design", "numpy", "h5py", "ismrmrd")
    for row in rows:
        if not row["right"]:
            print(row)


if __name__ == "__main__":
    main()
