"""Whether MAP images by total variation reach the minimum along a few arms of a spiral, as the package is shipped.

    OMP_NUM_THREADS=1 python benchmarks/spirals_map.py --data ../shared/data/mri

Twelve arms of half a turn between them, 256 x 256, one coil, three heads. The gap is how far the objective is above
the one that iterative reweighting with far smaller tolerances finds. Writes results/speed/spirals-map.csv, which
benchmarks/speed.py takes its row from.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from trajectories.scenes import heads
from trajectories.sets import HALF, spiral_sets
from trajectories.total_variation import Problem

from mri_design.estimation.irls import IRLS
from mri_design.estimation.map_estimate import MapEstimate
from mri_design.evaluation.tables import Row, csv_text, write_csv

OUT = Path(__file__).parents[1] / "results/speed"
ARMS, TURNS, MATRIX = 12, 1.5, 256
SMOOTHING = 1e-5


def row(source: Path, head: int, matrix: int) -> Row:
    """One head: seconds and products of the shipped estimate, and its gap."""
    problem = Problem.of(heads(source, (head,), matrix)[0], spiral_sets(matrix, ARMS, TURNS)[HALF], 1)
    began = time.process_time()
    image, convergence = MapEstimate()(problem.model)
    seconds, found = time.process_time() - began, problem.value(image)
    smoothed = MapEstimate().smoothed_problem(problem.model.rotated, SMOOTHING)
    least = problem.value(IRLS(1e-6, 200, 0.05, 300)(smoothed, image)[0])
    return {
        "head": head,
        "status": convergence.status.value,
        "products": convergence.matvecs,
        "processor s": seconds,
        "f": found,
        "gap": found / min(found, least) - 1,
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    parser.add_argument("--heads", type=int, nargs="+", default=[6, 12, 18], help="slices of the volume of heads")
    parser.add_argument("--matrix", type=int, default=MATRIX)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    rows = [row(chosen.data / "img_3T_complex.npz", head, chosen.matrix) for head in chosen.heads]
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_csv(chosen.out / "spirals-map.csv", rows, formats={"processor s": ".1f", "gap": ".2g", "f": ".6g"})
    print(csv_text(rows))


if __name__ == "__main__":
    main()
