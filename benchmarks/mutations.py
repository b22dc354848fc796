"""Whether tests notice twenty faults: each is planted in a copy of the tree, and the tests that own its file are run.

    OMP_NUM_THREADS=1 python benchmarks/mutations.py [--only WORD] [--check]

writes results/house/mutations.csv: the fault, its file, the test that fails first, and seconds. Faults stand in
mutations.toml: a text that occurs once in mri_design, and what takes its place; ``--check`` only says whether all of
them occur exactly once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
OUT, SCRATCH = HERE / "results/house/mutations.csv", HERE / "build/mutations"


@dataclass(frozen=True)
class Mutation:
    """A fault.

    Parameters
    ----------
    what : str
        In a few words.
    old, new : str
        A text of one file of the package, and what it becomes.
    tests : str
        Files or folders of tests by their patterns, each run where those before have not failed.
    """

    what: str
    old: str
    new: str
    tests: str

    def held(self, root: Path) -> list[Path]:
        """Files of the package that hold the text, one for each time."""
        files = sorted((root / "mri_design").rglob("*.py"))
        return [path for path in files for _ in range(path.read_text(encoding="utf-8").count(self.old))]


def copied() -> Path:
    """A copy of the tracked files, in which faults are planted."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=HERE, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in filter(None, listed):
        if (HERE / name).is_file() and not name.startswith(("results/", "docs/figures/")):
            (SCRATCH / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HERE / name, SCRATCH / name)
    return SCRATCH


def outcome(mutation: Mutation, tree: Path) -> dict[str, object]:
    """Plant a fault, run its tests up to the first that fails, and mend it."""
    (file,) = mutation.held(tree)
    sound, began, failed = file.read_text(encoding="utf-8"), time.perf_counter(), None
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not thorough", "-p", "no:cacheprovider"]
    file.write_text(sound.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        for pattern in mutation.tests.split():
            some = sorted(map(str, (tree / "tests").glob(pattern)))
            if some and failed is None:
                done = subprocess.run(
                    [*command, *some], cwd=tree, env=environment, capture_output=True, text=True, check=False
                )
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    finally:
        file.write_text(sound, encoding="utf-8")
    return {
        "fault": mutation.what,
        "file": file.relative_to(tree).as_posix(),
        "caught by": failed[1] if failed else "",
        "seconds": round(time.perf_counter() - began),
    }


def main() -> None:
    """Check, or run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only whether every text occurs exactly once")
    parser.add_argument("--only", default="", help="faults whose description has this word")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["fault"]
    faults = [one for one in (Mutation(**row) for row in table) if chosen.only in one.what]
    missed = [f"{one.what}: {len(one.held(HERE))} times" for one in faults if len(one.held(HERE)) != 1]
    if missed or chosen.check:
        sys.exit("\n".join(missed) if missed else None)
    from mri_design.evaluation.tables import write_csv

    rows: list[dict[str, object]] = []
    tree = copied()
    for one in faults:
        rows.append(outcome(one, tree))
        print(*rows[-1].values(), sep=" | ", flush=True)
        write_csv(chosen.out, rows)


if __name__ == "__main__":
    main()
