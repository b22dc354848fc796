"""Error bars held against errors: images whose truth is known, what is learnt from them, and the targets.

    OMP_NUM_THREADS=1 python benchmarks/error_bars.py measure DATA [--numbers 0:45] [--encodings lines,plane]
    python benchmarks/error_bars.py learn
    OMP_NUM_THREADS=1 python benchmarks/error_bars.py cost DATA
    python benchmarks/error_bars.py targets

DATA is the folder of raw scans and images. ``measure`` reconstructs the cases of `parts.error_cases` by the default
recipe and keeps a row of images.csv for each: what is known at the end of the scan (the evidence), the actual error,
and how the error bars relate to it, pixel by pixel. What is there already is kept. Raw scans are judged by their own
complete image, whose noise is taken off the squared error where it was not measured for the image. ``learn`` fits the
weights of `SquaredErrorModel` to all images, and writes squared_error.json. ``targets`` leaves out one subject after
the other, predicts its images by what the others teach, and writes targets.csv and the tables of README.md.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from parts.error_cases import ENCODINGS, FURTHER, LOCAL, SPLITS, Case, case_of
from parts.pages import put_table

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.evidence import error_bars
from mri_design.evidence.error_bars import (
    ErrorEvidence,
    SquaredErrorModel,
    features,
    kind_of,
    shipped_squared_error_model,
)
from mri_design.experiment.reconstruction import Image, image_rng, reconstruct_prepared
from mri_design.operators.base import Array

OUT = Path(__file__).parents[1] / "results" / "error-bars"
UNTIL = OUT.parent / "reliability" / "until-error.csv"
"""Ends of designs by `benchmarks/until_error.py`."""
JSON = Path(error_bars.__file__).with_name("squared_error.json")
ENERGIES = (
    "variance",
    "noise",
    "from_held",
    "from_local",
    "from_alone",
    "missing",
)
KNOWN = (*ENERGIES, "share", "coils", "phase_aware", "gain")
HELD = {"count": "held_back"} | {name: name for name in ("found", "expected", "surprise", "by_ring")}
STRAIGHT, CURVED, REACH, NUGGET = 0.3, 0.5, 3.0, 0.1
"""Of the kernel: variances of straight and of curved parts, reach of the curved, and variance of what is left open."""
HUBER, PASSES = 1.5, 4
LEAST = 0.2
"""Share of the squared error that is left at least when a reference's noise is taken off."""


