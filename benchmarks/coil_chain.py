"""The whole chain with several coils, lines and image, against the usual one: a fixed mask, ESPIRiT and L1-wavelet.

    OMP_NUM_THREADS=1 python benchmarks/coil_chain.py DATA [--scans 8a-96,...] [--seeds 3] [--out results/coils]

DATA is the folder of raw scans; scans have the names of `coil_lines.py`. The usual chain is BART's: `ecalib` on the
centre lines of a fixed mask, then `pics` with wavelets and the weight, of WEIGHTS, that is best in hindsight. Beside it
stand fewer centre lines, a smaller kernel, and maps that `nlinv` makes from all lines. Discs of
40 % more and less signal are planted in every coil before anything is measured, so that the reference has them, too;
every seed has other places, and other draws of masks. What has been measured is kept in chain-cells.csv, and the same
command goes on from there. Tables go to chain.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from coil_lines import RULES, USUAL_SCANS, designed_lines, fixed_lines, named
from coils import image_of
from parts.pages import put_conditions, put_table
from scipy.ndimage import binary_fill_holes, distance_transform_edt

from mri_design.calibration.coils import image_units
from mri_design.design.training import ReferenceSlice, relative_error
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.extent import readouts_wanted
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.operators.base import Array
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.bart import read_pair
from mri_design.scan.writing import pair_files

DEFAULT = load_recipe()
MASKS = (
    "fastmri-equispaced",
    "fastmri-random",
    "vd-polynomial:1 draw=systematic",
    "vd-polynomial:2 draw=systematic",
    "vd-polynomial:2",
)
ESPIRIT, SMALL, JOINT = "ecalib", "ecalib -k4", "nlinv"
"""How BART makes its maps: by ESPIRiT, whose kernel is 6 wide unless told, or with the image, from all lines."""
AGAIN = 3
"""Masks, the best of a cell so far, on which BART makes its maps with the image, too."""
WEIGHTS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
RADII, CHANGES = (2, 4), (0.4, -0.4)
"""Of the discs, in pixels, and of their signal."""
OURS, DESIGNED = "mri_design", "designed"
CHANGES_OF = ("whole", "beforehand", "masks", "image")


Lesion = tuple[int, Array, Array]
"""Radius of a disc, its pixels, and those of the ring around it that its contrast is measured against."""


def contrast(image: Array, lesion: Lesion) -> float:
    return float(np.abs(image[lesion[1]]).mean() - np.abs(image[lesion[2]]).mean())


def planted(scan: KSpaceData, seed: int) -> tuple[KSpaceData, list[Lesion]]:
    """A scan with discs inside the object, of medium brightness, where a disc is about as bright as its ring."""
    images, lesions, places = to_image(scan.kspace), list[Lesion](), list[Array]()
    bright = np.linalg.norm(images[0], axis=0)
    inside = binary_fill_holes(bright > 0.15 * np.percentile(bright, 99.5))
    low, high = np.percentile(bright[inside], (30, 80))
    found = np.argwhere((distance_transform_edt(inside) > 8) & (bright > low) & (bright < high))
    order, factor = np.random.default_rng([seed, 40]).permutation(found), np.ones(bright.shape)
    for radius, change in product(RADII[::-1], CHANGES):
        for flat, place in product((0.1, 0.2, 0.4, np.inf), order):
            distance = np.hypot(*(np.indices(bright.shape) - place[:, None, None]))
            one = (radius, distance <= radius, (distance > radius + 1) & (distance <= radius + 3))
            apart = all(np.hypot(*(place - other)) >= 12 for other in places)
            if apart and abs(contrast(bright, one)) < flat * bright[one[2]].mean():
                break
        else:
            raise ValueError(f"no place for a disc in {scan.name}")
        factor[one[1]] += change
        places.append(place)
        lesions.append(one)
    return replace(scan, kspace=to_kspace((images * factor).astype(np.complex64))), lesions


def judged(image: Array, truth: Array, lesions: Sequence[Lesion]) -> Row:
    """Error of an image, and by radius what part of the discs' contrast it shows, and how far that is from all."""
    row: dict[str, object] = {"error": relative_error(image, truth)}
    for radius in RADII:
        parts = [contrast(image, one) / contrast(truth, one) for one in lesions if one[0] == radius]
        row |= {f"contrast {radius}": np.mean(parts), f"missed {radius}": np.mean(np.abs(np.subtract(parts, 1)))}
    return row


