"""What a default design costs, beside another version of this package in the same run.

    OMP_NUM_THREADS=1 python benchmarks/design_time.py --against CHECKOUT

runs both, in turns, each in processes of its own, and writes design-time.md and design-time.csv, and its rows of
targets.csv. CHECKOUT is a working tree of the version to compare with (`git worktree add CHECKOUT COMMIT`); the first
release is commit 096af91. Processor time is that of the design alone, after a small one that loads the compiled loops;
medians over repetitions. ``--large`` adds grids that take minutes; ``--quick`` is a smoke run in seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from parts.targets import COLUMNS, Target, largest, smallest, with_targets
from parts.timed_design import PHANTOM, timed_design

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.scan.io.atomic import write_text

HERE = Path(__file__).parents[1]
SEED = 0


@dataclass(frozen=True)
class Case:
    """One design: grid, coils, lines at the start and in the end."""

    grid: int
    coils: int
    start: int
    lines: int

    def __str__(self) -> str:
        coils = "one coil" if self.coils == 1 else f"{self.coils} coils"
        return f"{self.grid} x {self.grid}, {coils}, {self.start} to {self.lines} lines"

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """As `timed_design` takes them."""
        return self.grid, self.coils, self.start, self.lines


ONE_COIL, SIXTEEN = Case(256, 1, 8, 64), Case(128, 16, 8, 34)
LARGE_COILS, LARGEST, MANY_COILS = Case(512, 8, 128, 131), Case(1024, 1, 256, 259), Case(256, 32, 64, 67)
USUAL, LARGE, QUICK = (ONE_COIL, SIXTEEN), (LARGE_COILS, LARGEST, MANY_COILS), (Case(32, 1, 8, 10), Case(32, 2, 8, 10))


def row_of(case: Case, checkouts: Mapping[str, Path], repeats: int) -> Row:
    """Both versions in turns, medians of each, and the ratio of their processor times."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for _ in range(repeats):
        for name, checkout in checkouts.items():
            runs[name].append(timed_design(checkout, case.numbers, SEED))  # type: ignore[arg-type]
    row: dict[str, object] = {"design": str(case)}
    for name, found in runs.items():
        for column in ("processor s", "of which system", "products", "peak MiB"):
            row[f"{column}, {name}"] = statistics.median(each[column] for each in found)
    row["steps"] = case.lines - case.start
    if len(checkouts) > 1:
        here, there = (statistics.median(each["processor s"] for each in runs[name]) for name in ("here", "there"))
        row["here / there"] = here / there
    return row


def targets_of(cases: Sequence[Case]) -> list[Target]:
    """What was asked for of the designs that were run."""
    asked = [
        Target(
            f"CPU time of a default design against the first release, {case}", 1 / 3, False, "times", "designs", ratio
        )
        for case, ratio in ((case, largest("here / there", design=str(case))) for case in (ONE_COIL, SIXTEEN))
        if case in cases
    ]
    for case, seconds, gib in ((LARGE_COILS, 35, 1.5), (LARGEST, 35, 1), (MANY_COILS, None, 1.5)):
        if case not in cases:
            continue
        if seconds is not None:
            measure = smallest("processor s, here", design=str(case))
            asked.append(Target(f"CPU time of a design, {case}", seconds, False, "s", "designs", measure))
        measure = largest("peak GiB", design=str(case))
        asked.append(Target(f"peak memory of a design, {case}", gib, False, "GiB", "designs", measure))
    return asked


def revision(checkout: Path) -> str:
    """The commit that a checkout stands at, with a mark where files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude", "*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def document(rows: Sequence[Row], targets: Sequence[Row], command: str, commits: Mapping[str, str]) -> str:
    """The page."""
    versions = ", ".join(f"{k} {v}" for k, v in installed_versions(("numpy", "scipy", "numba")).items())
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    compared = "; ".join(f"`{name}` is commit {commit}" for name, commit in commits.items())
    shown = [{k: v for k, v in row.items() if k != "peak GiB"} for row in rows]
    formats = {name: ".3g" for row in rows for name in row}
    goals = f"## Targets\n\n{markdown_text(targets, COLUMNS, {'measured': '.3g'})}\n" if targets else ""
    return f"""# What a design costs

    OMP_NUM_THREADS=1 {command}

Processor time of a default design of the embedded head `{PHANTOM}` (smooth phase, noise 0.007 of the signal):
inference after every line and the choice of the next, without reading, reports and checks. Medians; both versions in
the same run, in turns; {compared}. Seed {SEED}; {versions}; {os.cpu_count()} cores, one thread; load averages {load}.
Other work on the machine makes processor time longer, about equally for both: compare the ratio.

{markdown_text(shown, None, formats)}
{goals}"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="working tree of the version to compare with")
    parser.add_argument("--out", type=Path, default=HERE / "results/benchmarks", help="folder for the results")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each version")
    parser.add_argument("--large", action="store_true", help="large grids too")
    parser.add_argument("--quick", action="store_true", help="a smoke run on toy sizes")
    chosen = parser.parse_args()
    cases = QUICK if chosen.quick else (*USUAL, *LARGE) if chosen.large else USUAL
    checkouts = {"here": HERE} | ({} if chosen.against is None else {"there": chosen.against})
    rows: list[Row] = []
    for case in cases:
        found = row_of(case, checkouts, 1 if chosen.quick or case in LARGE else chosen.repeats)
        rows.append({**found, "peak GiB": float(str(found["peak MiB, here"])) / 1024})
        sys.stderr.write(f"... {case}\n")
    targets = [target.row({"designs": rows}) for target in targets_of(cases)]
    command = "python benchmarks/design_time.py" + (" --against CHECKOUT" if chosen.against else "")
    command += " --quick" if chosen.quick else " --large" if chosen.large else ""
    text = document(rows, targets, command, {name: revision(checkout) for name, checkout in checkouts.items()})
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_text(chosen.out / "design-time.csv", csv_text(rows))
    write_text(chosen.out / "design-time.md", text)
    if targets:
        write_text(chosen.out / "targets.csv", csv_text(with_targets(chosen.out / "targets.csv", targets), COLUMNS))
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
