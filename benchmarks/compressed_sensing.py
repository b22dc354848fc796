"""Compressed sensing with wavelets beside BART's `pics` at the same error, another version, and the posterior mean.

    OMP_NUM_THREADS=1 python benchmarks/compressed_sensing.py DATA --against CHECKOUT
    OMP_NUM_THREADS=1 python benchmarks/compressed_sensing.py DATA --rivals

DATA is the folder of images. Heads are simulated with eight coils at 256 x 256, of which 64 lines at random are
measured; BART has the same samples and maps, in its own files. Weights, with and without shifts of wavelets, and BART's
iterations are those of the smallest mean error of two heads of another subject. The other version has none of our
shifts, so its weight is that without. Processor seconds: of BART the whole command, of ours the image,
in a process that has loaded its loops; medians over three turns. Leaves compressed_sensing.csv, a
table of README.md and rows of targets.csv in results/speed.

``--rivals`` holds the errors of MAP, l1-wavelet with and without shifts and total variation against that of the default
posterior mean. Weights are tuned for each case on the same two heads; for raw scans, whose maps are those of their
lines and which are judged inside the object by their own image of all lines, they are the best for every image in
hindsight. Leaves rivals.csv, from which the same command goes on, and a table of README.md in results/coils.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from parts.exams import designed_lines, random_lines
from parts.pages import Kept, put_table
from study.scans import Scan, simulated, simulating
from threadpoolctl import threadpool_limits

from mri_design.design.training import relative_error
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.calibration import calibrate, truth_of
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.runs.compare import WEIGHTS
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.bart import read_pair
from mri_design.scan.writing import pair_files

OUT = Path(__file__).parents[1] / "results/speed"
HEADS, TUNED_ON, JUDGED = "img_3T_complex.npz", (0, 2), (9, 13, 21)
COILS, SIDE, LINES, TURNS, LARGEST = 8, 256, 64, 3, 1.0
BART_WEIGHTS, BART_COUNTS = (0.0005, 0.001, 0.002, 0.004), (10, 15, 20, 25, 30, 40, 50, 70, 100, 150)
TRIED_COUNTS = (30, 70, 150)
SAME = 1.001
"""Errors that differ by less than a thousandth are the same."""


def head(data: Path, index: int, side: int = SIDE, coils: int = COILS) -> tuple[Scan, list[int]]:
    """A simulated scan, and its measured lines."""
    scan = simulated(data / HEADS, [index], simulating(side, coils=coils), index, "head")[0]
    return scan, random_lines(scan.prepared.slice_model(0), side * LINES // SIDE, index)


def fitted_error(image: Array, reference: Array) -> float:
    """Of the magnitude, times the number that fits it best."""
    seen, truth = np.abs(image).astype(float), np.abs(reference)
    return relative_error(seen * np.vdot(seen, truth) / np.vdot(seen, seen), reference)


Timed = tuple[float, float]
"""Processor seconds and error."""


def ours(data: Path, index: int, weights: Sequence[float], side: int = SIDE, **settings: bool) -> list[Timed]:
    """The image of a head under every weight, by the version that runs."""
    scan, lines = head(data, index, side)
    one, found = scan.prepared.slice_model(0), []
    for weight in weights:
        recipe = load_recipe(None).replacing("reconstruction", method="l1-wavelet", weight=weight, **settings)
        began = time.process_time()
        image = reconstruct_by_recipe(one, lines, recipe, 0).image
        found.append((time.process_time() - began, fitted_error(image, scan.reference)))
    return found


def best_weight(data: Path, **settings: bool) -> float:
    """Of the weights that `compare` tries: the best of the heads that are not judged."""
    errors = np.array([[error for _, error in ours(data, index, WEIGHTS, **settings)] for index in TUNED_ON])
    return WEIGHTS[int(errors.mean(axis=0).argmin())]


def by(checkout: Path, data: Path, weight: float) -> list[Timed]:
    """`ours` of all judged heads, in a process of a working tree."""
    path = os.pathsep.join((str(checkout.resolve()), str(Path(__file__).parent)))
    words = [sys.executable, "-P", __file__, str(data), "--weight", str(weight)]
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return [(seconds, error) for seconds, error in json.loads(ended.stdout)]


class Bart:
    """A head's samples and maps in BART's files, and the images that it makes of them."""

    def __init__(self, folder: Path, data: Path, index: int, coils: int = COILS) -> None:
        self.folder, (self.scan, lines) = folder, head(data, index, coils=coils)
        folder.mkdir()
        one = self.scan.prepared.slice_model(0)
        maps = np.ones_like(one.kspace) if one.maps is None else one.maps
        for name, array in {"kspace": np.where(one.grid_samples(lines), one.kspace, 0), "maps": maps}.items():
            for file, content in pair_files(folder / name, array.transpose(2, 1, 0)[:, :, None, :]).items():
                file.write_bytes(content)

    def __call__(self, weight: float, count: int, penalty: str = "W:3:0") -> Timed:
        """Processor seconds of `pics` and the error of its image."""
        began, environment = resource.getrusage(resource.RUSAGE_CHILDREN), os.environ | {"OMP_NUM_THREADS": "1"}
        command = ["bart", "pics", "-S", f"-i{count}", "-R", f"{penalty}:{weight}", "kspace", "maps", "image"]
        subprocess.run(command, cwd=self.folder, env=environment, check=True, capture_output=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        return seconds, fitted_error(read_pair(self.folder / "image").squeeze().T, self.scan.reference)


def main(data: Path, checkout: Path) -> None:
    """Tune, measure and write."""
    with TemporaryDirectory() as folder:
        barts = {index: Bart(Path(folder, str(index)), data, index) for index in (*TUNED_ON, *JUDGED)}
        weights = {"here": best_weight(data), "there": best_weight(data, wavelet_shifts=False)}
        ways = [(its, count) for its in BART_WEIGHTS for count in TRIED_COUNTS]
        tuned = min(ways, key=lambda way: np.mean([barts[index](*way)[1] for index in TUNED_ON]))
        versions = {"here": Path(__file__).parents[1], "there": checkout}
        turns = [{name: by(tree, data, weights[name]) for name, tree in versions.items()} for _ in range(TURNS)]
        rows = [
            judged(place, [{k: v[place] for k, v in turn.items()} for turn in turns], barts[index], tuned)
            for place, index in enumerate(JUDGED)
        ]
    write_csv(
        OUT / "compressed_sensing.csv",
        [row | {f"weight, {k}": w for k, w in (weights | {"BART": tuned[0]}).items()} for row in rows],
    )
    forms = {
        name: ".4f" if "error" in name else ".2f" for name in rows[0] if "error" in name or "s, " in name or "/" in name
    }
    put_table(OUT / "README.md", "L1-wavelet", rows, None, forms)
    worst = max(float(str(row["here / BART"])) for row in rows)
    what = "l1-wavelet, 8 coils at 256 x 256, over BART's pics at the same error, the largest of three heads"
    row: Row = {"what": what, "target": f"<= {LARGEST:g}", "measured": f"{worst:.2f}", "unit": "times"}
    Kept.at(OUT / "targets.csv", "what").put(row | {"met": "yes" if worst <= LARGEST else "no"})


def judged(place: int, turns: list[dict[str, Timed]], bart: Bart, tuned: tuple[float, int]) -> Row:
    """One head: BART to the error of our image, or as far as it comes, with its tuned weight; and as it is tuned."""
    error = turns[0]["here"][1]
    reached = {count: bart(tuned[0], count)[1] for count in BART_COUNTS}
    best = min(reached, key=lambda count: reached[count])
    count = next((count for count in BART_COUNTS if reached[count] <= SAME * error), best)
    same, whole = ([bart(tuned[0], n)[0] for _ in turns] for n in (count, tuned[1]))
    here, there = ([turn[name][0] for turn in turns] for name in ("here", "there"))
    return {
        "head": JUDGED[place],
        "error": error,
        "error, there": turns[0]["there"][1],
        "s, here": statistics.median(here),
        "s, there": statistics.median(there),
        "here / there": statistics.median(a / b for a, b in zip(here, there, strict=True)),
        "BART's iterations": count,
        "BART's error": reached[count],
        "s, BART": statistics.median(same),
        "here / BART": statistics.median(a / b for a, b in zip(here, same, strict=True)),
        "its iterations as tuned": tuned[1],
        "its error as tuned": reached[tuned[1]],
        "s, as tuned": statistics.median(whole),
        "here / as tuned": statistics.median(a / b for a, b in zip(here, whole, strict=True)),
    }


CASES = {
    "one coil, 32 of 128, at random": (128, 1, 32, "at random"),
    "one coil, 32 of 128, designed": (128, 1, 32, "designed"),
    "4 coils, 32 of 128, at random": (128, 4, 32, "at random"),
    "4 coils, 32 of 128, designed": (128, 4, 32, "designed"),
    "16 coils, 32 of 128, at random": (128, 16, 32, "at random"),
    "8 coils, 64 of 256, at random": (256, 8, 64, "at random"),
    "8 coils, 43 of 256, at random": (256, 8, 43, "at random"),
}
"""Side, coils, and how many lines."""
RAW = {
    f"raw, {name}, {part}": (file, side, part == "inside")
    for part in ("inside", "whole")
    for name, file, side in (
        ("16 coils, 128", "mc_brain_cimax16.npy", 128),
        ("8 coils, 128", "mc_brain_8a.npy", 128),
        ("8 coils, 96", "mc_brain_8a.npy", 96),
        ("16 coils, 64", "mc_brain_prescan16.npy", 64),
        ("2 coils, 64", "mc_brain_cimax2.npy", 64),
    )
}
"""File, side of the middle that is taken, and whether the object alone counts.

