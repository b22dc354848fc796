"""Other images of the object: targets against what was measured, tables and figure of results/companions/README.md.

    python benchmarks/companions.py DATA   # errors.csv
    python benchmarks/lesions.py DATA      # lesions.csv
    python benchmarks/repeats.py DATA errors
    python benchmarks/neighbours.py DATA
    python benchmarks/planes_and_coils.py DATA
    python -m benchmarks.companion_targets

DATA is a folder of raw scans and images.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv

sys.path.insert(0, str(Path(__file__).parent))  # as the benchmarks beside it find their parts
from parts.pages import put_table

OUT = Path(__file__).parents[1] / "results" / "companions"
STRENGTHS = ("careful", "moderate", "strong")
Rows = Sequence[dict[str, str]]


def table(name: str) -> list[dict[str, str]]:
    """Rows of one table; none where it has not been begun."""
    path = OUT / f"{name}.csv"
    return [dict(row) for row in read_csv_texts(path)] if path.is_file() else []


def percent(rows: Rows, name: str) -> str:
    """Mean and worst of a column of changes."""
    found = [float(row[name]) for row in rows if row[name] != ""]
    return f"{np.mean(found):+.1f} ({max(found):+.1f})" if found else "-"


def of_errors(rows: Rows, counted: str = "lines of 128") -> list[Row]:
    """Mean and worst change of the error, by kind and number of lines, or what else is counted."""
    kinds = dict.fromkeys((row["kind"], row["mask"], row["lines"]) for row in rows)
    made: list[Row] = []
    for kind, mask, lines in kinds:
        group = [row for row in rows if (row["kind"], row["mask"], row["lines"]) == (kind, mask, lines)]
        used = sum(int(row["careful used"]) for row in group)
        made.append(
            {
                "companion": kind,
                "mask": mask,
                counted: lines,
                "cells": len(group),
                "error without": f"{np.mean([float(row['error']) for row in group]):.3f}",
                **{strength: percent(group, strength) for strength in STRENGTHS},
                "used": f"{used} of {len(group)}",
                "control": percent(group, "control"),
            }
        )
    return made


def of_lesions(rows: Rows, where: str) -> list[Row]:
    """What every method keeps of the contrast, or makes up, by mask and number of lines."""
    rows = [row for row in rows if row["where"] == where]
    made: list[Row] = []
    for mask, lines in dict.fromkeys((row["mask"], row["lines"]) for row in rows):
        for method in dict.fromkeys(row["method"] for row in rows):
            group = [row for row in rows if (row["mask"], row["lines"], row["method"]) == (mask, lines, method)]
            if group:
                made.append({"mask": mask, "lines of 128": lines, "method": method, **_kept(group, where)})
    return made


def _kept(group: Rows, where: str) -> Row:
    def mean(chosen: Callable[[dict[str, str]], bool]) -> str:
        return f"{np.mean([float(row['recovered']) for row in group if chosen(row)]):.2f}"

    said: Row = {
        "all": mean(lambda row: True),
        "bright": mean(lambda row: float(row["contrast"]) > 0),
        "dark": mean(lambda row: float(row["contrast"]) < 0),
        "radius 1.5 and 2": mean(lambda row: float(row["radius"]) <= 2),
        "radius 3 and 4": mean(lambda row: float(row["radius"]) > 2),
        "error": f"{np.mean([float(row['error']) for row in group]):.3f}",
    }
    if where == "companion":
        said["largest"] = f"{max(float(row['recovered']) for row in group):+.2f}"
    return said


def over_default(rows: Rows, method: str) -> list[float]:
    """Mean recovered contrast over that without a companion, of every head, mask, seed and number of lines."""
    cells = dict.fromkeys((row["head"], row["seed"], row["mask"], row["lines"]) for row in rows)
    found = []
    for cell in cells:
        group = [row for row in rows if (row["head"], row["seed"], row["mask"], row["lines"]) == cell]
        means = [np.mean([float(r["recovered"]) for r in group if r["method"] == name]) for name in (method, "default")]
        found.append(float(means[0] / means[1]))
    return found


def targets(errors: Rows, lesions: Rows) -> list[Row]:
    """Targets of the default strength."""
    made: list[Row] = []
    wanted = {
        "contrast 3 T": ("-18, -12, -8", ("16", "32", "64")),
        "contrast low field": ("-12, -5, -3", ("16", "32", "64")),
        "echo": ("-20, -22, -10", ("16", "32", "64")),
    }
    for kind, (target, counts) in wanted.items():
        groups = [[row for row in errors if row["kind"] == kind and row["lines"] == count] for count in counts]
        if not all(groups):
            continue
        for strength in STRENGTHS:
            found = [np.mean([float(row[strength]) for row in group]) for group in groups]
            met = all(f <= float(t) for f, t in zip(found, target.split(","), strict=True))
            cells = sum(map(len, groups))
            said = ", ".join(f"{f:+.1f}" for f in found)
            made.append(
                {"what": f"{kind}, {strength}: {cells} cells", "target": f"<= {target} %", "found": said, "met": met}
            )
    for kind in wanted:
        group = [row for row in errors if row["kind"] == kind and row["control"] != ""]
        if group:
            gain, own = (-float(np.mean([float(row[name]) for row in group])) for name in ("careful", "control"))
            said = f"{gain:.1f} % with it, {own:.1f} % with the scan's own image in its place ({len(group)})"
            what = f"{kind}, careful: gain beyond the control"
            made.append({"what": what, "target": ">= two thirds", "found": said, "met": gain - own >= 2 / 3 * gain})
    wrong = [row for row in errors if row["kind"].startswith("wrong")]
    for strength in STRENGTHS if wrong else ():
        found = [float(row[strength]) for row in wrong]
        said = f"mean {np.mean(found):+.1f}, worst {max(found):+.1f} % ({len(found)})"
        met = bool(np.mean(found) <= 0 and max(found) <= 1)
        made.append(
            {"what": f"wrong companions, {strength}", "target": "mean <= 0, worst <= +1 %", "found": said, "met": met}
        )
    kept = [row for row in lesions if row["where"] == "scan"]
    for strength in STRENGTHS if kept else ():
        found = over_default(kept, strength)
        said = f"mean {np.mean(found):.3f}, least {min(found):.3f} ({len(found)})"
        met = bool(np.mean(found) >= 0.98 and min(found) >= 0.88)
        what = f"lesions in the scan alone, {strength}: contrast over that without"
        made.append({"what": what, "target": "mean >= .98, every head and mask >= .88", "found": said, "met": met})
    made_up = [row for row in lesions if row["where"] == "companion"]
    for strength in STRENGTHS if made_up else ():
        found = [float(row["recovered"]) for row in made_up if row["method"] == strength]
        said = f"mean {np.mean(found):+.3f}, largest {max(found):+.3f} ({len(found)})"
        met = bool(np.mean(found) <= 0.03 and max(found) <= 0.08)
        what = f"lesions in the companion alone, {strength}: false contrast"
        made.append({"what": what, "target": "mean <= .03, every lesion <= .08", "found": said, "met": met})
    ratios = [float(row["ratio with"]) for row in errors if row.get("ratio with") and row["careful used"] == "1"]
    if ratios:
        good = sum(0.7 <= ratio <= 1.4 for ratio in ratios)
        said = f"{good / len(ratios):.0%} of {len(ratios)}, median {np.median(ratios):.2f}"
        what = "sum of variances over squared error in [.7, 1.4], of cells that used it (before results/error-bars)"
        made.append({"what": what, "target": ">= 80 %", "found": said, "met": good >= 0.8 * len(ratios)})
    seconds = [float(row["seconds over plain"]) for row in errors if row.get("seconds over plain")]
    if seconds:
        said = f"median {np.median(seconds):.2f}"
        what = "processor seconds over the image without, error bars included"
        made.append({"what": what, "target": "<= 1.4", "found": said, "met": bool(np.median(seconds) <= 1.4)})
    return made


def of_repeats_and_neighbours() -> list[Row]:
    """Targets of images of the same scan, or of the same contrast."""
    made: list[Row] = []
    for lines, strength, target in (("16", "strong", -45), ("32", "moderate", -35)):
        rows = table("repeats-errors")
        found = [float(r["with"]) for r in rows if (r["lines"], r["strength"]) == (lines, strength)]
        what = f"repeat, moved by up to 4 px and 5 degrees, {strength}, {lines} lines"
        made.append(_change(what, f"<= {target} %", found, bool(np.mean(found) <= target)))
    for strength in STRENGTHS[:2]:
        rows = table("neighbours")
        found = [float(r[strength]) for r in rows if r["kind"] == "slices" and r["lines"] == "32"]
        met = bool(np.mean(found) <= -10 and max(found) <= 0)
        made.append(_change(f"slices one or two away, {strength}, 32 lines", "<= -10 %, none worse", found, met))
    return made


def of_planes_and_coils() -> list[Row]:
    """Targets of planes, and of several coils."""
    made: list[Row] = []
    rows = table("planes-and-coils")
    for kind, target in (("plane, 1 coil", -8), ("lines, 8 coils", -5), ("plane, 8 coils", -5)):
        for strength in STRENGTHS:
            found = [float(row[strength]) for row in rows if row["kind"] == kind]
            what = f"{kind}, {strength}, {'an eighth' if 'plane' in kind else 'a quarter'} measured"
            if found:
                made.append(_change(what, f"<= {target} %", found, bool(np.mean(found) <= target)))
    return made


def _change(what: str, target: str, found: Sequence[float], met: bool) -> Row:
    said = f"mean {np.mean(found):+.1f}, worst {max(found):+.1f} % ({len(found)})"
    return {"what": what, "target": target, "found": said, "met": met}


NAMES = {
    "zero-filled": "zero-filled",
    "tv-wavelet": "TV and wavelets (MAP)",
    "local": "mean, recipe local",
    "default": "mean, default",
    "careful": "with companion, careful",
    "moderate": "with companion, moderate",
    "strong": "with companion, strong",
}
COLOURS = dict(zip(NAMES, ("0.75", "0.5", "#9ecae1", "#08519c", "#31a354", "#fdae6b", "#d94801"), strict=True))


def draw_lesions(rows: Rows, path: Path) -> None:
    """What every method keeps of the contrast of lesions, and what the strength of a companion trades for it."""
    rows = [row for row in rows if (row["where"], row["mask"]) == ("scan", "density")]
    counts = sorted({int(row["lines"]) for row in rows})

    def mean(method: str, count: int, column: str) -> float:
        found = [float(r[column]) for r in rows if r["method"] == method and int(r["lines"]) == count]
        return float(np.mean(found))

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    bars, trade = figure.subplots(1, 2)
    for place, (method, name) in enumerate(NAMES.items()):
        at = np.arange(len(counts)) + (place - 3) * 0.12
        bars.bar(at, [mean(method, n, "recovered") for n in counts], 0.11, label=name, color=COLOURS[method])
    bars.set_xticks(np.arange(len(counts)), [f"{n} of 128 lines" for n in counts])
    bars.set_ylim(0, 1)
    bars.set_ylabel("contrast of lesions, share of the true one")
    bars.legend(fontsize=7, loc="upper left")
    for count, mark in zip(counts, "os^", strict=False):
        ways = ("default", *STRENGTHS)
        error = [100 * (mean(way, count, "error") / mean("default", count, "error") - 1) for way in ways]
        kept = [mean(way, count, "recovered") / mean("default", count, "recovered") for way in ways]
        trade.plot(error, kept, "-", color="0.6", zorder=1)
        trade.scatter(error, kept, marker=mark, c=[COLOURS[way] for way in ways], label=f"{count} lines", zorder=2)
    trade.axhline(0.98, color="0.4", lw=0.8, ls=":")
    trade.set_xlabel("error of the image over that without companion, %")
    trade.set_ylabel("contrast over that without companion")
    trade.legend(fontsize=7, loc="lower right")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write targets.csv, the figure, and the tables of the page."""
    errors, lesions = table("errors"), table("lesions")
    against = [*targets(errors, lesions), *of_repeats_and_neighbours(), *of_planes_and_coils()]
    write_csv(OUT / "targets.csv", against)
    draw_lesions(lesions, OUT / "lesions.png")
    page = OUT / "README.md"
    put_table(page, "Targets", against)
    put_table(page, "Errors", of_errors(errors))
    put_table(page, "Planes and several coils", of_errors(table("planes-and-coils"), "readouts"))
    put_table(page, "Lesions that only the scan has", of_lesions(lesions, "scan"))
    put_table(page, "Lesions that only the companion has", of_lesions(lesions, "companion"))


if __name__ == "__main__":
    main()
