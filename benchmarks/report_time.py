"""What a design's report costs, with figures and without, and what a whole process does beside its numerics.

    OMP_NUM_THREADS=1 python benchmarks/report_time.py --against CHECKOUT

designs an embedded head, writes its report several times, and leaves results/benchmarks/report-time.csv,
process-time.csv and report-time.md: seconds of processor time, medians, and the load of the machine; and how much of a
whole process of the command line is neither the design nor its image, of this version and of another one in turns.
CHECKOUT is a working tree of that version (`git worktree add CHECKOUT COMMIT`). Processes have bytecode and compiled
loops from an earlier one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from design_time import revision
from parts.targets import COLUMNS, Target, smallest, with_targets

from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, csv_text, markdown_text
from mri_design.experiment.recipe import load_recipe
from mri_design.runs.design.report import report_design
from mri_design.runs.design.run import DesignRequest, DesignResult, design_scan
from mri_design.runs.run import Run
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/benchmarks"
TARGET = 1.0
"""Seconds of processor time that a report may take."""
AIMS = {"report.html": 25, "--no-report": 15}
"""Percent of a process that may be neither the design nor its image."""


def designed(matrix: int, lines: int, folder: Path) -> DesignResult:
    """A design of an embedded head."""
    recipe = load_recipe("local").replacing("simulation", matrix=matrix)
    with RunFolder(folder) as opened:
        result = design_scan(DesignRequest("phantom:t2w", recipe, lines), Run(folder=opened))
    assert isinstance(result, DesignResult)
    return result


WAYS = {"figures as SVG": (True, False), "figures as SVG and PNG, --png": (True, True), "--no-report": (False, False)}
"""Whether there is a report, and PNG."""


def seconds_of(result: DesignResult, folder: Path, way: str) -> float:
    """Processor time of one report into a new folder."""
    reported, png = WAYS[way]
    with RunFolder(folder, reported=reported, png=png) as opened:
        began = time.process_time()
        report_design(Run(folder=opened), result)
        return time.process_time() - began


def rows_of(result: DesignResult, place: Path, repeats: int) -> list[Row]:
    """Seconds of every way, one after the other in every repeat; the first report of the process apart."""
    usual, *_ = WAYS
    first = seconds_of(result, place / "first", usual)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for i in range(repeats):
        for number, way in enumerate(WAYS):
            seconds[way].append(seconds_of(result, place / f"{number}-{i}", way))
    rows: list[Row] = [{"report": f"{usual}, the first of a process", "processor s": first}]
    return rows + [{"report": way, "processor s": statistics.median(each)} for way, each in seconds.items()]


PROCESS = """
import json, sys, time
from mri_design.experiment import checkpoint, designing
from mri_design.runs.design import run as verb

spent = {"design": 0.0, "image": 0.0, "checkpoints": 0.0}

def timed(place, function, name):
    if not hasattr(place, function):
        return
    of = getattr(place, function)
    def call(*given, **options):
        began = time.process_time()
        try:
            return of(*given, **options)
        finally:
            spent[name] += time.process_time() - began
    setattr(place, function, call)

timed(verb, "run_design", "design")
timed(verb, "reconstruct", "image")
for place in (checkpoint, designing):
    timed(place, "save_state", "checkpoints")
