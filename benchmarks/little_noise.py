"""Images and designs of scans with much and with little noise: does the error rise where the noise falls?

    OMP_NUM_THREADS=1 python benchmarks/little_noise.py [--data ../shared/data]

Scans of 64 x 64 are simulated with ratios of the image's 99.5th percentile to the standard deviation of the noise from
10 to 1e7, and reconstructed from 24 lines by posterior mean and MAP; designs choose 16 lines. Recipes ``default`` and
``local``. k-space that a Bloch simulation made without noise (``simulated`` in the folder of shared data, where there
is one) is reconstructed under the noise that the program estimates. Writes results/reliability/little-noise.csv and the
tables of little-noise.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from parts.pages import put_conditions, put_table

from mri_design.errors import InputError
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.designing import run_design
from mri_design.experiment.inputs import PreparedScan, load_input, prepare
from mri_design.experiment.recipe import Recipe, SimulationRecipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.starting import start_lines
from mri_design.experiment.strategy_names import make_strategy
from mri_design.operators.base import Array
from mri_design.scan.io.formats import read

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results/reliability"
RATIOS = tuple(10.0**k for k in range(1, 8))
SAFE = 1e3
"""Ratio at which single precision was right as well: errors of larger ratios are held against the error there."""
SEEDS, MATRIX, LINES, DESIGNED = (0, 1, 2), 64, 24, 16
SCANS = {
    "default": (("t2w", 1), ("shepp-logan", 1), ("t2w", 4)),
    "local": (("t2w", 1), ("t1w", 1), ("shepp-logan", 1), ("t2w", 4), ("brain", 4)),
}
DESIGNS = {"default": (("t2w", 1),), "local": (("t2w", 1), ("t2w", 4))}
RECIPES = ("default", "local")


@dataclass(frozen=True)
class Job:
    """One scan at one ratio."""

    scan: str
    coils: int
    recipe: str
    method: str
    ratio: float
    seed: int


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job: ``status`` is "converged", "not converged", or a refusal."""

    scan: str
    coils: int
    recipe: str
    method: str
    ratio: float
    seed: int
    error: float
    status: str
    products: int
    raised: str


def jobs() -> Iterator[Job]:
    for seed in SEEDS:
        for recipe in RECIPES:
            for ratio in RATIOS:
                for scan, coils in SCANS[recipe]:
                    for method in ("mean", "map"):
                        yield Job(scan, coils, recipe, method, ratio, seed)
                for scan, coils in DESIGNS[recipe]:
                    yield Job(scan, coils, recipe, "design", ratio, seed)


def recipe_of(name: str, method: str) -> Recipe:
    recipe = Recipe() if name == "default" else load_recipe(name)
    if method != "map":
        return recipe
    return recipe.replacing("reconstruction", method="map")


