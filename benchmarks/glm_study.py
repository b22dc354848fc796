"""Four papers on generalized linear models in one house: a study for each, and their targets.

    OMP_NUM_THREADS=1 python benchmarks/glm_study.py --out results/glm

runs every part and writes ``<out>/<part>/`` (README.md, table.csv, a figure, manifest.json) and ``<out>/targets.csv``.
``--only PART`` (again for more) runs some and leaves the others' folders and rows as they are. ``--quick`` is the same
on toy sizes in seconds, where targets mean nothing; it wants a folder of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from glm.targets import COLUMNS, Target, write_targets
from threadpoolctl import threadpool_limits

from mri_design.evaluation.tables import markdown_text

PARTS = {
    "active-learning": "glm.active_learning",
    "variational": "glm.variational",
    "propagation": "glm.propagation",
    "infomax": "glm.infomax",
}
"""Every part and the module whose ``run(out, data, quick)`` measures it, writes its folder and returns its targets."""
OUT = Path("results/glm")
DATA = Path(__file__).parents[2] / "shared/data/glm"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run parts, write the targets after each, print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of a9a, a9a.t, w8a and usps_3v5.npz")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="run this part only")
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.out.resolve() == OUT.resolve():
        parser.error("--quick: got the folder of the full study; wanted --out FOLDER of its own")
    chosen.out.mkdir(parents=True, exist_ok=True)
    data = chosen.data if chosen.data.is_dir() else None
    measured: dict[str, Sequence[Target]] = {}
    rows = []
    for part in chosen.only or PARTS:
        began = time.perf_counter()
        with threadpool_limits(1):
            measured[part] = import_module(PARTS[part]).run(chosen.out, data, chosen.quick)
        rows = write_targets(chosen.out / "targets.csv", list(PARTS), measured)
        print(f"... {part}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(markdown_text(rows, COLUMNS, {"measured": ".6g"}))


if __name__ == "__main__":
    main()
