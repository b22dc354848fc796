"""Record golden runs, and compare those of two commits, or of two settings, on this machine.

    python -m tests.golden.record [RUN ...] [--against COMMIT|FILE] [--rounding PART] [--turns N] [--out FILE]

``make golden`` calls it. A commit is unpacked below ``build/golden``, and its program runs in the same environment.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from tests.golden.outcomes import ROOT, SECONDS, Outcome, differences, runs_of

MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.golden.outcomes import make
del sys.path[0]  # the package is that of PYTHONPATH
make(*sys.argv[2:])
"""


def unpacked(commit: str) -> Path:
    """The files of a commit, kept for the next time, as are the loops that it compiles."""
    known = subprocess.run(
        ["git", "rev-parse", "--short=12", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    if known.returncode:
        sys.exit(f"{commit} is neither a file nor a commit of this repository")
    folder = ROOT / "build/golden" / known.stdout.strip()
    if not folder.exists():
        packed = subprocess.run(["git", "archive", folder.name], cwd=ROOT, check=True, capture_output=True).stdout
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as begun, tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(Path(begun, "tree"), filter="data")
            Path(begun, "tree").rename(folder)
    return folder


def made(trees: list[Path], names: list[str], turns: int) -> list[dict[str, Outcome]]:
    """Outcomes of every tree by the run's name, each tree in a process of its own.

    In one turn the trees run side by side. In several they run one after the other, so that times can be compared.
    """
    found: list[dict[str, Outcome]] = [{} for _ in trees]
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            places = [Path(folder, str(number)) for number in range(len(trees))]
            processes = []
            for tree, place in zip(trees, places, strict=True):
                place.mkdir()
                environment = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"} | os.environ | {"PYTHONPATH": str(tree)}
                call = [sys.executable, "-c", MAKE, str(ROOT), str(tree), str(place), *names]
                processes.append(subprocess.Popen(call, cwd=place, env=environment))
                if turns > 1:
                    processes[-1].wait()
            for process, place, outcomes in zip(processes, places, found, strict=True):
                if process.wait():
                    sys.exit(f"the process of tree {place.name} ended with {process.returncode}")
                for name in names:
                    with np.load(place / f"{name}.outcome.npz", allow_pickle=False) as stored:
                        outcome = dict(stored)
                    earlier = outcomes.get(name, outcome)
                    outcomes[name] = outcome | {SECONDS: np.minimum(outcome[SECONDS], earlier[SECONDS])}
    return found


def compared(before: dict[str, Outcome], now: dict[str, Outcome], rounding: float, *, timed: bool) -> bool:
    """Print a table of all runs, and say whether they are the same."""
    width, differ = max(map(len, now)), 0
    for name, outcome in now.items():
        if name not in before:
            print(f"{name:{width}}  is new")
            continue
        found = list(differences(before[name], outcome, rounding))
        differ += bool(found)
        seconds = f"{before[name][SECONDS]:7.2f} {outcome[SECONDS]:7.2f} s  " if timed else ""
        print(f"{name:{width}}  {seconds}{f'{len(found)} of {len(outcome) - 1} differ' if found else 'same'}")
        for key, how in found[:SHOWN]:
            print(f"{'':{width}}    {key}: {how}")
        if len(found) > SHOWN:
            print(f"{'':{width}}    and {len(found) - SHOWN} more")
    both = [name for name in now if name in before]
    sums = [float(sum(runs[name][SECONDS] for name in both)) for runs in (before, now)]
    if timed:
        print(f"processor seconds: {sums[0]:.1f} before, {sums[1]:.1f} now, ratio {sums[1] / sums[0]:.3f}")
    print(f"{differ} of {len(both)} runs differ {f'by more than {rounding:g}' if rounding else 'in a bit'}")
    return not differ


SHOWN = 6
"""Differences that are printed of each run."""


def kept_in(file: Path) -> dict[str, Outcome]:
    """The outcomes by run that ``--out`` has written."""
    found: dict[str, Outcome] = {}
    with np.load(file, allow_pickle=False) as stored:
        for key in stored:
            name, _, array = key.partition("|")
            found.setdefault(name, {})[array] = stored[key]
    return found


def chosen(names: list[str], runs: dict[str, object]) -> list[str]:
    """The runs of these names, all if there are none, each with what it comes after."""
    unknown = [name for name in names if name not in runs]
    if unknown:
        sys.exit(f"no golden run {unknown[0]}; there are {', '.join(runs)}")
    needed = {runs[name].after for name in names} | {*names}
    return [name for name in runs if not names or name in needed]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", help="all, if none is named")
    parser.add_argument("--against", help="a commit, or a file of an earlier --out")
    parser.add_argument("--rounding", type=float, default=0.0, help="part of an array's largest modulus")
    parser.add_argument("--turns", type=int, default=1, help="of several, processor seconds are compared")
    parser.add_argument("--out", type=Path, help="keep the outcomes of the working tree as .npz")
    given = parser.parse_args()
    names = chosen(given.runs, runs_of(ROOT))
    recorded = bool(given.against) and Path(given.against).is_file()
    trees = [] if recorded or not given.against else [unpacked(given.against)]
    if trees:
        there = runs_of(trees[0])
        *others, now = made([*trees, ROOT], [name for name in names if name in there], given.turns)
    else:
        others, now = [kept_in(Path(given.against))] if recorded else [], made([ROOT], names, given.turns)[0]
    if given.out:
        np.savez(given.out, **{f"{name}|{key}": array for name in now for key, array in now[name].items()})
    return 0 if not others or compared(others[0], now, given.rounding, timed=given.turns > 1) else 1


if __name__ == "__main__":
    sys.exit(main())
