"""Cost of an image with error bars and of a step of a design, beside another version of this package in the same run.

    OMP_NUM_THREADS=1 python benchmarks/speed.py --against CHECKOUT --data ../shared/data/mri

runs both versions in turns, each in processes of its own, and leaves images.csv, steps.csv and the tables of README.md
in results/speed. CHECKOUT is a working tree of the version to compare with (`git worktree add CHECKOUT COMMIT`).
Seconds are those of the processor. Every turn has a seed of its own for the variances; medians over turns.
``--totals`` compares totals of variances with those of 400 plain draws (totals.csv); ``--targets`` writes the page and
targets.csv anew from the tables. ``--quick`` is a smoke run on a toy; ``--threads`` measures alone whether two threads
of a process make two images faster than one (threads.csv), by the clock: it needs two cores that nothing else uses.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from parts.pages import Kept, put_conditions, put_table
from parts.timed import CASES, PHANTOM, timed
from threadpoolctl import threadpool_limits

import mri_design as md
from mri_design.evaluation.tables import Row, read_csv_texts, write_csv
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.reconstruction import reconstruct_prepared

HERE = Path(__file__).parents[1]
DESIGNS = {
    "256 x 256, one coil": (256, 1, 32, 44),
    "128 x 128, 8 coils": (128, 8, 16, 28),
    "256 x 256, 8 coils": (256, 8, 32, 44),
    "256 x 256, 16 coils": (256, 16, 32, 44),
}
IMAGE_TARGETS = (
    (
        "here / there",
        "default image over before",
        {"head, 256": 0.75, "8 coils, 256": 0.52, "16 coils, 256": 0.62, "32 coils, 256": 0.40}
        | {"raw head, 8 coils, plane": 0.55},
    ),
    (
        "default / local, here",
        "default image over `local`",
        {"head, 128": 2.5, "phantom, 128": 4, "head, 256": 4, "low field, 256": 4},
    ),
    ("MAP, here / there", "MAP over before", {"head, 256": 0.30, "8 coils, 256": 0.20, "12 spirals, 128": 0.7}),
)
"""Columns of images.csv, the words for them, and what is wanted of which case."""
TOTALS = ("head, 128", "phantom, 128", "head, 256", "low field, 256", "8 coils, 256", "32 spokes, 128")
QUICK_DESIGNS = {"32 x 32, one coil": (32, 1, 8, 10)}


def image_row(case: str, checkouts: Mapping[str, Path], data: Path, turns: int) -> Row:
    """One case under both versions: medians over turns, and what became of error and variances."""
    found = {name: [] for name in checkouts}  # type: dict[str, list[dict[str, dict[str, object]]]]
    for seed in range(turns):
        for name, checkout in checkouts.items():
            found[name].append(timed(checkout, "image", case, seed, data))

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
            f"MAP, s, {name}": median(name, "map", "seconds"),
            f"products of MAP, {name}": median(name, "map", "products"),
        }
    if len(checkouts) > 1:
        both = list(zip(found["here"], found["there"], strict=True))

        def shares(recipe: str, what: str) -> list[float]:
            return [float(str(a[recipe][what])) / float(str(b[recipe][what])) for a, b in both]

        def changes(what: str, recipe: str = "default") -> list[float]:
            return [100 * (share - 1) for share in shares(recipe, what)]

        row |= {
            "here / there": statistics.median(shares("default", "seconds")),
            "MAP, here / there": statistics.median(shares("map", "seconds")),
            "error of MAP, change in %": statistics.mean(changes("error", "map")),
            "error, change in %": statistics.mean(changes("error")),
            "largest": max(changes("error"), key=abs),
            "variances, change in %": statistics.mean(changes("variance")),
        }
    return rounded(row)


def design_row(name: str, case: tuple[int, int, int, int], checkouts: Mapping[str, Path], turns: int) -> Row:
    """Seconds and products of a step of a design under both versions, and whether they take the same lines."""
    found = {
        version: [timed(checkout, "design", *case, 0) for _ in range(turns)] for version, checkout in checkouts.items()
    }
    steps = case[3] - case[2]
    row: dict[str, object] = {"design": name, "steps": steps}
    for version, runs in found.items():
        row[f"ms a step, {version}"] = 1e3 / steps * statistics.median(float(str(r["processor s"])) for r in runs)
        row[f"products, {version}"] = runs[0]["products"]
    if len(checkouts) > 1:
        row["here / there"] = float(str(row["ms a step, here"])) / float(str(row["ms a step, there"]))
        row["same lines"] = found["here"][0]["lines"] == found["there"][0]["lines"]
    return rounded(row)


def rounded(row: Row) -> Row:
    """Numbers to three digits."""
    return {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in row.items()}


def threads_row(matrix: int, coils: int, turns: int) -> Row:
    """Seconds by the clock of two images with error bars, one after the other and in two threads, in turns."""
    recipe = md.load_recipe(None).replacing("input", matrix=matrix).replacing("simulation", coils=coils)
    models = [
        md.calibrate(load_scan(PHANTOM, recipe, seed), recipe).slice_model(0, **recipe.slice_settings)
        for seed in range(2)
    ]
    away = abs(np.arange(matrix) - matrix // 2)
    lines = np.flatnonzero((away < matrix // 16) | (away % 6 == 0)).tolist()

    def image(model: md.SliceModel) -> np.ndarray:
        return reconstruct_prepared(model, lines, "mean", recipe, np.random.default_rng(0)).image

    found, images = {"one": list[float](), "two": list[float]()}, []
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        for turn in range(turns + 1):  # the first one compiles
            for name, apply in (("one", map), ("two", pool.map)):
                began = time.perf_counter()
                images.append(list(apply(image, models)))
                if turn:
                    found[name].append(time.perf_counter() - began)
    one, two = (statistics.median(seconds) for seconds in found.values())
    same = all(np.array_equal(images[0], each) for each in images)
    case = f"{matrix} x {matrix}, {'one coil' if coils == 1 else f'{coils} coils'}"
    return {"two images": case, "one after the other, s": one, "two threads, s": two, "ratio": one / two, "same": same}


def total_row(case: str, checkouts: Mapping[str, Path], data: Path, draws: int) -> Row:
    """How far the total of an image's variances is from that of many plain draws of the same posterior, in percent."""
    row: dict[str, object] = {"case": case, "draws": draws}
    for name, checkout in checkouts.items():
        found = timed(checkout, "total", case, draws, data)
        row[f"total off by, %, {name}"] = 100 * float(str(found["over"]))
        row[f"standard error, %, {name}"] = 100 * float(str(found["scatter"]))
    return row


