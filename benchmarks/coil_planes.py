"""Samples of a plane (ky, kz) with several coils: designed masks against Poisson discs of every power, and BART's.

    OMP_NUM_THREADS=1 python benchmarks/coil_planes.py DATA [--scans "8a-128|..."] [--protocol] [--out FOLDER]

DATA is the folder of raw scans and of the study's images. The recipe ``local`` reconstructs every mask, and errors are
relative L2 errors against the scan's own image from all samples, or against the true image of a simulated scan: of the
magnitude, and of the complex image. Coil maps are those of all samples, or (scans named ``own maps``) of a square of
16 x 16 samples that every mask holds. What has been computed is kept in planes-cells.csv, and the same command goes on
from there; some ten seconds of processor time for a cell of 8 coils on 128 x 128. ``--protocol`` makes one mask of the
heads of two subjects for those of two others, and holds it against the disc that is best on the former.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from parts.pages import put_conditions, put_table
from study.scans import simulating

from mri_design.design.training import ReferenceSlice, TrainingResidual, relative_error
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.calibration import calibrate, truth_of
from mri_design.experiment.design import DesignOptions, run_design
from mri_design.experiment.extent import DesignPlan, readouts_wanted
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.masks import draw_mask
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategies import make_strategy
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import PlaneReadouts
from mri_design.scan.data import KSpaceData

SQUARE = 16
"""Side of the square that own maps are estimated from."""
DISC = "poisson-disc:"
DESIGNED, BART = "calibrated", "bart-poisson"


@dataclass(frozen=True)
class Case:
    """A scan, its crop, and the accelerations that it is measured at.

    Parameters
    ----------
    file : str
        In the folder of data.
    side : int
        The middle of k-space that is taken, or the matrix of a simulated scan; 0 is all.
    accelerations : tuple of float
        Samples of the plane over those of the mask.
    image : int, optional
        Which image of the file is simulated with eight coils; raw scans have none.
    own_maps : bool
        Whether coil maps are those of a square that is part of every mask.
    powers : tuple of float
        Of the discs.
    """

    file: str
    side: int
    accelerations: tuple[float, ...]
    image: int | None = None
    own_maps: bool = False
    powers: tuple[float, ...] = (1, 1.5, 2, 3)


HEADS = "img_3T_complex.npz"
CASES: Mapping[str, Case] = {
    "8a-128": Case("mc_brain_8a.npy", 128, (6, 8, 12, 16), powers=(0.5, 1, 1.5, 2, 3, 4)),
    "prescan16-64": Case("mc_brain_prescan16.npy", 0, (4, 6, 8, 12), powers=(0.5, 1, 1.5, 2, 3)),
    "8a-128, own maps": Case("mc_brain_8a.npy", 128, (8, 12), own_maps=True),
    "head 9": Case(HEADS, 128, (8, 12), 9),
    "16-128": Case("mc_brain_cimax16.npy", 0, (6, 8, 12)),
    "head 21": Case(HEADS, 128, (8, 12), 21),
    "16-128, own maps": Case("mc_brain_cimax16.npy", 0, (8,), own_maps=True),
    "head 15": Case(HEADS, 128, (8, 12), 15),
    "8a-230": Case("mc_brain_8a.npy", 0, (8,)),
    "head 3": Case(HEADS, 128, (6, 8, 12, 16), 3, powers=(1, 1.5, 2, 3, 4)),
}


@dataclass(frozen=True)
class Plane:
    """A scan as a plane, the image that it is judged by, and the recipe of its masks."""

    mr_slice: SliceModel
    reference: Array
    recipe: Recipe

    @classmethod
    def of(cls, folder: Path, case: Case) -> Plane:
        """Read or simulated, and calibrated."""
        recipe = load_recipe("local").replacing("design", encoding="plane")
        if case.image is None:
            kspace = np.load(folder / case.file)
            kspace = kspace.reshape(-1, *kspace.shape[-3:])[:1]
            middle = tuple(slice(max(0, n // 2 - (case.side or n) // 2), None) for n in kspace.shape[-2:])
            kspace = kspace[..., *middle][..., : case.side or None, : case.side or None]
            data = KSpaceData(np.ascontiguousarray(kspace, np.complex64), np.ones(kspace.shape[-2], bool), name="raw")
        else:
            data = load_scan(folder / case.file, simulating(case.side, coils=8), 8).select_slice(case.image)
        if case.own_maps:
            recipe = recipe.replacing("design", start=SQUARE)
        prepared = calibrate(data, recipe, calibration_lines=SQUARE if case.own_maps else None)
        reference = truth_of(prepared)
        assert reference is not None
        return cls(prepared.slice_model(0, **recipe.slice_settings), reference, recipe)

    def mask(self, name: str, acceleration: float, draw: int) -> Sequence[int]:
        """Samples that a strategy, or another program, chooses."""
        plane = self.mr_slice.candidates
        assert isinstance(plane, PlaneReadouts)
        target = readouts_wanted(plane.size, acceleration)
        if name == BART:
            return draw_mask(name, plane.grid, target, self.recipe, calibration=SQUARE, seed=draw).order
        rule = make_strategy(name, "plane")
        start = DesignPlan.of(rule, self.recipe, plane).start_lines(
            self.mr_slice.measured, target, 0, self.mr_slice.n_coils
        )
        options = DesignOptions(draw=draw)
        return run_design([self.mr_slice], rule, target, self.recipe, start=start, options=options).trace.lines

    def measured(self, name: str, acceleration: float, draw: int) -> Row:
        """Errors of the image that a mask makes."""
        began = time.process_time()
        chosen = self.mask(name, acceleration, draw)
        seconds = time.process_time() - began
        return {**self.error(chosen), "samples": len(chosen), "design_seconds": round(seconds, 1)}

    def error(self, chosen: Sequence[int]) -> dict[str, float]:
        """Of the magnitude, and of the complex image."""
        image = reconstruct_by_recipe(self.mr_slice, sorted(chosen), self.recipe, 0).image
        wrong = np.linalg.norm(image - self.reference) / np.linalg.norm(self.reference)
        return {"error": relative_error(image, self.reference), "complex_error": float(wrong)}


def cells(case: Case, draws: int) -> Iterator[tuple[float, str, int]]:
    """(acceleration, mask, draw), the designs of all accelerations first."""
    discs = [f"{DISC}{power:g}" for power in case.powers]
    for names in ([DESIGNED], discs, [BART] if case.own_maps else []):
        for acceleration in case.accelerations:
            for name in names:
                yield from ((acceleration, name, draw) for draw in range(draws))


def key(row: Row) -> tuple[str, float, str, int]:
    """What a cell is known by."""
    return str(row["scan"]), float(str(row["acceleration"])), str(row["mask"]), int(str(row["draw"]))


def summary(found: Sequence[Row]) -> list[Row]:
    """One row for each scan and acceleration: the designed mask against the best disc, and against others."""
    table: list[Row] = []
    for scan, factor in dict.fromkeys(key(row)[:2] for row in found):
        here = [row for row in found if key(row)[:2] == (scan, factor)]

        def mean(name: str, column: str, here: Sequence[Row] = here) -> float:
            errors = [float(str(row[column])) for row in here if row["mask"] == name]
            return float(np.mean(errors)) if errors else float("nan")

        discs = sorted({str(row["mask"]) for row in here if str(row["mask"]).startswith(DISC)})
        if not discs:
            continue
        best, nearest = (min((mean(name, c), name) for name in discs)[1] for c in ("error", "complex_error"))
        named = {"best_disc": best, "disc_2": f"{DISC}2", "bart": BART}
        own = mean(DESIGNED, "error")
        changes = {f"against_{label}": own / mean(name, "error") - 1 for label, name in named.items()}
        wrong = mean(DESIGNED, "complex_error") / mean(nearest, "complex_error") - 1
        table.append(
            {
                "scan": scan,
                "acceleration": factor,
                "draws": sum(row["mask"] == DESIGNED for row in here),
                "error": own,
                "best_power": float(best.removeprefix(DISC)),
                **{label: 100 * change for label, change in changes.items()},
                "complex_against_best_disc": 100 * wrong,
            }
        )
    return table


TRAINING, TESTS = (0, 3, 6, 9), (12, 15, 18, 21)
"""Heads of two subjects each."""
PROTOCOL_SIDE, PROTOCOL_ACCELERATION = 96, 8.0
PROTOCOLS = ("calibrated", "residual-greedy")


def protocol(folder: Path, draws: int) -> list[Row]:
    """Errors of heads that a mask was not made for: designed on others, or the disc that is best on those others."""
    heads = {i: Plane.of(folder, Case(HEADS, PROTOCOL_SIDE, (), i)) for i in (*TRAINING, *TESTS)}
    first = heads[TRAINING[0]]
    plane = first.mr_slice.candidates
    assert isinstance(plane, PlaneReadouts)
    target = readouts_wanted(plane.size, PROTOCOL_ACCELERATION)

    def errors(masks: Sequence[Sequence[int]], images: Sequence[int]) -> list[float]:
        return [float(np.mean([heads[i].error(chosen)["error"] for chosen in masks])) for i in images]

    discs = {
        f"{DISC}{power:g}": [first.mask(f"{DISC}{power:g}", PROTOCOL_ACCELERATION, draw) for draw in range(draws)]
        for power in (1, 1.5, 2, 3)
    }
    tuned = min(discs, key=lambda name: float(np.mean(errors(discs[name], TRAINING))))
    rivals = errors(discs[tuned], TESTS)
    known = [ReferenceSlice(str(i), heads[i].mr_slice, heads[i].reference) for i in TRAINING]
    slices, table = [scan.slice_model for scan in known], list[Row]()
    for name in PROTOCOLS:
        rule = make_strategy(name, "plane")
        rule = rule.knowing(known) if isinstance(rule, TrainingResidual) else rule
        start = DesignPlan.of(rule, first.recipe, plane).start_lines(
            first.mr_slice.measured, target, 0, first.mr_slice.n_coils
        )
        began = time.process_time()
        chosen = run_design(slices, rule, target, first.recipe, start=start).trace.lines
        seconds = round(time.process_time() - began, 1)
        for image, own, rival in zip(TESTS, errors([chosen], TESTS), rivals, strict=True):
            change = 100 * (own / rival - 1)
            table.append(
                {
                    "protocol": name,
                    "test": f"head {image}",
                    "error": own,
                    "tuned_power": float(tuned.removeprefix(DISC)),
                    "disc_error": rival,
                    "against_tuned_disc": change,
                    "design_seconds": seconds,
                }
            )
    return table


FORMATS = {"error": ".4f", "disc_error": ".4f", "against_tuned_disc": "+.1f"} | {
    name: "+.1f"
    for name in (
        *(f"against_{label}" for label in ("best_disc", "disc_2", "bart")),
        "complex_against_best_disc",
    )
}


def main() -> None:
    """Parse the command line, compute, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scans", default="|".join(CASES), help="names with | between them")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--protocol", action="store_true", help="one mask for many heads, and nothing else")
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    given = parser.parse_args()
    path, page = given.out / "planes-cells.csv", given.out / "planes.md"
    given.out.mkdir(parents=True, exist_ok=True)
    if given.protocol:
        rows = protocol(given.data, given.draws)
        write_csv(given.out / "planes-protocol.csv", rows)
        put_table(page, "One mask for many heads", rows, None, FORMATS)
        return
    found: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    for scan in given.scans.split("|"):
        plane, done = Plane.of(given.data, CASES[scan]), {key(row) for row in found}
        for acceleration, mask, draw in cells(CASES[scan], given.draws):
            cell: Row = {"scan": scan, "acceleration": acceleration, "mask": mask, "draw": draw}
            if key(cell) not in done:
                found.append({**cell, **plane.measured(mask, acceleration, draw)})
                write_csv(path, found)
    write_csv(given.out / "planes.csv", summary(found))
    put_table(page, "Against Poisson discs", summary(found), None, FORMATS)
    put_conditions(page, "mri-design", "numpy", "scipy")


if __name__ == "__main__":
    main()
