"""Compressed sensing with wavelets beside BART's `pics` at the same error, and beside another version of this package.

    OMP_NUM_THREADS=1 python benchmarks/compressed_sensing.py DATA --against CHECKOUT

DATA is the folder of images. Heads are simulated with eight coils at 256 x 256, of which 64 lines at random are
measured; BART has the same samples and maps, in its own files. Weights, with and without shifts of wavelets, and BART's
iterations are those of the smallest mean error of two heads of another subject. The other version has none of our
shifts, so its weight is that without. Processor seconds: of BART the whole command, of ours the image,
in a process that has loaded its loops; medians over three turns. Leaves compressed_sensing.csv, a
table of README.md and rows of targets.csv in results/speed.
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
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from parts.exams import random_lines
from parts.pages import Kept, put_table
from study.scans import Scan, simulated, simulating
from threadpoolctl import threadpool_limits

from mri_design.design.training import relative_error
from mri_design.evaluation.tables import Row, write_csv
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.operators.base import Array
from mri_design.runs.compare import WEIGHTS
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


def fitted_error(image: Array, scan: Scan) -> float:
    """Of the magnitude, times the number that fits it best."""
    seen, truth = np.abs(image).astype(float), np.abs(scan.reference)
    return relative_error(seen * np.vdot(seen, truth) / np.vdot(seen, seen), scan.reference)


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
        found.append((time.process_time() - began, fitted_error(image, scan)))
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
        return seconds, fitted_error(read_pair(self.folder / "image").squeeze().T, self.scan)


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--against", type=Path, help="another working tree")
    parser.add_argument("--weight", type=float, help="print seconds and errors of the judged heads under this weight")
    asked = parser.parse_args()
    with threadpool_limits(1):
        if asked.weight is None:
            main(asked.data, asked.against)
        else:
            ours(asked.data, JUDGED[0], [asked.weight], 64)  # loads the loops
            print(json.dumps([ours(asked.data, index, [asked.weight])[0] for index in JUDGED]))