def centre_and_random(n: int, count: int) -> list[int]:
    """Half of the lines at the centre, the others at random, the same for every scan."""
    middle = range(n // 2 - count // 4, n // 2 - count // 4 + count // 2)
    others = np.setdiff1d(np.arange(n), middle)
    return sorted([*middle, *np.random.default_rng(0).choice(others, count - count // 2, replace=False).tolist()])


def outcome(job: Job) -> Outcome:
    recipe = recipe_of(job.recipe, job.method)
    simulation = SimulationRecipe(matrix=MATRIX, noise=1 / job.ratio, coils=job.coils)
    recipe = replace(recipe, simulation=simulation)
    scan = prepare(load_input(f"phantom:{job.scan}", recipe, job.seed), recipe, calibration_lines=16)
    try:
        error, status, products = result(scan, recipe, job)
    except InputError as refusal:
        error, status, products = float("nan"), f"refused: {refusal}", 0
    return Outcome(**asdict(job), error=error, status=status, products=products, raised=scan.noise_raised)


def result(scan: PreparedScan, recipe: Recipe, job: Job) -> tuple[float, str, int]:
    model = scan.slice_model(0, recipe)
    lines, missed = centre_and_random(MATRIX, LINES), 0
    if job.method == "design":
        strategy = make_strategy("calibrated")
        start = start_lines(model.measured, strategy, DESIGNED, recipe)
        trace = run_design([model], strategy, DESIGNED, recipe, seed=job.seed, start=start).trace
        lines, missed = list(trace.lines), sum(not step.cost.converged for step in trace.steps)
    made = reconstruct_by_recipe(model, lines, recipe, job.seed)
    converged = made.convergence.converged and not missed
    truth = scan.reference(0)
    assert truth is not None
    error = relative_l2(np.abs(made.image), np.abs(truth))
    return error, "converged" if converged else "not converged", made.convergence.matvecs


def played(folder: Path) -> list[Outcome]:
    """k-space of a Bloch simulation, without noise."""
    rows = []
    for name in ("gre", "tseT2"):
        if not (folder / f"mr0_{name}_k.npy").exists():
            continue
        with np.load(folder / f"mr0_{name}.npz") as archive:
            truth = np.abs(archive["img"])
        for kind in RECIPES:
            for method in ("mean", "map"):
                recipe = recipe_of(kind, method)
                scan = prepare(read(str(folder / f"mr0_{name}_k.npy")), recipe)  # type: ignore[arg-type]
                lines = np.flatnonzero(scan.data.measured).tolist()
                made = reconstruct_by_recipe(scan.slice_model(0, recipe), lines, recipe, 0)
                sd = float(np.sqrt(scan.data.noise_variance or 0))
                ratio = float(np.percentile(np.abs(made.image), 99.5)) / sd
                status = "converged" if made.convergence.converged else "not converged"
                error = up_to_scale(np.abs(made.image), truth)
                rows.append(
                    Outcome(f"MRzero {name}", 1, kind, method, ratio, 0, error, status, made.convergence.matvecs, "")
                )
    return rows


def up_to_scale(image: Array, truth: Array) -> float:
    return relative_l2(image * float(np.sum(image * truth) / np.sum(image**2)), truth)


def table(rows: list[Outcome]) -> list[Row]:
    """A row per scan, recipe and method: mean error over seeds at each ratio, and what did not converge."""
    lines: list[Row] = []
    for key in dict.fromkeys((r.scan, r.coils, r.recipe, r.method) for r in rows):
        own = [r for r in rows if (r.scan, r.coils, r.recipe, r.method) == key]
        line: Row = dict(zip(("scan", "coils", "recipe", "image"), key, strict=True))
        line |= {f"{ratio:.0e}": round(mean_error(own, ratio), 4) for ratio in RATIOS}
        bad = sum(r.status != "converged" for r in own)
        lines.append(line | {"rise %": round(100 * rise(own), 1), "not converged": f"{bad} of {len(own)}"})
    return lines


def mean_error(rows: list[Outcome], ratio: float) -> float:
    return float(np.mean([r.error for r in rows if r.ratio == ratio]))


def rise(own: list[Outcome]) -> float:
    """Largest mean error over that at `SAFE`, among larger ratios, less one."""
    return max(mean_error(own, ratio) / mean_error(own, SAFE) - 1 for ratio in RATIOS if ratio > SAFE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data", help="folder of the shared data")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        rows = list(pool.map(outcome, jobs(), chunksize=4))
    simulated = played(options.data / "simulated")
    write(rows, simulated, options.out)


def write(rows: list[Outcome], simulated: list[Outcome], out: Path) -> None:
    """The csv file, and the tables of the page."""
    write_csv(out / "little-noise.csv", [asdict(row) for row in [*rows, *simulated]])
    put_table(out / "little-noise.md", "Little noise", table(rows))
    of_simulated: list[Row] = [
        {
            "scan": r.scan,
            "recipe": r.recipe,
            "image": r.method,
            "ratio": round(r.ratio),
            "error": round(r.error, 4),
            "status": r.status,
            "products": r.products,
        }
        for r in simulated
    ]
    put_table(out / "little-noise.md", "k-space of a Bloch simulation", of_simulated)
    put_conditions(out / "little-noise.md", "mri-design", "numpy", "scipy")


if __name__ == "__main__":
    main()
