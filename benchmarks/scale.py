"""How far the package goes: sizes of images, cores of a machine, machines of a cluster.

    OMP_NUM_THREADS=1 python benchmarks/scale.py

measures everything (some twenty minutes on two cores) and writes README.md, targets.csv and a table for each section
under results/scale. ``--only sizes|jobs|model`` measures one section; the page is made of the tables that are there.
``--quick`` is a smoke run in a minute, where targets mean nothing. Two processes need two idle cores: the page has the
load that there was.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from parts.targets import COLUMNS, Tables, Target, largest, smallest
from scaling.jobs import compile_loops, job_rows, stack
from scaling.model import Sizes, model_rows, most_workers, seconds_per_task
from scaling.sizes import exponents, size_rows

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text, read_csv
from mri_design.scan.io.atomic import write_text

HERE = Path(__file__).parents[1]
CASES = ((128, 1), (256, 1), (512, 1), (1024, 1), (512, 8), (256, 32))
TOYS = ((32, 1), (48, 1), (32, 2))
SLICES, WORKERS = 1000, (1, 2, 5, 10, 20, 50, 100, 200, 1000)
MODELLED = 256
"""Grid of the slices of the model."""


def sizes(quick: bool) -> list[Row]:
    """Processor time and memory by image size."""
    return size_rows(TOYS if quick else CASES, HERE)


def jobs(quick: bool) -> list[Row]:
    """Eight images with two jobs, and 32 with two workers of dask."""
    few, many, matrix, smaller = (2, 2, 24, 24) if quick else (8, 32, 128, 64)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scans = str(stack(folder / "eight.npy", few, matrix)), str(stack(folder / "many.npy", many, smaller))
        common, less = (("--slices", "all", "--lines", str(side // 4)) for side in (matrix, smaller))
        compared = ("--strategies", "calibrated,vd-polynomial", "--seeds", "2")
        compile_loops(("compare", scans[0], "--slices", "0", *common[2:], *compared), folder)
        rows += job_rows(
            f"compare, {few} images", ("compare", scans[0], *common, *compared), ("serial", "two jobs"), folder
        )
        rows += job_rows(
            f"protocol, {few} slices", ("protocol", scans[0], *common, "--swaps", "0"), ("serial", "two jobs"), folder
        )
        rows += job_rows(
            f"compare, {many} slices",
            ("compare", scans[1], *less, *compared),
            ("serial", "dask, two workers"),
            folder,
        )
    return rows


def model(quick: bool) -> list[Row]:
    """What one slice takes: a design beyond the start of the program, handing out a task, keeping a result."""
    matrix = 32 if quick else MODELLED
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scan = stack(folder / "one.npy", 1, matrix)
        spent = {}
        for what, words in {
            "start": ("info", str(scan)),
            "task": ("design", str(scan), "--lines", str(matrix // 4), "--no-report", "--out", str(folder / "run")),
        }.items():
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "mri_design.cli.main", *words, *(["--quiet"] if what == "task" else [])],
                capture_output=True,
                check=False,
            )
            spent[what] = time.perf_counter() - began
        began = time.perf_counter()
        for number in range(20):
            write_text(folder / f"{number}.csv", "x" * 4096)
        collect = (time.perf_counter() - began) / 20
        return [
            {
                "grid": matrix,
                "task": spent["task"] - spent["start"],
                "start": spent["start"],
                "hand_out": seconds_per_task(20 if quick else 500),
                "collect": collect,
                "slice_bytes": int(np.load(scan).nbytes),
            }
        ]


SECTIONS = {"sizes": sizes, "jobs": jobs, "model": model}


def targets_of(tables: Tables, quick: bool) -> list[Row]:
    """What was asked for, beside what was measured."""

    def at(which: int) -> Target:
        name = ("fitted over all sizes", "between the two largest")[which]
        return Target(
            f"exponent of CPU time per product in pixels, one coil, {name}",
            1.2,
            False,
            "1",
            "sizes",
            lambda rows: exponents(rows)[which],
        )

    made = [at(0), at(1)]
    for grid, coils, seconds, gib in () if quick else ((512, 8, 35, 1.5), (1024, 1, 35, 1.0), (256, 32, None, 1.5)):
        name = f"{grid} x {grid}, {'one coil' if coils == 1 else f'{coils} coils'}, three steps"
        if seconds is not None:
            made.append(
                Target(f"{name}: CPU time", seconds, False, "s", "sizes", smallest("CPU s", grid=grid, coils=coils))
            )
        made.append(Target(f"{name}: peak", gib, False, "GiB", "sizes", largest("peak GiB", grid=grid, coils=coils)))
    works = list(dict.fromkeys((str(row["work"]), str(row["way"])) for row in tables.get("jobs", ())))
    for work, way in works:
        if way != "serial":
            made.append(
                Target(
                    f"{work}: {way} against serial",
                    1.7,
                    True,
                    "times",
                    "jobs",
                    smallest("times as fast", work=work, way=way),
                )
            )
    return [target.row(tables) for target in made]


def document(tables: Tables, targets: Sequence[Row], command: str) -> str:
    """The page."""
    versions = ", ".join(f"{k} {v}" for k, v in installed_versions(("numpy", "scipy", "numba", "distributed")).items())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    formats = {"CPU s": ".3g", "of which system": ".2g", "peak GiB": ".2f", "s": ".3g", "times as fast": ".3g"}
    text = f"""# How far it goes

    OMP_NUM_THREADS=1 {command}

