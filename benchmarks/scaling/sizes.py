"""How the processor time and the memory of a design grow with the image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from parts.timed_design import timed_design

from mri_design.evaluation.tables import Row

STEPS = 3
SHARE = 4
"""One in so many lines is there at the start."""


def size_rows(cases: Sequence[tuple[int, int]], checkout: Path, seed: int = 0) -> list[Row]:
    """One row per (grid, coils): three steps of a default design, in a process of its own, on one thread."""
    rows: list[Row] = []
    for grid, coils in cases:
        start = grid // SHARE
        found = timed_design(checkout, (grid, coils, start, start + STEPS), seed)
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
    """Of processor time per product in pixels, one coil: fitted over all sizes, and between the two largest.

    Products are counted, because how many a design takes depends on the image and its lines, not on size alone.
    """
    single = [row for row in rows if int(str(row["coils"])) == 1]
    pixels = np.log([float(str(row["grid"])) ** 2 for row in single])
    times = np.log([float(str(row["CPU s"])) / float(str(row["products"])) for row in single])
    if len(single) < 2:
        return None, None
    last = (times[-1] - times[-2]) / (pixels[-1] - pixels[-2])
    return float(np.polyfit(pixels, times, 1)[0]), float(last)
