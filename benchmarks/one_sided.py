"""Lines of one side of k-space: the posterior mean under moduli and under the phase-aware prior.

    OMP_NUM_THREADS=1 python benchmarks/one_sided.py DATA [--cases 8a-96:5,head-d-8:6]

DATA is the folder of raw scans and images. All lines of one side and an eighth (5), or a quarter (6), of the grid's on
the other are measured; coil maps are estimated from them. Errors are those of `everyday.py`, in per cent. What has been
computed is kept in results/coils/one-sided.csv, and the table goes into everyday.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from everyday import SCANS, errors, loaded
from parts.pages import put_table

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe

OUT = Path(__file__).parents[1] / "results" / "coils"
SCANS |= {"head-d-1": ("img_3T_complex.npz", 19, 64, 1), "T2w-1": ("mag3T_6B_T2w.npz", 1, 64, 1)}
FIVE = ["prescan16-64", "head-a-8", "2-64", "head-d-8", "T2w-8", "pfile8-96", "ffe12-80", "8a-96", "head-d-1", "T2w-1"]
CASES = ",".join([*(f"{name}:5" for name in FIVE), "head-d-8:6", "pfile8-96:6", "T2w-1:6"])


def row(folder: Path, name: str, eighths: int) -> Row:
    """Errors of one case."""
    image = loaded(folder, name)
    size = image.slice_model.shape[0]
    lines = np.arange(size - size * eighths // 8, size)
    seen, found = image.as_measured.calibrated(lines.tolist()), dict[str, dict[str, float]]()
    for model in ("modulus", "aware"):
        recipe = Recipe().replacing("phase", model=model)
        asked = replace(seen, phase=recipe.phase.prior())
        found[model] = errors(image, seen, lines, reconstruct_by_recipe(asked, lines.tolist(), recipe, 0).image)
    changes = {f"{part}: change": 100 * (found["aware"][part] / old - 1) for part, old in found["modulus"].items()}
    return {
        "scan": name,
        "coils": seen.n_coils,
        "part": f"{eighths}/8",
        "whole, moduli": f"{found['modulus']['whole']:.2f}",
        "whole, aware": f"{found['aware']['whole']:.2f}",
        **{part: f"{change:+.1f}" for part, change in changes.items()},
    }


def main() -> None:
    """Measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cases", default=CASES)
    given = parser.parse_args()
    path = OUT / "one-sided.csv"
    rows: list[Row] = [dict(one) for one in read_csv_texts(path)] if path.exists() else []
    for case in given.cases.split(","):
        name, _, eighths = case.partition(":")
        if not any((one["scan"], one["part"]) == (name, f"{eighths}/8") for one in rows):
            rows.append(row(given.data, name, int(eighths)))
            write_csv(path, rows)
            print(rows[-1], flush=True)
    put_table(OUT / "everyday.md", "One side of k-space", rows)


if __name__ == "__main__":
    main()
