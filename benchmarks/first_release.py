"""Seconds, multiplications and memory of one reconstruction and one design step, beside SigPy.

    OMP_NUM_THREADS=1 python benchmarks/first_release.py --out results/benchmarks

runs everything (a quarter of an hour), prints the tables and writes first-release.md and .csv; ``--quick`` is the same
on a small grid in seconds. Medians after a warm-up; SigPy gets the same data, the same objective and the same thread.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from parts.design_steps import RECIPES, design_row
from parts.peak_memory import design_memory
from parts.reconstruction import SETTINGS, Effort, posterior_rows, same_objective_rows
from threadpoolctl import threadpool_limits

from mri_design.evaluation.manifest import installed_versions
from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.scan.io.atomic import write_text

SEED = 0
COMMAND = "OMP_NUM_THREADS=1 python benchmarks/first_release.py"
SECTIONS = {
    "to the same objective": """f(u) = ½‖y − Xu‖² + λ‖Bu‖₁ (moduli; λ = 10 σ² / signal) on a quarter of the lines.
`gap` is (f − f*) / f*, f without smoothing. `MAP` is our `MapEstimate` by its settings (below); `s` and `MVMs` are what
it takes to end there. `SigPy s` is what SigPy's reconstruction as shipped takes to come as low (setting up included,
evaluating f not), `tuned s` what the fastest of several step sizes and solvers of SigPy takes, found by trying them
(`tuned to`; trying is not counted). One iteration of SigPy multiplies with X, Xᴴ, B and Bᴴ once, as one MVM does
(ADMM: up to ten times). Above 1 in `times ours`, ours is faster.

SigPy's wavelets are padded with zeros: an isometry with more coefficients than pixels, used here by both.
L1WaveletRecon thresholds as if they were unitary, so that its limit lies above f\\* (by 7e-5 at 128 x 128).""",
    "one call": "Both as shipped, nothing chosen: `MapEstimate()` and SigPy's call, which stops after 100 iterations.",
    "posterior mean": """The default recipe (pixels and differences) on a quarter of the lines, to its own tolerance.
No package to compare with.""",
    "design step": """One warm step: inference from the last posterior, and the scores of all lines. Medians over steps
after the first. `information-gain` with the default recipe, `information-gain-lanczos` with the recipe `lanczos`.""",
    "memory": "Peak resident memory of a process that designs six lines.",
}
SAME_OBJECTIVE_TABLES = {
    "SigPy as shipped": ["gap", "MAP", "s", "MVMs", "SigPy", "SigPy s", "iterations", "times ours"],
    "SigPy with the fastest steps and solver": [
        "gap",
        "s",
        "tuned s",
        "tuned iterations",
        "tuned times ours",
        "tuned to",
    ],
}
PROBLEM = ["objective", "grid", "coils"]


def sections(quick: bool) -> Iterator[tuple[str, list[Row]]]:
    """Name and rows of each table, as they are measured."""
    grids = (32,) if quick else (128, 256)
    runs, steps = (1, 2) if quick else (3, 5)
    effort = Effort(runs, 0.3, 200) if quick else Effort(runs, 60.0, 3000)
    names = ["default"] if quick else ["coarse", "default", "fine", "finest"]
    jobs = [(penalty, grid, 1, names, effort) for penalty in ("total variation", "wavelets") for grid in grids]
    if not quick:
        jobs.append(("total variation", 256, 8, ["coarse", "default"], Effort(runs, 60.0, 1500)))
    rows: list[Row] = []
    for penalty, grid, coils, chosen, tried in jobs:
        _report(f"{penalty}, {grid} x {grid}, coils: {coils}")
        rows += same_objective_rows(grid, coils, penalty, chosen, tried, SEED)
    yield "to the same objective", rows
    yield "one call", [_one_call_row(row) for row in rows if row["MAP"] == "default"]
    _report("posterior mean")
    yield "posterior mean", [row for grid in grids for row in posterior_rows(grid, 1, runs, SEED)]
    _report("design steps")
    designs = [(name, grid, 1) for name in RECIPES for grid in grids]
    if not quick:
        designs.append(("information-gain", 256, 8))
    yield "design step", [design_row(name, grid, steps, SEED, coils) for name, grid, coils in designs]
    _report("memory")
    yield "memory", [design_memory(name, grids[-1], SEED) for name in RECIPES]


def _one_call_row(row: Row) -> Row:
    kept = {name: row[name] for name in PROBLEM}
    ours = {"s": row["s"], "gap of ours": row["gap"]}
    return kept | ours | {"SigPy": row["SigPy"], "SigPy s": row["one call s"], "gap of SigPy": row["one call gap"]}


def _report(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


def conditions(quick: bool) -> dict[str, str]:
    """What a reader needs to run the same again."""
    versions = installed_versions(("numpy", "scipy", "sigpy"))
    return {
        "command": f"`{COMMAND}{' --quick' if quick else ''}`",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "machine": f"{os.cpu_count()} cores, one thread used",
        "seed": str(SEED),
        "data": "phantom `t2w`, smooth phase, noise 0.007 of the signal per real component",
    }


def document(tables: dict[str, list[Row]], quick: bool) -> str:
    """The tables with what they mean, as Markdown."""
    parts = ["# First release: seconds, multiplications, memory\n"]
    parts.append("".join(f"- {name}: {text}\n" for name, text in conditions(quick).items()))
    for name, rows in tables.items():
        parts.append(f"## {name[0].upper()}{name[1:]}\n\n{SECTIONS[name]}\n")
        if name == "to the same objective":
            shown = [dict(row) | {"SigPy s": row["SigPy s"] or row["SigPy in the time limit"]} for row in rows]
            for title, columns in SAME_OBJECTIVE_TABLES.items():
                parts.append(f"### {title}\n\n{_markdown(shown, PROBLEM + columns)}")
            parts.append(_settings_note(rows))
        else:
            parts.append(_markdown(rows))
    return "\n".join(parts)


def _markdown(rows: Sequence[Row], columns: list[str] | None = None) -> str:
    """Gaps with two digits, everything else with three."""
    names = {name for row in rows for name in row}
    return markdown_text(rows, columns, {name: ".1e" if "gap" in name else ".3g" for name in names})


def _settings_note(rows: list[Row]) -> str:
    used = {str(row["MAP"]): SETTINGS[str(row["MAP"])] for row in rows}
    lines = [
        f"- {name}: smoothing {m.smoothing:g}, {m.stages} stages, tolerance {m.inner.tolerance:g}"
        for name, m in used.items()
    ]
    drift = max(float(row["f* known to"]) for row in rows)  # type: ignore[arg-type]
    lines.append(f"- f\\* is the lowest value of any run; the long run's last tenth lowered it by {drift:.0e} at most")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for the tables")
    arguments.add_argument("--quick", action="store_true", help="a smoke run on a small grid")
    chosen = arguments.parse_args()
    with threadpool_limits(1):
        tables = dict(sections(chosen.quick))
    text = document(tables, chosen.quick)
    print(text)
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_text(chosen.out / "first-release.md", text)
    every = [{"table": name} | dict(row) for name, rows in tables.items() for row in rows]
    write_text(chosen.out / "first-release.csv", csv_text(every))


if __name__ == "__main__":
    main()