def by_bart(image: ReferenceSlice, lines: Sequence[int], centre: int, way: str) -> tuple[Array, float]:
    """BART's image under the best weight, times the number that fits it best to the truth; and that weight."""
    model, truth = image.slice_model, np.abs(image.shown)
    with tempfile.TemporaryDirectory() as folder:

        def bart(*words: object) -> None:
            command, threads = ["bart", *map(str, words)], os.environ | {"OMP_NUM_THREADS": "1"}
            subprocess.run(command, cwd=folder, env=threads, check=True, capture_output=True, timeout=600)

        kspace = np.where(model.grid_samples(lines), model.kspace, 0).transpose(2, 1, 0)[:, :, None, :]
        for file, content in pair_files(Path(folder, "kspace"), kspace).items():
            file.write_bytes(content)
        if way == JOINT:
            bart("nlinv", "-i12", "kspace", "found", "unscaled")
            bart("normalize", "8", "unscaled", "maps")
        else:
            kernel = "4:4:1" if way == SMALL else "6:6:1"
            bart("ecalib", "-m1", "-c0", "-k", kernel, "-r", f"24:{centre}:1", "kspace", "maps")
        maps = read_pair(Path(folder, "maps")).squeeze().T
        unit = image.unit if model.mixing is None else image_units(model.mixing, maps)

        @cache
        def made(weight: float) -> Array:
            bart("pics", "-e", "-i100", "-R", f"W:3:0:{weight}", "kspace", "maps", "image")
            found = np.abs(read_pair(Path(folder, "image")).squeeze().T * unit)
            return np.asarray(found * (np.vdot(found, truth) / np.vdot(found, found)))

        place, before = 3, -1
        while place != before:  # downhill
            near, before = range(max(place - 1, 0), min(place + 2, len(WEIGHTS))), place
            place = min(near, key=lambda one: relative_error(made(WEIGHTS[one]), truth))
        return made(WEIGHTS[place]), WEIGHTS[place]


