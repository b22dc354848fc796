"""What a non-local block of the prior does to the posterior mean: error, time and error bars, as a table in Markdown.

    python benchmarks/non_local.py DATA [--matrix 128] [--images 0,1,2,3,4,5] [--out results/benchmarks/non-local.md]

DATA is the folder of the study's scans (`study/split.py`); only training subjects are used. Every mask is reconstructed
by the default recipe and by the shipped recipe ``non-local``. Masks are designed by ``calibrated`` under the default
recipe, or drawn at random with variable density.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study.scans import Scan, denoised, simulated, simulating
from study.split import TRAINED_ON, TRAINING_SUBJECT

from mri_design.design.strategies.baselines import VariableDensity
from mri_design.evaluation.metrics import measure
from mri_design.experiment.designing import run_design, start_lines
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.experiment.strategy_names import make_strategy

SHARES = (1 / 8, 1 / 4, 1 / 2)
DEFAULT, NON_LOCAL = Recipe(), load_recipe("non-local")


@dataclass(frozen=True)
class Outcome:
    """One reconstruction: error of the magnitude, seconds of processor time, summed variance over squared error."""

    error: float
    seconds: float
    variance_ratio: float


@dataclass(frozen=True)
class Pair:
    """Both reconstructions of one mask."""

    image: str
    mask: str
    lines: int
    default: Outcome
    non_local: Outcome

    @property
    def change(self) -> float:
        """Of the error, in per cent."""
        return 100 * (self.non_local.error / self.default.error - 1)

    @property
    def times(self) -> float:
        """Seconds of the non-local mean over those of the default one."""
        return self.non_local.seconds / self.default.seconds


def outcome(scan: Scan, lines: Sequence[int], recipe: Recipe) -> Outcome:
    """The posterior mean with error bars."""
    began = time.process_time()
    result = reconstruct(scan.prepared.slice_model(0, recipe), sorted(lines), "mean", recipe, np.random.default_rng(2))
    seconds = time.process_time() - began
    assert result.std is not None
    wrong = float(np.sum(np.abs(result.image - scan.reference) ** 2))
    error = measure(result.image, scan.reference).relative_l2
    return Outcome(error, seconds, float(np.sum(result.std.astype(float) ** 2)) / wrong)


def masks(scan: Scan, designed: bool) -> Iterator[tuple[str, list[int]]]:
    """Masks of several sizes; the shorter designed ones are the beginnings of the longest."""
    counts = [round(share * scan.n_lines) for share in SHARES]
    one = scan.prepared.slice_model(0, DEFAULT)
    if designed:
        strategy = make_strategy("calibrated")
        start = start_lines(one.measured, strategy, counts[0], DEFAULT)
        order = run_design([one], strategy, counts[-1], DEFAULT, seed=0, start=start).trace.lines
        yield from (("calibrated", list(order[:count])) for count in counts)
    density = VariableDensity(family="polynomial", power=4.0)
    for count in counts:
        start = start_lines(one.measured, density, count, DEFAULT)
        order = run_design([one], density, count, DEFAULT, seed=0, start=start).trace.lines
        yield "random, variable density", list(order)


def document(pairs: Sequence[Pair], command: str) -> str:
    """The page."""
    rows = [
        f"| {p.image} | {p.mask} | {p.lines} | {p.default.error:.4f} | {p.change:+.1f} | {p.times:.1f} "
        f"| {p.default.variance_ratio:.2f} | {p.non_local.variance_ratio:.2f} |"
        for p in pairs
    ]
    changes = {mask: [p.change for p in pairs if p.mask == mask] for mask in dict.fromkeys(p.mask for p in pairs)}
    means = [
        f"- {mask}: {np.mean(of):+.1f} % on average over {len(of)} masks, {min(of):+.1f} to {max(of):+.1f} %"
        for mask, of in changes.items()
    ]
    seconds = np.median([p.times for p in pairs])
    return "\n".join(
        [
            "# Non-local differences",
            "",
            "Error of the posterior mean with the recipe `non-local` against the default's, on training subjects.",
            "Error: relative L2 of the magnitude. Variance ratio: summed pixel variance over the squared error.",
            "Low-field truths were denoised by non-local means, which favours a non-local prior: judge them with care.",
            "",
            f"    OMP_NUM_THREADS=1 {command}",
            "",
            *means,
            f"- processor time: {seconds:.1f} times the default's in the median",
            "",
            "| image | mask | lines | default's error | change, % | seconds | variance ratio, default | its own |",
            "| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
        ]
    )


def scans(data: Path, matrix: int, images: Sequence[int], low_field: bool) -> list[Scan]:
    """Training heads, and low-field scans of the training subject."""
    allowed = range(int(TRAINED_ON.split("-")[0]), int(TRAINED_ON.split("-")[1]) + 1)
    chosen = [number for number in images if number in allowed]
    found = simulated(data / "img_3T_complex.npz", chosen, simulating(matrix))
    if low_field:
        found += [denoised(data / f"lf_{TRAINING_SUBJECT}_{kind}.npy", 2, matrix) for kind in ("gre", "fse")]
    return found


def main() -> None:
    """Compute and write the page, row by row on the screen."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--matrix", type=int, default=128)
    reader.add_argument("--images", default="0,1,2,3,4,5")
    reader.add_argument("--low-field", action="store_true")
    reader.add_argument("--random-only", action="store_true", help="no designed masks, which take longest")
    reader.add_argument("--out", type=Path)
    given = reader.parse_args()
    pairs: list[Pair] = []
    images = [int(number) for number in given.images.split(",")]
    found = scans(given.data, given.matrix, images, given.low_field)
    outcome(found[0], range(found[0].n_lines // 4, found[0].n_lines // 2), NON_LOCAL)  # compiles
    for scan in found:
        for mask, lines in masks(scan, not given.random_only):
            both = (outcome(scan, lines, recipe) for recipe in (DEFAULT, NON_LOCAL))
            pairs.append(Pair(scan.name, mask, len(lines), *both))
            print(pairs[-1].image, mask, len(lines), f"{pairs[-1].change:+.1f} %", flush=True)
    command = f"python benchmarks/non_local.py DATA --matrix {given.matrix} --images {given.images}"
    command += " --low-field" * given.low_field + " --random-only" * given.random_only
    text = document(pairs, command)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
