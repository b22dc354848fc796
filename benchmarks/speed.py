"""What an image with error bars and a step of a design cost, beside another version of this package in the same run.

    OMP_NUM_THREADS=1 python benchmarks/speed.py --against CHECKOUT --data ../shared/data/mri

runs both versions in turns, each in processes of its own, and leaves images.csv, steps.csv, targets.csv and README.md
in results/speed. CHECKOUT is a working tree of the version to compare with (`git worktree add CHECKOUT COMMIT`).
Seconds are those of the processor. Every turn has a seed of its own for the variances; medians over turns.
``--quick`` is a smoke run on a toy.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from design_time import revision
from parts.targets import COLUMNS, Target, largest, numbers, reported, smallest
from parts.timed_design import timed_design
from parts.timed_image import CASES, timed_image

from mri_design.evaluation.tables import Row, csv_text, markdown_text, read_csv
from mri_design.scan.io.atomic import write_text

HERE = Path(__file__).parents[1]
HEADS = ("head, 128", "phantom, 128", "head, 256")
LOW_FIELD = "low field, 256"
OTHERS = ("8 coils, 128", "plane, 128", "32 spokes, 128")
DESIGNS = {"256 x 256, one coil": (256, 1, 32, 44), "128 x 128, 8 coils": (128, 8, 16, 28)}
BART_ROW = "TV MAP 128x128, 8 coils, as shipped to a gap of 1e-3, times faster than BART pics -R T"
ELSEWHERE: tuple[tuple[str, float, bool, str, str, dict[str, object], str], ...] = (
    (
        "mri-design demo, nothing compiled before",
        *(60, False, "s of processor time", "speed/demo-seconds.csv"),
        *({"what": "the whole demo, nothing compiled before"}, "seconds"),
    ),
    (
        "make demo in a fresh clone",
        *(120, False, "s by the clock", "speed/demo-seconds.csv"),
        *({"what": "make demo in a fresh clone, by the clock"}, "seconds"),
    ),
    (
        "protocol of eight slices, two jobs against one",
        *(1.6, True, "times as fast", "scale/jobs.csv"),
        *({"work": "protocol, 8 slices", "way": "two jobs"}, "times as fast"),
    ),
    (
        "comparison of 32 slices, two workers of dask against one process",
        *(1.7, True, "times as fast", "scale/jobs.csv"),
        *({"work": "compare, 32 slices", "way": "dask, two workers"}, "times as fast"),
    ),
    (
        "share of a process that is neither design nor image, with a report",
        *(25, False, "%", "benchmarks/process-time.csv"),
        *({"version": "here", "image": "mean", "report": "report.html"}, "share that is neither, %"),
    ),
    (
        "share of a process that is neither design nor image, without a report",
        *(15, False, "%", "benchmarks/process-time.csv"),
        *({"version": "here", "image": "mean", "report": "--no-report"}, "share that is neither, %"),
    ),
    (
        "TV MAP as shipped against BART, 128 x 128, 8 coils, to a gap of 1e-3",
        *(5, True, "times as fast", "benchmarks/targets.csv"),
        *({"name": BART_ROW}, "measured"),
    ),
    (
        "TV MAP as shipped, 12 arms of a spiral, gap to the minimum, largest of three heads",
        *(1e-3, False, "of the objective", "speed/spirals-map.csv"),
        *({}, "gap"),
    ),
)
"""Name, target, whether more is better, unit, and where in results it is: file, rows, column; the worst counts."""
QUICK_DESIGNS = {"32 x 32, one coil": (32, 1, 8, 10)}


def image_row(case: str, checkouts: Mapping[str, Path], data: Path, turns: int) -> Row:
    """One case under both versions: medians over turns, and what became of error and variances."""
    found = {name: [] for name in checkouts}  # type: dict[str, list[dict[str, dict[str, object]]]]
    for seed in range(turns):
        for name, checkout in checkouts.items():
            found[name].append(timed_image(checkout, case, seed, data))

    def median(version: str, recipe: str, what: str) -> float:
        return statistics.median(float(str(turn[recipe][what])) for turn in found[version])

    def ratios(version: str) -> float:
        each = (float(str(t["default"]["seconds"])) / float(str(t["local"]["seconds"])) for t in found[version])
        return statistics.median(each)

    row: dict[str, object] = {"case": case, "model chosen": found["here"][0]["default"]["model"]}
    for name in checkouts:
        row |= {
            f"local, s, {name}": median(name, "local", "seconds"),
            f"default, s, {name}": median(name, "default", "seconds"),
            f"products, {name}": median(name, "default", "products"),
            f"default / local, {name}": ratios(name),
        }
    if len(checkouts) > 1:
        both = list(zip(found["here"], found["there"], strict=True))

        def changes(what: str) -> list[float]:
            each = ((float(str(a["default"][what])), float(str(b["default"][what]))) for a, b in both)
            return [100 * (here / there - 1) for here, there in each]

        shares = [float(str(a["default"]["seconds"])) / float(str(b["default"]["seconds"])) for a, b in both]
        row |= {
            "here / there": statistics.median(shares),
            "error, change in %": statistics.mean(changes("error")),
            "largest": max(changes("error"), key=abs),
            "variances, change in %": statistics.mean(changes("variance")),
        }
    return row


def design_row(name: str, case: tuple[int, int, int, int], checkouts: Mapping[str, Path], turns: int) -> Row:
    """Seconds and products of a step of a design under both versions, and whether they take the same lines."""
    found = {
        version: [timed_design(checkout, case, 0) for _ in range(turns)] for version, checkout in checkouts.items()
    }
    steps = case[3] - case[2]
    row: dict[str, object] = {"design": name, "steps": steps}
    for version, runs in found.items():
        row[f"ms a step, {version}"] = 1e3 / steps * statistics.median(float(str(r["processor s"])) for r in runs)
        row[f"products, {version}"] = runs[0]["products"]
    if len(checkouts) > 1:
        row["here / there"] = float(str(row["ms a step, here"])) / float(str(row["ms a step, there"]))
        row["same lines"] = found["here"][0]["lines"] == found["there"][0]["lines"]
    return row


def target_rows(images: Sequence[Row], steps: Sequence[Row]) -> list[Row]:
    """What was asked for, and what came out."""
    tables = {"images": images, "steps": steps}

    def worst(cases: Sequence[str], column: str) -> Target.measure:  # type: ignore[name-defined]
        return lambda rows: max((abs(v) for case in cases for v in numbers(rows, column, case=case)), default=None)

    over = "an image with error bars, default recipe over local"
    asked = [
        Target(f"{over}, {case}", 4.0, False, "times", "images", worst([case], "default / local, here"))
        for case in HEADS
    ]
    asked += [
        Target(f"{over}, {LOW_FIELD}", 5.0, False, "times", "images", worst([LOW_FIELD], "default / local, here")),
        Target(
            "change of its error, mean over seeds, largest of four images",
            *(0.3, False, "%", "images", worst((*HEADS, LOW_FIELD), "error, change in %")),
        ),
        Target(
            "change of the total of its variances, mean over seeds, largest of four images",
            *(2.0, False, "%", "images", worst((*HEADS, LOW_FIELD), "variances, change in %")),
        ),
    ]
    asked += [
        Target(
            f"an image with error bars against before, {case}",
            0.5,
            False,
            "times",
            "images",
            worst([case], "here / there"),
        )
        for case in OTHERS
    ]
    for row in steps:
        found = numbers([row], "here / there")
        asked.append(
            Target(
                f"a step of a design against before, {row['design']}",
                *(0.7, False, "times", "steps", lambda _, found=found: found[0] if found else None),
            )
        )
    rows = [target.row(tables) for target in asked]
    for case in OTHERS:
        found = numbers(images, "default / local, here", case=case)
        rows.append(reported(f"{over}, {case}", found[0] if found else None, "times"))
    return rows


def rows_of_other_pages(results: Path) -> list[Row]:
    """Targets of the same kind that other benchmarks measure, from the tables that they left."""
    rows: list[Row] = []
    for name, wanted, larger, unit, file, where, column in ELSEWHERE:
        table = read_csv(results / file) if (results / file).exists() else []
        worst = (smallest if larger else largest)(column, **where)
        rows.append(Target(name, wanted, larger, unit, file, worst).row({file: table}))
    return rows


def document(images: Sequence[Row], steps: Sequence[Row], targets: Sequence[Row], commits: str, turns: int) -> str:
    """The page."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    formats = {name: ".3g" for row in (*images, *steps) for name in row}
    return f"""# What an image with error bars and a design step cost

    OMP_NUM_THREADS=1 python benchmarks/speed.py --against CHECKOUT --data DATA

Processor seconds in processes that have compiled before, one thread, both versions in turns; {commits}. Medians of
{turns} turns, each with a seed of its own for the variances; {os.cpu_count()} cores, load averages {load}: where other
work shares the cores processor time grows, so compare ratios. An image has a quarter of its lines (a plane an eighth of
its samples, 32 spokes are all that there are) at random with variable density. Errors are relative L2 errors of the
magnitude; the total of the variances is the sum of squared standard deviations, as they are scaled.
What the demo costs [is a page of its own](demo.md) (`benchmarks/demo.py`); several jobs are measured [with the
scale](../scale/README.md) (`benchmarks/scale.py --only jobs`), shares of a process [with the
report](../benchmarks/report-time.md), MAP along spirals by `benchmarks/spirals_map.py`
([table](spirals-map.csv)), MAP with coils beside BART with [inference](../benchmarks/inference.md).

{markdown_text(targets, COLUMNS, {"measured": ".3g"})}
## Images

{markdown_text(images, None, formats)}
## Steps of designs

The default recipe, `phantom:t2w`.

{markdown_text(steps, None, formats)}"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="working tree of the version to compare with")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    parser.add_argument("--out", type=Path, default=HERE / "results/speed", help="folder for the results")
    parser.add_argument("--turns", type=int, default=3, help="turns, each with a seed of its own")
    parser.add_argument("--quick", action="store_true", help="a smoke run on a toy")
    chosen = parser.parse_args()
    checkouts = {"here": HERE} | ({} if chosen.against is None else {"there": chosen.against})
    turns = 1 if chosen.quick else chosen.turns
    images, steps = [], []
    for case in ["toy"] if chosen.quick else [name for name in CASES if name != "toy"]:
        images.append(image_row(case, checkouts, chosen.data, turns))
        sys.stderr.write(f"... {case}\n")
    for name, case in (QUICK_DESIGNS if chosen.quick else DESIGNS).items():
        steps.append(design_row(name, case, checkouts, turns))
        sys.stderr.write(f"... {name}\n")
    targets = [*target_rows(images, steps), *rows_of_other_pages(HERE / "results")]
    commits = "; ".join(f"`{name}` is commit {revision(checkout)}" for name, checkout in checkouts.items())
    chosen.out.mkdir(parents=True, exist_ok=True)
    for file, rows in (("images.csv", images), ("steps.csv", steps)):
        write_text(chosen.out / file, csv_text(rows))
    write_text(chosen.out / "targets.csv", csv_text(targets, COLUMNS))
    text = document(images, steps, targets, commits, turns)
    write_text(chosen.out / "README.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