def centres(count: int) -> dict[int, str]:
    """Even numbers of centre lines, which BART's kernels fit into, and what part of the lines they are."""
    return {2 * round(count / 6): "1/3", 2 * round(count / 4): "1/2", 2 * min(count // 3, 12): "2/3"}


def cell_rows(image: ReferenceSlice, lesions: Sequence[Lesion], acceleration: float, seed: int) -> Iterator[Row]:
    """A row for each mask and program."""
    seen, size = image.as_measured, image.slice_model.candidates.size
    count = readouts_wanted(size, acceleration)

    def ours(lines: Sequence[int]) -> Row:
        own = seen.calibrated(lines)
        made = reconstruct_by_recipe(own, lines, DEFAULT, seed).image * image.unit_of(own)
        return {"program": OURS, "weight": "", **judged(made, image.shown, lesions)}

    def barts(lines: Sequence[int], centre: int, way: str) -> Row:
        made, weight = by_bart(image, lines, centre, way)
        return {"program": f"BART {way}", "weight": weight, **judged(made, image.shown, lesions)}

    row: dict[str, object] = {"mask": DESIGNED, "share": "", "centre": "", "lines": count}
    yield row | dict(ours(designed_lines(seen, RULES[0], count, seed, DEFAULT)))
    yield row | {"mask": "all", "centre": 24, "lines": size} | dict(barts(range(size), 24, ESPIRIT))
    found: list[Row] = []
    for mask, (centre, share) in product(MASKS, centres(count).items()):
        row |= {"mask": mask, "share": share, "centre": centre}
        lines = fixed_lines(seen, mask, count, centre, seed)
        yield row | dict(ours(lines))
        found += (row | dict(barts(lines, centre, way)) for way in (ESPIRIT, SMALL) if way == SMALL or centre >= 6)
    yield from found
    best = dict.fromkeys((str(one["mask"]), int(str(one["centre"]))) for one in sorted(found, key=number))
    for mask, centre in list(best)[:AGAIN]:
        lines = fixed_lines(seen, mask, count, centre, seed)
        row |= {"mask": mask, "share": centres(count)[centre], "centre": centre}
        yield row | dict(barts(lines, centre, JOINT))


def number(row: Row, column: str = "error") -> float:
    return float(str(row[column]))


def mean(rows: Sequence[Row], column: str = "error") -> float:
    return float(np.mean([number(row, column) for row in rows]))


def mask_of(row: Row) -> tuple[str, str, str]:
    return str(row["mask"]), str(row["share"]), str(row["program"])


def compared(rows: Sequence[Row], *, usual: bool) -> list[Row]:
    """A row for each cell, means over seeds; ``usual``: against two thirds of centre lines and plain ESPIRiT."""
    table, places = list[Row](), dict.fromkeys((str(r["scan"]), str(r["acceleration"])) for r in rows)
    fixed = [r for r in rows if r["mask"] in MASKS and (not usual or r["share"] == "2/3")]
    barts = [r for r in fixed if r["program"] != OURS and (not usual or r["program"] == f"BART {ESPIRIT}")]

    def at(some: Sequence[Row], scan: str, acceleration: str, seed: object = None) -> list[Row]:
        return [r for r in some if (r["scan"], r["acceleration"], seed or r["seed"]) == (scan, acceleration, r["seed"])]

    for place in places:
        whole = [r for r in at(rows, *place) if r["mask"] == DESIGNED]
        rivals = [min(at(barts, *place, r["seed"]), key=number) for r in whole]
        masks = [min((o for o in at(fixed, *place, r["seed"]) if o["program"] == OURS), key=number) for r in whole]
        image = [o for r in rivals for o in at(fixed, *place, r["seed"]) if mask_of(o) == (*mask_of(r)[:2], OURS)]
        others = [at(barts, *other) for other in places if other[0] != place[0] and other[1] == place[1]]
        logs = {m: [np.log(number(r)) for o in others for r in o if mask_of(r) == m] for m in map(mask_of, barts)}
        most = max(map(len, logs.values()))  # not every scan has every mask
        before = min((m for m in logs if most and len(logs[m]) == most), key=lambda m: np.mean(logs[m]), default=None)
        beforehand = [r for r in at(barts, *place) if usual and mask_of(r) == before]
        row: Row = {"scan": place[0], "acceleration": place[1], "seeds": len(whole), "ours": mean(whole)}
        row |= {"BART": mean(rivals), "its mask": "{mask}, {centre} of {lines}, {program}".format(**rivals[0])}
        pairs = ((whole, rivals), (whole, beforehand), (whole, masks), (image, rivals))
        for name, (ours, theirs) in zip(CHANGES_OF, pairs, strict=True):
            row |= {name: 100 * (mean(ours) / mean(theirs) - 1) if theirs else ""}
        for column in (f"{kind} {radius}" for kind, radius in product(("contrast", "missed"), RADII)):
            row |= {f"{column}, ours": mean(whole, column), f"{column}, BART": mean(rivals, column)}
        table.append(row)
    return table


def summary(table: Sequence[Row]) -> list[Row]:
    """Mean, spread and worst of each comparison; contrast is what part is shown, and the nearer to all of it wins."""
    made: list[Row] = []
    for name in CHANGES_OF:
        found = np.array([number(row, name) for row in table if row[name] != ""])
        if not found.size:
            continue
        row: Row = {"": name, "mean": f"{found.mean():+.1f} %", "spread": f"{found.std():.1f}"}
        made.append(row | {"worst": f"{found.max():+.1f} %", "won": f"{(found < 0).sum()} of {len(found)}"})
    for radius in RADII:
        ours, theirs, missed, they_missed = (
            np.array([number(row, f"{kind} {radius}, {who}") for row in table])
            for kind, who in product(("contrast", "missed"), ("ours", "BART"))
        )
        row = {"": f"contrast, radius {radius}: ours, BART's", "mean": f"{ours.mean():.2f}, {theirs.mean():.2f}"}
        row |= {"spread": f"{ours.std():.2f}, {theirs.std():.2f}", "worst": f"{ours.min():.2f}, {theirs.min():.2f}"}
        made.append(row | {"won": f"{(missed < they_missed).sum()} of {len(table)}"})
    return made


def main() -> None:
    """Measure the cells that are not there yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scans", default=USUAL_SCANS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    path, page = given.out / "chain-cells.csv", given.out / "chain.md"
    rows: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    for seed, name, acceleration in product(range(given.seeds), given.scans.split(","), (4, 6)):
        cell = {"scan": name, "acceleration": str(acceleration), "seed": str(seed)}
        if not any(all(str(row[c]) == value for c, value in cell.items()) for row in rows):
            scan, lesions = planted(named(given.data, name), seed)
            rows += [cell | dict(row) for row in cell_rows(image_of(scan, DEFAULT), lesions, acceleration, seed)]
            write_csv(path, rows)
            print(cell, flush=True)
    formats = {"ours": ".4f", "BART": ".4f", **dict.fromkeys(CHANGES_OF, "+.1f")}
    for heading, usual in (("the usual chain", True), ("the best of more settings", False)):
        table = compared(rows, usual=usual)
        shown = formats | {name: ".2f" for name in table[0] if "," in name}
        put_table(page, f"Against {heading}", summary(table))
        put_table(page, f"Cell by cell, against {heading}", table, None, shown)
    put_conditions(page, "mri-design", "numpy", "scipy", also=", BART 0.8.00")


if __name__ == "__main__":
    main()
