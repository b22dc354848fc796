"""Masks of samples with several coils in another program's reconstruction: BART's ``pics`` with wavelets.

    OMP_NUM_THREADS=1 python benchmarks/coil_pics.py DATA [--draws 3] [--out results/coils]

DATA is the folder of raw scans. The masks are those of ``coil_planes.py`` whose coil maps come from a square that every
mask holds: designed, BART's ``poisson -C16`` of as many samples, and Poisson discs of two powers. Every mask is
reconstructed by ``bart pics -R W`` with the weight, of WEIGHTS, that is best for it in hindsight, and by the recipes
``local`` and default; errors are relative L2 errors of the magnitude against the scan's own image from all samples.
What has been computed is kept in planes-pics.csv, and the same command goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from coil_planes import BART, CASES, DESIGNED, DISC, Plane
from parts.bart_solver import bart_path, bart_version, read_cfl, write_cfl
from parts.pages import put_conditions, put_table

from mri_design.design.trials import relative_error
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.recipe import Recipe
from mri_design.operators.base import Array

WEIGHTS = (0.0003, 0.001, 0.003, 0.01, 0.03)
"""Of the penalty, for data whose image has a 99.5th percentile of 1."""
PROGRAMS = ("pics", "local", "default")
DISCS = (f"{DISC}1", f"{DISC}2")
MASKS = (DESIGNED, BART, *DISCS)


def by_pics(plane: Plane, chosen: Sequence[int], weight: float) -> Array:
    """The image of some samples."""
    one = plane.mr_slice
    assert one.maps is not None
    unit = np.percentile(np.abs(plane.reference), 99.5)
    flags = one.grid_samples(list(chosen))
    with tempfile.TemporaryDirectory() as folder:
        for name, array in (("kspace", np.where(flags, one.kspace, 0) / unit), ("maps", one.maps)):
            write_cfl(Path(folder, name), array.transpose(2, 1, 0)[:, :, None, :])
        penalty = ["-R", f"W:3:0:{weight:g}", "-w", "1", "-i", "200"]
        subprocess.run(
            [bart_path() or "bart", "pics", "-d0", *penalty, "kspace", "maps", "image"],
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
            timeout=600,
        )
        return np.asarray(read_cfl(Path(folder, "image")).T * unit)


def measured(plane: Plane, scan: str, acceleration: float, mask: str, draw: int) -> Row:
    """Errors of one mask by both programs."""
    chosen = plane.mask(mask, acceleration, draw)
    errors = {weight: relative_error(by_pics(plane, chosen, weight), plane.reference) for weight in WEIGHTS}
    best = min(errors, key=errors.__getitem__)
    default = replace(plane, mr_slice=replace(plane.mr_slice, prior=Recipe().blocks()), recipe=Recipe())
    return {
        "scan": scan,
        "acceleration": acceleration,
        "mask": mask,
        "draw": draw,
        "samples": len(chosen),
        "pics": round(errors[best], 5),
        "weight": best,
        "local": round(plane.error(chosen)["error"], 5),
        "default": round(default.error(chosen)["error"], 5),
    }


def summary(found: Sequence[Row]) -> list[Row]:
    """For each scan and acceleration the designed mask against the others, means over draws, in per cent."""
    table: list[Row] = []
    for scan, factor in dict.fromkeys((row["scan"], row["acceleration"]) for row in found):
        here = [row for row in found if (row["scan"], row["acceleration"]) == (scan, factor)]

        def mean(mask: str, column: str, here: Sequence[Row] = here) -> float:
            return float(np.mean([float(str(row[column])) for row in here if row["mask"] == mask]))

        row: Row = {"scan": scan, "acceleration": factor, "draws": sum(row["mask"] == DESIGNED for row in here)}
        for column in PROGRAMS:
            row[column] = mean(DESIGNED, column)
            rivals = {"BART's": mean(BART, column), "better disc": min(mean(disc, column) for disc in DISCS)}
            for name, rival in rivals.items():
                row[f"{column}: against {name}"] = 100 * (mean(DESIGNED, column) / rival - 1)
        table.append(row)
    return table


def main() -> None:
    """Measure what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    path, page = given.out / "planes-pics.csv", given.out / "planes.md"
    found: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    names = ("scan", "acceleration", "mask", "draw")
    done = {tuple(str(row[name]) for name in names) for row in found}
    for scan, case in CASES.items():
        if not case.own_maps:
            continue
        plane = Plane.of(given.data, case)
        for acceleration, mask, draw in itertools.product(case.accelerations, MASKS, range(given.draws)):
            if (scan, str(acceleration), mask, str(draw)) in done:
                continue
            found.append(measured(plane, scan, acceleration, mask, draw))
            print(*found[-1].values(), flush=True)
            write_csv(path, found)
    rows = summary(read_csv_texts(path))
    formats = {name: "+.1f" if "against" in name else ".4f" for name in rows[0] if name.startswith(PROGRAMS)}
    put_table(page, "In BART's reconstruction", rows, None, formats)
    put_conditions(page, "mri-design", "numpy", "scipy", also=f", BART {bart_version()}")


if __name__ == "__main__":
    main()
