"""Designs that end when a region is known: is it, then, and how many lines does a whole image need?

    OMP_NUM_THREADS=1 python benchmarks/region_stops.py measure DATA [--numbers 0:9] [--encodings lines,plane]
    python benchmarks/region_stops.py targets

DATA is the folder of raw scans and images. ``measure`` takes subjects, anatomies, coils and noises of
`parts.error_cases`, each with a seed of its own, and designs until the mean of a disc is known to within 2 and 4 % with
90 %, and until the error of the whole image is 5 and 10 %. Neither the distances of regions nor what scales the error
bars has been learnt from the subject. ``targets`` writes the tables of README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from error_bars import learnt_without
from parts.error_cases import Case
from parts.pages import put_table
from regions import OUT, Known, anatomy, cases_left, put_target
from regions import read_rows as read_regions

from mri_design.design.trace import StopRule, Within
from mri_design.errors import InputError
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.evidence import error_bars
from mri_design.evidence.regions import USUAL_DRAWS, Distances, discs
from mri_design.experiment.design import DesignOptions, ImageErrors, run_design
from mri_design.experiment.regions import Regions

ENCODINGS = ("lines", "lines, coils", "plane")
AREA, WITHIN, ERRORS, SHARE = 50, (0.02, 0.04), (0.05, 0.1), 0.8
"""Pixels of the disc, wanted half lengths, wanted errors, and the part of all lines that a design may have."""


def designed(case: Case, seed: int, distances: Distances) -> Iterator[Row]:
    """A row for every wanted interval and every wanted error."""
    recipe = case.recipe.replacing("reconstruction", draws=USUAL_DRAWS)
    inside = discs(case.truth, AREA, np.random.default_rng([seed, 7]))[0]
    regions = Regions({"disc": inside[None]}, ("disc",), distances=distances)
    one, unit = case.slice_model, np.abs(case.slice_model.calibrated(case.lines).image_unit)
    true = float(np.abs(case.truth * unit)[inside].mean())  # in the units of the file, as intervals are
    line = one.candidates.size // one.candidates.grid[0]
    most = round(SHARE * int(one.measured.sum()))
    for wanted, of in [*((each, "region") for each in WITHIN), *((each, "image") for each in ERRORS)]:
        rule = StopRule(within=Within(wanted)) if of == "region" else StopRule(wanted, by_image=True)
        looks = ImageErrors(recipe if of == "region" else case.recipe, seed, (), regions)
        options = DesignOptions(stop=rule, image_error=looks, intervals=looks.intervals)
        try:
            if of == "region":
                start = range(*_centre(one.shape[0])) if line == 1 else case.lines
                regions.require([one], start, Within(wanted))
            trace = run_design([one], "calibrated", most, recipe, seed=seed, options=options).trace
        except InputError as error:
            print(case.name, wanted, error.field, flush=True)
            continue
        end = None if trace.declined is None else trace.declined.forecast
        row: Row = {"encoding": case.encoding, "number": case.number, "split": case.split, "group": case.group}
        row |= {"name": case.name, "coils": one.n_coils, "until": f"{of} {wanted:g}"}
        missed = end is not None and rule.out_of_reach(end)
        row |= {"lines": len(trace.lines) / line, "of": one.candidates.grid[0]}
        row |= {"because": "out of reach" if missed else "all measured" if end is None else "reached"}
        if of == "region":
            looked = sum(step.forecast.intervals is not None for step in trace.steps) + (end is not None)
            row |= {"looks": looked}
            if end is not None and end.intervals is not None:
                middle, half, _ = end.intervals[0]
                row |= {"error": f"{(middle - true) / true:.4f}", "half": f"{half / true:.4f}"}
        yield row


def _centre(count: int) -> tuple[int, int]:
    return count // 2 - 4, count // 2 + 4


def measure(data: Path, numbers: range, encodings: Sequence[str]) -> None:
    """Add what is not there yet."""
    path = OUT / "stops.csv"
    rows: list[Row] = [dict(row) for row in read_csv_texts(path)] if path.is_file() else []
    known = Known.of(read_regions())
    scales = known.scales()
    for case in cases_left(rows, data, numbers, encodings):
        model = learnt_without([case.group])
        error_bars.shipped_squared_error_model = lambda model=model: model  # type: ignore[assignment, misc]
        rows += designed(case, case.number, known.without(scales, case.group))
        write_csv(path, rows)
        print(case.split, case.encoding, case.number, case.name, flush=True)


def targets() -> None:
    """Write the tables."""
    rows = [dict(row) for row in read_csv_texts(OUT / "stops.csv")]
    for row in rows:
        row["shown"] = anatomy(row["name"], row["group"])
    table = list[Row]()
    for name in ("all", *ENCODINGS, *dict.fromkeys(row["shown"] for row in rows)):
        for wanted in WITHIN:
            own = [r for r in rows if r["until"] == f"region {wanted:g}" and name in ("all", r["encoding"], r["shown"])]
            ends = [row for row in own if row["error"]]
            if not ends:
                continue
            errors, halves = (np.array([float(row[each]) for row in ends]) for each in ("error", "half"))
            table.append(
                {
                    "designs": name,
                    "wanted": f"{wanted:.0%}",
                    "number": len(own),
                    "ended": len(ends),
                    "error within what was wanted": f"{np.mean(np.abs(errors) <= wanted):.0%}",
                    "truth in the interval": f"{np.mean(np.abs(errors) <= halves):.0%}",
                    "looks, median": float(np.median([int(row["looks"]) for row in ends])),
                }
            )
    put_table(OUT / "README.md", "Ends of designs", table)
    ends = [(abs(float(row["error"])), float(row["until"].split()[1])) for row in rows if row["error"]]
    share = float(np.mean([error <= wanted for error, wanted in ends]))
    found = f"{share:.0%} of {len(ends)} ends"
    put_target("actual error of the region within the interval asked for", ">= 90 % of ends", found, share >= 0.9)
    by_case: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        key = (row["split"], row["encoding"], row["number"])
        if row["because"] == "out of reach":
            continue
        most = float(row["lines"]) if row["because"] == "reached" else float(row["of"])
        by_case.setdefault(key, {})[row["until"]] = most / float(row["of"])
    compared = list[Row]()
    for wanted in WITHIN:
        for error in ERRORS:
            both = [one for one in by_case.values() if {f"region {wanted:g}", f"image {error:g}"} <= one.keys()]
            region, image = (
                np.array([one[name] for one in both]) for name in (f"region {wanted:g}", f"image {error:g}")
            )
            compared.append(
                {
                    "region to within": f"{wanted:.0%}",
                    "image's error": f"{error:.0%}",
                    "designs": len(both),
                    "lines for the region": f"{np.median(region):.0%}",
                    "lines for the image": f"{np.median(image):.0%}",
                    "ratio, median": f"{np.median(region / image):.2f}",
                    "least, largest": f"{np.min(region / image):.2f}, {np.max(region / image):.2f}",
                }
            )
    put_table(OUT / "README.md", "Lines for a region and for an image", compared)
    found = f"{compared[0]['ratio, median']} ({compared[0]['least, largest']})"
    put_target("cost of a look over an image with draws", "<= .4", "1: it is one", False)
    put_target("lines for a region's mean to within 2 % over those for an image's error of 5 %", "printed", found, True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("task", choices=("measure", "targets"))
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--numbers", default="0:9")
    parser.add_argument("--encodings", default="")
    asked = parser.parse_args()
    first, last = map(int, asked.numbers.split(":"))
    chosen = [one for one in ENCODINGS if not asked.encodings or one.replace(", ", "+") in asked.encodings.split(",")]
    if asked.task == "measure":
        measure(asked.data, range(first, last), chosen)
    else:
        targets()


if __name__ == "__main__":
    main()
