"""Cost of the demo, and whether its cheaper reconstruction tells the same story as the default one.

    OMP_NUM_THREADS=1 python benchmarks/demo.py

runs the demo's comparison with the default recipe and with the one that the demo uses, densities tuned each time, for
three seeds; then the whole demo with nothing compiled before, three times. It leaves results/speed/demo.csv (mean error
of every strategy at every number of lines), demo-powers.csv (what tuning found), demo-seconds.csv and demo.md. Seconds
are processor time of the process and its workers, but for `make demo` in a fresh clone, where they are those of a
clock: that installs packages from the registry first, and says something on idle cores only. `--only seconds` measures
the whole runs, beside the strategies' table that is there.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from parts.pages import put_table

from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, csv_text, read_csv, write_csv
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.slice_choice import scan_sources
from mri_design.runs import demo
from mri_design.runs.compare import ComparisonRequest, compare_strategies
from mri_design.runs.run import Run

HERE = Path(__file__).parents[1]
OUT = HERE / "results/speed"
RECIPES = ("default", demo.RECIPE)
WHOLE = "the whole demo, nothing compiled before"
CLONE = "make demo in a fresh clone, by the clock"


def compared(recipe: str, seed: int) -> tuple[list[Row], list[Row]]:
    """Mean errors of the demo's strategies under a recipe, and the powers that tuning found."""
    request = ComparisonRequest(
        sources=scan_sources([demo.HEAD], "middle"),
        recipe=load_recipe(recipe).replacing("simulation", matrix=demo.MATRIX),
        strategies=demo.STRATEGIES,
        lines=demo.COUNTS,
        train=scan_sources([demo.TRAINING], "middle"),
        seeds=demo.DRAWS,
    )
    began = _processor_seconds()
    with tempfile.TemporaryDirectory() as place, RunFolder(Path(place) / "run", reported=False) as folder:
        result = compare_strategies(request, Run(folder=folder, seed=seed, jobs=demo.JOBS))
    seconds = _processor_seconds() - began
    names = ("strategy", "lines", "relative_l2", "sd_draws")
    errors = [
        {"recipe": recipe, "seed": seed, **{name: row[name] for name in names}, "seconds": seconds}
        for row in result.errors.summary
    ]
    return errors, [{"recipe": recipe, "seed": seed, **row} for row in result.tuned]


def orders(errors: Sequence[Row]) -> list[Row]:
    """The strategies at each number of lines, best first, by their mean error over seeds, under each recipe."""
    rows: list[Row] = []
    for count in demo.COUNTS:
        for recipe in RECIPES:
            means: dict[str, float] = {}
            for name in dict.fromkeys(str(row["strategy"]) for row in errors):
                of = [
                    float(str(row["relative_l2"]))
                    for row in errors
                    if (row["recipe"], row["lines"], row["strategy"]) == (recipe, count, name)
                ]
                means[name] = statistics.mean(of)
            told = ", ".join(f"{name} {100 * means[name]:.1f}" for name in sorted(means, key=means.__getitem__))
            rows.append({"lines": count, "recipe": recipe, "strategies, best first, with their error in %": told})
    return rows


def demo_seconds() -> float:
    """Processor time of the whole demo, every worker included, with nothing compiled before."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "mri_design.cli.start", "demo", "--quiet", "--out", str(Path(place) / "demo")]
        _adopt_orphans()
        before = _processor_seconds()
        subprocess.run(command, check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(Path(place) / "compiled")})
        with suppress(ChildProcessError):
            while True:
                os.wait()
        return _processor_seconds() - before


def _adopt_orphans() -> None:
    """Have processes that outlive the one that began them, as that which workers are copied from, count as ours."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("processes of processes cannot be counted: this takes Linux")


def clone_seconds() -> float:
    """Seconds by the clock of ``make demo`` in a fresh clone of the last commit, from nothing to the report."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["git", "clone", "--quiet", str(HERE), place], check=True)
        plain = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
        began = time.perf_counter()
        subprocess.run(["make", "--silent", "demo"], cwd=place, env=plain, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


def _processor_seconds() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main(seeds: int, repeats: int, out: Path, only: str | None) -> None:
    """Print and write."""
    kept = only is not None
    errors: list[Row] = list(read_csv(out / "demo.csv")) if kept else []
    powers: list[Row] = list(read_csv(out / "demo-powers.csv")) if kept else []
    for seed in range(0 if kept else seeds):
        for recipe in RECIPES:
            told, tuned = compared(recipe, seed)
            errors, powers = errors + told, powers + tuned
            print(recipe, seed, f"{float(str(told[0]['seconds'])):.0f} s", flush=True)
    seconds = [demo_seconds() for _ in range(repeats)]
    whole: list[Row] = [
        {"what": WHOLE, "seconds": statistics.median(seconds)},
        {"what": CLONE, "seconds": statistics.median(clone_seconds() for _ in range(repeats))},
        *(
            {
                "what": f"its comparison under the recipe {recipe}, densities tuned",
                "seconds": statistics.median(float(str(r["seconds"])) for r in errors if r["recipe"] == recipe),
            }
            for recipe in RECIPES
        ),
    ]
    out.mkdir(parents=True, exist_ok=True)
    if not kept:
        write_csv(out / "demo.csv", errors, formats={"seconds": ".0f"})
        write_csv(out / "demo-powers.csv", powers)
    write_csv(out / "demo-seconds.csv", whole, formats={"seconds": ".0f"})
    put_table(out / "demo.md", "Seconds", whole, None, {"seconds": ".0f"})
    put_table(out / "demo.md", "The order of the strategies", orders(errors))
    print(csv_text(whole))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["seconds"], help="leave the comparisons as they are")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    main(chosen.seeds, chosen.repeats, chosen.out, chosen.only)
