"""Other images of the object in the prior: errors with them and without, and of wrong ones.

    OMP_NUM_THREADS=1 python benchmarks/companions.py DATA [--groups contrast,echo] [--seeds 3]

DATA is the folder of raw scans and images. Every scan is simulated at 128 x 128 with noise of its own for every seed,
which also draws the mask; the companion is the posterior mean of a complete scan with other noise, registered by the
program itself. Each row has the relative L2 error without a companion, and the changes in per cent with it at every
strength, as the scan's own lines decide; `control` is that with the scan's own image in the companion's place, trusted,
at the default strength; `ratio` is the sum of the variances over the squared error, without the companion and with it.
Wrong companions are those of another head, mirrored ones, and ones shifted by 2 pixels or turned by 3 degrees without
registration. What has been computed is kept in errors.csv, and the same command goes on from there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.exams import GROUPS, Pair, designed_lines, random_lines

from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, image_rng, reconstruct
from mri_design.model.companion import Companion
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.scan.registration import RigidMotion

STRENGTHS = ("careful", "moderate", "strong")
SHARES = (8, 4, 2)


def made(one: MRSlice, lines: list[int], companion: Array | None, recipe: Recipe, std: bool) -> Reconstruction:
    """The image, with a companion or without."""
    beside = () if companion is None else (Companion("companion", np.abs(companion)),)
    return reconstruct(replace(one, companions=beside), lines, "mean", recipe, image_rng(0), with_std=std)


def ratio(result: Reconstruction, truth: Array) -> float:
    """Sum of variances over the squared error."""
    assert result.std is not None
    return float(np.sum(result.std.astype(float) ** 2) / np.sum(np.abs(result.image - truth) ** 2))


def row_of(pair: Pair, mask: str, lines: list[int], seed: int) -> Row:
    """One scan from one mask, without the companion and with it at every strength."""
    recipe = Recipe()
    one, truth = pair.scan.prepared.slice_model(0, recipe), pair.scan.reference
    began = time.process_time()
    plain = made(one, lines, None, recipe, True)
    seconds = [time.process_time() - began]
    error = relative_l2(plain.image, truth)
    row: Row = {
        "kind": pair.kind,
        "name": pair.name,
        "mask": mask,
        "lines": len(lines),
        "seed": seed,
        "error": round(error, 5),
        "ratio": round(ratio(plain, truth), 3),
    }
    for strength in STRENGTHS:
        named = recipe.replacing("companion", companion_strength=strength)
        began = time.process_time()
        result = made(one, lines, pair.companion, named, strength == "careful")
        assert result.companions is not None
        row[strength] = round(100 * (relative_l2(result.image, truth) / error - 1), 2)
        row[f"{strength} used"] = len(result.companions.used)
        if strength == "careful":
            seconds.append(time.process_time() - began)
            row["gain"] = round(result.companions.offered[0].gain, 4)
            row["ratio with"] = round(ratio(result, truth), 3)
    trusting = recipe.replacing("companion", trust_companion=True)
    control = made(one, lines, plain.image, trusting, False)
    row["control"] = round(100 * (relative_l2(control.image, truth) / error - 1), 2)
    row["seconds over plain"] = round(seconds[1] / seconds[0], 2)
    return row


def masks_of(pair: Pair, seed: int, designed: bool) -> Iterator[tuple[str, list[int]]]:
    """Variable density at 1/8, 1/4, 1/2 of the lines, and a design at 1/8 and 1/4."""
    one = pair.scan.prepared.slice_model(0, Recipe())
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


def wrong_row(pair: Pair, lines: list[int], seed: int, register: bool) -> Row:
    """A wrong companion: what it does where it is not refused."""
    recipe = Recipe().replacing("companion", register_companion=register)
    one, truth = pair.scan.prepared.slice_model(0, recipe), pair.scan.reference
    error = relative_l2(made(one, lines, None, recipe, False).image, truth)
    row: Row = {"kind": pair.kind, "name": pair.name, "mask": "density", "lines": len(lines), "seed": seed}
    row["error"] = round(error, 5)
    for strength in STRENGTHS:
        result = made(one, lines, pair.companion, recipe.replacing("companion", companion_strength=strength), False)
        assert result.companions is not None
        row[strength] = round(100 * (relative_l2(result.image, truth) / error - 1), 2)
        row[f"{strength} used"] = len(result.companions.used)
        row.setdefault("gain", round(result.companions.offered[0].gain, 4))
    return row


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--groups", default=",".join([*GROUPS, "wrong"]))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--designed", action="store_true", help="also masks designed by calibrated, of the first seed")
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    path = given.out / "errors.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    have = {tuple(str(row[name]) for name in ("kind", "name", "mask", "lines", "seed")) for row in rows}
    names = ["kind", "name", "mask", "lines", "seed", "error"]
    names += [name for strength in STRENGTHS for name in (strength, f"{strength} used")]
    names += ["gain", "control", "ratio", "ratio with", "seconds over plain"]

    def add(row: Row) -> None:
        rows.append({name: row.get(name, "") for name in names})
        given.out.mkdir(parents=True, exist_ok=True)
        write_csv(path, rows)
        print(*(f"{row.get(name, '')}" for name in names), sep=" | ", flush=True)

    def key(pair: Pair, mask: str, lines: list[int], seed: int) -> tuple[str, ...]:
        return pair.kind, pair.name, mask, str(len(lines)), str(seed)

    for seed in range(given.seeds):
        for group in given.groups.split(","):
            if group == "wrong":
                for pair, register in wrong_ones(given.data, seed):
                    for mask, lines in masks_of(pair, seed, False):
                        if key(pair, mask, lines, seed) not in have:
                            add(wrong_row(pair, lines, seed, register))
                continue
            for pair in GROUPS[group](given.data, seed):
                for mask, lines in masks_of(pair, seed, given.designed and seed == 0):
                    if key(pair, mask, lines, seed) not in have:
                        add(row_of(pair, mask, lines, seed))


if __name__ == "__main__":
    main()
