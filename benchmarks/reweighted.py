"""Pixels of one coil's images that are held to zero less where the image is bright: errors against the default recipe.

    OMP_NUM_THREADS=1 python benchmarks/reweighted.py DATA [--seeds 2] [--scans head-5,...]

DATA is the folder of raw scans and images. Scans of one coil are simulated at 128 x 128 with noise of their own for
every seed, which also draws a variable density: heads at 3 T with the phase that a scanner left (``head-N``, the image
of that number) or with a rough one (``6A T2w``), heads at low field (``lf``, truths denoised by non-local means) and
echoes of a heart. A row has the relative L2 error of the default recipe, and its change in per cent where the block of
pixels is ``reweighted``. What has been computed is kept in reweighted.csv, and the same command goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.exams import SIDE, SUBJECTS, contrast_at_3t, designed_lines, random_lines, with_phase
from parts.pages import put_conditions, put_table
from study.scans import NOISE, Scan, anew, denoised, echo, simulating

from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array

SCANS = (
    *(f"head-{image}" for image in (5, 8, 14, 20)),
    *("heart-1", "heart-2", "6B T1w", "7A T2w", "7B T1w", "6A T2w", "lf_7B_fse", "lf_6A_flair"),
)
SHARES = (8, 6, 4, 2)
PIXELS, *OTHERS = Recipe().prior
REWEIGHTED = replace(Recipe(), prior=(replace(PIXELS, reweighted=True), *OTHERS))


def scan_of(data: Path, name: str, seed: int) -> tuple[MRSlice, Array]:
    """A slice and its truth."""
    if name.startswith("head"):
        held = load_input(data / "img_3T_complex.npz", simulating(SIDE), seed + 8)
        prepared = prepare(held.select_slice(int(name.partition("-")[2])), Recipe())
        truth = prepared.reference(0)
        assert truth is not None
        return prepared.slice_model(0, Recipe()), truth
    scan: Scan
    if name.startswith("heart"):
        scan = echo(data / "img_heart_complex.npz", int(name.partition("-")[2]), SIDE, seed)
    elif name.startswith("lf"):
        scan = denoised(data / f"{name}.npy", 2, SIDE, seed)
    else:
        subject, contrast = name.split()
        image = with_phase(contrast_at_3t(data, subject, contrast), (list(SUBJECTS).index(subject), 9))
        scan = anew(name, image[None], None, NOISE, seed)
    return scan.prepared.slice_model(0, Recipe()), scan.reference


def row_of(one: MRSlice, truth: Array, lines: Sequence[int]) -> Row:
    """Errors of one mask."""
    errors = []
    for blocks in (one.prior, REWEIGHTED.blocks()):
        result = reconstruct_prepared(replace(one, prior=blocks), lines, "mean", Recipe(), image_rng(0), with_std=False)
        errors.append(relative_l2(result.image, truth))
    return {"error": round(errors[0], 5), "change": round(100 * (errors[1] / errors[0] - 1), 2)}


def summary(rows: Sequence[Row]) -> list[Row]:
    """One row for every kind of mask and number of lines."""
    table: list[Row] = []
    for mask, lines in dict.fromkeys((row["mask"], row["lines"]) for row in rows):
        here = [row for row in rows if (row["mask"], row["lines"]) == (mask, lines)]
        change = np.array([float(str(row["change"])) for row in here])
        counts: Row = {"mask": mask, "lines": lines, "images": len(here), "better": int(np.sum(change < 0))}
        table.append(counts | {"mean": change.mean(), "best": change.min(), "worst": change.max()})
    return table


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scans", default=",".join(SCANS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--masks", default="density,designed")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    given = parser.parse_args()
    path, page = given.out / "reweighted.csv", given.out / "reweighted.md"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    have = {tuple(str(row[name]) for name in ("scan", "seed", "mask", "lines")) for row in rows}
    for seed, mask, name in itertools.product(range(given.seeds), given.masks.split(","), given.scans.split(",")):
        one, truth = scan_of(given.data, name, seed)
        counts = [round(SIDE / share) for share in SHARES]
        left = [count for count in counts if (name, str(seed), mask, str(count)) not in have]
        designed = designed_lines(one, counts, seed) if left and mask == "designed" else {}
        for count in left:
            lines = designed[count] if designed else random_lines(one, count, seed)
            about: Row = {"scan": name, "seed": seed, "mask": mask, "lines": count}
            rows.append(about | row_of(one, truth, lines))
            print(*rows[-1].values(), flush=True)
            write_csv(path, rows)
    table = summary([dict(row) for row in read_csv_texts(path)])
    put_table(page, "Errors", table, None, dict.fromkeys(("mean", "best", "worst"), "+.1f"))
    put_conditions(page, "mri-design", "numpy")


if __name__ == "__main__":
    main()