Every third line and 24 at the centre, 16 on grids of 64, are measured.
"""
MEAN, SEEDS = "posterior mean", range(3)
RIVALS: dict[str, dict[str, str | bool]] = {
    "l1-wavelet": {"method": "l1-wavelet"},
    "l1-wavelet, no shifts": {"method": "l1-wavelet", "wavelet_shifts": False},
    "total variation": {"method": "total-variation"},
}
"""Those that have a weight."""

Problem = tuple[SliceModel, list[int], Array, Array]
"""A slice, its measured lines, the unit of its image, and what that is held against."""


def simulated_problem(data: Path, case: str, index: int, seed: int) -> Problem:
    """A head of `CASES` with known maps."""
    side, coils, count, how = CASES[case]
    scan = simulated(data / HEADS, [index], simulating(side, coils=coils), seed, "head")[0]
    one = scan.prepared.slice_model(0, **load_recipe(None).slice_settings)
    lines = random_lines(one, count, seed) if how == "at random" else designed_lines(one, [count], seed)[count]
    return one, lines, np.ones(one.shape), np.asarray(scan.reference)


def raw_problem(data: Path, case: str, seed: int) -> Problem:
    """A scan of `RAW` with maps from its lines, and its own image of all lines."""
    (file, side, _), recipe = RAW[case], load_recipe(None)
    whole = load_scan(str(data / file), recipe, 0).select_slice(0)
    middle = tuple(slice(max(n // 2 - side // 2, 0), n // 2 - side // 2 + side) for n in whole.grid_shape)
    kspace = np.ascontiguousarray(whole.kspace[..., *middle])
    scan, centre = KSpaceData(kspace, np.ones(kspace.shape[-2], bool), name=case), 24 if side > 64 else 16
    lines = np.union1d(np.arange(seed, side, 3), side // 2 - centre // 2 + np.arange(centre))
    made = calibrate(scan, recipe, measured=np.isin(np.arange(side), lines), ordinary=True)
    one = made.slice_model(0, **recipe.slice_settings)
    complete = calibrate(scan, recipe.replacing("coils", coil_compression="none"))
    own = truth_of(complete)
    assert own is not None
    return one, lines.tolist(), np.asarray(made.image_unit()), np.abs(own * complete.image_unit())


def error_of(problem: Problem, inside: bool, **settings: str | float | bool) -> float:
    """The error of an image under the default recipe with these settings, over the whole or inside the object."""
    one, lines, unit, truth = problem
    recipe = load_recipe(None).replacing("reconstruction", **settings)
    part = truth > 0.1 * np.percentile(truth, 99) if inside else np.ones(truth.shape, bool)
    return fitted_error((reconstruct_by_recipe(one, lines, recipe, 0).image * unit)[part], truth[part])


def tuned_weights(data: Path, case: str) -> dict[str, float]:
    """Of the weights that `compare` tries: every rival's best of the heads that are not judged."""
    heads = [simulated_problem(data, case, index, 0) for index in TUNED_ON]
    found = dict[str, float]()
    for rival, settings in RIVALS.items():
        errors = [[error_of(one, False, weight=weight, **settings) for weight in WEIGHTS] for one in heads]
        found[rival] = WEIGHTS[int(np.mean(errors, axis=0).argmin())]
    return found


