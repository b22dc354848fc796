"""Designs that begin with an earlier scan of the same object, against others: a table.

    OMP_NUM_THREADS=1 python benchmarks/series.py DATA [--jobs 2] [--out results/benchmarks/series.md]

DATA is the folder of the study's scans; its test subjects are used (`study/split.py`). The earlier scan is the same
image with other noise. The scan to be measured is the image as it was, shifted, turned by three degrees, or that of
another object. The local posterior mean reconstructs every mask.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study.movements import MOVEMENTS, SAME
from study.scans import LOW_FIELD_NOISE, NOISE, Scan, denoised, simulated, simulating
from study.split import MIDDLE, TEST_SUBJECTS
from threadpoolctl import threadpool_limits

from mri_design.design.strategy import Strategy
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.tables import Row, markdown_text
from mri_design.experiment.designing import run_design
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import reconstruct_by_recipe
from mri_design.experiment.strategy_names import make_strategy
from mri_design.operators.base import Array
from mri_design.runs.design.earlier import EarlierImage, informed
from mri_design.runs.scans import knowing_oracle
from mri_design.scan.data import ImageStack
from mri_design.scan.io.atomic import write_text
from mri_design.scan.simulation.scanner import simulate_scan

MATRIX = 128
COUNTS = (16, 24, 32, 48)
DRAWS = 5
POWERS = (2.0, 3.0, 4.0, 6.0, 9.0)
HEADS = (7, 10, 12, 15, 18, 21)
"""Two of each test subject."""
RECIPE = load_recipe("local")


@dataclass(frozen=True)
class Source:
    """An image by its name, so that it can be made in another process."""

    kind: str
    index: int

    @property
    def noise(self) -> float:
        """Standard deviation per real component, relative to the image's 99.5th percentile."""
        return NOISE if self.kind == "head" else LOW_FIELD_NOISE

    def image(self, data: Path) -> Array:
        """The true image."""
        if self.kind == "head":
            return simulated(data / "img_3T_complex.npz", [self.index], simulating(MATRIX))[0].reference
        subject = TEST_SUBJECTS[self.index]
        return denoised(data / f"lf_{subject}_fse.npy", MIDDLE, MATRIX).reference


SOURCES = (*(Source("head", index) for index in HEADS), *(Source("low field", index) for index in range(3)))


def _scan(image: Array, noise: float, seed: int) -> Scan:
    stack = ImageStack(np.asarray(image, dtype=np.complex64)[None], "series")
    rng = np.random.default_rng([seed, 1])
    return Scan.of("series", simulate_scan(stack, matrix=None, noise=noise, phase="own", rng=rng))


def _errors(scan: Scan, lines: Sequence[int]) -> list[float]:
    slice_model = scan.prepared.slice_model(0, RECIPE)
    images = (reconstruct_by_recipe(slice_model, lines[:count], RECIPE, 0).image for count in COUNTS)
    return [measure(image, scan.reference).relative_l2 for image in images]


def _designed(scan: Scan, strategy: Strategy, seed: int) -> list[float]:
    slice_model = scan.prepared.slice_model(0, RECIPE)
    start = strategy.default_start(MATRIX, max(COUNTS), 1)
    trace = run_design([slice_model], strategy, max(COUNTS), RECIPE, seed=seed, start=start).trace
    return _errors(scan, trace.lines)


def _best_density(scan: Scan) -> list[float]:
    """The least mean error over draws, for every number of lines: the best power by hindsight."""
    slice_model = scan.prepared.slice_model(0, RECIPE)
    found: list[float] = []
    for count in COUNTS:
        errors: list[float] = []
        for power in POWERS:
            strategy = make_strategy(f"vd-polynomial:{power:g}")
            start = strategy.default_start(MATRIX, count, 1)
            draws = [
                run_design([slice_model], strategy, count, RECIPE, seed=draw, start=start).trace.lines
                for draw in range(DRAWS)
            ]
            images = [reconstruct_by_recipe(slice_model, lines, RECIPE, 0).image for lines in draws]
            errors.append(float(np.mean([measure(image, scan.reference).relative_l2 for image in images])))
        found.append(min(errors))
    return found


