"""Error bars calibrated on some subjects, and their coverage on others.

    OMP_NUM_THREADS=1 python benchmarks/stated_levels.py DATA [--rows "heads, lines;low field, lines"] [--masks 4]

DATA is the folder of raw scans and images. Scans of 64 x 64 pixels are simulated from the images of
`parts.error_cases`. For every mask the subjects of the split ``learn`` are reconstructed from its lines, as
``recon --calibrated-on`` does, and those of the split ``test``, who are never the same people. The radii of the former
are held against the errors of the latter, whose truth is known: once learnt from true images, once from the complete
images of the noisy scans themselves, as the scans of a hospital have them. Rows that are there already stay.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from parts.error_cases import Truth, scan_of, truths
from parts.exams import random_lines
from parts.pages import put_table

from mri_design.evaluation.reference_noise import error_beyond_noise
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.coverage import LEVELS, Coverage, scores, share_within
from mri_design.experiment.inputs import prepare
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.readouts import PlaneReadouts
from mri_design.scan.calibration.coil_maps import coil_combined

OUT = Path(__file__).parents[1] / "results" / "error-bars"
SIDE, COILS = 64, 8
AXIAL = (" fse", " flair", " gre")
GROUPS: Mapping[str, tuple[str, ...]] = {"heads": ("3T ",), "low field": (*AXIAL, "lf_"), "low field axial": AXIAL}
"""Begins, or other parts, of the names of images. Sagittal slices at low field are among those to learn from alone."""
ENCODINGS = ("lines", "lines, coils", "plane")
Scores = NDArray[np.float32]


def images_of(data: Path, split: str, group: str) -> list[Truth]:
    """The images of one split in one group."""
    return [one for one in truths(data, split) if any(part in one.name for part in GROUPS[group])]


def judged(truth: Truth, number: int, encoding: str, mask_seed: int) -> tuple[Scores, Scores]:
    """Errors of an image in its standard deviations: against the truth, and against the scan's own complete image."""
    rng = np.random.default_rng([number, mask_seed])
    coils = COILS if "coils" in encoding else 1
    recipe = Recipe().replacing("design", encoding="plane" if encoding == "plane" else "lines")
    scan = scan_of(truth, truth.image, rng, SIDE, truth.noise, coils)
    known = prepare(scan.prepared.data, recipe)
    one, reference = known.slice_model(0, recipe), known.reference(0)
    assert reference is not None
    lines = mask_of(one.candidates, random_lines(one, SIDE // 3, mask_seed) if encoding != "plane" else [], mask_seed)
    made = reconstruct_prepared(one, lines, "mean", recipe, image_rng(number))
    assert made.std is not None
    noisy = replace(known.data, reference=None)
    used = np.isin(np.arange(one.candidates.size), lines).reshape(one.candidates.shape)
    beyond = error_beyond_noise(made.image, made.std, noisy, coil_combined(noisy)[0], 1.0, used)
    return scores(made.image - reference, made.std), scores(beyond, made.std)


def mask_of(candidates: object, lines: list[int], seed: int) -> list[int]:
    """The lines, or samples of a plane by a density that falls with the square of the distance: one in six."""
    if not isinstance(candidates, PlaneReadouts):
        return lines
    rng, density = np.random.default_rng(seed), 1 / (0.05 + candidates.radius) ** 2
    drawn = rng.choice(candidates.size, candidates.size // 6, replace=False, p=density / density.sum())
    return sorted({*candidates.outwards[:64].tolist(), *drawn.tolist()})


def measured(data: Path, group: str, encoding: str, masks: int) -> list[Row]:
    """The rows of one group and encoding, one for each level."""
    learn, test = (images_of(data, split, group) for split in ("learn", "test"))
    found = dict[str, list[tuple[float, float, float, list[float], list[float], list[float]]]]()
    for seed in range(masks):
        own = [judged(truth, number, encoding, seed) for number, truth in enumerate(learn)]
        others = [judged(truth, 100 + number, encoding, seed)[0] for number, truth in enumerate(test)]
        by_truth, by_own = (Coverage.of(group, {str(n): one[kind] for n, one in enumerate(own)}) for kind in (0, 1))
        for level, radius, noisy in zip(LEVELS, by_truth.radii, by_own.radii, strict=True):
            limits = (radius.radius, noisy.radius, float(np.sqrt(-np.log(1 - level / 100))))
            shares = [[share_within(one, limit) for one in others] for limit in limits]
            found.setdefault(str(level), []).append((radius.radius, noisy.radius, radius.left_out, *shares))
        print(group, encoding, "mask", seed, by_truth, flush=True)
    rows: list[Row] = []
    for name, every in found.items():
        within, from_noisy, plain = (np.concatenate([one[place] for one in every]) for place in (3, 4, 5))
        rows.append(
            {
                "group": group,
                "encoding": encoding,
                "masks": masks,
                "calibrated on": len(learn),
                "judged": len(test),
                "level": int(name),
                "radius": float(np.mean([one[0] for one in every])),
                "coverage": float(within.mean()),
                "worst image": float(within.min()),
                "foreseen": float(np.mean([one[2] for one in every])),
                "coverage, learnt from noisy images": float(from_noisy.mean()),
                "coverage, not calibrated": float(plain.mean()),
            }
        )
    return rows


def main() -> None:
    """Measure what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    every = [f"{group}, {encoding}" for group in GROUPS for encoding in ENCODINGS]
    parser.add_argument("--rows", default=";".join(every), help="with semicolons between")
    parser.add_argument("--masks", type=int, default=4)
    given = parser.parse_args()
    path = OUT / "coverage.csv"
    rows = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    for wanted in given.rows.split(";"):
        group, _, encoding = wanted.partition(", ")
        if any((row["group"], row["encoding"]) == (group, encoding) for row in rows):
            continue
        rows += measured(given.data, group, encoding, given.masks)
        write_csv(path, rows)
    texts: list[Row] = [
        {name: f"{float(text):.3g}" if "." in (text := str(value)) else text for name, value in row.items()}
        for row in rows
    ]
    put_table(OUT / "coverage.md", "Coverage on other subjects", texts)


if __name__ == "__main__":
    main()
