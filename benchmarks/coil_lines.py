"""Lines with several coils: the design against fixed sets, each with the best of several numbers of centre lines.

    OMP_NUM_THREADS=1 python benchmarks/coil_lines.py DATA [--scans 8a-96,...] [--accelerations 3,4] [--out OUT]

DATA is the folder of raw scans. A cell is a scan (`coils.SCANS`, or subject, contrast, coils and side of a simulation,
as 6A_T2w-16-96), an acceleration, and a kind of coil maps: `known`, those of all lines, or `own`, those of the lines of
each mask. Errors are relative L2 errors of the magnitude against the scan's own image from all lines, posterior mean,
recipe `local`. Masks that look at nothing are drawn three times; of regular lines there is one. The design begins with
as many lines as it does by default, and has three seeds where they make a difference: masks that are the same are
reconstructed once. `corrected-error` is the rule that designs went by before. Every cell is kept in lines-cells.csv,
and the same command goes on from there. Tables go to planned.md.

With --until designs end by a wanted error instead, as `mri-design design --until-error` has them: with the plan that
follows the number of lines that is expected, and line by line, as they were before. Both stand beside a design that is
told how many lines there are to be. Recipe `local`; cells are kept in until-cells.csv, tables go to until.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from coils import LOCAL, SCANS, error, image_of, middle_of
from parts.error_cases import scan_of, truths
from parts.pages import put_table

from mri_design.calibration.coils import held_back_coils
from mri_design.design.calibrated import Calibrated
from mri_design.design.strategy import DesignView, LineCandidates, rng_of_step
from mri_design.design.training import ReferenceSlice, relative_error
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.design import DesignOptions, ImageErrors, run_design
from mri_design.experiment.extent import DesignPlan, centre_for_maps, readouts_wanted, stop_rule
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import misfit_of_samples, reconstruct_by_recipe
from mri_design.experiment.strategies import make_strategy
from mri_design.model.slice import SliceModel
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.data import KSpaceData

FIXED = (
    "regular",
    "fastmri-equispaced",
    "vd-polynomial:2",
    "vd-polynomial:0 draw=systematic",
    "vd-polynomial:1 draw=systematic",
    "vd-polynomial:2 draw=systematic",
    "vd-polynomial:3 draw=systematic",
    "vd-polynomial:1 draw=golden",
)
CENTRES, CALIBRATED, DRAWS = (4, 6, 8, 12), 24, 3
RULES = ("calibrated", "corrected-error")
USUAL_SCANS = "8a-96,16-96,prescan16-64,6A_T2w-8-96,6B_T1w-16-96,7A_T1w-8-64,7B_T2w-32-64"


def named(folder: Path, name: str) -> KSpaceData:
    """A scan that has a name in `coils.SCANS`, or the simulation that the name describes."""
    if name in SCANS:
        return middle_of(folder, name, LOCAL, SCANS[name][1])
    subject, coils, side = name.rsplit("-", 2)
    return middle_of(folder, name, LOCAL, int(side), f"mag3T_{subject}.npz", coils=int(coils))


def fixed_lines(seen: SliceModel, name: str, count: int, centre: int, draw: int) -> tuple[int, ...]:
    """A fixed set with that many centre lines."""
    strategy, size = make_strategy(name), seen.candidates.size
    for field, value in {"centre": centre, "centre_fraction": centre / size}.items():
        if hasattr(strategy, field):
            strategy = replace(strategy, **{field: value})  # type: ignore[type-var]
    start = tuple(range(size // 2 - centre // 2, size // 2 - centre // 2 + centre))
    candidates = LineCandidates(np.ones(size, dtype=bool), start, count, n_start=centre)
    while len(candidates.acquired) < count:
        rng = rng_of_step(draw, len(candidates.chosen))
        candidates = candidates.after(strategy.choose(DesignView(candidates), rng).line)
    return candidates.acquired


def designed_lines(seen: SliceModel, rule: str, count: int, seed: int, recipe: Recipe = LOCAL) -> tuple[int, ...]:
    """The lines of a design as `mri-design design` begins and continues it."""
    strategy = make_strategy(rule)
    least = centre_for_maps(strategy, recipe, count, n_coils=seen.n_coils) if seen.own_maps is not None else 0
    plan = DesignPlan.of(strategy, recipe, seen.candidates)
    start = plan.start_lines(np.ones(seen.candidates.size, dtype=bool), count, least, seen.n_coils)
    return run_design([seen], strategy, count, recipe, start=start, seed=seed).trace.lines


def cell_rows(image: ReferenceSlice, acceleration: float, kind: str) -> Iterator[Row]:
    """A row for each mask and number of centre lines, with the mean and the largest error of its draws."""
    seen = image.slice_model if kind == "known" else image.as_measured
    count = readouts_wanted(seen.candidates.size, acceleration)
    known: dict[frozenset[int], float] = {}

    def of(lines: Sequence[int]) -> float:
        key = frozenset(lines)
        if key not in known:
            known[key] = error(image, seen, lines, LOCAL)
        return known[key]

    for name, centre in product(FIXED, (*CENTRES, CALIBRATED)):
        if centre < count:
            draws = 1 if name == "regular" else DRAWS
            errors = [of(fixed_lines(seen, name, count, centre, draw)) for draw in range(draws)]
            yield _row(name, centre, errors)
    for rule in RULES:
        began = time.process_time()
        sets = [designed_lines(seen, rule, count, seed) for seed in range(DRAWS)]
        seconds = (time.process_time() - began) / DRAWS
        yield _row(rule, 0, [of(lines) for lines in sets]) | {"seconds": round(seconds, 3)}
    if kind == "known":
        for factor in (0.5, 2.0):  # of the standard deviation that the design is told
            told = replace(seen, noise_variance=seen.noise_variance * factor**2)
            yield _row(f"noise x {factor:g}", 0, [of(designed_lines(told, RULES[0], count, 0))])


def _row(mask: str, centre: int, errors: Sequence[float]) -> Row:
    return {"mask": mask, "centre": centre, "error": float(np.mean(errors)), "worst": max(errors), "seconds": ""}


Cells = dict[tuple[str, str, str], dict[tuple[str, int], float]]


def cells_of(rows: Sequence[Row], column: str = "error") -> Cells:
    """Errors by scan, acceleration and kind of maps, then by mask and centre lines."""
    cells: Cells = {}
    for row in rows:
        key = (str(row["scan"]), str(row["acceleration"]), str(row["maps"]))
        if row[column] != "":
            cells.setdefault(key, {})[str(row["mask"]), int(str(row["centre"]))] = float(str(row[column]))
    return cells


def chosen_beforehand(cells: Cells, scan: str, acceleration: str, maps: str) -> tuple[str, int] | None:
    """The fixed set with the least mean log error, of the same acceleration and maps, on the other scans."""
    others = [cell for (s, a, m), cell in cells.items() if s != scan and (a, m) == (acceleration, maps)]
    shared = [mask for mask in others[0] if mask[0] in FIXED and all(mask in cell for cell in others)] if others else []
    return min(shared, key=lambda mask: np.mean([np.log(cell[mask]) for cell in others])) if shared else None


def compared(rows: Sequence[Row]) -> list[Row]:
    """A row for each cell: the design's change of error, in percent, against each of its rivals."""
    cells, table = cells_of(rows), list[Row]()
    seconds = cells_of(rows, "seconds")
    for (scan, acceleration, maps), cell in cells.items():
        designed = cell[RULES[0], 0]
        few = {mask: found for mask, found in cell.items() if mask[0] in FIXED and mask[1] in CENTRES}
        many = [found for mask, found in cell.items() if mask[0] in FIXED and mask[1] == CALIBRATED]
        best, before = min(few, key=few.__getitem__), chosen_beforehand(cells, scan, acceleration, maps)

        def change(rival: float | None, designed: float = designed) -> float | str:
            return "" if rival is None else 100 * (designed / rival - 1)

        known = cells.get((scan, acceleration, "known"), {}).get((RULES[0], 0))
        spent = seconds[scan, acceleration, maps]
        row: Row = {"scan": scan, "acceleration": acceleration, "maps": maps, "designed": designed}
        row |= {"best_fixed": few[best], "best_fixed_mask": "{}, {} centre lines".format(*best)}
        row |= {"against_best": change(few[best]), "against_beforehand": change(cell.get(before) if before else None)}
        row |= {"against_rule_before": change(cell[RULES[1], 0]), "against_24": change(min(many) if many else None)}
        row |= {"own_over_known": change(known) if maps == "own" else ""}
        for factor in ("0.5", "2"):
            told = cell.get((f"noise x {factor}", 0))
            row |= {f"noise x {factor}": "" if told is None else 100 * (told / designed - 1)}
        table.append(row | {"seconds_over_before": spent[RULES[0], 0] / spent[RULES[1], 0]})
    return table


