"""Other images of the object in the prior: errors with them and without, and of wrong ones.

    OMP_NUM_THREADS=1 python benchmarks/companions.py DATA [--groups contrast,echo] [--seeds 3]

DATA is the folder of raw scans and images. Every scan is simulated at 128 x 128 with noise of its own for every seed,
which also draws the mask; the companion is the posterior mean of a complete scan with other noise, registered by the
program itself. Each row has the relative L2 error without a companion, and the changes in per cent with it at every
strength, as the scan's own lines decide; `control` is that with the scan's own image in the companion's place, trusted,
at the default strength; `ratio` is the sum of the variances over the squared error, without the companion and with it.
Wrong companions are those of another head, mirrored ones, and ones shifted by 2 pixels or turned by 3 degrees without
registration. What has been computed is kept in errors.csv, and the same command goes on from there, with rows and
cells that are missing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from math import isclose
from pathlib import Path

import numpy as np
from parts.exams import GROUPS, Pair, designed_lines, random_lines
from parts.pages import Kept, lacking

from mri_design.evaluation.metrics import relative_l2
from mri_design.evidence.companions import RigidMotion
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Image, image_rng, reconstruct_prepared
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion
from mri_design.operators.base import Array

STRENGTHS = ("careful", "moderate", "strong")
DEFAULT = Recipe().companion.strength
ERRORS = ["error", *(name for strength in STRENGTHS for name in (strength, f"{strength} used"))]
COLUMNS = [*ERRORS, "gain", "control", "ratio", "ratio with", "seconds over plain"]
SHARES = (8, 4, 2)


def made(one: SliceModel, lines: list[int], companion: Companion | None, recipe: Recipe, std: bool) -> Image:
    """The image, with a companion or without."""
    beside = () if companion is None else (companion,)
    return reconstruct_prepared(replace(one, companions=beside), lines, "mean", recipe, image_rng(0), with_std=std)


def ratio(result: Image, truth: Array) -> float:
    """Sum of variances over the squared error."""
    assert result.std is not None
    return float(np.sum(result.std.astype(float) ** 2) / np.sum(np.abs(result.image - truth) ** 2))


def measure(row: dict[str, object], pair: Pair, lines: list[int], *, every: bool, registered: bool = True) -> None:
    """Fill a row with the error without the companion, and the changes with it that are not there yet.

    Parameters
    ----------
    row : dict
        Empty cells are "".
    pair : Pair
        The scan and the companion.
    lines : list of int
        Measured.
    every : bool
        Also the control, the error bars and the seconds.
    registered : bool
        Whether the companion is registered to the scan.
    """
    recipe = Recipe()
    one, truth = pair.scan.prepared.slice_model(0, **recipe.slice_settings), pair.scan.reference
    companion = Companion("companion", np.abs(pair.companion), in_place=not registered)
    began = time.process_time()
    plain = made(one, lines, None, recipe, every)
    seconds = time.process_time() - began
    error = relative_l2(plain.image, truth)
    if row["error"] != "" and not isclose(float(str(row["error"])), error, rel_tol=1e-3):
        raise SystemExit(f"{pair.name}, {len(lines)} lines: error {error:.5f}, kept is {row['error']}; empty this row")
    row["error"] = round(error, 5)
    for strength in lacking(row, STRENGTHS):
        named, std = recipe.replacing("companion", strength=strength), every and strength == DEFAULT
        began = time.process_time()
        result = made(one, lines, companion, named, std)
        assert result.companions is not None
        row[strength] = round(100 * (relative_l2(result.image, truth) / error - 1), 2)
        row[f"{strength} used"] = len(result.companions.used)
        if strength == DEFAULT and "gain" in row:
            row["gain"] = round(result.companions.offered[0].gain, 4)
        if std:
            row["seconds over plain"] = round((time.process_time() - began) / seconds, 2)
            row["ratio"], row["ratio with"] = round(ratio(plain, truth), 3), round(ratio(result, truth), 3)
    if every and lacking(row, ["control"]):
        control = made(
            one, lines, Companion("companion", np.abs(plain.image)), recipe.replacing("companion", trust=True), False
        )
        row["control"] = round(100 * (relative_l2(control.image, truth) / error - 1), 2)


def masks_of(pair: Pair, seed: int, designed: bool) -> Iterator[tuple[str, list[int]]]:
    """Variable density at 1/8, 1/4, 1/2 of the lines, and a design at 1/8 and 1/4."""
    one = pair.scan.prepared.slice_model(0, **Recipe().slice_settings)
    counts = [one.shape[0] // share for share in SHARES]
    for count in counts:
        yield "density", random_lines(one, count, seed)
    if designed:
        yield from (("designed", lines) for lines in designed_lines(one, counts[:2], seed).values())


def wrong_ones(data: Path, seed: int) -> list[tuple[Pair, bool]]:
    """Pairs whose companion is wrong, and whether the program may register it."""
    right = GROUPS["contrast"](data, seed)
    found = []
    for place, pair in enumerate(right):
        other = right[(place + 1) % len(right)].companion
        wrong = {
            "other head": (other, True),
            "mirrored": (pair.companion[:, ::-1], True),
            "shifted 2 px": (np.roll(pair.companion, 2, axis=0), False),
            "turned 3 degrees": (RigidMotion(angle=3.0).applied(pair.companion), False),
        }
        found += [
            (replace(pair, kind=f"wrong: {name}", companion=image), register)
            for name, (image, register) in wrong.items()
        ]
    return found


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--groups", default=",".join([*GROUPS, "wrong"]))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--designed", action="store_true", help="also masks designed by calibrated, of the first seed")
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    kept = Kept.at(given.out / "errors.csv", "kind", "name", "mask", "lines", "seed")
    for seed in range(given.seeds):
        for group in given.groups.split(","):
            designed = given.designed and seed == 0 and group != "wrong"
            wrong = wrong_ones(given.data, seed) if group == "wrong" else None
            for pair, register in wrong or [(pair, True) for pair in GROUPS[group](given.data, seed)]:
                for mask, lines in masks_of(pair, seed, designed):
                    named = {"kind": pair.kind, "name": pair.name, "mask": mask, "lines": len(lines), "seed": seed}
                    row = kept.row(named | dict.fromkeys(COLUMNS, ""))
                    if lacking(row, STRENGTHS):
                        measure(row, pair, lines, every=wrong is None, registered=register)
                        kept.put(row)


if __name__ == "__main__":
    main()