{versions}; {os.cpu_count()} cores; load averages {load} when the page was written.

## Targets

{markdown_text(targets, COLUMNS, {"measured": ".3g"})}
## Sizes of images

Three steps of a default design of the embedded head, from a quarter of the lines, each size in a process of its own on
one thread: processor time without reading and report, and the largest resident size of the process.

{shown(tables, "sizes", formats)}
## Cores of a machine

Seconds on the clock of whole commands, without reports: the same slices by one process, by two (`--jobs 2`), and by a
dask cluster of two workers that the command starts itself (`--executor dask`), start and end of processes included.
`same results`: whether tables and masks are the same byte for byte. Eight slices are of 128 x 128, 32 of 64 x 64, with
a quarter of the lines and the default recipe; `compare` designs by `calibrated`, draws two masks of `vd-polynomial`,
and reconstructs from all of them. `protocol` is what designs one mask for several slices: `design` takes one, or the
positions of a volume.

{shown(tables, "jobs", formats)}
"""
    return text + "".join(modelled(row) for row in tables.get("model", ()))


def shown(tables: Tables, name: str, formats: Mapping[str, str]) -> str:
    """A table of the page, or that it was not measured."""
    return markdown_text(tables[name], None, formats) if tables.get(name) else "Not measured.\n"


def modelled(row: Row) -> str:
    """The section about many machines."""
    numbers = [float(str(row[name])) for name in ("task", "start", "hand_out", "collect")]
    one = Sizes(*numbers, int(str(row["slice_bytes"])))
    formats = {"hours": ".3g", "times as fast": ".3g", "efficiency": ".0%"}
    return f"""
## {SLICES} slices on many machines: a model

Not a measurement of a cluster: computed from what one slice of {row["grid"]} x {row["grid"]}, one coil, takes on this
machine with a default design of a quarter of its lines, image and error bars. A worker takes {one.start:.1f} s to be
there and {one.task:.0f} s for a slice. The one who waits spends {1e3 * one.hand_out:.1f} ms on handing out a task and
{1e3 * one.collect:.1f} ms on keeping its result, and sends {one.slice_bytes / 1e6:.2f} MB over a network of 1 Gb/s that
all share.

{markdown_text(model_rows(one, SLICES, WORKERS), None, formats)}
It stops at {min(SLICES, int(most_workers(one)))} workers: what is done in one place holds up {most_workers(one):.0f},
and beyond {SLICES} there is no slice left for another one. A slice is the smallest piece, as every line of a design
depends on the line before it. Up to there what is lost is the start, and the last round where {SLICES} is no multiple
of the workers. Slices are taken as equally long, and machines as equally fast.
"""


def main() -> None:
    """Measure, write after each section, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results/scale", help="folder for tables and page")
    parser.add_argument("--only", action="append", choices=[*SECTIONS, "page"], help="this section only")
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only or SECTIONS:
        if name in SECTIONS:
            write_text(given.out / f"{name}.csv", csv_text(SECTIONS[name](given.quick)))
            print(f"... {name}", file=sys.stderr, flush=True)
    files = {name: given.out / f"{name}.csv" for name in SECTIONS}
    tables: Mapping[str, Sequence[Row]] = {name: read_csv(file) for name, file in files.items() if file.exists()}
    targets = targets_of(tables, given.quick)
    write_text(given.out / "targets.csv", csv_text(targets, COLUMNS))
    text = document(tables, targets, f"python benchmarks/scale.py{' --quick' if given.quick else ''}")
    write_text(given.out / "README.md", text)
    print(text)


if __name__ == "__main__":
    main()
