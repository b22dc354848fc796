"""Spokes and spirals: which sets to take, whether chosen angles help, how good error bars are, and what it all costs.

    OMP_NUM_THREADS=1 python benchmarks/shots.py --data DATA --out results/encodings

measures everything (some 45 minutes of processor time) and writes shots.md, its rows of targets.csv, and a table
shots-SECTION.csv for each section. DATA is the folder of the study's scans (`study/split.py`). ``--only SECTION``
(again for more) measures some; the page is made from the tables that are there. ``--quick`` is the same on toy sizes in
seconds, where targets mean nothing; it needs no data. `encodings_results.py` runs this beside the benchmark of planes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parts.bart_solver import bart_version
from parts.targets import with_targets
from study.split import TEST_HEADS
from threadpoolctl import threadpool_limits
from trajectories.chosen import chosen_rows
from trajectories.cost import cost_rows
from trajectories.coverage import coverage_rows, covered_sets
from trajectories.measured import measured_rows, measured_spirals, toy_spirals
from trajectories.page import document, target_rows
from trajectories.resampled import resampled_rows
from trajectories.scenes import Scene, ellipses, heads
from trajectories.sets import DENSITIES, radial_rows, spiral_rows
from trajectories.total_variation import BART_LONG_RUNS, total_variation_rows
from trajectories.variances import variance_rows

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, read_csv, write_csv
from mri_design.scan.io.atomic import write_text

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/shots.py --data DATA --out results/encodings"
INTERLEAVES, SPOKES = 12, 32
SPIRALS, SCAN = "sp_phantom_8.npz", "mc_brain_cimax2.npy"
HEADS = TEST_HEADS[::4]
"""One of each test subject."""
COUNTS = {"spokes": (32, 64), "spirals": (12, 20)}
COVERED = {1: TEST_HEADS[::2], 8: TEST_HEADS[::6]}
"""Heads whose error bars are held against their errors, by number of coils."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Parameters
    ----------
    source : str or Path
        Heads.
    matrix, large, small : int
        Grids of the sets, of costs, and of dense algebra.
    interleaves, spokes : int
        Shots of a set.
    numbers : sequence of int
        Which heads.
    seeds : sequence of int
        Of the noise on the first image; the others have the first of them.
    repeats, runs : int
        Of the variances, and of what is timed.
    coils : sequence of int
        Of total-variation MAP.
    spirals : Path, optional
        A measured spiral scan, ``sp_phantom_8.npz``; without it a simulated toy takes its place.
    scan : str or Path
        A Cartesian scan through whose k-space spirals are run.
    covered : mapping of int to sequence of int
        Number of coils to heads whose error bars are held against their errors, with the noise of two seeds.
    counts : mapping of str to sequence of int
        How many spokes and spirals they have.
    """

    source: str | Path
    matrix: int
    large: int
    small: int
    interleaves: int
    spokes: int
    numbers: Sequence[int]
    seeds: Sequence[int]
    repeats: int
    runs: int
    coils: Sequence[int] = (1, 8)
    spirals: Path | None = None
    scan: str | Path = "phantom:brain"
    covered: Mapping[int, Sequence[int]] = field(default_factory=lambda: {1: (0,), 2: (0,)})
    counts: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"spokes": (4,), "spirals": (2,)})

    @classmethod
    def full(cls, data: Path) -> Sizes:
        """As on the page."""
        file = data / "img_3T_complex.npz"
        return cls(
            file,
            128,
            256,
            40,
            INTERLEAVES,
            SPOKES,
            HEADS,
            (0, 1, 2),
            32,
            2,
            spirals=data / SPIRALS,
            scan=data / SCAN,
            covered=COVERED,
            counts=COUNTS,
        )

    @classmethod
    def quick(cls) -> Sizes:
        """In seconds."""
        return cls("phantom:t2w", 16, 16, 20, 2, 4, (0,), (0,), 3, 1, (1, 2))

    def scenes(self) -> list[Scene]:
        """Heads, then the scene in closed form."""
        return [*heads(self.source, self.numbers, self.matrix), ellipses(self.matrix)]

    def alone(self, matrix: int) -> Scene:
        """The first head on another grid."""
        return heads(self.source, self.numbers[:1], matrix)[0]


SECTIONS: Mapping[str, Callable[[Sizes], Sequence[Row]]] = {
    "spirals": lambda s: spiral_rows(s.matrix, s.interleaves, s.scenes(), s.seeds),
    "chosen": lambda s: chosen_rows(s.matrix, s.interleaves, s.scenes(), DENSITIES),
    "radial": lambda s: radial_rows(s.matrix, s.spokes, s.scenes(), s.seeds),
    "variances": lambda s: variance_rows(s.alone(s.small), s.repeats),
    "coverage": lambda s: coverage_rows(
        {coils: heads(s.source, numbers, s.matrix) for coils, numbers in s.covered.items()},
        covered_sets(s.matrix, s.counts["spokes"], s.counts["spirals"]),
        s.seeds[:2],
    ),
    "measured": lambda s: measured_rows(toy_spirals() if s.spirals is None else measured_spirals(s.spirals)),
    "resampled": lambda s: resampled_rows(s.scan, s.interleaves, DENSITIES),
    "cost": lambda s: cost_rows(s.alone(s.large), s.spokes, s.runs),
    "tv": lambda s: total_variation_rows(s.alone(s.large), s.spokes, s.interleaves, s.coils, s.runs),
    "tv-small": lambda s: total_variation_rows(
        s.alone(s.matrix), s.spokes, s.interleaves, s.coils[-1:], 1, BART_LONG_RUNS
    ),
}


def conditions(quick: bool) -> dict[str, str]:
    """What a reader needs to run the same again."""
    versions = installed_versions(("numpy", "scipy", "finufft"))
    return {
        "command": f"`{COMMAND}{' --quick' if quick else ''}`",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()) + f", bart {bart_version()}",
        "machine": f"{os.cpu_count()} cores, one thread used",
    }


def write_page(out: Path, quick: bool) -> str:
    """The page and its targets from the tables that are there; the page's text."""
    files = {name: out / f"shots-{name}.csv" for name in SECTIONS}
    tables: dict[str, Sequence[Row]] = {name: read_csv(file) for name, file in files.items() if file.exists()}
    targets = target_rows(tables)
    text = document(tables, targets, conditions(quick))
    write_csv(out / "targets.csv", with_targets(out / "targets.csv", targets))
    write_text(out / "shots.md", text)
    return text


def main() -> None:
    """Measure, write after each section, print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    arguments.add_argument("--out", type=Path, default=Path("results/encodings"), help="folder for the tables")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on toy sizes, which needs no data")
    arguments.add_argument("--only", action="append", choices=[*SECTIONS, "page"], help="this section only")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    sizes = Sizes.quick() if given.quick else Sizes.full(given.data)
    for name in given.only or SECTIONS:
        if name in SECTIONS:
            began = time.process_time()
            with threadpool_limits(1):
                rows = list(SECTIONS[name](sizes))
            write_text(given.out / f"shots-{name}.csv", csv_text(rows))
            print(f"... {name}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    print(write_page(given.out, given.quick))


if __name__ == "__main__":
    main()
