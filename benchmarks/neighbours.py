"""Slices and echoes of one scan as other images for each other, as `recon --with slices` and `--with frames` do it.

    OMP_NUM_THREADS=1 python benchmarks/neighbours.py DATA [--seeds 1] [--out results/companions]

DATA is the folder of raw scans and images. Of volumes and series the image in the middle is made at 128 x 128 with
those one step before and after as its companions (of slices their mean), and with those two steps away. Each scan has
noise of its own. Neighbours are first made by themselves: from a mask of their own, or complete. Each row has the
relative L2 error without neighbours, and the changes in per cent with them as the scan's own lines decide, at two
strengths. `alike` is the correlation of the moduli, of the nearest of the neighbours. What has been computed is kept in
neighbours.csv, and the same command goes on from there, with rows and cells that are missing; neighbours.md has the
means.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.exams import SIDE, contrast_at_3t, random_lines, with_phase
from parts.kept import Kept, lacking
from skimage.transform import resize
from study.scans import NOISE, Scan, anew, denoised, echo

from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row
from mri_design.experiment.around import neighbours
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.model.companion import Companion
from mri_design.operators.base import Array

STRENGTHS = ("careful", "moderate")
MASKS = {8: ("own",), 4: ("own", "complete"), 2: ("own",)}
INTERLEAVED = (0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)
"""Slices of the wrist, which were measured in two passes, from one end to the other."""


def heads(data: Path, subject: str, contrast: str, seed: int) -> list[Scan]:
    """Four slices of a head at 3 T."""
    images = [with_phase(contrast_at_3t(data, subject, contrast, at), (at, 2)) for at in range(4)]
    return [anew("head", image[None], None, NOISE, 100 * seed + at) for at, image in enumerate(images)]


def simulated(data: Path, first: int, seed: int) -> list[Scan]:
    """Five slices of a simulated volume of 1 mm."""
    with np.load(data / "vol_brain_sim.npz", allow_pickle=False) as archive:
        volume = archive["image"][:, :, first : first + 5].astype(float)
    images = [resize(volume[..., at], (SIDE, SIDE), order=1, anti_aliasing=True) for at in range(5)]
    scaled = [with_phase(image / np.percentile(image, 99.5), (first + at, 2)) for at, image in enumerate(images)]
    return [anew("simulated", image[None], None, NOISE, 100 * seed + at) for at, image in enumerate(scaled)]


def raw(data: Path, name: str, slices: Sequence[int], seed: int) -> list[Scan]:
    """Slices of a raw scan, denoised."""
    return [denoised(data / f"{name}.npy", at, SIDE, 100 * seed + at) for at in slices]


def hearts(data: Path, seed: int) -> list[Scan]:
    """Four echoes."""
    return [echo(data / "img_heart_complex.npz", at, SIDE, 100 * seed + at) for at in range(4)]


VOLUMES: dict[str, tuple[str, int, Callable[[Path, int], list[Scan]]]] = {
    "head 6A T2w": ("slices", 1, lambda data, seed: heads(data, "6A", "T2w", seed)),
    "head 7B T1w": ("slices", 2, lambda data, seed: heads(data, "7B", "T1w", seed)),
    "simulated head": ("slices", 2, lambda data, seed: simulated(data, 78, seed)),
    "wrist": ("slices", 2, lambda data, seed: raw(data, "wrist_ap", INTERLEAVED[3:8], seed)),
    "head sagittal, low field": ("slices", 2, lambda data, seed: raw(data, "lf_4A_gre_sag", range(3, 8), seed)),
    "head axial, low field": ("slices", 1, lambda data, seed: raw(data, "lf_6B_fse", range(4), seed)),
    "phantom and tangerine": ("slices", 2, lambda data, seed: raw(data, "ge_pfile8", range(1, 6), seed)),
    "heart, echo 2": ("echoes", 1, hearts),
    "heart, echo 3": ("echoes", 2, hearts),
}


def made(scan: Scan, lines: list[int], recipe: Recipe, companions: tuple[Companion, ...] = ()) -> tuple[Array, int]:
    """The image from some lines, and how many companions are used."""
    one = replace(scan.prepared.slice_model(0, recipe), companions=companions)
    result = reconstruct_prepared(one, lines, "mean", recipe, image_rng(0), with_std=False)
    return result.image, 0 if result.companions is None else len(result.companions.used)


def measure(kept: Kept, name: str, scans: list[Scan], share: int, seed: int) -> None:
    """One volume at one acceleration: what is not there yet."""
    recipe, (kind, at, _) = Recipe(), VOLUMES[name]
    scan = scans[at]
    models = [each.prepared.slice_model(0, recipe) for each in scans]
    count = models[at].shape[0] // share
    lines = random_lines(models[at], count, seed)
    error = relative_l2(made(scan, lines, recipe)[0], scan.reference)
    for mask in MASKS[share]:
        images = {}
        for other, (model, each) in enumerate(zip(models, scans, strict=True)):
            if other != at and abs(other - at) <= 2:
                every = np.flatnonzero(model.measured).tolist()
                seen = every if mask == "complete" else random_lines(model, count, 100 * (seed + 1) + other)
                images[other] = np.abs(made(each, seen, recipe)[0]).astype(np.float32)
        for away in (1, 2):
            near = [other for other in (at - away, at + away) if other in images]
            weights = {str(near): dict.fromkeys(near, 1 / len(near))}
            beside = neighbours(weights if kind == "slices" else {str(n): {n: 1.0} for n in near}, images.__getitem__)
            alike = max(np.corrcoef(*(np.abs(s.reference).ravel() for s in (scan, scans[o])))[0, 1] for o in near)
            named = {"kind": kind, "name": name, "away": away, "mask": mask, "lines": count, "seed": seed}
            row = kept.row(named | {"alike": round(float(alike), 3), "error": round(error, 5)})
            for strength in lacking(row, STRENGTHS):
                asked = recipe.replacing("companion", companion_strength=strength)
                image, used = made(scan, lines, asked, beside)
                row[strength] = round(100 * (relative_l2(image, scan.reference) / error - 1), 2)
                row[f"{strength} used"] = used
            kept.put(row)


def means(rows: Sequence[Row]) -> str:
    """Changes of the error in per cent, means over volumes with the worst beside them."""
    keys = sorted({(str(row["kind"]), int(row["away"]), str(row["mask"]), int(row["lines"])) for row in rows})
    text = "| what | steps away | lines | neighbours' masks | cells | careful | used | moderate | used |\n"
    text += "| :--- | ---: | ---: | :--- | ---: | :--- | ---: | :--- | ---: |\n"
    for kind, away, mask, lines in keys:
        of = [r for r in rows if (r["kind"], int(r["away"]), r["mask"], int(r["lines"])) == (kind, away, mask, lines)]
        text += f"| {kind} | {away} | {lines} | {mask} | {len(of)} |"
        text += changes_text(of) + "\n"
    return text


def changes_text(rows: Sequence[Row]) -> str:
    """Cells of a table, for every strength: mean and worst change of the error, and in how many rows it was used."""
    text = ""
    for strength in STRENGTHS:
        found = [float(row[strength]) for row in rows]
        used = sum(int(row[f"{strength} used"]) > 0 for row in rows)
        text += f" {np.mean(found):+.1f} ({max(found):+.1f}) | {used} |"
    return text


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/companions"))
    given = parser.parse_args()
    kept = Kept.at(given.out / "neighbours.csv", "kind", "name", "away", "mask", "lines", "seed")
    for seed in range(given.seeds):
        for share in (4, 8, 2):
            for name, (kind, _, scans) in VOLUMES.items():
                named = {"kind": kind, "name": name, "lines": SIDE // share, "seed": seed}
                cells = [kept.row(named | {"away": away, "mask": mask}) for away in (1, 2) for mask in MASKS[share]]
                if any(lacking(row, STRENGTHS) for row in cells):
                    measure(kept, name, scans(given.data, seed), share, seed)
    command = "OMP_NUM_THREADS=1 python benchmarks/neighbours.py DATA"
    head = (
        f"Made by `{command} --seeds {given.seeds}`: change of the error in per cent, mean and in brackets the worst."
    )
    (given.out / "neighbours.md").write_text(
        f"# Neighbours within one scan\n\n{head}\n\n{means(list(kept.rows.values()))}"
    )


if __name__ == "__main__":
    main()
