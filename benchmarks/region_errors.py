"""Means of discs and differences of two: their actual errors over the standard deviations that draws give them.

    OMP_NUM_THREADS=1 python benchmarks/region_errors.py DATA [--seeds 3] [--out results/error-bars]

DATA is the folder of raw scans and images. Scans are simulated from two heads at 3 T (T1w and T2w) and at low field
(FSE and FLAIR, denoised), a heart and a head seen by eight coils, none of which what the program ships has learnt on;
24 or 32 of 96 lines, by a density that each seed draws anew, with new noise. In each image eight discs of every size
are put where the truth is bright, and held against each other in pairs. `modulus` is the mean of |image|, as the verb
measure tells it; `complex` the mean of the complex image. An `rms` of 1 is right; `independent` is that of the modulus
if pixels were independent, by the map of standard deviations alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from parts.head_scans import JUDGED, masks, scans

from mri_design.evaluation.regions import LEVELS, differences, region_means
from mri_design.evaluation.tables import Row, markdown_text, write_csv
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import Reconstruction, image_rng, reconstruct_prepared
from mri_design.operators.base import Array
from mri_design.scan.io.atomic import write_text

AREAS, DISCS, EDGE, BRIGHT = (20, 50, 100, 200), 8, 8, 0.15
RECIPE = load_recipe("default").replacing("reconstruction", draws=32)
OUT = Path(__file__).parents[1] / "results" / "error-bars"
FORMATS = {name: ".2f" for name in ("rms modulus", "rms complex", "rms independent")}


def disc(centre: Array, area: int, shape: tuple[int, ...]) -> Array:
    """The pixels nearest to a place, as flags."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    away = np.hypot(rows - centre[0], columns - centre[1]).ravel()
    flags = np.zeros(away.size, dtype=bool)
    flags[np.argsort(away, kind="stable")[:area]] = True
    return flags.reshape(shape)


def discs(truth: Array, area: int, rng: np.random.Generator) -> list[Array]:
    """Some where the truth is bright."""
    found: list[Array] = []
    least = BRIGHT * np.percentile(np.abs(truth), 99.5)
    for _ in range(500):
        inside = disc(rng.uniform(EDGE, np.array(truth.shape) - EDGE), area, truth.shape)
        if np.abs(truth[inside]).mean() > least:
            found.append(inside)
        if len(found) == DISCS:
            break
    return found


def judged(made: Reconstruction, truth: Array, rng: np.random.Generator) -> list[Row]:
    """Errors over standard deviations of discs and of pairs of them, in one image."""
    assert made.draws is not None and made.std is not None
    rows: list[Row] = []
    for area in AREAS:
        flags = discs(truth, area, rng)
        places = {f"{number}": inside[None] for number, inside in enumerate(flags)}
        draws = made.draws
        means = region_means(places, made.image[None], lambda _, draws=draws: draws, truth[None])
        pairs = [differences(means[at : at + 2])[0] for at in range(0, len(means) - 1, 2)]
        weights = [inside / inside.sum() for inside in flags]
        weights += [weights[at] - weights[at + 1] for at in range(0, len(flags) - 1, 2)]
        for mean, weight in zip([*means, *pairs], weights, strict=True):
            wrong = np.sum(weight * (made.image - truth))
            scatter = np.tensordot(made.draws - made.image, weight, 2)
            alone = np.sqrt(np.sum(weight**2 * made.std**2) / 2)
            error = mean.value - float(mean.true or 0.0)
            inside = {f"{level}": abs(error) <= mean.interval(level)[1] - mean.value for level in LEVELS}
            rows.append(
                {
                    "what": "difference" if " - " in mean.name else "mean",
                    "pixels": area,
                    "modulus": error / mean.sd,
                    "complex": abs(wrong) / np.sqrt(np.mean(np.abs(scatter) ** 2)),
                    "independent": error / alone,
                    **inside,
                }
            )
    return rows


def summary(rows: list[Row], images: int, **named: object) -> Row:
    """Root mean squares of errors over standard deviations, and how often intervals hold the truth."""

    def rms(name: str) -> float:
        return float(np.sqrt(np.mean([float(str(row[name])) ** 2 for row in rows])))

    covered = {
        f"in {100 * level:.0f} %": f"{100 * np.mean([bool(row[f'{level}']) for row in rows]):.0f} %" for level in LEVELS
    }
    ratios = {f"rms {name}": rms(name) for name in ("modulus", "complex", "independent")}
    return {**named, "images": images, "regions": len(rows), **ratios, **covered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    found: list[Row] = []
    for seed in range(1, asked.seeds + 1):
        for group, scan in scans(asked.data, seed, JUDGED):
            one = scan.prepared.slice_model(0, RECIPE)
            for lines in masks(one, seed):
                made = reconstruct_prepared(one, lines, "mean", RECIPE, image_rng(seed))
                rng = np.random.default_rng([seed, len(lines)])
                image = f"{scan.name} {seed} {len(lines)}"
                found += [{"group": group, "image": image, **row} for row in judged(made, scan.reference, rng)]

    def chosen(**wanted: object) -> Row:
        rows = [row for row in found if all(row[name] == value for name, value in wanted.items())]
        words = {"group": "all", "what": "all", "pixels": "all"} | wanted
        return summary(rows, len({row["image"] for row in rows}), **words)

    table = [chosen(what=what, pixels=area) for what in ("mean", "difference") for area in AREAS]
    table += [chosen(group=group) for group in dict.fromkeys(str(row["group"]) for row in found)]
    table.append(chosen())
    asked.out.mkdir(parents=True, exist_ok=True)
    write_csv(asked.out / "regions.csv", table, formats=FORMATS)
    write_text(asked.out / "regions.md", markdown_text(table, formats=FORMATS))


if __name__ == "__main__":
    main()
