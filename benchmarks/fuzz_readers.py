"""Damaged files of every kind that the package reads: refused with a typed error, or read as they were.

    OMP_NUM_THREADS=1 python benchmarks/fuzz_readers.py

makes sound files of every kind, damages each of them many times (cuts, flipped bits, overwritten and inserted bytes,
lies about sizes, links), and reads every damaged file in a child process with bounded memory. It writes
results/reliability/fuzz.csv and the tables of fuzz.md. A value that differs from the sound file's without an error
is counted: formats without a checksum cannot tell. HDF5 that crashes or stalls its library there is read once more as
the package does it by default, in a process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzzing.corpus import CORPUS, DAMAGES, KINDS, damaged
from fuzzing.reading import checksum, outcome, value_of
from parts.pages import put_table

from mri_design.evaluation.tables import Row, write_csv

OUT = Path(__file__).parents[1] / "results/reliability"
READER = Path(__file__).parent / "fuzzing" / "reading.py"
MEMORY, PATIENCE = 3 * 2**30, 10
HDF5 = ("fastmri", "mrd", "mrd_volume", "mrd_trajectory", "fastmri_outline", "mrd_outline", "mrd_skeleton")
CASES = 5120
AT_ONCE = 160
"""Files that one child reads."""
SECRET = b"what nobody asked for\n" * 200


@dataclass(frozen=True)
class Case:
    """One damaged file and what became of it.

    Parameters
    ----------
    kind, damage : str
        What it was, and what happened to it.
    outcome : str
        "same", "changed", "refused", "crash", "hang", or the name of an error that is not typed.
    seconds : float
        Of the reading.
    library : str
        What the HDF5 library did where it runs with the reader: "crash" or "hang"; empty where it came to an end. The
        outcome is that of the process of its own, then.
    others_changed : bool
        Whether reading changed the file, or any other one in its folder.
    """

    kind: str
    damage: str
    outcome: str
    seconds: float
    library: str
    others_changed: bool


def cases(count: int, seed: int, folder: Path) -> Iterator[Case]:
    """Damage and read so many files, kinds and damages in turn."""
    whole, sound = dict[str, Path](), dict[str, str]()
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        whole[kind] = CORPUS[kind](folder / kind)
        sound[kind] = checksum(value_of(kind, whole[kind]))
    turns = [(KINDS[n % len(KINDS)], DAMAGES[n // len(KINDS) % len(DAMAGES)], n) for n in range(count)]
    for start in range(0, count, AT_ONCE):
        part = turns[start : start + AT_ONCE]
        jobs = [(kind, _damaged(whole[kind], damage, folder / f"{kind}-{n}", (seed, n))) for kind, damage, n in part]
        before = [_contents(path.parent) for _, path in jobs]
        for (kind, path), (_, damage, _), held, told in zip(jobs, part, before, _read_all(jobs), strict=True):
            what, seconds, values, library = told
            if what == "read":
                what = "same" if values == sound[kind] else "changed"
            yield Case(kind, damage, what, seconds, library, _contents(path.parent) != held)


def _damaged(whole: Path, damage: str, folder: Path, seed: Sequence[int]) -> Path:
    shutil.copytree(whole.parent, folder)
    path, secret = folder / whole.name, folder / "secret.txt"
    secret.write_bytes(SECRET)
    damaged(path, damage, secret, np.random.default_rng(seed))
    return path


def _contents(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _read_all(jobs: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, float, str, str]]:
    """Outcome, seconds, checksum, and what the library did, of each file, from as few children as crashes allow."""
    left = list(jobs)
    while left:
        command = [sys.executable, str(READER), str(MEMORY), str(PATIENCE)]
        asked = "".join(f"{kind} {path}\n" for kind, path in left)
        child = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
        answers = [json.loads(line) for line in child.stdout.splitlines()]
        for what, _, seconds, values in answers:
            yield what, seconds, values, ""
        left = left[len(answers) :]
        if left:  # the next one took the child down
            kind, path = left[0]
            ended = "hang" if child.returncode == -signal.SIGALRM else "crash"
            if kind in HDF5:
                what, _, seconds, values = outcome(kind, path, isolated=True)
                yield "hang" if seconds > PATIENCE else what, seconds, values, ended
            else:
                yield ended, 0.0, "", ""
            left = left[1:]


def table(found: Sequence[Case]) -> list[Row]:
    """One row for each kind."""
    rows: list[Row] = []
    for kind in [*KINDS, "all"]:
        mine = [case for case in found if kind in (case.kind, "all")]
        counts = Counter(case.outcome for case in mine)
        rows.append(
            {
                "kind": kind,
                "cases": len(mine),
                "refused": counts["refused"],
                "read as it was": counts["same"],
                "read with other values": counts["changed"],
                "crashed": counts["crash"],
                "stalled": counts["hang"],
                "another error": sum(counts.values())
                - sum(counts[name] for name in ("refused", "same", "changed", "crash", "hang")),
                "library failed": sum(bool(case.library) for case in mine),
                "other files changed": sum(case.others_changed for case in mine),
                "longest seconds": round(max((case.seconds for case in mine), default=0.0), 3),
            }
        )
    return rows


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES, help="damaged files")
    parser.add_argument("--seed", type=int, default=0, help="of the damages")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = list(cases(options.cases, options.seed, Path(folder)))
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(options.out / "fuzz.csv", table(found))
    put_table(options.out / "fuzz.md", "By kind of file", table(found))
    changed = Counter((case.kind, case.damage) for case in found if case.outcome == "changed")
    silent = [{"kind": kind, "damage": damage, "files": n} for (kind, damage), n in sorted(changed.items())]
    put_table(options.out / "fuzz.md", "Read with other values", silent)


if __name__ == "__main__":
    main()
