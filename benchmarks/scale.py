"""How far the package goes: sizes of images, cores of a machine.

    OMP_NUM_THREADS=1 python benchmarks/scale.py

measures everything (some twenty minutes on two cores) and writes a table for each section, and those of README.md,
under results/scale. ``--only sizes|jobs`` measures one section. ``--quick`` is a smoke run in a minute. Two processes
need two idle cores.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from parts.pages import put_conditions, put_table
from parts.timed_design import timed_design

from mri_design.evaluation.tables import Row, write_csv
from mri_design.scan.simulation.phantoms import load_phantom

HERE = Path(__file__).parents[1]
CASES = ((128, 1), (256, 1), (512, 1), (1024, 1), (512, 8), (256, 32))
TOYS = ((32, 1), (48, 1), (32, 2))
STEPS = 3
SHARE = 4
"""One in so many lines is there at the start."""


TABLES = ("comparison.csv", "masks.csv", "metrics.csv", "protocol.csv", "lines.csv")
"""Files whose bytes have to be the same, where a run writes them."""
WAYS = {
    "serial": ("--jobs", "1"),
    "two jobs": ("--jobs", "2"),
    "dask, two workers": ("--jobs", "2", "--executor", "dask"),
}


def size_rows(cases: Sequence[tuple[int, int]], seed: int = 0) -> list[Row]:
    """One row per (grid, coils): three steps of a default design, in a process of its own, on one thread."""
    rows: list[Row] = []
    for grid, coils in cases:
        start = grid // SHARE
        found = timed_design(HERE, (grid, coils, start, start + STEPS), seed)
        rows.append(
            {
                "grid": grid,
                "coils": coils,
                "lines": f"{start} to {start + STEPS}",
                "CPU s": float(str(found["processor s"])),
                "of which system": float(str(found["of which system"])),
                "products": int(str(found["products"])),
                "peak GiB": float(str(found["peak MiB"])) / 1024,
            }
        )
    return rows


def exponents(rows: Sequence[Row]) -> tuple[float | None, float | None]:
    """Exponents of processor time per product in pixels, one coil: fitted over all sizes, and between the two largest.

    Products are counted, because how many a design takes depends on the image and its lines, not on size alone.
    """
    single = [row for row in rows if int(str(row["coils"])) == 1]
    pixels = np.log([float(str(row["grid"])) ** 2 for row in single])
    times = np.log([float(str(row["CPU s"])) / float(str(row["products"])) for row in single])
    if len(single) < 2:
        return None, None
    last = (times[-1] - times[-2]) / (pixels[-1] - pixels[-2])
    return float(np.polyfit(pixels, times, 1)[0]), float(last)


def stack(path: Path, count: int, matrix: int) -> Path:
    """So many slices of one head, each with its own noise and shift, fully sampled."""
    rng = np.random.default_rng(0)
    slices = []
    for number in range(count):
        data = load_phantom("t2w", shape=(matrix, matrix), rng=rng)
        turns = np.exp(2j * np.pi * (number % 5 - 2) * np.arange(matrix) / matrix)
        slices.append(data.kspace[0] * turns[:, None])
    np.save(path, np.array(slices).astype(np.complex64))
    path.with_suffix(".json").write_text('{"dims": ["slice", "coil", "ky", "kx"], "noise_variance": 4.9e-5}')
    return path


def job_rows(what: str, words: Sequence[str], ways: Sequence[str], folder: Path) -> list[Row]:
    """One row per way: seconds on the clock, how many times faster than serial, and whether the results are the same.

    Parameters
    ----------
    what : str
        Name of the work.
    words : sequence of str
        Verb and options of the command line, without folder and jobs.
    ways : sequence of str
        Of `WAYS`, serial first.
    folder : Path
        For the runs' folders; every run is one of its own.
    """
    rows: list[Row] = []
    for way in ways:
        out = folder / f"{what}-{way}".replace(" ", "-").replace(",", "")
        seconds = _run(words, WAYS[way], out)
        rows.append({"work": what, "way": way, "s": seconds, "same results": results(out)})
    first = rows[0]
    return [
        {
            **row,
            "times as fast": float(str(first["s"])) / float(str(row["s"])),
            "same results": row["same results"] == first["same results"],
        }
        for row in rows
    ]


def compile_loops(words: Sequence[str], folder: Path) -> None:
    """Run a command once in one process, so that no way that is timed compiles what the others find compiled."""
    _run(words, WAYS["serial"], folder / "compiled")


def _run(words: Sequence[str], way: Sequence[str], out: Path) -> float:
    """Seconds on the clock of one command."""
    program = [sys.executable, "-m", "mri_design.cli.main"]
    command = [*program, *words, *way, "--out", str(out), "--no-report", "--quiet"]
    began = time.perf_counter()
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if found.returncode not in (0, 4):
        raise RuntimeError(f"{' '.join(command)}: {found.stderr}")
    return seconds


def results(folder: Path) -> dict[str, bytes]:
    """The tables and masks of a run."""
    kept = {path.name: path.read_bytes() for path in folder.rglob("*") if path.name in TABLES or path.suffix == ".npy"}
    if not kept:
        raise RuntimeError(f"{folder} has no table to compare")
    return kept


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


def main() -> None:
    """Measure and write after each section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results/scale", help="folder for tables and page")
    parser.add_argument("--only", choices=("sizes", "jobs"), help="this section only")
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    page, formats = given.out / "README.md", {"CPU s": ".3g", "of which system": ".2g", "peak GiB": ".2f"}
    if given.only != "jobs":
        rows = size_rows(TOYS if given.quick else CASES)
        write_csv(given.out / "sizes.csv", rows)
        put_table(page, "Sizes of images", rows, None, formats)
        print(
            "exponent of processor time per product in pixels, over all sizes and of the two largest:", exponents(rows)
        )
    if given.only != "sizes":
        rows = jobs(given.quick)
        write_csv(given.out / "jobs.csv", rows)
        put_table(page, "Cores of a machine", rows, None, {"s": ".3g", "times as fast": ".3g"})
    put_conditions(page, "numpy", "scipy", "numba", "distributed")


if __name__ == "__main__":
    main()
