"""Masks of designs that know another image of the object, against masks that do not.

    OMP_NUM_THREADS=1 python benchmarks/companion_masks.py DATA [--seeds 2]

DATA is the folder of raw scans and images; scans and companions are those of companions.py. Designs by the
strategy `calibrated` begin with the same lines: one that knows no other image (alone), one that takes the companion for
an earlier scan, as `--seen` does (mask), the same from an eighth of the lines on, the first of which are chosen without
it (late), and one whose prior has the companion's block from the start (prior). The companion is registered to the
image of the lines that a design begins with. Every mask is reconstructed by the recipe `local`, without the
companion and with it at the default strength. Each row has the error of the mask alone without the companion, and the
changes of all others against it in per cent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from companions import made
from parts.exams import GROUPS, LOCAL, Pair
from parts.pages import put_table

from mri_design.design.strategies.calibrated import Calibrated
from mri_design.design.strategy import Strategy
from mri_design.errors import InputError
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, write_csv
from mri_design.evidence.registration import register
from mri_design.experiment.designing import run_design
from mri_design.experiment.starting import start_lines
from mri_design.model.companion import companion_patches
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.runs.design.earlier import EarlierImage, informed


def registered(companion: Array, image: Array) -> Array:
    """Modulus of the companion where the image is; where it was where nothing can be registered."""
    modulus = np.abs(companion)
    try:
        return register(image, modulus).motion.applied(modulus)
    except InputError:
        return modulus


def designs(one: MRSlice, companion: Array, most: int, seed: int) -> Iterator[tuple[str, list[int]]]:
    """Lines in the order of choice, of each design."""
    start = tuple(start_lines(one.measured, Calibrated(), most // 2, LOCAL))

    def lines(slice_model: MRSlice, strategy: Strategy, first: tuple[int, ...]) -> list[int]:
        return list(run_design([slice_model], strategy, most, LOCAL, seed=seed, start=first).trace.lines)

    def knowing(first: tuple[int, ...]) -> Strategy:
        seen = one.central_image(first)
        image = (registered(companion, seen) * np.exp(1j * np.angle(seen))).astype(np.complex64)
        earlier = EarlierImage("companion", image, np.zeros(one.candidates.size))
        return informed([earlier], [one], first, LOCAL, seed)

    alone = lines(one, Calibrated(), start)
    half = tuple(alone[: most // 2])
    patches = companion_patches([registered(companion, one.central_image(start))])
    prior = LOCAL.companion.prior(one.prior, most / one.candidates.size)
    yield "alone", alone
    yield "mask", lines(one, knowing(start), start)
    yield "late", lines(one, knowing(half), half)
    yield "prior", lines(replace(one, companion=patches, prior=prior), Calibrated(), start)


def rows_of(pair: Pair, seed: int) -> list[Row]:
    """One scan at an eighth and a quarter of its lines."""
    one, truth = pair.scan.prepared.slice_model(0, LOCAL), pair.scan.reference
    counts = [one.shape[0] // 8, one.shape[0] // 4]
    rows = [dict[str, object](kind=pair.kind, name=pair.name, lines=count, seed=seed) for count in counts]
    for name, order in designs(one, pair.companion, counts[1], seed):
        for row, count in zip(rows, counts, strict=True):
            for suffix, companion in (("", None), (" with", pair.companion)):
                error = relative_l2(made(one, sorted(order[:count]), companion, LOCAL, False).image, truth)
                first = float(str(row.setdefault("error", round(error, 5))))
                row[name + suffix] = round(100 * (error / first - 1), 2)
    for row in rows:
        print(*row.values(), sep=" | ", flush=True)
    return list(rows)


def main() -> None:
    """Measure every pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--groups", default="contrast,low-field,echo")
    parser.add_argument("--each", type=int, default=2, help="pairs of each group")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = list[Row]()
    for seed in range(given.seeds):
        pairs = [GROUPS[group](given.data, seed)[: given.each] for group in given.groups.split(",")]
        for pair in (one for together in zip(*pairs, strict=True) for one in together):
            rows += rows_of(pair, seed)
            write_csv(given.out / "masks.csv", rows)
    put_table(given.out / "masks.md", "Every mask", rows)


if __name__ == "__main__":
    main()
