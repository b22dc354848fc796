"""What a design's report costs, with figures and without.

    OMP_NUM_THREADS=1 python benchmarks/report_time.py

designs an embedded head, writes its report several times, and leaves results/benchmarks/report-time.csv and
report-time.md: seconds of processor time, medians, and the load of the machine; and how much of a whole process of the
command line is not the design and its image. ``before`` writes every file of a figure as the plotting library does by
itself, as this program did: the PNG is drawn twice, once to place the axes, and so is the SVG. The files are the same,
byte for byte, which is checked.
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
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from parts.targets import COLUMNS, Target, smallest, with_targets

from mri_design.evaluation.output import run_folder
from mri_design.evaluation.output.picture import Drawing, drawn_files, png_bytes, svg_text
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.tables import Row, csv_text, markdown_text
from mri_design.experiment.recipe import load_recipe
from mri_design.runs.design.report import report_design
from mri_design.runs.design.run import DesignRequest, DesignResult, design_scan
from mri_design.runs.run import Run
from mri_design.scan.io.atomic import write_text

OUT = Path(__file__).parents[1] / "results/benchmarks"
TARGET = 1.0
"""Seconds of processor time that a report may take."""


def drawn_before(figure: Drawing) -> tuple[bytes, str]:
    """Both files of a figure, the axes kept where the first drawing placed them."""
    png = png_bytes(figure)
    engine = figure.get_layout_engine()
    figure.set_layout_engine("none")
    try:
        return png, svg_text(figure)
    finally:
        figure.set_layout_engine(engine)


def designed(matrix: int, lines: int, folder: Path) -> DesignResult:
    """A design of an embedded head."""
    recipe = load_recipe("local").replacing("simulation", matrix=matrix)
    with RunFolder(folder) as opened:
        result = design_scan(DesignRequest("phantom:t2w", recipe, lines), Run(folder=opened))
    assert isinstance(result, DesignResult)
    return result


def seconds_of(result: DesignResult, folder: Path, draw: Callable[[Drawing], tuple[bytes, str]] | None) -> float:
    """Processor time of one report into a new folder; None draws nothing."""
    with (
        mock.patch.object(run_folder, "drawn_files", draw or drawn_files),
        RunFolder(folder, reported=draw is not None) as opened,
    ):
        began = time.process_time()
        report_design(Run(folder=opened), result)
        return time.process_time() - began


def figures_of(folder: Path) -> dict[str, bytes]:
    """Every figure's file."""
    return {path.name: path.read_bytes() for path in sorted((folder / "figures").iterdir())}


def rows_of(result: DesignResult, place: Path, repeats: int) -> list[Row]:
    """Seconds of every way, one after the other in every repeat; the first report of the process apart."""
    ways = {"before": drawn_before, "now": drawn_files, "--no-report": None}
    first = seconds_of(result, place / "first", drawn_files)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(repeats):
        for name, draw in ways.items():
            seconds[name].append(seconds_of(result, place / f"{name}-{i}", draw))
    assert figures_of(place / "before-0") == figures_of(place / "now-0")
    median = {name: statistics.median(each) for name, each in seconds.items()}
    rows: list[Row] = [{"report": "now, the first of a process", "processor s": first, "share of before": None}]
    rows += [{"report": n, "processor s": s, "share of before": s / median["before"]} for n, s in median.items()]
    return rows


PROCESS = """
import json, sys, time
from mri_design.runs.design import run as verb

spent = {"design": 0.0, "image": 0.0}

def timed(name, function):
    def call(*given, **options):
        began = time.process_time()
        try:
            return function(*given, **options)
        finally:
            spent[name] += time.process_time() - began
    return call

verb.run_design, verb.reconstruct = timed("design", verb.run_design), timed("image", verb.reconstruct)
from mri_design.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(spent | {"whole": time.process_time()}), file=sys.stderr)
"""
"""A process of the command line that tells at its end how much processor time it and its numerics took."""


def process_rows(matrix: int, lines: int, place: Path, repeats: int) -> list[Row]:
    """Seconds of whole processes that design and reconstruct, with a report and without.

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
            found = [_process(words, place / f"{image}-{report}-{i}") for i in range(repeats + 1)][1:]
            seconds = {name: statistics.median(each[name] for each in found) for name in found[0]}
            numerics = seconds["design"] + seconds["image"]
            rows.append(
                {"image": image, "report": report, "whole process, s": seconds["whole"]}
                | {"design, s": seconds["design"], "image, s": seconds["image"]}
                | {"share that is neither, %": 100 * (1 - numerics / seconds["whole"])}
            )
    return rows


def _process(words: list[object], folder: Path) -> dict[str, float]:
    command = [sys.executable, "-c", PROCESS, *map(str, words), "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stderr.splitlines()[-1]))


def targets_of(rows: list[Row], processes: list[Row]) -> list[Row]:
    """What was asked for."""
    tables = {"reports": rows, "processes": processes}
    share = "share that is neither, %"
    return [
        Target("processor time of a report", TARGET, False, "s", "reports", smallest("processor s", report="now")).row(
            tables
        ),
        *(
            Target(
                f"whole process of a 64-line design at 128x128, {report}: share that is not engine",
                15,
                False,
                "%",
                "processes",
                smallest(share, report=report, image="mean"),
            ).row(tables)
            for report in ("report.html", "--no-report")
        ),
    ]


def text_of(rows: list[Row], processes: list[Row], figures: int, chosen: argparse.Namespace) -> str:
    """The page."""
    matrix, lines = chosen.matrix, chosen.lines
    now = next(float(str(row["processor s"])) for row in rows if row["report"] == "now")
    return f"""# What a report costs

    OMP_NUM_THREADS=1 python benchmarks/report_time.py

The report of a design of {lines} lines of an embedded head, {matrix} x {matrix}: {figures} figures, each as PNG and as
SVG. Processor time, medians over reports into new folders in one process; the load of the machine was
{os.getloadavg()[0]:.1f}, and where other work shares its cores, processor time grows too: compare the rows. Asked for:
{TARGET:g} s ({now:.1f} s: {"met" if now <= TARGET else "missed"}).

{markdown_text(rows, None, {"processor s": ".2f", "share of before": ".2f"})}

The files are those of before, byte for byte. A third of the time places axes, a third draws PNG, a third SVG; in all of
them the plotting library measures and sets letters, one tick after the other. What is not drawn costs nothing:
`--no-report` is for batches.

## Whole processes

A design of {chosen.process_lines} lines of the same head and its image by the default recipe (mean) or hardly any
(zero-filled), with loading Python and its packages, reading, checks, tables and the report. Of these no more than 15 %
were to be neither the design nor the image.

{markdown_text(processes, None, dict.fromkeys(processes[0], ".3g"))}
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        figures = len(figures_of(Path(place) / "first")) // 2
        processes = process_rows(chosen.matrix, chosen.process_lines, Path(place), min(chosen.repeats, 3))
    write_text(chosen.out / "report-time.csv", csv_text(rows))
    write_text(chosen.out / "process-time.csv", csv_text(processes))
    targets = with_targets(chosen.out / "targets.csv", targets_of(rows, processes))
    write_text(chosen.out / "targets.csv", csv_text(targets, COLUMNS))
    text = text_of(rows, processes, figures, chosen)
    write_text(chosen.out / "report-time.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
