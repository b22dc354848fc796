"""Raw-data files as scanners write them: each is read right, or refused with the reason.

    OMP_NUM_THREADS=1 python benchmarks/raw_files.py

writes mrd-variants.csv in results/reliability, one row for each variant of an MRD file (`raw/`), the page
mrd-variants.md about it, and its rows of targets.csv. Every file is written from the known k-space of a phantom, by the
ismrmrd package or by h5py alone, read as a user's file is (in a process of its own), and compared: k-space, measured
lines, coil calibration, noise covariance and trajectory, value by value. A file that cannot be read must be refused,
with its reason, and no reading may change a file. ``--here`` reads without processes of their own, which is faster.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from raw.cases import COLUMNS, SAME
from raw.slices import SLICES
from raw.trajectories import TRAJECTORIES
from raw.volumes import VOLUMES

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text, read_csv_texts
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/reliability"
CASES = (*SLICES, *VOLUMES, *TRAJECTORIES)
LEAST = 40
TARGET_COLUMNS = ["name", "target", "measured", "unit", "met"]
NAME = "MRD files made as scanners make them"


def variants(*, isolated: bool) -> list[Row]:
    """A row for every variant, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return [case.outcome(Path(folder), number, isolated=isolated) for number, case in enumerate(CASES)]


def targets(rows: Sequence[Row]) -> list[Row]:
    """What was asked for, and what the table says."""
    right = sum(bool(row["right"]) for row in rows)
    off = max(float(row["largest difference"]) for row in rows if row["outcome"] == "read")  # type: ignore[arg-type]
    return [
        _target(f"{NAME}: variants", f">= {LEAST}", len(rows), "files", len(rows) >= LEAST),
        _target(f"{NAME}: read right or refused with the reason", "all", f"{right} of {len(rows)}", "files",
                right == len(rows)),
        _target(f"{NAME}: largest difference of a value", f"<= {SAME:g}", off, "of the largest value", off <= SAME),
    ]  # fmt: skip


def _target(name: str, target: str, measured: object, unit: str, met: bool) -> Row:
    return {"name": name, "target": target, "measured": measured, "unit": unit, "met": met}


def with_targets(path: Path, rows: Sequence[Row]) -> str:
    """The table of targets with these rows in the place of earlier ones of this benchmark."""
    others = [row for row in read_csv_texts(path) if not row["name"].startswith(NAME)] if path.exists() else []
    return csv_text([*others, *rows], TARGET_COLUMNS)


PAGE = """# MRD files made as scanners make them

`OMP_NUM_THREADS=1 python benchmarks/raw_files.py` makes everything here. Versions: {versions}.

## Targets

{targets}
## Variants

Every file is written from the known k-space of a phantom, most of them by the ismrmrd package and the others by h5py
alone, and read as a user's file is. What is read is compared value by value: k-space, which lines count as measured,
coil calibration, noise covariance and trajectory, to {same:g} of the largest value. What cannot be read must be refused
with its reason; a file that was changed by reading would count as wrong. The files imitate what converters write; none
of them comes from a scanner. Every variant, and what the reader says of it, is in [mrd-variants.csv](mrd-variants.csv).

{kinds}
Refused are:

{refused}"""


def page(rows: Sequence[Row], found: Sequence[Row]) -> str:
    """The page about these files."""
    versions = installed_versions(("mri-design", "numpy", "h5py", "ismrmrd"))
    return PAGE.format(
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        targets=markdown_text(found, TARGET_COLUMNS),
        same=SAME,
        kinds=markdown_text(kinds(rows)),
        refused=markdown_text([row for row in rows if row["outcome"] == "refused"], REFUSED),
    )


REFUSED = ["variant", "kind", "what the reader says"]


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
    write_text(arguments.out / "mrd-variants.csv", csv_text(rows, COLUMNS))
    found = targets(rows)
    write_text(arguments.out / "targets.csv", with_targets(arguments.out / "targets.csv", found))
    write_text(arguments.out / "mrd-variants.md", page(rows, found))
    for row in rows:
        if not row["right"]:
            print(row)
    for row in found:
        print(f"{row['name']}: {row['measured']} {row['unit']} (wanted {row['target']})")


if __name__ == "__main__":
    main()
