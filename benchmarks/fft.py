"""Milliseconds of filters of images by compiled loops and by SciPy's FFT: the table of docs/fft.md.

    OMP_NUM_THREADS=1 python benchmarks/fft.py

takes both in turns in one process, and the median over turns. ``--quick`` is a smoke run on small grids.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from parts.pages import put_conditions, put_table

from mri_design.evaluation.tables import Row
from mri_design.operators import Coils
from mri_design.operators.fourier import LineTransform, SpectralFilter

PAGE = Path(__file__).parents[1] / "docs/fft.md"
GRIDS = [(64, 64), (128, 128), (256, 256), (320, 320), (180, 230), (200, 200)]
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

    def noise(*shape: int) -> np.ndarray:
        return rng.standard_normal((*shape, 2), dtype=np.float32).view(np.complex64)[..., 0]

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


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=21, help="turns, of which the median is taken")
    parser.add_argument("--out", type=Path, default=PAGE, help="page whose table is replaced")
    parser.add_argument("--quick", action="store_true", help="a smoke run on small grids")
    chosen = parser.parse_args()
    grids, turns = ([(16, 16)], 1) if chosen.quick else (GRIDS, chosen.turns)
    rows = [row(grid, coils, images, turns) for grid in grids for coils in (1, 8) for images in (1, 8)]
    put_table(chosen.out, "Measurements", rows, None, {name: ".2f" for name in rows[0] if "," in name})
    put_conditions(chosen.out, "numpy", "scipy", "numba")


if __name__ == "__main__":
    main()
