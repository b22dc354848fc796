"""How rough the inference of a design may be: masks of fewer posterior samples and looser solves, as a table.

    OMP_NUM_THREADS=1 python benchmarks/fewer_draws.py DATA [--out results/benchmarks/fewer-draws.md]

DATA is the folder of the study's scans. Its training subjects are used, as this is a choice. Every mask is made three
times from different seeds, and reconstructed at several numbers of lines by the mean of the recipe `local`, whatever
the design's inference was. ``--quick`` is the same on toy sizes, which needs no data.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study.scans import Scan, denoised, simulated, simulating
from study.sections import toys
from study.split import MIDDLE
from threadpoolctl import threadpool_limits

from mri_design.design.constraints import centre_lines
from mri_design.design.engine import DesignEngine
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row, csv_text, markdown_text, read_csv
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.scan.io.atomic import write_text

ONE_COIL, COILS = (16, 24, 32, 48, 64), (22, 28, 34)
"""Numbers of lines at which masks are judged."""
SETTINGS = ((8, 0.03, 1e-4), (4, 0.1, 1e-4), (4, 0.1, 3e-4))
"""Posterior samples, solver tolerance and inner tolerance; the first is what others are held against."""
RULES = ("calibrated", "information-gain")
SEEDS = 3
FORMATS = {
    "mean change, %": "+.2f",
    "standard error, %": ".2f",
    "worst image, %": "+.1f",
    "processor time": ".2f",
}


@dataclass(frozen=True)
class Case:
    """Some scans whose masks are judged at the same numbers of lines."""

    name: str
    scans: Sequence[Scan]
    counts: Sequence[int]
    rules: Sequence[str]


def cases(data: Path | None) -> list[Case]:
    """Heads and low-field scans of training subjects, and the heads with eight simulated coils."""
    if data is None:
        return [Case("one coil", toys(1, ("t2w",)), (8, 10), RULES)]
    heads = simulated(data / "img_3T_complex.npz", [0, 1, 2, 4], simulating(128), label="head")
    low = [denoised(data / f"lf_{name}.npy", MIDDLE, 128) for name in ("6A_gre", "6A_fse", "6A_flair", "4A_gre_sag")]
    coils = simulated(data / "img_3T_complex.npz", [0, 2, 4], simulating(128, coils=8), label="head")
    return [
        Case("one coil", [*heads, *low], ONE_COIL, RULES),
        Case("8 coils", coils, COILS, RULES[:1]),
    ]


def rows_of(case: Case, recipe: Recipe, seeds: int) -> list[Row]:
    """One row per rule and setting: change of the error against the first setting, and of the processor time."""
    rows: list[Row] = []
    for rule in case.rules:
        tried = SETTINGS if rule == RULES[0] else SETTINGS[::2]
        found = {s: [one_scan(scan, rule, s, case, recipe, seeds) for scan in case.scans] for s in tried}
        errors = {setting: np.array([each[0] for each in of]) for setting, of in found.items()}
        seconds = {setting: sum(each[1] for each in of) for setting, of in found.items()}
        first = SETTINGS[0]
        for setting in tried:
            change = 100 * (errors[setting].mean(axis=1) / errors[first].mean(axis=1) - 1)
            single = 100 * (errors[setting] / errors[first] - 1)
            rows.append(
                {
                    "coils": case.name,
                    "strategy": rule,
                    "samples": setting[0],
                    "solver tolerance": setting[1],
                    "inner tolerance": setting[2],
                    "images": len(case.scans),
                    "seeds": seeds,
                    "mean change, %": change.mean(),
                    "standard error, %": single.std(ddof=1) / np.sqrt(single.size) if single.size > 1 else np.nan,
                    "worst image, %": change.max(),
                    "processor time": seconds[setting] / seconds[first],
                }
            )
            print(rows[-1], flush=True)
    return rows


def one_scan(
    scan: Scan, rule: str, setting: tuple[int, float, float], case: Case, recipe: Recipe, seeds: int
) -> tuple[list[float], float]:
    """Mean error over the numbers of lines for every seed, and the processor seconds of the designs."""
    slice_model = scan.prepared.slice_model(0, recipe)
    names = ("samples", "solver_tolerance", "inner_tolerance")
    inference = recipe.replacing("inference", **dict(zip(names, setting, strict=True))).inference
    engine = inference.engine(extrapolated=False)
    errors, seconds = [], 0.0
    for seed in range(seeds):
        strategy = make_strategy(rule)
        grid, most = slice_model.shape[0], max(case.counts)
        start = strategy.default_start(grid, min(case.counts), slice_model.n_coils)
        lines = centre_lines(slice_model.measured, start)
        made = DesignEngine(strategy, engine, seed=seed)
        began = time.process_time()
        trace = made.run([slice_model], made.begin([slice_model], lines), most).trace
        seconds += time.process_time() - began
        images = (reconstruct_by_recipe(slice_model, trace.lines[:n], recipe, 0).image for n in case.counts)
        errors.append(float(np.mean([measure(image, scan.reference).relative_l2 for image in images])))
    return errors, seconds


def page(rows: Sequence[Row]) -> str:
    """The table with what it says."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    table = markdown_text(rows, None, FORMATS)
    samples, tolerance, inner = SETTINGS[0]
    return f"""# How rough the inference of a design may be

    OMP_NUM_THREADS=1 python benchmarks/fewer_draws.py DATA

Masks of a design whose posteriors come from fewer samples, whose samples are solved to a looser tolerance, and whose
inner problem (the mean) too, against those of {samples} samples solved to {tolerance} and an inner tolerance of
{inner:g}: change of the relative L2 error of the posterior mean (recipe `local`, the same for all masks), mean over
numbers of lines. Training subjects, 128 x 128; `standard error` over images and seeds, as if they were independent;
processor time of the designs; load averages {load}.

{table}
A strategy that corrects what the posteriors expect, `calibrated`, takes no harm; one that believes them may need the
samples. So `[design] samples`, `solver_tolerance` and `inner_tolerance` are for `calibrated` alone.
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/mri"))
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks/fewer-draws.md"))
    parser.add_argument(
        "--only", help="measure these scans alone, one coil or 8 coils; the page keeps the others' rows"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    given = parser.parse_args()
    recipe, kept = load_recipe("local"), given.out.with_suffix(".csv")
    rows: list[Row] = (
        [row for row in read_csv(kept) if row["coils"] != given.only] if given.only and kept.exists() else []
    )
    with threadpool_limits(1):
        for case in cases(None if given.quick else given.data):
            if given.only not in (None, case.name):
                continue
            rows += rows_of(case, recipe, 1 if given.quick else SEEDS)
            write_text(kept, csv_text(rows))
            write_text(given.out, page(rows))


if __name__ == "__main__":
    main()
