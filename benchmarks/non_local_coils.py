"""The non-local block of the default prior with several coils, at high accelerations and in planes.

    OMP_NUM_THREADS=1 python benchmarks/non_local_coils.py DATA --seeds 3

DATA is the folder of raw scans. Masks of lines are drawn from a variable density with 8 centre lines, with coil maps of
these lines; those of planes are Poisson discs with a calibration square. Each is reconstructed by the default recipe
with the non-local block and without it. Errors are those of `everyday.py`, in per cent. Draws that have been made are
kept in results/coils/non-local.csv, and a table of them goes into everyday.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from everyday import PARTS, errors, loaded
from parts.pages import put_table

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.designing import DesignOptions, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.experiment.strategy_names import make_strategy

OUT = Path(__file__).parents[1] / "results" / "coils"
CASES = [("8a-128", "lines", 6), ("8a-128", "lines", 8), ("8a-128", "lines", 12), ("8a-128", "plane", 8)]
CASES += [("16-128", "lines", 6), ("16-128", "lines", 8), ("16-128", "lines", 12), ("16-128", "plane", 8)]
CENTRE = 8


def drawn(folder: Path, name: str, encoding: str, acceleration: int, seed: int) -> Row:
    """Errors of one mask with the block, and its change against that without it."""
    recipe = Recipe().replacing("design", encoding=encoding)
    image = loaded(folder, name, recipe)
    readouts = image.slice_model.candidates
    rule = make_strategy("vd-polynomial" if encoding == "lines" else "poisson-disc", encoding)
    start = CENTRE if encoding == "lines" else readouts.start(readouts.size // acceleration, CENTRE)
    options = DesignOptions(draw=seed)
    count = round(readouts.size / acceleration)
    lines = run_design([image.as_measured], rule, count, recipe, seed=0, start=start, options=options).trace.lines
    seen = image.as_measured.calibrated(lines)
    local = tuple(block for block in recipe.prior if block.kind != "non-local")
    found = dict[str, dict[str, float]]()
    for prior in (recipe.prior, local):
        asked = replace(recipe, prior=prior)
        model = replace(seen, prior=asked.blocks())
        made = reconstruct_prepared(model, sorted(lines), "mean", asked, image_rng(seed), with_std=False)
        found["with" if prior is recipe.prior else "without"] = errors(image, seen, np.sort(lines), made.image)
    row: Row = {"scan": name, "coils": seen.n_coils, "encoding": encoding, "R": acceleration, "draw": seed}
    for part in PARTS:
        row[part] = f"{found['with'][part]:.2f}"
        row[f"{part}: change"] = f"{100 * (found['with'][part] / found['without'][part] - 1):+.1f}"
    return row


def summary(rows: list[Row]) -> list[Row]:
    """Means over draws, and the least and the largest change."""
    table = list[Row]()
    for case in CASES:
        found = [row for row in rows if (row["scan"], row["encoding"], int(str(row["R"]))) == case]
        if not found:
            continue
        line: Row = {"scan": case[0], "what": case[1], "R": case[2], "draws": len(found)}
        for part in PARTS:
            changes = [float(str(row[f"{part}: change"])) for row in found]
            line[part] = f"{np.mean([float(str(row[part])) for row in found]):.2f}"
            spread = f" ({min(changes):+.1f} to {max(changes):+.1f})" if len(found) > 1 else ""
            line[f"{part}: change"] = f"{np.mean(changes):+.1f}{spread}"
        table.append(line)
    return table


def main() -> None:
    """Draw what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    path = OUT / "non-local.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.exists() else []
    for seed in range(given.seeds):
        for case in CASES:
            there = [(row["scan"], row["encoding"], int(str(row["R"])), int(str(row["draw"]))) for row in rows]
            if (*case, seed) not in there:
                rows.append(drawn(given.data, *case, seed))
                write_csv(path, rows)
                print(rows[-1], flush=True)
    put_table(OUT / "everyday.md", "The non-local block at 6x, 8x, 12x and in planes", summary(rows))


if __name__ == "__main__":
    main()
