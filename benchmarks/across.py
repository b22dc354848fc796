"""Slices of a volume beside the right one: how much they seem to tell of an image, and whether the right one is found.

    OMP_NUM_THREADS=1 python benchmarks/across.py DATA [--slices 0,1,2,3]

DATA is the folder of raw scans and images. Heads at 3 T, four slices each, at 64 x 64: a T2w slice from a quarter and a
sixth of its lines by the posterior mean in two loops; companions are the T1w volume, and the T2w volume with noise.
`beside` is the largest mutual information at other places over that of the right slice, from which `ACROSS` was chosen
with the slices 1 and 2; `found` says from how many of the slices next to the right one the search by `ACROSS` ends
within half a slice of it, `lost` how often it leaves the right one by more than that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from parts.exams import LOCAL, SUBJECTS
from parts.pages import put_table
from skimage.transform import resize

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.evidence.companion import ACROSS
from mri_design.evidence.registration import alike_after, register
from mri_design.experiment.companion_images import CompanionImages
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.scan.data import KSpaceData

SIDE, SD = 64, 0.01
PARTS = (16, 10)


def volume(data: Path, subject: str, contrast: str) -> Array:
    """Moduli (slice, ky, kx) on a square grid."""
    with np.load(data / f"mag3T_{subject}_{contrast}.npz", allow_pickle=False) as archive:
        images = archive["image"].astype(float)
    longer = max(images.shape[1:])
    before = [(longer - n + 1) // 2 for n in images.shape[1:]]
    pads = [(b, longer - n - b) for b, n in zip(before, images.shape[1:], strict=True)]
    small = [resize(np.pad(image, pads), (SIDE, SIDE), order=1, anti_aliasing=True) for image in images]
    return np.stack([image / np.percentile(image, 99.5) for image in small])


def imaged(truth: Array, count: int, seed: int) -> tuple[KSpaceData, Array]:
    """A scan of all lines, and the image from some of them."""
    rng = np.random.default_rng(seed)
    noise = SD * (rng.standard_normal(truth.shape) + 1j * rng.standard_normal(truth.shape))
    kspace = (np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(truth), norm="ortho")) + noise).astype(np.complex64)
    centre = range(SIDE // 2 - 4, SIDE // 2 + 4)
    outer = rng.choice(np.setdiff1d(np.arange(SIDE), list(centre)), count - len(centre), replace=False)
    one = MRSlice(kspace[None], np.ones(SIDE, bool), SD**2, prior=LOCAL.blocks())
    model = one.model(sorted([*centre, *outer.tolist()]))
    image = LOCAL.inference.engine().cut_short(2).infer(model, np.random.default_rng(0)).mean
    return KSpaceData(kspace[None, None], np.ones(SIDE, bool)), image


def told(scan: KSpaceData, image: Array, file: CompanionImages, number: int) -> dict[float, float]:
    """Mutual information beyond 1, by the slice, registered where the search begins."""
    companion = file.over(scan, number, len(file.images))
    motion, around = register(image, companion.image).motion, companion.volume
    assert around is not None
    found = {float(number): alike_after(motion, image, companion.image) - 1}
    for place in around.places:
        there = around.at(place)
        if there is not None:
            found[number + place] = alike_after(motion, image, there) - 1
    return found


def chosen(tells: dict[float, float], start: float) -> float:
    """Where the search ends."""
    best = max(tells, key=lambda place: tells[place])
    return best if tells[best] > ACROSS * tells[start] else start


def cells(data: Path, slices: list[int], have: set[tuple[str, ...]]) -> Iterator[Row]:
    """Every head, slice, contrast and number of lines."""
    for subject in SUBJECTS:
        t2, rng = volume(data, subject, "T2w"), np.random.default_rng(9)
        files = {"T1w": volume(data, subject, "T1w"), "repeat": np.abs(t2 + 0.02 * rng.standard_normal(t2.shape))}
        for number in slices:
            for count in PARTS:
                if (subject, str(number), str(count)) in have:
                    continue
                scan, image = imaged(t2[number], count, number)
                row: dict[str, object] = {"head": subject, "slice": number, "lines": count}
                for name, images in files.items():
                    file = CompanionImages(name, images.astype(np.float32))
                    tells = told(scan, image, file, number)
                    right = tells.pop(float(number))
                    row[f"{name} beside"] = round(max(tells.values()) / right, 3)
                    ends = [
                        chosen(told(scan, image, file, start), start)
                        for start in (number - 1, number + 1)
                        if 0 <= start < len(images)
                    ]
                    row[f"{name} searches"] = len(ends)
                    row[f"{name} found"] = sum(abs(end - number) <= 0.5 for end in ends)
                    row[f"{name} lost"] = int(abs(chosen(tells | {float(number): right}, number) - number) > 0.5)
                yield row


def main() -> None:
    """Measure what is not there yet, and put the table on its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--slices", default="0,1,2,3")
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    path = given.out / "across.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    have = {(str(row["head"]), str(row["slice"]), str(row["lines"])) for row in rows}
    for row in cells(given.data, [int(one) for one in given.slices.split(",")], have):
        rows.append(row)
        write_csv(path, rows)
        print(*row.values(), sep=" | ", flush=True)
    table: list[Row] = []
    for where in (("1", "2"), ("0", "3")):
        for name in ("T1w", "repeat"):
            here = [row for row in rows if str(row["slice"]) in where]
            beside = [float(str(row[f"{name} beside"])) for row in here]
            found, of, lost = (
                sum(int(str(row[f"{name} {what}"])) for row in here) for what in ("found", "searches", "lost")
            )
            row = {"slices": " and ".join(where), "companion": name, "cells": len(here), "beside, largest": max(beside)}
            table.append(row | {"found": f"{found} of {of}", "lost": lost})
    put_table(given.out / "across.md", "Table", table)


if __name__ == "__main__":
    main()