def sparsification(error: Array, std: Array) -> float:
    """Area between the errors left when the least certain pixels go first, and when the worst do.

    Root mean squared errors of what is left, over that of all pixels; 0 where error bars put pixels in the order of
    their errors.
    """
    squared = error.ravel().astype(float) ** 2
    count = np.arange(squared.size, 0, -1)

    def left(order: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.sqrt(np.cumsum(squared[order][::-1])[::-1] / count / squared.mean())

    apart = left(np.argsort(-std.ravel())) - left(np.argsort(-squared))
    return float(np.mean(apart[: int(0.99 * squared.size)]))


TIMES = np.geomspace(0.05, 50, 31)
"""Standard deviations of the posterior within which the fraction of pixels is kept."""


def outcome(error: Array, std: Array) -> Row:
    """How errors of pixels, (ky, kx), relate to error bars before they are scaled."""
    over = error / np.maximum(std, 1e-12)
    return {
        "sparsification": sparsification(error, std),
        "correlation": float(np.corrcoef(error.ravel(), std.ravel())[0, 1]),
        **{f"within {times:.3g}": float(np.mean(over <= times)) for times in TIMES},
    }


def coverage(row: Row, times: float, factor: float) -> float:
    """Fraction of pixels whose error is within so many standard deviations that were multiplied by a factor."""
    kept = [_number(row, f"within {each:.3g}") for each in TIMES]
    return float(np.interp(math.log(times * factor), np.log(TIMES), kept))


def row_of(case: Case, made: Image) -> Row:
    """The row of one image."""
    assert made.std is not None and made.std_factor is not None and made.std_factor.evidence is not None
    known, error = made.std_factor.evidence, np.abs(made.image - case.truth)
    return {
        "split": case.split,
        "encoding": case.encoding,
        "number": case.number,
        "group": case.group,
        "name": case.name,
        "mask": case.mask,
        "matrix": case.truth.shape[0],
        "readouts": len(case.lines),
        "raw": int(case.raw),
        "squared_error": float(np.sum(error.astype(float) ** 2)),
        "truth": float(np.sum(np.abs(case.truth).astype(float) ** 2)),
        **{name: float(getattr(known, name)) for name in KNOWN},
        **{f"held {name}": float(getattr(known, HELD[name])) if known.held_back else "" for name in HELD},
        **outcome(error, made.std / np.float32(made.std_factor.factor)),
    }


def short(row: Row) -> Row:
    """Numbers with six digits."""
    return {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}


def evidence_of(row: Row) -> ErrorEvidence:
    """What was known, from a row."""
    number = {name: float(str(row[name])) for name in KNOWN}
    held = {field: float(str(row[f"held {name}"])) for name, field in HELD.items() if row[f"held {name}"]}
    return ErrorEvidence(
        number["variance"],
        encoding=str(row["encoding"]).split(",")[0].replace("companion", "lines"),
        coils=int(number.pop("coils")),
        phase_aware=bool(number.pop("phase_aware")),
        local_variance=number.pop("variance"),
        held_back=int(held.pop("held_back", 0)),
        **held,
        **number,
    )


def squared_error_of(row: Row) -> float:
    """The squared error without what noise of a raw scan's own image adds to it.

    On what was measured for the image both have the same noise, which is no difference though it is an error.
    """
    found, noise, share = (float(str(row[name])) for name in ("squared_error", "noise", "share"))
    return max(found - (1 - 2 * share) * noise, LEAST * found) if int(str(row["raw"])) else found


def fitted(rows: Sequence[Row]) -> SquaredErrorModel:
    """Straight line and images alike, by a robust kernel ridge regression; subjects count by the root of their images.

    The kernel is that of a constant, of the features with `STRAIGHT` as the variance of their weights, and of a
    Gaussian in them, in units of their spread.
    """
    matrix = np.array([[*features(evidence_of(row)).values()] for row in rows])
    wanted = np.array([math.log(squared_error_of(row) / float(str(row["variance"]))) for row in rows])
    groups = [str(row["group"]) for row in rows]
    usual = np.array([1 / math.sqrt(groups.count(group)) for group in groups])
    usual /= usual.mean()
    mean, unit, level = matrix.mean(axis=0), matrix.std(axis=0), wanted.mean()
    mean[0], unit[unit == 0] = 0.0, 1.0
    straight = (matrix - mean)[:, 1:] / unit[1:]
    shipped = shipped_squared_error_model()
    lowest, highest = matrix.min(axis=0), matrix.max(axis=0)
    begun = replace(shipped, images=matrix, unit=unit, lowest=lowest, highest=highest, reach=REACH)
    alike = CURVED * np.array([begun.alike(row) for row in matrix])
    kernel = 1.0 + STRAIGHT * straight @ straight.T + alike
    trust = usual
    for _ in range(PASSES):
        found = np.linalg.solve(kernel + np.diag(NUGGET / trust), wanted - level)
        left = np.abs(NUGGET * found / trust)
        trust = usual * np.minimum(1, HUBER * 1.48 * np.median(left) / np.maximum(left, 1e-9))
    slopes = STRAIGHT * straight.T @ found / unit[1:]
    constant = level + found.sum() - mean[1:] @ slopes
    return replace(begun, weights=np.array([constant, *slopes]), pulls=CURVED * found)


def left_open(rows: Sequence[Row]) -> NDArray[np.float64]:
    """log(predicted / actual squared error) of every image, by what the other subjects teach."""
    groups = [str(row["group"]) for row in rows]
    found = np.empty(len(rows))
    for group in dict.fromkeys(groups):
        model = fitted([row for row, own in zip(rows, groups, strict=True) if own != group])
        for place, row in enumerate(rows):
            if groups[place] == group:
                found[place] = math.log(model.squared_error(evidence_of(row)) / squared_error_of(row))
    return found


def learn(rows: Sequence[Row], path: Path = JSON) -> None:
    """Fit, and write the weights, and what they leave open of subjects that are left out."""
    rows = with_held(rows)
    apart = left_open(rows)
    kinds = np.array([kind_of(evidence_of(row)) for row in rows])
    spread = {kind: float(np.quantile(np.abs(apart[kinds == kind]), 0.68)) for kind in dict.fromkeys(kinds.tolist())}
    model = fitted(rows)
    stored = {
        "made by": "python benchmarks/error_bars.py learn",
        "features": list(features(evidence_of(rows[0]))),
        "weights": [round(float(weight), 5) for weight in model.weights],
        "lowest": [round(float(low), 4) for low in model.lowest],
        "highest": [round(float(high), 4) for high in model.highest],
        "spread": {kind: round(each, 3) for kind, each in spread.items()},
        "reach": model.reach,
        "unit": [round(float(each), 4) for each in model.unit],
        "pulls": [round(float(pull), 4) for pull in model.pulls],
        "images": [[round(float(each), 3) for each in row] for row in model.images],
    }
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in stored.items())
    path.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def learnt_without(groups: Sequence[str]) -> SquaredErrorModel:
    """What the other subjects teach."""
    rows = [row for row in with_held(read_rows()) if row["group"] not in groups]
    return fitted(rows)