def rivals(data: Path) -> None:
    """Errors of every image by every method, and their table."""
    kept = Kept.at(OUT.parent / "coils/rivals.csv", "case", "image", "seed")
    for case in (*CASES, *RAW):
        raw, images = case in RAW, (0,) if case in RAW else JUDGED
        inside = raw and RAW[case][-1]
        wanted = [way for way in product(images, SEEDS) if (case, str(way[0]), str(way[1])) not in kept.rows]
        weights = tuned_weights(data, case) if wanted and not raw else {}
        for index, seed in wanted:
            problem = raw_problem(data, case, seed) if raw else simulated_problem(data, case, index, seed)
            row: Row = {"case": case, "image": index, "seed": seed, MEAN: error_of(problem, inside, method="mean")}
            row["MAP"] = error_of(problem, inside, method="map")
            for rival, settings in RIVALS.items():
                tried = (weights[rival],) if weights else WEIGHTS
                errors = [error_of(problem, inside, weight=weight, **settings) for weight in tried]
                row |= {rival: min(errors), f"weight, {rival}": tried[int(np.argmin(errors))]}
            kept.put(row)
    put_rivals(list(kept.rows.values()))


def put_rivals(rows: Sequence[Row]) -> None:
    """The table of the page: errors over that of the posterior mean, with their spread and the least."""
    shown = list[Row]()
    for case in dict.fromkeys(row["case"] for row in rows):
        its = [row for row in rows if row["case"] == case]
        line: Row = {"case": case, "images": len(its)}
        line[f"error, {MEAN}"] = f"{np.mean([float(str(row[MEAN])) for row in its]):.4f}"
        for rival in ("MAP", *RIVALS):
            ratios = [float(str(row[rival])) / float(str(row[MEAN])) for row in its]
            line[rival] = f"{np.mean(ratios):.3f} ± {np.std(ratios, ddof=1):.3f} ({min(ratios):.3f})"
            line[rival] = f"{line[rival]}, {sum(ratio < 1 for ratio in ratios)}"
        shown.append(line)
    put_table(OUT.parent / "coils/README.md", "Beside other reconstructions", shown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--against", type=Path, help="another working tree")
    parser.add_argument("--weight", type=float, help="print seconds and errors of the judged heads under this weight")
    parser.add_argument("--rivals", action="store_true", help="errors beside that of the posterior mean")
    asked = parser.parse_args()
    with threadpool_limits(1):
        if asked.rivals:
            rivals(asked.data)
        elif asked.weight is None:
            main(asked.data, asked.against)
        else:
            ours(asked.data, JUDGED[0], [asked.weight], 64)  # loads the loops
            print(json.dumps([ours(asked.data, index, [asked.weight])[0] for index in JUDGED]))
