"""Whether tests notice twenty faults: each is planted in a copy of the tree, and the tests that own its file are run.

    OMP_NUM_THREADS=1 python benchmarks/mutations.py [--only WORD] [--check]

writes results/house/mutations.csv: the fault, its file, the test that fails first, and seconds. A fault is a text that
occurs once in mri_design, and what takes its place; ``--check`` only says whether all of them occur exactly once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
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
        Folders or files of tests, in this order; those that do not exist are passed over.
    """

    what: str
    old: str
    new: str
    tests: str

    def file(self, root: Path) -> Path:
        """The file that holds the text; the text occurs once in the package."""
        held = [path for path in sorted((root / "mri_design").rglob("*.py")) for _ in range(_count(path, self.old))]
        if len(held) != 1:
            raise LookupError(f"{self.what}: the text occurs {len(held)} times")
        return held[0]


def _count(path: Path, text: str) -> int:
    return path.read_text(encoding="utf-8").count(text)


PAPERS = (
    Mutation(
        "sign in the double loop's bound", "(x + self.z).astype(", "abs(x - self.z).astype(", "inference estimation"
    ),
    Mutation(
        "coil maps not conjugated in X^H X",
        "total += np.conj(sensitivity) * self._filtered(",
        "total += sensitivity * self._filtered(",
        "operators",
    ),
    Mutation(
        "origin of the grid off by one",
        "np.arange(n) - n // 2)) / np.sqrt(n)",
        "np.arange(n) - (n - 1) // 2)) / np.sqrt(n)",
        "operators",
    ),
    Mutation(
        "slope of Laplace sites doubled",
        "return (-0.5 * self._tau(x)) /",
        "return (-1.0 * self._tau(x)) /",
        "potentials",
    ),
    Mutation("control variate added", "left = ((pairs - explained)", "left = ((pairs + explained)", "variances"),
    Mutation(
        "scores of lines that are measured",
        "neighbourhood(np.where(now.measured, 0.0, energies)",
        "neighbourhood(np.where(now.measured, energies, 0.0)",
        "design",
    ),
    Mutation("longest jump off by one", "if distance > jump)", "if distance >= jump)", "design"),
    Mutation(
        "variance taken for a deviation",
        "factor = float(np.sqrt(np.clip(",
        "factor = float(np.abs(np.clip(",
        "evidence experiment",
    ),
    Mutation(
        "samples of a plane column by column",
        "np.divmod(np.arange(self.size), self.grid[1])",
        "np.divmod(np.arange(self.size), self.grid[0])",
        "readouts design operators",
    ),
    Mutation(
        "noise whitened twice",
        "(directions / np.sqrt(power)) @",
        "(directions / power) @",
        "calibration scan/calibration",
    ),
)
SHELL = (
    Mutation(
        "files written in their place",
        "os.replace(temporary, path)",
        "path.write_bytes(temporary.read_bytes())",
        "scan/io",
    ),
    Mutation("resume forgets the last line", "steps = _steps(stored)", "steps = _steps(stored)[:-1]", "experiment"),
    Mutation("no bound on declared sizes", "if memory > limits.max_bytes:", "if memory > 2**80:", "scan/io"),
    Mutation(
        "noise of simulated scans off by sqrt 2",
        "kspace + noise * (rng.standard_normal(kspace.shape)",
        "kspace + 2**0.5 * noise * (rng.standard_normal(kspace.shape)",
        "scan/simulation experiment",
    ),
    Mutation(
        "axes of NIfTI exchanged",
        "image.reshape(shape).T, dtype",
        "image.reshape(shape).transpose(1, 2, 0), dtype",
        "scan/writing runs cli",
    ),
    Mutation(
        "an interrupted run fails",
        'code = _report(f"interrupted; {kept}", INTERRUPTED)',
        'code = _report(f"interrupted; {kept}", FAILED)',
        "cli",
    ),
    Mutation("--slices off by one", "chosen += range(first, last + 1)", "chosen += range(first, last)", "experiment"),
    Mutation("two runs in one folder", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB", "evaluation"),
    Mutation(
        "a checkpoint of another design is taken",
        'if str(stored["identity"]) != identity:',
        'if str(stored["identity"]) == "":',
        "experiment",
    ),
    Mutation(
        "reversed readouts as they come",
        'readouts["reversed"], whole = backwards,',
        'readouts["reversed"], whole = ~backwards,',
        "scan/io",
    ),
)


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
    file = mutation.file(tree)
    sound, began = file.read_text(encoding="utf-8"), time.perf_counter()
    file.write_text(sound.replace(mutation.old, mutation.new), encoding="utf-8")
    folders = [f"tests/{name}" for name in mutation.tests.split() if (tree / "tests" / name).exists()]
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not thorough", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *folders], cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        file.write_text(sound, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
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
    faults = [one for one in (*PAPERS, *SHELL) if chosen.only in one.what]
    for one in faults:
        print(one.what, one.file(HERE).relative_to(HERE), sep=": ")
    if chosen.check:
        return
    from mri_design.evaluation.tables import write_csv

    rows: list[dict[str, object]] = []
    tree = copied()
    for one in faults:
        rows.append(outcome(one, tree))
        print(*rows[-1].values(), sep=" | ", flush=True)
        write_csv(chosen.out, rows)


if __name__ == "__main__":
    main()
