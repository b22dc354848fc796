"""Milliseconds of filters of images by compiled loops and by SciPy's FFT: the table of docs/fft.md.

    OMP_NUM_THREADS=1 python benchmarks/fft.py

takes both in turns in one process, and the median over turns. ``--quick`` is a smoke run on small grids.

    OMP_NUM_THREADS=1 python benchmarks/fft.py --against CHECKOUT

takes X^H X of lines by this and another version in turns, on grids whose sides have large prime factors and on others,
and leaves fft.csv, a table of README.md and rows of targets.csv in results/speed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from parts.pages import Kept, put_conditions, put_table

from mri_design.evaluation.tables import Row, write_csv
from mri_design.operators import Coils
from mri_design.operators.fourier import LineTransform, SpectralFilter

PAGE = Path(__file__).parents[1] / "docs/fft.md"
RESULTS = PAGE.parents[1] / "results/speed"
GRIDS = [(64, 64), (128, 128), (256, 256), (320, 320), (180, 230), (230, 180), (368, 368), (200, 200)]
SIDES, LIKE = (230, 240, 256, 368, 372, 384), {230: 240, 368: 384, 372: 384}
"""Of square grids; and what those with a prime factor above 13 are compared with."""
COILS, IMAGES, TURNS, MOST = 8, 4, 5, 2
LOOPS = "mri_design.operators.kernels.fft"


def alternating(products: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Milliseconds of each product, the median over turns."""
    seconds: dict[str, list[float]] = {name: [] for name in products}
    for _ in range(turns + 1):  # the first one compiles, and lays out weights
        for name, product in products.items():
            began = time.process_time()
            product()
            seconds[name].append(time.process_time() - began)
    return {name: 1e3 * statistics.median(each[1:]) for name, each in seconds.items()}


def by_scipy(product: Callable[[], object]) -> object:
    """The product with the compiled loops refusing every size."""
    with mock.patch(f"{LOOPS}.suits", lambda *_: False), mock.patch(f"{LOOPS}.suits_both", lambda *_: False):
        return product()


def row(grid: tuple[int, int], coils: int, images: int, turns: int) -> Row:
    """Lines masked along ky, and a filter along both axes (one coil), of some images at a time."""
    rng = np.random.default_rng(0)
    u, mask, response = noise(images, *grid), rng.random(grid[0]), rng.random(grid)
    lines = LineTransform(Coils(noise(coils, *grid) if coils > 1 else None, grid))
    both = {who: SpectralFilter(response) for who in ("loops", "scipy")}
    found = alternating(
        {
            "lines, loops": lambda: lines.filtered(u, mask),
            "lines, SciPy": lambda: by_scipy(lambda: lines.filtered(u, mask)),
            "both axes, loops": lambda: both["loops"](u),
            "both axes, SciPy": lambda: by_scipy(lambda: both["scipy"](u)),
        },
        turns,
    )
    ratios = {f"{kind}, ratio": found[f"{kind}, SciPy"] / found[f"{kind}, loops"] for kind in ("lines", "both axes")}
    return {"grid": f"{grid[0]} x {grid[1]}", "coils": coils, "images": images, **found, **ratios}


def each_side() -> dict[int, float]:
    """Nanoseconds a pixel and coil of X^H X of lines, side by side."""
    found = {}
    for n in SIDES:
        transform, images, mask = (
            LineTransform(Coils(noise(COILS, n, n), (n, n))),
            noise(IMAGES, n, n),
            np.arange(n) % 3 == 0,
        )
        took = alternating({"": partial(transform.filtered, images, mask)}, TURNS)[""]
        found[n] = 1e6 * took / (n * n * COILS * IMAGES)
    return found


def against(checkout: Path) -> None:
    """Both versions in turns, each in processes of its own."""
    versions = {"here": Path(__file__).parents[1], "there": checkout.resolve()}
    found: dict[str, list[dict[int, float]]] = {name: [] for name in versions}
    for _ in range(TURNS):
        for name, root in versions.items():
            environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{Path(__file__).parent}"}
            words = [sys.executable, "-P", __file__, "--sides"]
            ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
            found[name].append({int(n): took for n, took in json.loads(ended.stdout).items()})

    def median(name: str, of: int, over: int | None = None) -> float:
        return statistics.median(turn[of] / (turn[over] if over else 1) for turn in found[name])

    rows = list[Row]()
    for n in SIDES:
        row: Row = {"grid": f"{n} x {n}"} | {f"ns, {name}": median(name, n) for name in versions}
        both = zip(found["here"], found["there"], strict=True)
        row["here / there"] = statistics.median(here[n] / there[n] for here, there in both)
        like = LIKE.get(n)
        row["compared with"] = like or ""
        rows.append(row | {f"over that, {name}": median(name, n, like) if like else "" for name in versions})
    write_csv(RESULTS / "fft.csv", rows)
    shown = {name: ".2f" for name in rows[0] if "here" in name or "there" in name}
    put_table(RESULTS / "README.md", "Grids with large prime factors", rows, None, shown)
    worst = max(median("here", n, LIKE[n]) for n in (230, 368))
    kept = Kept.at(RESULTS / "targets.csv", "what")
    what = "X^H X of lines a pixel and coil: grids of 230 and 368 over 240 and 384, the larger one"
    met = "yes" if worst <= MOST else "no"
    kept.put({"what": what, "target": f"<= {MOST}", "measured": f"{worst:.2f}", "unit": "times", "met": met})


def noise(*shape: int) -> np.ndarray:
    """Complex, of single precision."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((*shape, 2), dtype=np.float32).view(np.complex64)[..., 0]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=21, help="turns, of which the median is taken")
    parser.add_argument("--out", type=Path, default=PAGE, help="page whose table is replaced")
    parser.add_argument("--quick", action="store_true", help="a smoke run on small grids")
    parser.add_argument("--against", type=Path, help="another working tree")
    parser.add_argument("--sides", action="store_true", help="print what `--against` asks a version for")
    chosen = parser.parse_args()
    if chosen.sides:
        print(json.dumps(each_side()))
        return
    if chosen.against:
        against(chosen.against)
        return
    grids, turns = ([(16, 16)], 1) if chosen.quick else (GRIDS, chosen.turns)
    rows = [row(grid, coils, images, turns) for grid in grids for coils in (1, 8) for images in (1, 8)]
    put_table(chosen.out, "Measurements", rows, None, {name: ".2f" for name in rows[0] if "," in name})
    put_conditions(chosen.out, "numpy", "scipy", "numba")


if __name__ == "__main__":
    main()