FOLDED_MASK = "vd-polynomial:1 draw=systematic"
FOLDED = (
    *(("6A_T2w", 8), ("6B_T1w", 16), ("7A_T1w", 8), ("7B_T2w", 16)),
    *(("6A_T1w", 16), ("6B_T2w", 8), ("7A_T2w", 16), ("7B_T1w", 8)),
)
"""Heads that are cut, and their coils; the first four were in view when the rule for two sets of maps was made."""
FITTING = f"{USUAL_SCANS},pfile8-96,ffe12-88,8a-64,6A_T1w-16-64,6B_T2w-8-96,7A_T2w-32-96,7B_T1w-16-96"


def folded(folder: Path, subject: str, coils: int) -> KSpaceData:
    """A head whose field of view of 128 lines is cut to three quarters, so that what lies beyond folds in."""
    whole = middle_of(folder, subject, LOCAL, 128, f"mag3T_{subject}.npz", coils=coils)
    images = to_image(whole.kspace)
    cut = images[:, :, 16:-16].copy()
    cut[:, :, -16:] += images[:, :, :16]
    cut[:, :, :16] += images[:, :, -16:]
    return replace(whole, kspace=to_kspace(cut), measured=np.ones(96, dtype=bool))


def folded_rows(folder: Path) -> Iterator[Row]:
    """Heads that fold: errors with one set of maps, and as the program makes the image, means of three masks.

    They are against the root-sum-of-squares of all coil images, which holds what folds.
    """
    for (subject, coils), kind in product(FOLDED, ("known", "own")):
        scan = folded(folder, subject, coils)
        truth, image = np.linalg.norm(to_image(scan.kspace)[0], axis=0), image_of(scan, LOCAL)
        single = image_of(scan, LOCAL.replacing("coils", maps="espirit")).slice_model
        for acceleration in (4, 6):
            found = []
            for draw in range(DRAWS):
                seen = image.slice_model if kind == "known" else image.as_measured
                lines = fixed_lines(seen, FOLDED_MASK, 96 // acceleration, 8, draw)
                one = seen.calibrated(lines, rough=True) if kind == "own" else single
                seen = seen.calibrated(lines)
                plain = LOCAL.inference.engine().infer(one.model(lines), np.random.default_rng(draw))
                pairs = ((plain.mean, one), (reconstruct_by_recipe(seen, lines, LOCAL, draw).image, seen))
                errors = [relative_error(each * image.unit_of(model), truth) for each, model in pairs]
                found.append((misfit_of_samples(plain), seen.second_maps is not None, *errors))
            misfit, two, before, after = np.mean(found, axis=0)
            row: Row = {"subject": subject, "coils": coils, "maps": kind, "acceleration": acceleration}
            row |= {"misfit, one set": misfit, "two sets": f"{two * DRAWS:.0f} of {DRAWS}"}
            row |= {"error, one set": before, "error": after, "change": 100 * (after / before - 1)}
            yield row | {"worst change": max(100 * (new / old - 1) for *_, old, new in found)}


def fitting_rows(folder: Path, scans: str = FITTING) -> Iterator[Row]:
    """Scans that fit their field of view: of how many masks, 3x to 8x with 4 and 8 centre lines, they get two sets."""
    for name in scans.split(","):
        seen, sets = image_of(named(folder, name), LOCAL).as_measured, list[int]()
        for acceleration, centre, draw in product((3, 4, 6, 8), (4, 8), range(DRAWS)):
            count = readouts_wanted(seen.candidates.size, acceleration)
            samples = seen.grid_samples(fixed_lines(seen, FOLDED_MASK, count, centre, draw))
            sets.append(held_back_coils(seen.kspace, samples, seen.noise_variance, whole=True)[1])
        yield {"scan": name, "masks": len(sets), "two sets": sets.count(2)}


UNTIL, UNTIL_SEEDS = (0.10, 0.07), (0,)
UNTIL_SCANS = {
    "head-16ch": 16,
    "8a-96": 8,
    "prescan16-64": 16,
    "7A_T1w-8-96": 8,
    "7A_T2w-16-64": 16,
    "7B_T1w-4-96": 4,
    "3T 18": 16,
    "7A fse": 8,
}
"""Scans that designs end on by an error, and their coils; names with a space are of `truths`, with 96 lines."""


def until_image(folder: Path, name: str) -> ReferenceSlice:
    """A scan whose coil maps are not known, and the image that it is judged by: its own, or the truth behind it."""
    if name == "head-16ch":
        return image_of(load_scan(f"phantom:{name}", LOCAL, 0).select_slice(0), LOCAL)
    if " " not in name:
        return image_of(named(folder, name), LOCAL)
    (truth,) = (one for one in truths(folder, "test") if one.name == name)
    made = scan_of(truth, truth.image, np.random.default_rng(len(name)), 96, truth.noise, UNTIL_SCANS[name]).prepared
    return image_of(replace(made, coil_maps=None), LOCAL)


def until_row(image: ReferenceSlice, wanted: float, seed: int, rule: Calibrated) -> Row:
    """Where a design ends, which error was predicted and found, and that of a design of so many lines."""
    seen = image.as_measured
    centre = centre_for_maps(rule, LOCAL, None, n_coils=seen.n_coils)
    start = DesignPlan.of(rule, LOCAL, seen.candidates).start_lines(seen.measured, None, centre, seen.n_coils)
    stop = stop_rule(LOCAL.replacing("design", until_error=wanted), rule, by_image=True)
    options = DesignOptions(stop=stop, closing=True, image_error=ImageErrors(LOCAL, seed))
    trace = run_design([seen], rule, seen.candidates.size, LOCAL, seed=seed, start=start, options=options).trace
    end, lines = trace.closing if trace.declined is None else trace.declined.forecast, trace.lines
    assert end is not None
    told = designed_lines(seen, "calibrated", len(lines), seed)
    found, known = (error(image, seen, each, LOCAL) for each in (lines, told))
    return {
        "lines": len(lines),
        "predicted": end.image_error,
        "error": found,
        "told": known,
        "over_told": found / known,
    }


def until_rows(folder: Path, name: str, seed: int) -> Iterator[Row]:
    """Rows of a scan, for every wanted error and rule."""
    image = until_image(folder, name)
    for wanted, planned in product(UNTIL, (True, False)):
        cell = {"scan": name, "wanted": wanted, "seed": seed, "rule": "planned" if planned else "line by line"}
        yield cell | until_row(image, wanted, seed, Calibrated(planned=planned))


def until_tables(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What both rules come to on average and at worst, and a row for each scan and wanted error, means of its seeds."""
    summary, table = list[Row](), list[Row]()
    for wanted, rule in product(UNTIL, ("line by line", "planned")):
        group = [row for row in rows if (float(str(row["wanted"])), row["rule"]) == (wanted, rule)]
        over = np.array([float(str(row["over_told"])) for row in group])
        found = np.array([float(str(row["error"])) for row in group]) / wanted
        made: Row = {"wanted": wanted, "rule": rule, "designs": len(group)}
        made |= {"lines": np.mean([float(str(row["lines"])) for row in group])}
        made |= {"found_over_wanted": np.mean(found), "worst_found": found.max()}
        summary.append(made | {"over_told": np.mean(over), "sd": over.std(), "worst_over_told": over.max()})
    for name, wanted in product(UNTIL_SCANS, UNTIL):
        row: Row = {"scan": name, "wanted": wanted}
        for rule, short in (("line by line", "before"), ("planned", "now")):
            cell = [
                one for one in rows if (one["scan"], float(str(one["wanted"])), one["rule"]) == (name, wanted, rule)
            ]
            for column in ("lines", "predicted", "error", "over_told"):
                row[f"{column}_{short}"] = np.mean([float(str(one[column])) for one in cell])
        table.append(row)
    return summary, table


TARGETS = {
    "against_best": "mean <= -4 %, worst <= +4 %, 85 % not worse",
    "against_beforehand": "mean <= -8 %",
    "against_rule_before": "mean <= -8 %",
    "noise x 0.5": "mean <= +3 %",
    "noise x 2": "mean <= +3 %",
    "against_24": "mean <= -20 %",
    "own_over_known": "mean <= +6 %, worst <= +15 %",
    "seconds_over_before": "<= 1.2",
}


def targets(table: Sequence[Row]) -> list[Row]:
    """A row for each rival and kind of maps: mean, spread and worst change, and in how many cells it is no loss."""
    made: list[Row] = []
    for (column, wanted), maps in product(TARGETS.items(), ("known", "own")):
        found = np.array([float(str(row[column])) for row in table if row["maps"] == maps and row[column] != ""])
        if len(found):
            spread = found.std(ddof=1) if len(found) > 1 else ""
            row: Row = {"against": column, "maps": maps, "target": wanted, "mean": found.mean(), "sd": spread}
            row |= {"worst": found.max(), "cells": len(found)}
            made.append(row | {"not_worse": "" if "seconds" in column else f"{(found <= 0).sum()} of {len(found)}"})
    return made


def measure_until(folder: Path, out: Path) -> None:
    """Measure the scans and seeds that are not there yet, and write the tables of ``--until``."""
    path = out / "until-cells.csv"
    rows: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    for seed, name in product(UNTIL_SEEDS, UNTIL_SCANS):
        if not any((row["scan"], str(row["seed"])) == (name, str(seed)) for row in rows):
            rows += until_rows(folder, name, seed)
            write_csv(path, rows)
    few = (
        "found_over_wanted",
        "worst_found",
        "over_told",
        "sd",
        "worst_over_told",
        "over_told_before",
        "over_told_now",
    )
    formats = dict.fromkeys(few, ".2f") | dict.fromkeys(("lines_before", "lines_now"), ".0f")
    formats |= dict.fromkeys(("predicted_before", "error_before", "predicted_now", "error_now"), ".3f")
    for heading, table in zip(("Both rules", "Scan by scan"), until_tables(rows), strict=True):
        put_table(out / "until.md", heading, table, None, formats | {"lines": ".1f"})


def main() -> None:
    """Measure the cells that are not there yet, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scans", default=USUAL_SCANS)
    parser.add_argument("--accelerations", type=lambda text: [float(a) for a in text.split(",")], default=[4, 6, 3, 8])
    parser.add_argument("--maps", default="known,own")
    parser.add_argument("--out", type=Path, default=Path("results/coils"))
    parser.add_argument("--folded", action="store_true", help="heads beyond their field of view alone")
    parser.add_argument("--until", action="store_true", help="designs that end by a wanted error alone")
    given = parser.parse_args()
    if given.until:
        measure_until(given.data, given.out)
        return
    if given.folded:
        formats = dict.fromkeys(("error, one set", "error"), ".4f") | {"misfit, one set": ".1f"}
        formats |= dict.fromkeys(("change", "worst change"), "+.0f")
        put_table(given.out / "planned.md", "Misfit", list(folded_rows(given.data)), None, formats)
        put_table(given.out / "planned.md", "Scans that fit", list(fitting_rows(given.data)))
        return
    path = given.out / "lines-cells.csv"
    rows: list[Row] = list(read_csv_texts(path)) if path.exists() else []
    for acceleration, name, kind in product(given.accelerations, given.scans.split(","), given.maps.split(",")):
        cell = {"scan": name, "acceleration": f"{acceleration:g}", "maps": kind}
        if not any(all(str(row[c]) == value for c, value in cell.items()) for row in rows):
            rows += [
                cell | dict(row) for row in cell_rows(image_of(named(given.data, name), LOCAL), acceleration, kind)
            ]
            write_csv(path, rows)
            print(json.dumps(cell), f"{time.process_time():.0f} s", flush=True)
    table, page = compared(rows), given.out / "planned.md"
    formats = dict.fromkeys(("designed", "best_fixed"), ".4f") | {"seconds_over_before": ".2f"}
    formats |= dict.fromkeys((c for c in TARGETS if "seconds" not in c), "+.1f")
    write_csv(given.out / "lines-targets.csv", targets(table))
    put_table(page, "Targets", targets(table), None, dict.fromkeys(("mean", "worst"), "+.2f") | {"sd": ".1f"})
    put_table(page, "Cell by cell", table, None, formats)


if __name__ == "__main__":
    main()
