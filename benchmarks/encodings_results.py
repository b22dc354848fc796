"""Everything under results/encodings by one command: planes, positions, recipes, steps, and spokes and spirals.

    OMP_NUM_THREADS=1 python benchmarks/encodings_results.py DATA

runs the six commands that the pages name, one after another: some two days of processor time with three draws of every
random mask. Each goes on where it stopped, so that it may be ended and begun again. DATA is the folder of the study's
scans. ``--quick`` is the same on toy sizes, in minutes, where targets mean nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
TESTS = "6,7,9,10,12,13,15,16,18,19"


def commands(data: str, out: Path, quick: bool) -> list[list[str]]:
    """Scripts of this folder with their arguments."""
    plane = [str(HERE / "plane_encoding.py"), data, "--out", str(out)]
    if quick:
        sizes = ["--coils", "1", "--tests", "0", "--training", "0", "--accelerations", "4", "--matrix", "16"]
        plane = [plane[0], "phantom:t2w", *plane[2:], *sizes, "--draws", "1"]
    else:
        plane += ["--coils", "1,8", "--tests", TESTS, "--accelerations", "12,8,4", "--matrix", "128"]
    shots = [str(HERE / "shots.py"), "--out", str(out), *(["--quick"] if quick else ["--data", data])]
    return [plane, *([*plane, part] for part in ("--positions", "--seen", "--default-recipe", "--steps")), shots]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run them all; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="../shared/data/mri", help="folder of the study's scans")
    parser.add_argument("--out", type=Path, default=Path("results/encodings"), help="folder for tables and pages")
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes, which needs no data")
    given = parser.parse_args(arguments)
    for words in commands(given.data, given.out, given.quick):
        subprocess.run([sys.executable, *words], check=True)


if __name__ == "__main__":
    main()
