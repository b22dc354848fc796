"""How much of each package of the papers the tests run: statements and branches, before and after.

    COVERAGE_RCFILE=RC coverage run -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not thorough"
    coverage combine && coverage json -i -o AFTER.json          (in a checkout of each of the two commits)
    python benchmarks/coverage_table.py BEFORE.json AFTER.json

where RC is a file of the lines ``[run]``, ``branch = True``, ``parallel = True``, ``patch = subprocess``,
``source_pkgs = mri_design`` and ``omit = */popen-gw*/*`` (coverage 7.10 or later), prints a table and writes it to
results/house/coverage.csv. Compiled loops (operators/kernels), which coverage can't see, are left out. Modules of the
earlier commit count where they are now.
"""

import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path

OUT = Path(__file__).resolve().parents[1] / "results/house/coverage.csv"
PAPERS = (
    *("operators", "readouts", "potentials", "krylov", "model", "estimation", "variances"),
    *("inference", "calibration", "design", "evidence", "glm"),
)
MOVED = {
    r"operators/readouts/": "readouts",
    r"active_learning/": "glm",
    r"inference/(decoupled|dense_model|laplace_\w+|messages|natural_gradient|references|site_gaussians)\.py": "glm",
    r"experiment/(held_back/|non_local\.py)|scan/registration\.py": "evidence",
    r"scan/calibration/": "calibration",
}
"""Package of today by the path of a module at commit 25fe5fbc."""


def counts(file: Path) -> dict[str, Counter[str]]:
    """Statements and branches, and how many of them ran, of each package."""
    found: dict[str, Counter[str]] = {}
    for path, entry in json.loads(file.read_text(encoding="utf-8"))["files"].items():
        module = path.rpartition("mri_design/")[2]
        package = next((to for old, to in MOVED.items() if re.match(old, module)), re.split(r"[/.]", module)[0])
        if package in PAPERS and "kernels" not in module:
            keys = ("covered_lines", "num_statements", "covered_branches", "num_branches")
            found.setdefault(package, Counter()).update({key: entry["summary"][key] for key in keys})
    return found


def percentages(count: Counter[str]) -> tuple[float, float]:
    """Of statements and branches together, and of branches alone."""
    ran, all_ = count["covered_lines"] + count["covered_branches"], count["num_statements"] + count["num_branches"]
    return 100 * ran / all_, 100 * count["covered_branches"] / max(count["num_branches"], 1)


def main() -> None:
    """Print the table and write it."""
    before, after = (counts(Path(name)) for name in sys.argv[1:3])
    rows = []
    for package in PAPERS:
        (was, was_branches), (now, now_branches) = percentages(before[package]), percentages(after[package])
        rows.append([package, *(f"{value:.1f}" for value in (was, now, now - was, was_branches, now_branches))])
    head = ["package", "before", "after", "difference", "branches before", "branches after"]
    with OUT.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])
    print(*("".join(f"{value:>17}" for value in row) for row in [head, *rows]), sep="\n")


if __name__ == "__main__":
    main()