def with_held(rows: Sequence[Row]) -> list[Row]:
    """Images of which readouts could be held back."""
    return [row for row in rows if row["held count"] != ""]


def read_rows() -> list[Row]:
    """All that have been measured."""
    path = OUT / "images.csv"
    return [dict(row) for row in read_csv_texts(path)] if path.is_file() else []


def measure(data: Path, numbers: range, encodings: Sequence[str], splits: Sequence[str]) -> None:
    """Add what is not there yet."""
    rows = read_rows()
    have = {(row["split"], row["encoding"], str(row["number"])) for row in rows}
    for number in numbers:
        for encoding in encodings:
            for split in splits:
                if (split, encoding, str(number)) in have:
                    continue
                case = case_of(data, split, encoding, number)
                made = reconstruct_prepared(case.slice_model, case.lines, "mean", case.recipe, image_rng(number))
                if made.std_factor is None:
                    print(split, encoding, number, "nothing predicts the error", flush=True)
                    continue
                rows.append(short(row_of(case, made)))
                write_csv(OUT / "images.csv", rows)
                print(split, encoding, number, case.name, case.mask, len(case.lines), flush=True)


GROUPS = {
    "lines, one coil": ("lines", "lines, designed"),
    "lines, several coils": ("lines, coils", *FURTHER),
    "planes": ("plane", "plane, coils"),
    "spokes and spirals": ("shots", "shots, coils"),
    "lines, with a companion": ("companion",),
    "recipe local": LOCAL,
}
"""Rows of the table by what they are made of."""
WANTED = {
    "lines, one coil": (0.88, 0.8),
    "lines, several coils": (0.9, 0.85),
    "planes": (0.95, 0.9),
    "spokes and spirals": (0.85, 0.8),
    "lines, with a companion": (0.8, 0.75),
}
"""Shares of images whose total holds, and whose error is predicted within 15 %."""
INSIDE = (0.7, 1.4)


@dataclass(frozen=True)
class Judged:
    """Images of one kind, each predicted by what other subjects teach."""

    rows: Sequence[Row]
    log_ratios: NDArray[np.float64]

    @property
    def before(self) -> NDArray[np.float64]:
        """Sum of the posterior's variances over squared error."""
        return np.array([_number(row, "variance") / squared_error_of(row) for row in self.rows])

    def within(self, times: float) -> NDArray[np.float64]:
        """Fraction of every image's pixels within so many standard deviations."""
        factors = np.exp((self.log_ratios - np.log(self.before)) / 2)
        return np.array([coverage(row, times, f) for row, f in zip(self.rows, factors, strict=True)])

    @property
    def share_inside(self) -> float:
        """Images whose variances sum to .7 to 1.4 of the squared error."""
        return _inside(np.exp(self.log_ratios))

    @property
    def share_near(self) -> float:
        """Images whose error is predicted within 15 %."""
        return float(np.mean(np.abs(np.exp(self.log_ratios / 2) - 1) < 0.15))

    def mean(self, column: str) -> float:
        """Of a column, over images."""
        return float(np.mean([_number(row, column) for row in self.rows]))

    def row(self, name: str) -> Row:
        """Of the table."""
        ratio, within = np.exp(self.log_ratios), self.within(2)
        return {
            "images": name,
            "number": len(self.rows),
            "posterior in [.7, 1.4]": f"{_inside(self.before):.0%}",
            "scaled in [.7, 1.4]": f"{self.share_inside:.0%}",
            "least": f"{ratio.min():.2f}",
            "median": f"{np.median(ratio):.2f}",
            "largest": f"{ratio.max():.2f}",
            "error within 15 %": f"{self.share_near:.0%}",
            "within 2 sd": f"{within.mean():.1%}",
            "worst image": f"{within.min():.0%}",
            "below 88 %": int(np.sum(within < 0.88)),
            "sparsification": f"{self.mean('sparsification'):.3f}",
            "correlation": f"{self.mean('correlation'):.2f}",
        }

    def chosen(self, column: str, values: Sequence[str]) -> Judged:
        """Those with one of the values in a column."""
        places = [place for place, row in enumerate(self.rows) if row[column] in values]
        return Judged([self.rows[place] for place in places], self.log_ratios[places])


def _inside(ratio: NDArray[np.float64]) -> float:
    return float(np.mean((ratio >= INSIDE[0]) & (ratio <= INSIDE[1])))


def _number(row: Row, name: str) -> float:
    return float(str(row[name]))


