"""What a design's report costs, with figures and without.

    OMP_NUM_THREADS=1 python benchmarks/report_time.py

designs an embedded head, writes its report several times, and leaves results/benchmarks/report-time.csv and
report-time.md: seconds of processor time, medians, and the load of the machine. ``before`` writes every file of a
figure as the plotting library does by itself, as this program did: the PNG is drawn twice, once to place the axes, and
so is the SVG. The files are the same, byte for byte, which is checked.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

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


def text_of(rows: list[Row], figures: int, matrix: int, lines: int) -> str:
    """The page."""
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
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--repeats", type=int, default=5, help="reports of every kind")
    parser.add_argument("--matrix", type=int, default=128, help="pixels along an edge")
    parser.add_argument("--lines", type=int, default=40, help="lines of the design")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        result = designed(chosen.matrix, chosen.lines, Path(place) / "design")
        rows = rows_of(result, Path(place), chosen.repeats)
        figures = len(figures_of(Path(place) / "first")) // 2
    write_text(chosen.out / "report-time.csv", csv_text(rows))
    text = text_of(rows, figures, chosen.matrix, chosen.lines)
    write_text(chosen.out / "report-time.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
