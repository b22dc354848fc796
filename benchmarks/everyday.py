"""The everyday case: regular lines with a counted centre, several coils; our mean beside two textbook rivals.

    OMP_NUM_THREADS=1 python benchmarks/everyday.py DATA [--cases 8a-96:3,16-128:4] [--out results/coils]

DATA is the folder of raw scans and images. Every mask has each R-th line and 24 lines at the centre (16 on grids of
64); coil maps are estimated from its lines. "before" is the posterior mean without `tau_limit_bright`. The rivals are
L1-wavelet and total variation by SigPy, with the weights that are best for each column in hindsight. Errors are L2
errors in per cent: of the magnitude over the whole image and inside the object (a tenth of the bright level and
more), against the truth of simulated scans, and of raw scans against their own image from all lines; and, as `open`, of
the lines that were not measured, without the noise of these. A raw scan's own image is noisy: outside the object an
error against it rewards an image that keeps its noise. `open` does not, nor does the truth. What has been computed is
kept in everyday.csv, and the same command goes on from there; a minute of processor time for a case of 8 coils.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.pages import put_table

from mri_design.design.trials import ReferenceSlice, relative_error
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.experiment.slice_choice import ScanSource, SliceChoice
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.runs.run import Work
from mri_design.runs.scans import load_images
from mri_design.scan.data import KSpaceData

SCANS: dict[str, tuple[str, int, int, int]] = {
    "8a-96": ("mc_brain_8a.npy", 0, 96, 0),
    "head-a-8": ("img_3T_complex.npz", 3, 64, 8),
    "head-b-4": ("img_3T_complex.npz", 9, 64, 4),
    "prescan16-64": ("mc_brain_prescan16.npy", 0, 64, 0),
    "16-128": ("mc_brain_cimax16.npy", 0, 128, 0),
    "8a-128": ("mc_brain_8a.npy", 0, 128, 0),
    "pfile8-96": ("ge_pfile8.npy", 3, 96, 0),
    "ffe12-80": ("mc_phantom_ffe12.npy", 1, 80, 0),
    "skyra32-64": ("mc_phantom_skyra32.npy", 0, 64, 0),
    "2-64": ("mc_brain_cimax2.npy", 0, 64, 0),
    "head-c-16": ("img_3T_complex.npz", 13, 64, 16),
    "head-d-8": ("img_3T_complex.npz", 19, 64, 8),
    "head-d-4": ("img_3T_complex.npz", 19, 64, 4),
    "head-d-32": ("img_3T_complex.npz", 19, 64, 32),
    "T2w-8": ("mag3T_6B_T2w.npz", 1, 64, 8),
    "ellipses-8": ("phantom:shepp-logan", 0, 64, 8),
}
"""File, slice, side, and simulated coils of images; rules were chosen on the first four, the others check them."""
CHOSEN = 4
WEIGHTS = (0.0005, 0.001, 0.002, 0.004)
RIVALS = ("l1-wavelet", "total-variation")
PARTS = ("whole", "inside", "open")


def loaded(folder: Path, name: str, recipe: Recipe | None = None) -> ReferenceSlice:
    """The middle of a scan's k-space, or the simulated scan of an image, with coil maps that are not known."""
    file, index, side, coils = SCANS[name]
    settings = {"matrix": side, "coils": max(coils, 1), "noise": 0.007}
    data = load_input(file if ":" in file else folder / file, Recipe().replacing("simulation", **settings))
    data = data.select_slice(index)
    if not coils:
        middle = tuple(slice(max(n // 2 - side // 2, 0), n // 2 - side // 2 + side) for n in data.grid_shape)
        kspace = np.ascontiguousarray(data.kspace[..., *middle])
        data = KSpaceData(kspace, np.ones(kspace.shape[-2], bool), name=name)
    source = ScanSource(f"memory:{name}", SliceChoice("all"), loaded=data)
    return load_images([source], recipe or Recipe(), Work())[0][0]


def errors(image: ReferenceSlice, seen: MRSlice, lines: Array, made: Array) -> dict[str, float]:
    """Relative errors of an image in per cent, by `PARTS`."""
    shown, truth = np.abs(made * image.unit_of(seen)), np.abs(image.shown)
    inside = truth > 0.1 * np.percentile(truth, 99)
    left = np.delete(np.arange(seen.candidates.size), lines)
    measured = seen.kspace.reshape(seen.n_coils, seen.candidates.size, -1)[:, left]
    wrong = measured - seen.encoding(left.tolist())(made).reshape(measured.shape)
    of_noise = 2 * seen.noise_variance
    found = np.sum(np.abs(wrong) ** 2, dtype=float) - of_noise * wrong.size
    energy = np.sum(np.abs(seen.kspace) ** 2, dtype=float) - of_noise * seen.kspace.size
    return {
        "whole": 100 * relative_error(shown, truth),
        "inside": 100 * relative_error(shown[inside], truth[inside]),
        "open": 100 * float(np.sqrt(max(found, 0.0) / energy)),
    }


def row(folder: Path, name: str, acceleration: int) -> Row:
    """All errors of one case."""
    image, recipe = loaded(folder, name), Recipe()
    size = image.slice_model.shape[0]
    centre = 24 if size > 64 else 16
    lines = np.union1d(np.arange(0, size, acceleration), size // 2 - centre // 2 + np.arange(centre))
    pixels, *others = recipe.prior
    before = replace(recipe, prior=(replace(pixels, tau_limit_bright=None), *others))
    found: dict[str, dict[str, float]] = {}
    for method, asked in (("mean", recipe), ("before", before)):
        seen = image.as_measured.calibrated(lines.tolist())
        seen = replace(seen, prior=asked.blocks())
        made = reconstruct_prepared(seen, lines.tolist(), "mean", asked, image_rng(0), with_std=False)
        found[method] = errors(image, seen, lines, made.image)
    for method in RIVALS:
        tried = [
            reconstruct_prepared(seen, lines.tolist(), method, recipe.replacing("reconstruction", weight=weight)).image
            for weight in WEIGHTS
        ]
        each = [errors(image, seen, lines, made) for made in tried]
        found[method] = {part: min(one[part] for one in each) for part in PARTS}
    known: Row = {
        "scan": name,
        "coils": seen.n_coils,
        "R": acceleration,
        "lines": f"{len(lines)} of {size}",
        "rules": "chosen here" if name in list(SCANS)[:CHOSEN] else "checked",
    }
    for part in PARTS:
        best = min(found[method][part] for method in RIVALS)
        mean = found["mean"][part]
        known[part] = f"{mean:.2f}"
        known[f"{part}: against before"] = f"{100 * (mean / found['before'][part] - 1):+.1f}"
        known[f"{part}: against best of L1, TV"] = f"{100 * (mean / best - 1):+.1f}"
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cases", default=",".join(f"{name}:3" for name in SCANS))
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "everyday.csv"
    table: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    for case in given.cases.split(","):
        name, _, acceleration = case.rpartition(":")
        if not any(one["scan"] == name and str(one["R"]) == acceleration for one in table):
            table.append(row(given.data, name, int(acceleration)))
            write_csv(path, table)
            print(table[-1], flush=True)
    put_table(given.out / "everyday.md", "Errors", table)


if __name__ == "__main__":
    main()