def targets(rows: Sequence[Row]) -> None:
    """Write targets.csv and the tables of the page."""
    rows = with_held(rows)
    judged = Judged(rows, left_open(rows))
    groups = {name: judged.chosen("encoding", encodings) for name, encodings in GROUPS.items()}
    table = {name: group.row(name) for name, group in groups.items()}
    made: list[Row] = []

    def add(what: str, target: str, found: str, met: bool) -> None:
        made.append({"what": what, "target": target, "found": found, "met": met})

    for name, (total, error) in WANTED.items():
        group, of = groups[name], f"of {len(groups[name].rows)} images"
        for column, wanted, share in (
            ("scaled in [.7, 1.4]", total, group.share_inside),
            ("error within 15 %", error, group.share_near),
        ):
            add(f"{name}: {column}", f">= {wanted:.0%}", f"{share:.1%} {of}", share >= wanted)
        within = group.within(2)
        met = 0.94 <= within.mean() <= 0.97 and within.min() >= 0.88
        found = f"{within.mean():.1%}, worst {within.min():.1%}"
        add(f"{name}: pixels within 2 sd", "94 to 97 %, worst image >= 88 %", found, met)
    area, alike = (groups["lines, one coil"].mean(column) for column in ("sparsification", "correlation"))
    add("lines, one coil: sparsification error", "<= .15", f"{area:.3f}", area <= 0.15)
    add("lines, one coil: correlation of error and sd", ">= .42", f"{alike:.2f}", alike >= 0.42)
    for row in read_csv_texts(OUT / "coverage.csv"):
        level, found_level = float(row["level"]), float(row["coverage"])
        what = f"coverage after calibration on other subjects, {row['group']}, {row['encoding']}, {level:.0f} %"
        add(what, "within 2 points", f"{found_level:.1f} % of {row['judged']} images", abs(found_level - level) <= 2)
    stopped = [row for row in read_csv_texts(UNTIL) if row["kind"] == "lines, raw scans" and row["actual over wanted"]]
    ratios = np.array([float(row["actual over wanted"]) for row in stopped])
    share = float(np.mean((ratios >= 0.85) & (ratios <= 1.1)))
    what = "stopping at a wanted error, raw scans: actual over wanted in .85 to 1.1"
    add(what, ">= 85%", f"{share:.0%} of {len(ratios)} ends, median {np.median(ratios):.2f}", share >= 0.85)
    times = [float(row["median"]) for row in read_csv_texts(OUT / "cost.csv")]
    found_time = ", ".join(f"{each:.2f}" for each in times)
    add(f"processor time over the image without: {', '.join(ENCODINGS)}", "<= 1.35", found_time, max(times) <= 1.35)
    write_csv(OUT / "targets.csv", made)
    put_table(OUT / "README.md", "Targets", made)
    put_table(OUT / "README.md", "All subjects", list(table.values()))
    usual = judged.chosen("encoding", ENCODINGS)
    subjects = dict.fromkeys(str(row["group"]) for row in usual.rows)
    put_table(OUT / "README.md", "Subject by subject", [usual.chosen("group", [one]).row(one) for one in subjects])


def cost(data: Path, numbers: range) -> None:
    """Processor time of images with error bars over that of the same images without, by encoding."""
    made: list[Row] = []
    for encoding in ENCODINGS:
        found = []
        for number in numbers:
            case = case_of(data, "test", encoding, number)
            spent = []
            for with_std in (False, True, False, True):
                began = time.process_time()
                reconstruct_prepared(
                    case.slice_model, case.lines, "mean", case.recipe, image_rng(number), with_std=with_std
                )
                spent.append(time.process_time() - began)
            found.append(min(spent[1::2]) / min(spent[::2]))
        row: Row = {"images": encoding, "number": len(found), "median": f"{np.median(found):.2f}"}
        made.append(row | {"least": f"{min(found):.2f}", "largest": f"{max(found):.2f}"})
        print(made[-1], flush=True)
    write_csv(OUT / "cost.csv", made)
    put_table(OUT / "README.md", "Processor time", made)


def main() -> None:
    """One of the four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("measure")
    first.add_argument("data", type=Path)
    first.add_argument("--numbers", default="0:45")
    first.add_argument("--encodings", default=None, help="names with semicolons between")
    first.add_argument("--splits", default=",".join(SPLITS))
    verbs.add_parser("learn")
    timed = verbs.add_parser("cost")
    timed.add_argument("data", type=Path)
    verbs.add_parser("targets")
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if given.verb == "measure":
        low, high = map(int, given.numbers.split(":"))
        encodings = (*ENCODINGS, *LOCAL) if given.encodings is None else given.encodings.split(";")
        measure(given.data, range(low, high), encodings, given.splits.split(","))
    elif given.verb == "cost":
        cost(given.data, range(60, 64))
    elif given.verb == "learn":
        learn(read_rows())
    else:
        targets(read_rows())


if __name__ == "__main__":
    main()
