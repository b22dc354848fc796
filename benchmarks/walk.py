"""Follow a design from the command line through the package: a profile's call graph, told as a walk.

    OMP_NUM_THREADS=1 python benchmarks/walk.py [--list]

runs a small `mri-design design` twice, the second time under Python's profiler, notes every function of the package at
its first call, and writes results/house/walk.csv. The walk goes from function to function in this order, from the
command line to the last function that is new. Counted are

- modules entered;
- climbs: steps into a module of a higher layer (the layers of pyproject.toml) than the one before;
- returns: steps into a module that the walk had left;

of the whole walk, and of its upper part alone: the modules above the papers, in which a call into a paper's package is
one step without what happens inside. ``--list`` prints the modules of that part in the order in which they are entered.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parents[1]
OUT = HERE / "results/house/walk.csv"
PACKAGE = "mri_design"
REQUEST = "design phantom:t2w --lines 24 --quiet --no-report"


def walked(words: list[str]) -> list[str]:
    """The module of every function of the package, in the order of first calls."""
    from mri_design.cli.start import main

    seen, route = set[Any](), list[str]()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(PACKAGE) and code not in seen:
            seen.add(code)
            route.append(module)

    sys.argv = ["mri-design", *words]
    for profile in (None, note):  # the first run imports what the second one follows
        sys.setprofile(profile)
        with suppress(SystemExit):
            main()
        sys.setprofile(None)
    return route


def layers() -> list[set[str]]:
    """Packages of each layer, the highest first."""
    contracts = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return [set(line.replace(" ", "").split("|")) for line in contracts[0]["layers"]]


def counts(route: Iterable[str], depth: dict[str, int]) -> dict[str, object]:
    """Modules entered, climbs and returns."""
    steps = [module for module, _ in groupby(route)]
    levels = [depth[module.split(".")[1]] if "." in module else -1 for module in steps]
    return {
        "modules": len(set(steps)),
        "climbs": sum(after < before for before, after in pairwise(levels)),
        "returns": len(steps) - len(set(steps)),
    }


def main() -> None:
    """Walk, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the modules above the papers, as they are entered")
    listed = parser.parse_args().list
    from mri_design.evaluation.tables import markdown_text, write_csv

    with tempfile.TemporaryDirectory() as folder:
        route = walked([*REQUEST.split(), "--overwrite", "--out", f"{folder}/run"])
    depth = {name: place for place, line in enumerate(layers()) for name in line}
    papers = depth["evidence"]
    upper = [module for module in route if module.count(".") and depth[module.split(".")[1]] < papers]
    rows = [{"walk": "whole"} | counts(route, depth), {"walk": "above the papers"} | counts(upper, depth)]
    write_csv(OUT, rows)
    print(markdown_text(rows))
    if listed:
        print("\n".join(dict.fromkeys(upper)))


if __name__ == "__main__":
    main()
