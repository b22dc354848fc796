"""Another contrast in the prior of planes and of scans with several coils: errors with it and without.

    OMP_NUM_THREADS=1 python benchmarks/planes_and_coils.py DATA [--seeds 1] [--out results/companions]

DATA is the folder of raw scans and images. Scans are those of companions.py, T2w heads at 3 T of 128 x 128 with T1w of
the same head as the companion, with one coil or eight whose maps are known. Measured are an eighth of the samples of a
plane (ky, kz), of a density that is tuned for one coil and of Poisson discs for eight, or a quarter of the lines. Each
row has the relative L2 error without the companion and the changes in per cent with it, as the scan's own readouts
decide; columns are those of errors.csv. What has been computed is kept in planes-and-coils.csv, and the same command
goes on from there, with rows and cells that are missing; companion_targets.py makes a table of the means.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from companions import COLUMNS, STRENGTHS, measure
from parts.exams import contrasts, random_lines
from parts.kept import Kept, lacking

from mri_design.experiment.designing import DesignOptions, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.starting import readouts_wanted, start_lines
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.mr_image import MRSlice
from mri_design.readouts import PlaneReadouts

MASKS = {("plane, 1 coil", 1): "vd-polynomial:8", ("plane, 8 coils", 8): "poisson-disc:2", ("lines, 8 coils", 8): None}
"""Names and coils, and what draws the samples of a plane."""
PLANE, LINES = 8, 4
"""One in how many readouts is measured."""


def samples(one: MRSlice, name: str, recipe: Recipe, seed: int) -> list[int]:
    """Of a plane, drawn at random."""
    plane, strategy = one.candidates, make_strategy(name, "plane")
    assert isinstance(plane, PlaneReadouts)
    count = readouts_wanted(plane.size, PLANE)
    start = start_lines(one.measured, strategy, count, recipe, 0, one.n_coils, plane)
    options = DesignOptions(draw=seed)
    return sorted(run_design([one], strategy, count, recipe, seed=seed, start=start, options=options).trace.lines)


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    kept = Kept.at(given.out / "planes-and-coils.csv", "kind", "name", "lines", "seed")
    for seed in range(given.seeds):
        for (kind, coils), mask in MASKS.items():
            recipe = Recipe().replacing("design", encoding="plane" if mask else "lines")
            for pair in contrasts(given.data, seed, coils):
                one = pair.scan.prepared.slice_model(0, recipe)
                drawn = samples(one, mask, recipe, seed) if mask else random_lines(one, one.shape[0] // LINES, seed)
                named = {"kind": kind, "name": pair.name, "mask": mask or "density", "lines": len(drawn), "seed": seed}
                row = kept.row(named | dict.fromkeys(COLUMNS, ""))
                if lacking(row, STRENGTHS):
                    measure(row, pair, drawn, recipe, every=True)
                    kept.put(row)


if __name__ == "__main__":
    main()
