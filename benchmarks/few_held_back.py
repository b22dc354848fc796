"""Companions where a design's own mask leaves two or three lines to hold back: used at all, and when they are wrong.

    OMP_NUM_THREADS=1 python benchmarks/few_held_back.py DATA [--seeds 3] [--lines 16]

DATA is the folder of raw scans and images. Scans and companions are those of companions.py, and masks are the first
lines of a design by the strategy `calibrated`. Around the unbroken run at the centre of some masks only two or three
lines can be held back: then the eight lines nearest to DC stand in its place, without which no companion would be used.
Of every such mask each row has the error without a companion and the changes in per cent with it, or with a wrong one
in its place. Masks that leave more lines are counted alone. The same command goes on from the rows and cells that are
there.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from companions import ERRORS, STRENGTHS, measure
from parts.exams import GROUPS, Pair, designed_lines
from parts.kept import Kept, lacking
from parts.pages import put_table

from mri_design.evidence.choosing import FEWEST, held_back
from mri_design.evidence.registration import RigidMotion
from mri_design.experiment.recipe import Recipe
from mri_design.operators.base import Array


def offered(right: Pair, other: Array) -> list[tuple[Pair, bool]]:
    """The pair, and the same scan with wrong companions; whether the program may register them."""
    wrong = {
        "another head": (other, True),
        "mirrored": (right.companion[:, ::-1], True),
        "shifted 2 px": (np.roll(right.companion, 2, axis=0), False),
        "turned 3 degrees": (RigidMotion(angle=3.0).applied(right.companion), False),
    }
    found = [(replace(right, kind=f"wrong: {name}", companion=image), moved) for name, (image, moved) in wrong.items()]
    return [(right, True), *found]


def main() -> None:
    """Measure every mask that leaves two or three lines, where that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--groups", default="contrast,echo,low-field")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    kept = Kept.at(given.out / "few-held-back.csv", "kind", "name", "lines", "seed")
    others = 0
    for seed in range(given.seeds):
        heads = GROUPS["contrast"](given.data, seed)
        for group in given.groups.split(","):
            pairs = GROUPS[group](given.data, seed)
            for place, pair in enumerate(pairs):
                one = pair.scan.prepared.slice_model(0, Recipe())
                lines = designed_lines(one, [given.lines], seed)[given.lines]
                held = len(held_back(lines, one.candidates)[1])
                if not FEWEST // 2 <= held < FEWEST:
                    others += 1
                    continue
                other = heads[(place * len(heads) // len(pairs) + 1) % len(heads)].companion  # not the same head
                for offer, moved in offered(pair, other):
                    named = {"kind": offer.kind, "name": pair.name, "lines": len(lines), "seed": seed, "held": held}
                    row = kept.row(named | dict.fromkeys(ERRORS, ""))
                    if lacking(row, STRENGTHS):
                        recipe = Recipe().replacing("companion", register_companion=moved)
                        measure(row, offer, lines, recipe)
                        kept.put(row)
    put_table(given.out / "few-held-back.md", "Every mask", list(kept.rows.values()))
    print(f"{others} masks leave other numbers of lines")


if __name__ == "__main__":
    main()