from mri_design.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
spent["design"] -= spent["checkpoints"]
print(json.dumps(spent | {"whole": time.process_time()}), file=sys.stderr)
"""
"""A process of the command line that tells at its end how much processor time it and its numerics took."""
SHARE = "share that is neither, %"


def process_rows(checkouts: Mapping[str, Path], matrix: int, lines: int, place: Path, repeats: int) -> list[Row]:
    """Seconds of whole processes that design and reconstruct, with a report and without, all versions in turns.

    Medians; the first process of every kind, which may compile, is not counted.
    """
    rows: list[Row] = []
    for image in ("mean", "zero-filled"):
        recipe = place / f"{image}.toml"
        text = f"[simulation]\nmatrix = {matrix}\n[reconstruction]\nmethod = {image!r}\n"
        recipe.write_text(text, encoding="utf-8")
        for report in ("report.html", "--no-report"):
            words = ["design", "phantom:t2w", "--recipe", recipe, "--lines", lines, "--quiet"]
            words += ["--no-report"] if report == "--no-report" else []
            found: dict[str, list[dict[str, float]]] = {version: [] for version in checkouts}
            for i in range(repeats + 1):
                for version, checkout in checkouts.items():
                    spent = _process(checkout, [*words, "--out", place / f"{version}-{image}-{report}-{i}"], place)
                    found[version] += [spent] if i else []
            rows += [_row(version, image, report, each) for version, each in found.items()]
            sys.stderr.write(f"... {image}, {report}\n")
    return rows


def _row(version: str, image: str, report: str, found: Sequence[Mapping[str, float]]) -> Row:
    seconds = {name: statistics.median(each[name] for each in found) for name in found[0]}
    shares = [100 * (1 - (each["design"] + each["image"]) / each["whole"]) for each in found]
    return {
        "version": version,
        "image": image,
        "report": report,
        "whole process, s": seconds["whole"],
        "design, s": seconds["design"],
        "image, s": seconds["image"],
        "checkpoints, s": seconds["checkpoints"],
        SHARE: statistics.median(shares),
    }


def _process(checkout: Path, words: Sequence[object], place: Path) -> dict[str, float]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    told = {
        "PYTHONPATH": str(checkout.resolve()),
        "PYTHONPYCACHEPREFIX": str(place / "bytecode"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", PROCESS, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place, env=kept | told)
    return dict(json.loads(done.stderr.splitlines()[-1]))


def targets_of(rows: list[Row], processes: list[Row]) -> list[Row]:
    """What was asked for."""
    tables = {"reports": rows, "processes": processes}
    return [
        Target(
            "processor time of a report",
            TARGET,
            False,
            "s",
            "reports",
            smallest("processor s", report=next(iter(WAYS))),
        ).row(tables),
        *(
            Target(
                f"whole process of a 64-line design at 128x128, {report}: share that is not engine",
                aim,
                False,
                "%",
                "processes",
                smallest(SHARE, report=report, image="mean", version="here"),
            ).row(tables)
            for report, aim in AIMS.items()
        ),
    ]


def checkouts_of(chosen: argparse.Namespace) -> dict[str, Path]:
    """Working trees of the versions that are compared."""
    return {"here": OUT.parents[1]} | ({} if chosen.against is None else {"there": chosen.against})


def text_of(rows: list[Row], processes: list[Row], figures: int, chosen: argparse.Namespace) -> str:
    """The page."""
    matrix, lines = chosen.matrix, chosen.lines
    now = next(float(str(row["processor s"])) for row in rows if row["report"] == next(iter(WAYS)))
    places = checkouts_of(chosen)
    compared = "; ".join(f"`{name}` is commit {revision(place)}" for name, place in places.items())
    told = " and ".join(f"{aim} % with {report}" for report, aim in AIMS.items())
    return f"""# What a report costs

    OMP_NUM_THREADS=1 python benchmarks/report_time.py{"" if chosen.against is None else " --against CHECKOUT"}

The report of a design of {lines} lines of an embedded head, {matrix} x {matrix}: {figures} figures. Processor time,
medians over reports into new folders in one process; the load of the machine was {os.getloadavg()[0]:.1f}, and where
other work shares its cores, processor time grows too: compare the rows. Asked for: {TARGET:g} s ({now:.1f} s:
{"met" if now <= TARGET else "missed"}).

{markdown_text(rows, None, {"processor s": ".2f"})}

A figure is laid out once and drawn once for each of its files. Most of the time the plotting library measures and sets
letters, one tick after the other, to place the axes and to draw them. What is not drawn costs nothing: `--no-report` is
for batches.

## Whole processes

A design of {chosen.process_lines} lines of the same head and its image by the default recipe (mean) or hardly any
(zero-filled), with loading Python and its packages, reading, checks, checkpoints, tables and the report. Processor time
of processes that have bytecode and compiled loops, medians of {min(chosen.repeats, 3)}, versions in turns; {compared}.
The design is without its checkpoints. At most {told} were to be neither the design nor the image (mean).

{markdown_text(processes, None, dict.fromkeys(processes[0], ".3g"))}
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="working tree of the version to compare with")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=5, help="reports of every kind")
    parser.add_argument("--matrix", type=int, default=128, help="pixels along an edge")
    parser.add_argument("--lines", type=int, default=40, help="lines of the design")
    parser.add_argument("--process-lines", type=int, default=64, help="lines of the designs of whole processes")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        result = designed(chosen.matrix, chosen.lines, Path(place) / "design")
        rows = rows_of(result, Path(place), chosen.repeats)
        figures = sum(1 for _ in (Path(place) / "first" / "figures").iterdir())
        processes = process_rows(
            checkouts_of(chosen), chosen.matrix, chosen.process_lines, Path(place), min(chosen.repeats, 3)
        )
    write_text(chosen.out / "report-time.csv", csv_text(rows))
    write_text(chosen.out / "process-time.csv", csv_text(processes))
    targets = with_targets(chosen.out / "targets.csv", targets_of(rows, processes))
    write_text(chosen.out / "targets.csv", csv_text(targets, COLUMNS))
    text = text_of(rows, processes, figures, chosen)
    write_text(chosen.out / "report-time.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
