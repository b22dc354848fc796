"""Spokes and spirals: which sets to take, how good error bars are, and a measured scan.

    OMP_NUM_THREADS=1 python benchmarks/shots.py --data DATA --out results/encodings

measures everything (some half an hour of processor time) and writes a table shots-SECTION.csv for each section, and
those of shots.md. DATA is the folder of the study's scans (`study/scans.py`). ``--only SECTION`` (again for more)
measures some. ``--quick`` is the same on toy sizes in seconds; it needs no data.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parts.pages import put_conditions, put_table
from study.scans import TEST_HEADS
from threadpoolctl import threadpool_limits
from trajectories.error_bars import RATIOS, SHARES, coverage_rows, coverage_summary, covered_sets, variance_rows
from trajectories.measured import measured_rows, measured_spirals, resampled_rows, toy_spirals
from trajectories.sets import DENSITIES, HALF, USUAL, Against, Scene, ellipses, heads, radial_rows, spiral_rows, summary

from mri_design.evaluation.tables import Row, read_csv, write_csv

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
    matrix, small : int
        Grids of the sets, and of dense algebra.
    interleaves, spokes : int
        Shots of a set.
    numbers : sequence of int
        Which heads.
    seeds : sequence of int
        Of the noise on the first image; the others have the first of them.
    repeats : int
        Of the variances.
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
    small: int
    interleaves: int
    spokes: int
    numbers: Sequence[int]
    seeds: Sequence[int]
    repeats: int
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
            40,
            INTERLEAVES,
            SPOKES,
            HEADS,
            (0, 1, 2),
            32,
            spirals=data / SPIRALS,
            scan=data / SCAN,
            covered=COVERED,
            counts=COUNTS,
        )

    @classmethod
    def quick(cls) -> Sizes:
        """In seconds."""
        return cls("phantom:t2w", 16, 20, 2, 4, (0,), (0,), 3)

    def scenes(self) -> list[Scene]:
        """Heads, then the scene in closed form."""
        return [*heads(self.source, self.numbers, self.matrix), ellipses(self.matrix)]

    def alone(self, matrix: int) -> Scene:
        """The first head on another grid."""
        return heads(self.source, self.numbers[:1], matrix)[0]


SECTIONS: Mapping[str, Callable[[Sizes], Sequence[Row]]] = {
    "spirals": lambda s: spiral_rows(s.matrix, s.interleaves, s.scenes(), s.seeds),
    "radial": lambda s: radial_rows(s.matrix, s.spokes, s.scenes(), s.seeds),
    "variances": lambda s: variance_rows(s.alone(s.small), s.repeats),
    "coverage": lambda s: coverage_rows(
        {coils: heads(s.source, numbers, s.matrix) for coils, numbers in s.covered.items()},
        covered_sets(s.matrix, s.counts["spokes"], s.counts["spirals"]),
        s.seeds[:2],
    ),
    "measured": lambda s: measured_rows(toy_spirals() if s.spirals is None else measured_spirals(s.spirals)),
    "resampled": lambda s: resampled_rows(s.scan, s.interleaves, DENSITIES),
}


SPIRAL_COMPETITORS = {
    "vs even full turn": Against(USUAL, 1.0),
    "vs half turn": Against(HALF, 1.0),
    "vs half turn, dense": Against(HALF, 1.5),
}
SHOWN: Mapping[str, tuple[str, Callable[[Sequence[Row]], Sequence[Row]]]] = {
    "spirals": ("Spirals", lambda rows: summary(rows, SPIRAL_COMPETITORS)),
    "radial": ("Spokes", lambda rows: summary(rows, {"vs uniform": Against("uniform", None)})),
    "variances": ("Error bars against dense algebra", list),
    "coverage": ("Error bars against actual errors", coverage_summary),
    "resampled": ("Spirals through a measured brain", list),
    "measured": ("A measured spiral scan", list),
}
"""Section to its heading on the page, and the rows that stand there."""
FORMATS = {
    "k and -k": ".0%",
    "noise": ".3f",
    **dict.fromkeys(("error", "sd over noise", "vs least squares", "vs same method"), ".4f"),
    **dict.fromkeys(("bias", "its error", "stated bias", "of one run"), ".2%"),
    "median error": ".1%",
    **dict.fromkeys((f"{worst}{of}" for worst in ("", "worst ") for of in SPIRAL_COMPETITORS), "+.1%"),
    **dict.fromkeys(("vs uniform", "worst vs uniform"), "+.1%"),
    "CPU s": ".3g",
    **dict.fromkeys(SHARES, ".0%"),
    **dict.fromkeys(RATIOS, ".2f"),
}


def main() -> None:
    """Measure, write after each section."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    arguments.add_argument("--out", type=Path, default=Path("results/encodings"), help="folder for the tables")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on toy sizes, which needs no data")
    arguments.add_argument("--only", action="append", choices=SECTIONS, help="this section only")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    sizes = Sizes.quick() if given.quick else Sizes.full(given.data)
    for name in given.only or SECTIONS:
        began = time.process_time()
        with threadpool_limits(1):
            rows = list(SECTIONS[name](sizes))
        file, (heading, shown) = given.out / f"shots-{name}.csv", SHOWN[name]
        write_csv(file, rows)
        put_table(given.out / "shots.md", heading, shown(read_csv(file)), None, FORMATS)
        print(f"... {name}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    put_conditions(given.out / "shots.md", "numpy", "scipy", "finufft")


if __name__ == "__main__":
    main()
