"""How long an image with error bars takes under the default recipe, over the recipe `local`: a table.

    OMP_NUM_THREADS=1 python benchmarks/recon_time.py --data ../shared/data/mri

reconstructs slices of test subjects (`study/split.py`) from a quarter of their lines, at 128 x 128 and at 256 x 256,
and leaves results/benchmarks/recon-time.csv and recon-time.md: seconds of processor time of all that `recon` computes
from a scan in memory (what lines held back decide, the image, its error bars), without reading the scan and writing the
report. Recipes take turns on every slice; a first turn, which may compile, is not counted. ``--quick`` is the same on
embedded phantoms of toy size, where numbers mean nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from parts.targets import COLUMNS, Target
from study.scans import Scan, denoised, simulated, simulating
from study.split import MIDDLE, TEST_HEADS, TEST_SUBJECTS
from threadpoolctl import threadpool_limits

from mri_design.design.strategies.line_masks import VariableDensity
from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.experiment.designing import run_design, start_lines
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/benchmarks"
SHARE = 4
"""One line of so many is measured."""
LOCAL = load_recipe("local")
DEFAULT = load_recipe(None)
MODULI = DEFAULT.replacing("phase", model="modulus").replacing("reconstruction", band_factors=False)
RECIPES: Mapping[str, Recipe] = {"local": LOCAL, "default, moduli": MODULI, "default": DEFAULT}
"""By name; the second is the default recipe without what lines held back decide."""
MOST = 3.0
"""Times as long as `local` that the default recipe may take."""


def scans(data: Path, matrix: int) -> list[Scan]:
    """Four heads of the test subjects, and a low-field slice of two of them."""
    heads = simulated(data / "img_3T_complex.npz", TEST_HEADS[::3], simulating(matrix), label="head")
    return [*heads, *(denoised(data / f"lf_{who}_gre.npy", MIDDLE, matrix) for who in TEST_SUBJECTS[:2])]


def toys(matrix: int) -> list[Scan]:
    """Two embedded phantoms."""
    return [simulated(f"phantom:{name}", [0], simulating(matrix))[0] for name in ("t1w", "t2w")]


def mask(scan: Scan) -> list[int]:
    """A quarter of the lines, at random with variable density."""
    density, count = VariableDensity(family="polynomial", power=4.0), scan.n_lines // SHARE
    one = scan.prepared.slice_model(0, LOCAL)
    start = start_lines(one.measured, density, count, LOCAL)
    return sorted(run_design([one], density, count, LOCAL, seed=0, start=start).trace.lines)


def timed(scan: Scan, lines: Sequence[int], recipe: Recipe) -> tuple[float, str]:
    """Processor time of an image with error bars, and the model of the phase that the scan chose."""
    began = time.process_time()
    result = reconstruct(scan.prepared.slice_model(0, recipe), lines, "mean", recipe, np.random.default_rng(2))
    seconds = time.process_time() - began
    assert result.std is not None
    phase = None if result.phase_choice is None else result.phase_choice.phase
    return seconds, "modulus" if phase is None else "phase-aware"


def row_of(scan: Scan, matrix: int, repeats: int) -> Row:
    """Medians over turns."""
    lines = mask(scan)
    seconds: dict[str, list[float]] = {name: [] for name in RECIPES}
    chosen = ""
    for _ in range(repeats):
        for name, recipe in RECIPES.items():
            took, chosen = timed(scan, lines, recipe)
            seconds[name].append(took)
    median = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "grid": matrix,
        "image": scan.name,
        "lines": len(lines),
        "model chosen": chosen,
        **{f"{name}, s": value for name, value in median.items()},
        "default, moduli / local": median["default, moduli"] / median["local"],
        "default / local": median["default"] / median["local"],
    }


def ratio(rows: Sequence[Row], matrix: int) -> float | None:
    """Median over images of a grid of how many times as long the default recipe takes."""
    found = [float(str(row["default / local"])) for row in rows if str(row["grid"]) == str(matrix)]
    return statistics.median(found) if found else None


def target_rows(rows: Sequence[Row], matrices: Sequence[int]) -> list[Row]:
    """What was asked for, and what came out."""
    return [
        Target(
            f"processor time of an image with error bars, default recipe over local, {n} x {n}, median over images",
            *(MOST, False, "times", "rows", lambda found, n=n: ratio(found, n)),
        ).row({"rows": rows})
        for n in matrices
    ]


def text_of(rows: Sequence[Row], matrices: Sequence[int], repeats: int) -> str:
    """The page."""
    formats = {f"{name}, s": ".2f" for name in RECIPES} | {"default, moduli / local": ".1f", "default / local": ".1f"}
    return f"""# How long an image with error bars takes

    OMP_NUM_THREADS=1 python benchmarks/recon_time.py --data DATA

All that `recon` computes from a scan in memory, under the recipe `local`, under the default recipe, and under the
default one without what lines held back decide (`default, moduli`: no choice of the phase's model, no correction of
k-space bands). Test subjects, a quarter of the lines, at random with variable density. Seconds of processor time in one
process that has compiled before, medians over turns ({repeats} of every recipe, one recipe after the other). The load
of the machine with {os.cpu_count()} cores was {os.getloadavg()[0]:.1f}: where other work shares the cores, processor
time grows too, so compare the ratios.

{markdown_text(target_rows(rows, matrices), COLUMNS, {"measured": ".3g"})}
{markdown_text(rows, None, formats)}"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=2, help="turns that count")
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    matrices, repeats = ((16, 24), 1) if chosen.quick else ((128, 256), chosen.repeats)
    rows: list[Row] = []
    with threadpool_limits(1):
        for matrix in matrices:
            for scan in toys(matrix) if chosen.quick else scans(chosen.data, matrix):
                if not rows:
                    row_of(scan, matrix, 1)  # compiles
                rows.append(row_of(scan, matrix, repeats))
                print(f"... {matrix}: {scan.name}", file=sys.stderr, flush=True)
    write_text(chosen.out / "recon-time.csv", csv_text(rows))
    text = text_of(rows, matrices, repeats)
    write_text(chosen.out / "recon-time.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
