"""Processor time of the golden runs, this tree's against an earlier one's, run by run and in sum.

    OMP_NUM_THREADS=1 python benchmarks/golden_time.py --before CHECKOUT [--turns 3]

Every turn is a process of each tree, one after the other, that makes all runs of `tests/golden` which both trees have;
`git worktree add CHECKOUT COMMIT` makes the earlier one. The table has the medians over turns, and their sum. The time
of the process and its workers is counted, without what it loads before the first run. A turn that is not counted comes
first, so that loops are compiled.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
OUT = HERE / "results/house/golden-time.csv"
TURN = """
import json, os, sys, tempfile
from pathlib import Path
from tests.golden.outcomes import carried_out
from tests.golden.runs import RUNS

def spent():
    return sum(os.times()[:4])

spends = {}
with tempfile.TemporaryDirectory() as folder:
    for name in sys.argv[1:] or RUNS:
        before = spent()
        carried_out(name, Path(folder))
        spends[name] = spent() - before
print(json.dumps(spends))
"""


def turn(tree: Path, names: list[str]) -> dict[str, float]:
    """Processor seconds of each run in a tree, by the run's name."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree)}
    made = subprocess.run(
        [sys.executable, "-c", TURN, *names], cwd=tree, env=environment, check=True, capture_output=True, text=True
    )
    return dict(json.loads(made.stdout.splitlines()[-1]))


def main() -> None:
    """Measure both trees, print the table and write it."""
    wanted = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    wanted.add_argument("--before", type=Path, required=True, help="working tree of the earlier version")
    wanted.add_argument("--turns", type=int, default=3)
    asked = wanted.parse_args()
    trees = {"before": asked.before.resolve(), "now": HERE}
    first = {which: turn(tree, []) for which, tree in trees.items()}
    names = [name for name in first["now"] if name in first["before"]]
    turns = [{which: turn(tree, names) for which, tree in trees.items()} for _ in range(asked.turns)]
    rows = [
        {"run": name} | {which: statistics.median(each[which][name] for each in turns) for which in trees}
        for name in names
    ]
    rows.append({"run": "all", **{which: sum(float(row[which]) for row in rows) for which in trees}})
    with OUT.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["run", "before", "now", "ratio"])
        for row in rows:
            before, now = float(row["before"]), float(row["now"])
            table.writerow([row["run"], f"{before:.2f}", f"{now:.2f}", f"{now / before:.3f}"])
    print(OUT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