def errors_of(data: Path, source: Source) -> list[Row]:
    """Errors of all masks on one image and its changes."""
    rows: list[Row] = []

    def keep(change: str, mask: str, errors: Sequence[float]) -> None:
        name = f"{source.kind} {source.index}"
        rows.extend(
            {"scan": name, "change": change, "mask": mask, "lines": count, "error": error}
            for count, error in zip(COUNTS, errors, strict=True)
        )

    with threadpool_limits(1):
        image = source.image(data)
        before = _scan(image, source.noise, 1).prepared.slice_model(0, RECIPE)
        earlier = EarlierImage.of("earlier", before, RECIPE, np.random.default_rng(3))
        others = [other for other in SOURCES if other.kind != source.kind]
        changes = {name: change(image) for name, change in MOVEMENTS.items()}
        changes["another object"] = others[source.index % len(others)].image(data)
        for name, now in changes.items():
            scan = _scan(now, source.noise, 0)
            slice_model = scan.prepared.slice_model(0, RECIPE)
            plain = make_strategy("calibrated")
            start = range(MATRIX // 2 - 4, MATRIX // 2 + 4)
            keep(name, "calibrated", _designed(scan, plain, 0))
            keep(
                name,
                "calibrated, earlier scan seen",
                _designed(scan, informed([earlier], [slice_model], start, RECIPE, 0), 0),
            )
            if name == SAME:
                oracle = knowing_oracle("oracle-residual", [slice_model], [scan.reference], RECIPE, 0)
                keep(name, "oracle-residual", _designed(scan, oracle, 0))
                keep(name, "best density by hindsight", _best_density(scan))
    return rows


def table(rows: Sequence[Row], against: str) -> list[Row]:
    """Changes in per cent against a mask: mean over images at every number of lines, and the worst image."""
    found: list[Row] = []
    error = {(r["scan"], r["change"], r["mask"], r["lines"]): float(str(r["error"])) for r in rows}
    scans = list(dict.fromkeys(str(r["scan"]) for r in rows))
    for change, mask in dict.fromkeys((str(r["change"]), str(r["mask"])) for r in rows):
        if mask == against or (scans[0], change, against, COUNTS[0]) not in error:
            continue
        ratios = np.array(
            [
                [error[scan, change, mask, count] / error[scan, change, against, count] - 1 for count in COUNTS]
                for scan in scans
            ]
        )
        means = ratios.mean(axis=1)
        found.append(
            {"scan now": change, "mask": mask}
            | {
                f"{count} lines": f"{100 * value:+.1f} %"
                for count, value in zip(COUNTS, ratios.mean(axis=0), strict=True)
            }
            | {"worst image": f"{100 * means.max():+.1f} %", "better": f"{int((means < 0).sum())} of {len(scans)}"}
        )
    return found


TEXT = """# An earlier scan of the same object

`{command}`

Relative L2 error of the magnitude at {matrix} x {matrix}, change in per cent, mean over {images} images of test
subjects (two heads of each of three subjects, three low-field slices); `worst image` and `better` are means over the
numbers of lines. The earlier scan is the image with other noise; "another object" is a low-field slice after a head and
a head after a low-field slice. The local posterior mean reconstructs every mask, one design for each.

## Against `calibrated` without an earlier scan

{plain}

## Against the best polynomial density by hindsight

The power with the least mean error over {draws} draws on the very image, for every number of lines, out of {powers}.

{density}
"""


def main() -> None:
    """Measure, and write the page."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--jobs", type=int, default=2)
    reader.add_argument("--out", type=Path, default=Path("results/benchmarks/series.md"))
    given = reader.parse_args()
    rows: list[Row] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for done, found in enumerate(pool.map(errors_of, [given.data] * len(SOURCES), SOURCES), 1):
            rows += found
            print(f"{done} of {len(SOURCES)}", flush=True)
    text = TEXT.format(
        command="OMP_NUM_THREADS=1 python benchmarks/series.py DATA",
        matrix=MATRIX,
        images=len(SOURCES),
        draws=DRAWS,
        powers=", ".join(f"{power:g}" for power in POWERS),
        plain=markdown_text(table(rows, "calibrated")),
        density=markdown_text(table(rows, "best density by hindsight")),
    )
    write_text(given.out, text)


if __name__ == "__main__":
    main()
