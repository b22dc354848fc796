"""Scans with several coils, cropped to a square grid, and the maps that are estimated from some of their lines.

    OMP_NUM_THREADS=1 python benchmarks/coils.py DATA [--seeds 3] [--out results/coils]

DATA is the folder of raw scans. Masks of random lines have eight centre lines (four or six where a mask has sixteen or
ten) and others of a density that falls with the third power; those of growing distances have four, as designs do, or
two. Maps are estimated from these lines alone, by NLINV, by NLINV without its envelope, and by ESPIRiT on the gapless
centre. Every set of maps gives a least-squares image (SENSE, the better of two regularisations) and a posterior mean,
whose errors are divided by those with maps of the whole scan. What is in maps.csv is not measured again.
Tables go to maps.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
from parts.pages import put_conditions, put_table

from mri_design.calibration import coils as calibration
from mri_design.calibration.coils import maps_from_lines
from mri_design.design.distances import growing_masks
from mri_design.design.training import ReferenceSlice, relative_error
from mri_design.evaluation.metrics import relative_l2
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.calibration import calibrate, truth_of
from mri_design.experiment.inputs import ScanSource, SliceChoice, load_scan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe, reconstruct_prepared
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.runs.known_slice import load_images
from mri_design.runs.work import Work
from mri_design.scan.data import ImageStack, KSpaceData
from mri_design.scan.simulation import simulate_scan

LOCAL = load_recipe("local")
RIDGES = (1e-3, 1e-2)
SCANS = {
    "8a-96": ("mc_brain_8a.npy", 96),
    "16-96": ("mc_brain_cimax16.npy", 96),
    "prescan16-64": ("mc_brain_prescan16.npy", 64),
    "sim8-96": ("mag3T_6B_T2w.npz", 96),
    "8a-128": ("mc_brain_8a.npy", 128),
    "16-128": ("mc_brain_cimax16.npy", 128),
    "sim8-128": ("mag3T_7A_T1w.npz", 128),
    "pfile8-96": ("ge_pfile8.npy", 96),
    "ffe12-88": ("mc_phantom_ffe12.npy", 88),
    "sim8b-96": ("mag3T_7B_T2w.npz", 96),
    "sim4-96": ("mag3T_6B_T2w.npz", 96),
    "8a-64": ("mc_brain_8a.npy", 64),
    "pfile8-64": ("ge_pfile8.npy", 64),
    "gre2-80": ("../raw/twix_gre.dat", 80),
    "sim8b-64": ("mag3T_7B_T2w.npz", 64),
}
"""Files, and the sides that they are cropped to, or simulated on with eight coils (``sim4``: four)."""


def middle_of(
    folder: Path, name: str, recipe: Recipe, side: int, file: str | None = None, **simulation: object
) -> KSpaceData:
    """The middle of a scan's k-space, or the simulated scan of an image, with coil maps that are not known.

    Simulations have eight coils and a smooth phase, where ``simulation`` says nothing else.
    """
    simulated = recipe.replacing("input", matrix=side)
    simulated = simulated.replacing("simulation", **{"coils": 8, "phase": "smooth"} | simulation)
    data = load_scan(folder / (file or SCANS[name][0]), simulated).select_slice(0)
    middle = tuple(slice(n // 2 - side // 2, n // 2 - side // 2 + side) for n in data.grid_shape)
    covariance = data.noise_covariance
    if covariance is None and data.noise_variance is not None:
        covariance = 2 * data.noise_variance * np.eye(data.n_coils)
    return KSpaceData(
        np.ascontiguousarray(data.kspace[..., *middle]), np.ones(side, bool), name=name, noise_covariance=covariance
    )


def image_of(scan: KSpaceData, recipe: Recipe) -> ReferenceSlice:
    """A scan of one slice, with its own image of all lines as the reference."""
    source = ScanSource(f"memory:{scan.name}", SliceChoice("all"), loaded=scan)
    return load_images([source], recipe, Work())[0][0]


def error(image: ReferenceSlice, seen: SliceModel, lines: Sequence[int], recipe: Recipe) -> float:
    """Relative error of the image from some lines."""
    seen = seen.calibrated(lines)
    made = reconstruct_by_recipe(seen, lines, recipe, 0)
    return relative_error(made.image * image.unit_of(seen), image.shown)


@dataclass(frozen=True)
class Head:
    """A whole scan of white coils, the image of all its lines, and the maps of its 24 central ones."""

    name: str
    data: KSpaceData
    image: Array

    @property
    def kspace(self) -> Array:
        return self.data.kspace[0]

    @property
    def maps(self) -> Array:
        assert self.data.coil_maps is not None
        return self.data.coil_maps[0]


def heads(folder: Path) -> Iterator[Head]:
    """Raw scans cut to several sizes, and simulated ones."""
    raw = {"mc_brain_8a": (96, 128), "mc_brain_cimax16": (96, 128), "mc_brain_prescan16": (64,)}
    for name, sides in raw.items():
        kspace = np.load(folder / f"{name}.npy")[:1]
        for side in sides:
            cut = [slice(n // 2 - min(n, side) // 2, n // 2 - min(n, side) // 2 + side) for n in kspace.shape[-2:]]
            yield head(f"{name} {side}", np.ascontiguousarray(kspace[..., cut[0], cut[1]]))
    with np.load(folder / "img_3T_complex.npz") as archive:
        for index in (0, 7):
            pair = archive["image"][index].astype(np.float32)
            stack = ImageStack((pair[..., 0] + 1j * pair[..., 1])[None], f"simulated head {index}")
            scan = simulate_scan(stack, matrix=128, n_coils=8, rng=np.random.default_rng([index, 1]))
            yield head(f"{stack.name} 128", scan.kspace, scan.noise_variance)


def head(name: str, kspace: Array, noise_variance: float | None = None) -> Head:
    """Calibrated by all its lines."""
    known = KSpaceData(kspace, np.ones(kspace.shape[-2], dtype=bool), noise_variance=noise_variance, name=name)
    scan = calibrate(known, LOCAL)
    image = truth_of(scan)
    assert image is not None
    return Head(name, scan, image)


def growing_mask(lines: int, count: int, seed: int, centre: int) -> Array:
    """Centre lines, and others at growing distances, from an offset that is drawn."""
    chosen = np.abs(np.arange(lines) - lines // 2 + 0.5) < centre / 2
    masks = growing_masks(~chosen, count - centre)
    chosen[list(masks[np.random.default_rng(seed).integers(len(masks))])] = True
    return chosen


def random_mask(lines: int, count: int, seed: int) -> Array:
    """Centre lines, and others by a density that falls with the third power of the distance."""
    centre = 8 if count > 16 else 6 if count > 10 else 4
    chosen = np.zeros(lines, dtype=bool)
    chosen[lines // 2 - centre // 2 :][:centre] = True
    density = (1 - 0.98 * np.abs(np.arange(lines) - lines // 2) / (lines / 2)) ** 3 * ~chosen
    rng = np.random.default_rng([seed, lines, count])
    chosen[rng.choice(lines, count - centre, replace=False, p=density / density.sum())] = True
    return chosen


def least_squares_error(head: Head, maps: Array, lines: Array) -> float:
    """Error of the best of two regularised SENSE images."""
    inside = lines[:, None]

    def adjoint(samples: Array) -> Array:
        return np.asarray(np.sum(maps.conj() * to_image(samples), axis=0))

    def image(ridge: float) -> Array:
        found, residual = np.zeros(head.image.shape, np.complex64), adjoint(np.where(inside, head.kspace, 0))
        direction, energy = residual, float(np.vdot(residual, residual).real)
        for _ in range(40):
            image_of = adjoint(np.where(inside, to_kspace(maps * direction), 0)) + np.float32(ridge) * direction
            step = np.float32(energy / float(np.vdot(direction, image_of).real))
            found, residual = found + step * direction, residual - step * image_of
            before, energy = energy, float(np.vdot(residual, residual).real)
            direction = residual + np.float32(energy / before) * direction
        return found

    return min(relative_l2(np.abs(image(ridge)), np.abs(head.image)) for ridge in RIDGES)


def mean_error(head: Head, maps: Array, lines: Array) -> float:
    """Error of the posterior mean."""
    data = replace(head.data, coil_maps=np.asarray(maps, np.complex64)[None])
    model = calibrate(data, LOCAL).slice_model(0, **LOCAL.slice_settings)
    found = reconstruct_prepared(model, np.flatnonzero(lines), "mean", LOCAL, np.random.default_rng(0))
    return relative_l2(np.abs(found.image), np.abs(head.image))


MASKS = {"random": random_mask} | {f"growing from {n}": partial(growing_mask, centre=n) for n in (4, 2)}
WHOLE, WITHOUT = "of the whole scan", "NLINV without envelope"


def estimated(one: Head, way: str, lines: Array) -> Array:
    """Maps from the lines of a mask."""
    if way != WITHOUT:
        return maps_from_lines(one.kspace, lines, method="espirit" if way == "ESPIRiT" else "nlinv").maps
    with mock.patch.object(calibration, "_ENVELOPE", (1, 1)):
        return estimated(one, "NLINV", lines)


def map_rows(one: Head, kind: str, acceleration: int, seed: int) -> Iterator[Row]:
    """Errors of images with the maps of the whole scan, and with each estimate from the lines of a mask."""
    lines = MASKS[kind](len(one.kspace[0]), len(one.kspace[0]) // acceleration, seed)
    ways = ["NLINV", WITHOUT, *(["ESPIRiT"] if lines[len(lines) // 2 - 4 :][:8].all() else [])]
    for way in (WHOLE, *ways):
        began = time.process_time()
        found = one.maps if way == WHOLE else estimated(one, way, lines)
        seconds = time.process_time() - began
        row: Row = {"scan": one.name, "mask": kind, "acceleration": acceleration, "seed": seed, "maps": way}
        errors = {"SENSE": least_squares_error(one, found, lines), "mean": mean_error(one, found, lines)}
        yield row | errors | {"CPU s": seconds}


def summary(rows: list[Row], error: str) -> list[Row]:
    """Errors over those with maps of the whole scan, the mean over seeds, a column for each way; then over all."""
    table: list[Row] = []
    known = {_mask_of(r): float(str(r[error])) for r in rows if r["maps"] == WHOLE}
    everywhere = [("all", kind, "") for kind in MASKS]
    cells = sorted({(str(r["scan"]), str(r["mask"]), str(r["acceleration"])) for r in rows})
    for place in [*cells, *everywhere]:
        there = [r for r in rows if place in ((r["scan"], r["mask"], str(r["acceleration"])), ("all", r["mask"], ""))]
        line: Row = dict(zip(("scan", "mask", "acceleration"), place, strict=True))
        line[WHOLE] = f"{np.mean([known[_mask_of(r)] for r in there]):.4f}"
        for way in ("NLINV", WITHOUT, "ESPIRiT"):
            line[way] = _percent([float(str(r[error])) / known[_mask_of(r)] for r in there if r["maps"] == way])
        table.append(line)
    return table


def _mask_of(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("scan", "mask", "acceleration", "seed"))


def _percent(ratios: list[float]) -> str:
    return f"{100 * (np.mean(ratios) - 1):+.1f}, worst {100 * (max(ratios) - 1):+.1f} %" if ratios else "-"


def measure_maps(given: argparse.Namespace) -> None:
    """Measure the errors that are not in maps.csv, and write the tables of maps.md."""
    path, page = given.out / "maps.csv", given.out / "maps.md"
    rows: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    have = {_mask_of(row) for row in rows}
    for seed, one in product(range(given.seeds), list(heads(given.data))):
        for kind, acceleration in product(MASKS, (3, 4, 6)):
            if (one.name, kind, str(acceleration), str(seed)) not in have:
                rows += map_rows(one, kind, acceleration, seed)
                print(*rows[-1].values(), flush=True)
        write_csv(path, rows)
    put_table(page, "Posterior mean", summary(rows, "mean"))
    put_table(page, "Least squares", summary(rows, "SENSE"))
    put_conditions(page, "numpy", "scipy", also=", one thread")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    measure_maps(given)


if __name__ == "__main__":
    main()
