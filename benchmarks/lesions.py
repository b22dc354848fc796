"""Planted lesions: how much of their contrast images keep, with another image of the object and without.

    OMP_NUM_THREADS=1 python benchmarks/lesions.py DATA [--heads 6A,6B,7A,7B] [--seeds 1] [--out results/companions]

DATA is the folder of raw scans and images. Discs of four sizes and four contrasts are planted in flat places of heads
at 3 T, four at a time: in the scan alone (its companion, T1w, does not show them), or in the companion alone. Contrast
is the mean modulus within a disc less that in a ring around it. "recovered" is the contrast that the lesion adds to
the image, against the image of the same scan without it (same noise, mask and seed), over what it adds to the truth;
"in one image" is that of the image with the lesion alone, less the truth's without it, as the eye would have it.
"false" is the contrast that a lesion of the companion adds, over the lesion's. Methods: zero-filled, total variation
and wavelets by MAP, the recipes `local` and default without a companion, and the default with it at every strength,
registered by the program and trusted, whatever lines that are held back say. What has been computed is kept in
lesions.csv, a row for every lesion, and the same command goes on from there: methods whose rows are taken out are
measured anew.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from parts.exams import (
    SUBJECTS,
    complete_image,
    contrast_at_3t,
    designed_lines,
    random_lines,
    with_phase,
)
from scipy.ndimage import gaussian_filter, sobel
from study.scans import NOISE, Scan, anew

from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import Method, image_rng, reconstruct_prepared
from mri_design.model.companion import Companion
from mri_design.operators.base import Array

RADII, CONTRASTS = (1.5, 2.0, 3.0, 4.0), (0.4, 0.2, -0.2, -0.4)
PLACES, APART, EDGE = 4, 14, 25
SHARES = (8, 4, 2)
STRENGTHS = ("careful", "moderate", "strong")
METHODS = {"scan": ("zero-filled", "tv-wavelet", "local", "default", *STRENGTHS), "companion": STRENGTHS}
"""By where the lesions are: what knows no companion shows none of its lesions."""


@dataclass(frozen=True)
class Lesion:
    """A disc, its contrast relative to the brightness around it."""

    row: int
    column: int
    radius: float
    contrast: float

    def disc(self, shape: tuple[int, ...], margin: float = 0.0) -> Array:
        """1 within, 0 outside, between on its rim."""
        y, x = np.mgrid[: shape[0], : shape[1]]
        return np.clip(self.radius + margin + 0.5 - np.hypot(y - self.row, x - self.column), 0, 1)

    def added(self, image: Array) -> Array:
        """What it adds to a modulus."""
        return np.asarray(self.disc(image.shape) * self.contrast * gaussian_filter(image, 3)[self.row, self.column])

    def seen(self, image: Array) -> float:
        """Mean modulus within, less that of a ring around it."""
        modulus = np.abs(image)
        inside = self.disc(image.shape) > 0.5
        ring = (self.disc(image.shape, 3) > 0.5) & ~(self.disc(image.shape, 1) > 0.5)
        return float(modulus[inside].mean() - modulus[ring].mean())


def flat_places(image: Array) -> list[tuple[int, int]]:
    """Where a head is flat, apart from each other and from its rim."""
    smooth = gaussian_filter(image, 1)
    steep = gaussian_filter(np.hypot(sobel(smooth, 0), sobel(smooth, 1)), 4)
    inside = gaussian_filter(image, 3) > 0.25 * np.percentile(image, 99.5)
    inside[:EDGE] = inside[-EDGE:] = False
    inside[:, :EDGE] = inside[:, -EDGE:] = False
    steep = np.where(inside, steep, np.inf)
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    found: list[tuple[int, int]] = []
    while len(found) < PLACES and np.isfinite(steep).any():
        row, column = np.unravel_index(int(np.argmin(steep)), steep.shape)
        found.append((int(row), int(column)))
        steep = np.where(np.hypot(y - row, x - column) < APART, np.inf, steep)
    return found


def sets_of(places: list[tuple[int, int]], seed: int) -> list[list[Lesion]]:
    """Every radius with every contrast once, a few at a time."""
    kinds = list(itertools.product(RADII, CONTRASTS))
    np.random.default_rng([seed, 3]).shuffle(kinds)
    count = len(places)
    return [
        [Lesion(*place, *kinds[first + number]) for number, place in enumerate(places) if first + number < len(kinds)]
        for first in range(0, len(kinds), count)
    ]


def planted(image: Array, lesions: list[Lesion]) -> Array:
    """The image with lesions in its modulus."""
    modulus = np.abs(image)
    more = np.sum([lesion.added(modulus) for lesion in lesions], axis=0) if lesions else 0.0
    return np.asarray(image * (1 + more / np.maximum(modulus, 1e-3 * modulus.max())))


def image_of(method: str, scan: Scan, companion: Array, lines: list[int]) -> Array:
    """The image by one of the methods."""
    recipe = load_recipe(method) if method in ("tv-wavelet", "local") else Recipe()
    one = scan.prepared.slice_model(0, recipe)
    if method == "zero-filled":
        return one.plain_image(lines)
    if method in STRENGTHS:
        recipe = recipe.replacing("companion", companion_strength=method, trust_companion=True)
        one = replace(one, companions=(Companion("T1w", np.abs(companion)),))
    estimate: Method = "map" if method == "tv-wavelet" else "mean"
    return reconstruct_prepared(one, lines, estimate, recipe, image_rng(0), with_std=False).image


def rows_of(
    subject: str, data: Path, seed: int, mask: str, share: int, where: str, methods: Sequence[str]
) -> list[Row]:
    """All lesions of one head, at one acceleration."""
    place = list(SUBJECTS).index(subject)
    truth = with_phase(contrast_at_3t(data, subject, "T2w"), (place, 2))
    other = anew("T1w", with_phase(contrast_at_3t(data, subject, "T1w"), (place, 5))[None], None, NOISE, seed + 7)
    companion = np.abs(complete_image(other))
    clean = anew(subject, truth[None], None, NOISE, seed)
    one = clean.prepared.slice_model(0, load_recipe("local"))
    count = one.shape[0] // share
    lines = random_lines(one, count, seed) if mask == "density" else designed_lines(one, [count], seed)[count]
    before = {method: image_of(method, clean, companion, lines) for method in methods}
    rows: list[Row] = []
    for lesions in sets_of(flat_places(np.abs(truth)), seed):
        in_scan = where == "scan"
        scan = anew(subject, planted(truth, lesions)[None], None, NOISE, seed) if in_scan else clean
        seen = companion if in_scan else planted(companion, lesions)
        for method in methods:
            image = image_of(method, scan, seen, lines)
            for lesion in lesions:
                added = lesion.seen(image) - lesion.seen(before[method])
                there = lesion.seen(scan.reference) - lesion.seen(clean.reference)
                wanted = (
                    there if in_scan else lesion.contrast * gaussian_filter(np.abs(truth), 3)[lesion.row, lesion.column]
                )
                alone = lesion.seen(image) - lesion.seen(clean.reference)
                rows.append(
                    {
                        "head": subject,
                        "seed": seed,
                        "mask": mask,
                        "lines": count,
                        "where": where,
                        "method": method,
                        "radius": lesion.radius,
                        "contrast": lesion.contrast,
                        "recovered": round(added / wanted, 4),
                        "in one image": round(alone / wanted, 4),
                        "error": round(relative_l2(image, scan.reference), 5),
                    }
                )
    return rows


def order(row: Row) -> tuple[str, str, int, int, str, int]:
    """Where a row stands in the table, whenever it was measured."""
    where, method = str(row["where"]), str(row["method"])
    return (
        where,
        str(row["mask"]),
        int(str(row["seed"])),
        int(str(row["lines"])),
        str(row["head"]),
        METHODS[where].index(method),
    )


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--heads", default=",".join(SUBJECTS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--shares", type=int, nargs="+", default=SHARES, help="times fewer lines than the grid has")
    parser.add_argument("--masks", default="density")
    parser.add_argument("--where", default="scan,companion")
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    path = given.out / "lesions.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    have = {tuple(str(row[name]) for name in ("head", "seed", "mask", "lines", "where", "method")) for row in rows}
    for seed, mask, where, share in itertools.product(
        range(given.seeds), given.masks.split(","), given.where.split(","), given.shares
    ):
        for subject in given.heads.split(","):
            key = (subject, str(seed), mask, str(128 // share), where)
            methods = [name for name in METHODS[where] if (*key, name) not in have]
            if not methods:
                continue
            found = rows_of(subject, given.data, seed, mask, share, where, methods)
            rows += found
            given.out.mkdir(parents=True, exist_ok=True)
            write_csv(path, sorted(rows, key=order))
            for method in methods:
                mean = np.mean([float(str(row["recovered"])) for row in found if row["method"] == method])
                error = np.mean([float(str(row["error"])) for row in found if row["method"] == method])
                print(*key, method, f"recovered {mean:.3f}, error {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