def put_page(out: Path) -> None:
    """The tables of the page, and rows of targets.csv, from what has been measured."""
    page, targets = out / "README.md", Kept.at(out / "targets.csv", "what")
    images, steps, totals = (
        {row[key]: row for row in read_csv_texts(out / file)} if (out / file).is_file() else {}
        for file, key in (("images.csv", "case"), ("steps.csv", "design"), ("totals.csv", "case"))
    )

    def put(what: str, most: float, rows: Sequence[Mapping[str, str]], column: str, unit: str = "times") -> None:
        found = [abs(float(row[column])) for row in rows if row.get(column)]
        if found:
            met = "yes" if max(found) <= most else "no"
            given: Row = {"what": what, "target": f"<= {most:g}", "measured": f"{max(found):.3g}", "unit": unit}
            targets.put({**given, "met": met})

    for column, what, wanted in IMAGE_TARGETS:
        for case, most in wanted.items():
            put(f"{what}, {case}", most, [images.get(case, {})], column)
    for case in ("256 x 256, 8 coils", "256 x 256, 16 coils"):
        put(f"step of a design over before, {case}", 0.7, [steps.get(case, {})], "here / there")
    every = list(images.values())
    put(f"error of default images, mean change, largest of {len(every)}", 0.5, every, "error, change in %", "%")
    off = list(totals.values())
    what = f"totals of variances against 400 plain draws at 1e-6, largest of {len(off)} images"
    put(what, 2, off, "total off by, %, here", "%")
    tables = {"Images": images, "Steps of designs": steps, "Totals of variances": totals}
    for heading, rows in tables.items():
        put_table(page, heading, list(rows.values()))
    put_table(page, "Targets", list(targets.rows.values()))


def revision(checkout: Path) -> str:
    """The commit that a checkout stands at, with a mark where files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude", "*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="working tree of the version to compare with")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mri"), help="folder of the scans")
    parser.add_argument("--out", type=Path, default=HERE / "results/speed", help="folder for the results")
    parser.add_argument("--turns", type=int, default=3, help="turns, each with a seed of its own")
    parser.add_argument("--cases", nargs="*", help="rows of both tables that are measured anew; all by default")
    parser.add_argument("--quick", action="store_true", help="a smoke run on a toy")
    parser.add_argument("--threads", action="store_true", help="two images in one thread and in two, and nothing else")
    parser.add_argument("--totals", action="store_true", help="totals of variances against plain draws, and no more")
    parser.add_argument("--targets", action="store_true", help="write the page and targets.csv anew from the tables")
    chosen = parser.parse_args()
    if chosen.targets:
        return put_page(chosen.out)
    if chosen.threads:
        cases = [(32, 1)] if chosen.quick else [(128, 1), (128, 8)]
        rows = [threads_row(*case, 1 if chosen.quick else chosen.turns) for case in cases]
        write_csv(chosen.out / "threads.csv", rows)
        return put_table(chosen.out / "README.md", "Threads", rows, None, dict.fromkeys(rows[0], ".3g"))
    checkouts = {"here": HERE} | ({} if chosen.against is None else {"there": chosen.against})
    if chosen.totals:
        cases, draws = (["toy"], 8) if chosen.quick else (TOTALS, 400)
        kept = Kept.at(chosen.out / "totals.csv", "case")
        for case in cases:
            kept.put(rounded(total_row(case, checkouts, chosen.data, draws)))
        return put_page(chosen.out)
    turns = 1 if chosen.quick else chosen.turns
    images, steps = Kept.at(chosen.out / "images.csv", "case"), Kept.at(chosen.out / "steps.csv", "design")
    designs = QUICK_DESIGNS if chosen.quick else DESIGNS
    for case in chosen.cases or (["toy"] if chosen.quick else [name for name in CASES if name != "toy"]):
        if case in CASES:
            images.put(image_row(case, checkouts, chosen.data, turns))
    for name in chosen.cases or designs:
        if name in designs:
            steps.put(design_row(name, designs[name], checkouts, turns))
    put_page(chosen.out)
    commits = "".join(f"; {name} is commit {revision(checkout)}" for name, checkout in checkouts.items())
    put_conditions(chosen.out / "README.md", "mri-design", "numpy", "scipy", "numba", also=f"{commits}; {turns} turns")


if __name__ == "__main__":
    main()
