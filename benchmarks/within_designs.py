"""Designs whose image has companions from the same exam: slices and echoes of one mask, and the frame before.

    OMP_NUM_THREADS=1 python benchmarks/within_designs.py DATA [--seeds 3] [--out results/companions]

DATA is the folder of raw scans and images, at 128 x 128, each scan with noise of its own. Of `slices` one mask is made
for three of them (`designed`, by `calibrated`, or `random`, by variable density), and all are imaged from its lines;
the middle one is made again with the mean of the others. Of `echoes` the mask is made for one, and the echoes before
and after it are imaged from the same lines. Of a `series` a head moves from frame to frame by .7 and -.5 pixels and
one degree, each frame has a mask of its own, and the image of the one before (with that of the one before it) is
registered to it. Each row has the relative L2 error without companions, and the changes in per cent with them as the
scan's own lines decide, at two strengths; random masks and series have one seed. What has been computed is kept in
within-designs.csv, and the same command goes on from there, with rows and cells that are missing; within-designs.md has
the means.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from neighbours import STRENGTHS, VOLUMES, changes_text, made
from parts.exams import LOCAL, SIDE, SUBJECTS, contrast_at_3t, random_lines, with_phase
from parts.kept import Kept, lacking
from study.scans import NOISE, Scan, anew

from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row
from mri_design.evidence.registration import RigidMotion
from mri_design.experiment.around import neighbours, told_to_neighbours
from mri_design.experiment.designing import run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.starting import start_lines
from mri_design.experiment.strategy_names import make_strategy
from mri_design.model.companion import Companion

SHARES = (8, 4)
DRIFT, FRAMES = RigidMotion((0.7, -0.5), 1.0), 3


def designed(scans: Sequence[Scan], seed: int) -> dict[int, list[int]]:
    """Lines of one mask for all scans, by how many times fewer they are than the grid's."""
    slices = [scan.prepared.slice_model(0, LOCAL) for scan in scans]
    counts, strategy = {share: SIDE // share for share in SHARES}, make_strategy("calibrated")
    start = start_lines(slices[0].measured, strategy, min(counts.values()), LOCAL)
    order = run_design(slices, strategy, max(counts.values()), LOCAL, seed=seed, start=start).trace.lines
    return {share: sorted(order[:count]) for share, count in counts.items()}


def measure(row: dict[str, object], scan: Scan, lines: list[int], beside: Mapping[str, Sequence[Companion]]) -> None:
    """Fill a row with the error without companions, and what becomes of it with those for every strength."""
    error = relative_l2(made(scan, lines, Recipe())[0], scan.reference)
    row["error"] = round(error, 5)
    for strength in lacking(row, STRENGTHS):
        recipe = Recipe().replacing("companion", companion_strength=strength)
        image, used = made(scan, lines, recipe, tuple(beside[strength]))
        row[strength] = round(100 * (relative_l2(image, scan.reference) / error - 1), 2)
        row[f"{strength} used"] = used


def of_volume(kept: Kept, name: str, data: Path, seed: int) -> None:
    """The image in the middle of three that are measured by the same lines."""
    kind, at, scans = VOLUMES[name]
    cells = [(mask, share) for mask in ("designed", *(["random"] if not seed else [])) for share in SHARES]
    named = [{"kind": kind, "name": name, "mask": mask, "lines": SIDE // n, "seed": seed} for mask, n in cells]
    rows = {cell: row for cell, names in zip(cells, named, strict=True) if lacking(row := kept.row(names), STRENGTHS)}
    if not rows:
        return
    every = scans(data, seed)
    near = [n for n in (at - 1, at + 1) if n < len(every)]
    weights = {"mean": dict.fromkeys(near, 1 / len(near))} if kind == "slices" else {str(n): {n: 1.0} for n in near}
    random = {s: random_lines(every[at].prepared.slice_model(0, LOCAL), SIDE // s, seed) for s in SHARES}
    masks = {"random": random, "designed": designed([every[at], *(every[n] for n in near if kind == "slices")], seed)}
    for (mask, share), row in rows.items():
        lines = masks[mask][share]
        told = {n: told_to_neighbours(every[n].prepared.slice_model(0, Recipe()), lines, Recipe(), 0) for n in near}
        measure(row, every[at], lines, dict.fromkeys(STRENGTHS, neighbours(weights, told.__getitem__)))
        kept.put(row)


def of_series(kept: Kept, subject: str, data: Path, seed: int) -> None:
    """Every frame but the first, with the image of the one before."""
    named = {"mask": "designed", "seed": seed}
    rows = {
        share: [
            kept.row({"kind": "series", "name": f"{subject} frame {k}", "lines": SIDE // share} | named)
            for k in range(1, FRAMES)
        ]
        for share in SHARES
    }
    wanted = [share for share in SHARES if any(lacking(row, STRENGTHS) for row in rows[share])]
    if not wanted:
        return
    first = with_phase(contrast_at_3t(data, subject, "T2w"), (list(SUBJECTS).index(subject), 2))
    truths = [first]
    while len(truths) < FRAMES:
        truths.append(DRIFT.applied(truths[-1]))
    scans = [anew(f"frame {k}", truth[None], None, NOISE, 100 * seed + k) for k, truth in enumerate(truths)]
    masks = [designed([scan], seed) for scan in scans]
    for share in wanted:
        before: dict[str, tuple[Companion, ...]] = dict.fromkeys(STRENGTHS, ())
        for k, scan in enumerate(scans):
            lines = masks[k][share]
            if k and lacking(row := rows[share][k - 1], STRENGTHS):
                measure(row, scan, lines, before)
                kept.put(row)
            for strength in STRENGTHS:
                recipe = Recipe().replacing("companion", companion_strength=strength)
                image = made(scan, lines, recipe, before[strength])[0]
                before[strength] = (Companion(f"frame {k}", np.abs(image)),)


def means(rows: Sequence[Row]) -> str:
    """Changes of the error in per cent, means over images and seeds with the worst beside them."""
    keys = dict.fromkeys((str(row["kind"]), str(row["mask"]), int(row["lines"])) for row in rows)
    text = "| what | mask | lines | cells | careful | used | moderate | used |\n"
    text += "| :--- | :--- | ---: | ---: | :--- | ---: | :--- | ---: |\n"
    for kind, mask, lines in sorted(keys):
        of = [row for row in rows if (row["kind"], row["mask"], int(row["lines"])) == (kind, mask, lines)]
        text += f"| {kind} | {mask} | {lines} | {len(of)} |{changes_text(of)}\n"
    return text


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    kept = Kept.at(given.out / "within-designs.csv", "kind", "name", "mask", "lines", "seed")
    for seed in range(given.seeds):
        for name in VOLUMES:
            of_volume(kept, name, given.data, seed)
        for subject in SUBJECTS if not seed else ():
            of_series(kept, subject, given.data, seed)
    command = f"OMP_NUM_THREADS=1 python benchmarks/within_designs.py DATA --seeds {given.seeds}"
    head = f"Made by `{command}`: change of the error in per cent, mean and in brackets the worst."
    (given.out / "within-designs.md").write_text(
        f"# Companions within designs\n\n{head}\n\n{means(list(kept.rows.values()))}"
    )


if __name__ == "__main__":
    main()
