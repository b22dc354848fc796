"""Effect of the default recipe's prior on the posterior mean: error, time and error bars, as a page of tables.

    OMP_NUM_THREADS=1 python benchmarks/non_local.py DATA
    OMP_NUM_THREADS=1 python benchmarks/non_local.py DATA --held-out

DATA is the folder of the study's scans (`study/split.py`). Only training subjects are used (non-local.md in
results/benchmarks), or with ``--held-out`` only test subjects, after all settings had been chosen
(non-local-held-out.md). Every mask is reconstructed by the shipped recipe ``local`` and by the default one, without
what a scan chooses by lines held back. Masks are designed by ``calibrated``, or drawn at random with variable density.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from parts.pages import put_table
from study.scans import NOISE, Scan, combined, denoised, echo, raw, repeated, simulated, simulating
from study.split import COIL_TEST_HEADS, MIDDLE, TEST_HEADS, TEST_SUBJECTS, TRAINING_SUBJECT

from mri_design.design.strategies.line_masks import VariableDensity
from mri_design.evaluation.metrics import measure, relative_l2
from mri_design.evaluation.tables import Row
from mri_design.experiment.designing import run_design
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct_prepared
from mri_design.experiment.starting import start_lines
from mri_design.experiment.strategy_names import make_strategy

SHARES = (1 / 8, 1 / 4, 1 / 2)
GOOD = (0.7, 1.4)
"""Variance ratios that count as right."""
LOCAL = load_recipe("local")
NON_LOCAL = Recipe().replacing("phase", model="modulus").replacing("reconstruction", band_factors=False)
"""The default recipe without what a scan chooses by lines held back."""


@dataclass(frozen=True)
class Outcome:
    """One reconstruction: errors of magnitude and complex image, seconds of processor time, variance ratio.

    That is the summed variance over the squared error; the second is the posterior's own, before it is scaled. Both
    errors are relative to the reference.
    """

    error: float
    complex_error: float
    seconds: float
    variance_ratio: float
    unscaled: float


@dataclass(frozen=True)
class Pair:
    """Both reconstructions of one mask."""

    image: str
    mask: str
    lines: int
    local: Outcome
    non_local: Outcome

    @property
    def change(self) -> float:
        """Change of the error, in per cent."""
        return 100 * (self.non_local.error / self.local.error - 1)

    @property
    def complex_change(self) -> float:
        """Change of the complex image's error, in per cent."""
        return 100 * (self.non_local.complex_error / self.local.complex_error - 1)

    @property
    def times(self) -> float:
        """Seconds of the non-local mean over those of the local one."""
        return self.non_local.seconds / self.local.seconds


def outcome(scan: Scan, lines: Sequence[int], recipe: Recipe) -> Outcome:
    """The posterior mean with error bars."""
    began = time.process_time()
    result = reconstruct_prepared(
        scan.prepared.slice_model(0, recipe), sorted(lines), "mean", recipe, np.random.default_rng(2)
    )
    seconds = time.process_time() - began
    assert result.std is not None
    wrong = float(np.sum(np.abs(result.image - scan.reference) ** 2))
    error = relative_l2(result.image, scan.reference)
    ratio = float(np.sum(result.std.astype(float) ** 2)) / wrong
    factor = 1.0 if result.std_factor is None else result.std_factor.factor
    complex_error = measure(result.image, scan.reference).relative_l2_complex
    return Outcome(error, complex_error, seconds, ratio, ratio / factor**2)


def masks(scan: Scan) -> Iterator[tuple[str, list[int]]]:
    """Masks of several sizes; the shorter designed ones are the beginnings of the longest."""
    counts = [round(share * scan.n_lines) for share in SHARES]
    one = scan.prepared.slice_model(0, LOCAL)
    strategy = make_strategy("calibrated")
    start = start_lines(one.measured, strategy, counts[0], LOCAL)
    order = run_design([one], strategy, counts[-1], LOCAL, seed=0, start=start).trace.lines
    yield from (("calibrated", list(order[:count])) for count in counts)
    density = VariableDensity(family="polynomial", power=4.0)
    for count in counts:
        start = start_lines(one.measured, density, count, LOCAL)
        order = run_design([one], density, count, LOCAL, seed=0, start=start).trace.lines
        yield "random, variable density", list(order)


def row_of(pair: Pair) -> Row:
    """A row of the table by masks."""
    return {
        "image": pair.image,
        "mask": pair.mask,
        "lines": pair.lines,
        "error of `local`": f"{pair.local.error:.4f}",
        "change, %": f"{pair.change:+.1f}",
        "complex, %": f"{pair.complex_change:+.1f}",
        "seconds": f"{pair.times:.1f}",
        "`local`: variance ratio": f"{pair.local.unscaled:.2f}",
        "scaled": f"{pair.local.variance_ratio:.2f}",
        "default: variance ratio": f"{pair.non_local.unscaled:.2f}",
        "default: scaled": f"{pair.non_local.variance_ratio:.2f}",
    }


def summary(pairs: Sequence[Pair]) -> list[Row]:
    """By kind of mask: changes, time, and how often error bars are about right."""
    rows: list[Row] = []
    for mask in dict.fromkeys(pair.mask for pair in pairs):
        of = [pair for pair in pairs if pair.mask == mask]
        changes = [pair.change for pair in of]
        right = [GOOD[0] <= pair.non_local.variance_ratio <= GOOD[1] for pair in of]
        rows.append(
            {
                "mask": mask,
                "masks": len(of),
                "change, %": float(np.mean(changes)),
                "best": min(changes),
                "worst": max(changes),
                "complex, %": float(np.mean([pair.complex_change for pair in of])),
                "times as long, median": float(np.median([pair.times for pair in of])),
                f"scaled variance ratio from {GOOD[0]:g} to {GOOD[1]:g}, %": 100 * float(np.mean(right)),
            }
        )
    return rows


def training(data: Path) -> list[Scan]:
    """Heads, low field and hearts; heads with 4 and 12 times the noise, and with 8 coils."""
    chosen = (0, 2, 4)
    found = heads(data, chosen, simulating(128))
    found += [denoised(data / f"lf_{TRAINING_SUBJECT}_{kind}.npy", MIDDLE, 128) for kind in ("gre", "fse")]
    found += [echo(data / "img_heart_complex.npz", index, 128) for index in (0, 1)]
    for times in (4, 12):
        found += _named(f"noise x {times}", heads(data, chosen[::2], simulating(128, times * NOISE)))
    return found + _named("8 coils", heads(data, chosen[::2], simulating(128, coils=8)))


def heads(data: Path, indices: Sequence[int], recipe: Recipe) -> list[Scan]:
    """Some heads, with the recipe's noise and coils."""
    return simulated(data / "img_3T_complex.npz", indices, recipe)


def _named(what: str, found: Sequence[Scan]) -> list[Scan]:
    return [replace(scan, name=f"{scan.name}, {what}") for scan in found]


def held_out(data: Path) -> list[Scan]:
    """Two heads of each test subject, low field of two, later echoes of the heart, the 16-coil brain combined; repeats.

    Then with several coils: a head of each test subject with 8, and the raw brain with its 16.
    """
    found = heads(data, TEST_HEADS[::2], simulating(128))
    for who in TEST_SUBJECTS[:2]:
        found += [denoised(data / f"lf_{who}_{kind}.npy", MIDDLE, 128) for kind in ("gre", "fse")]
    found += [echo(data / "img_heart_complex.npz", index, 128) for index in (2, 3)]
    found += [combined(data / "mc_brain_cimax16.npy", 128)]
    found += _named("noise x 4", heads(data, TEST_HEADS[1::4], simulating(128, 4 * NOISE)))
    found += _named("repeat", [repeated(data / f"lf_S3B_flair_{room}.npy", MIDDLE) for room in ("cage", "nocage")])
    found += _named("8 coils", heads(data, COIL_TEST_HEADS[8], simulating(128, coils=8)))
    return [*found, *_named("16 coils", [raw(data / "mc_brain_cimax16.npy")])]


def main() -> None:
    """Compute, row by row on the screen, and write."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--held-out", action="store_true", help="test subjects")
    reader.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    given = reader.parse_args()
    pairs: list[Pair] = []
    found = held_out(given.data) if given.held_out else training(given.data)
    outcome(found[0], range(found[0].n_lines // 4, found[0].n_lines // 2), NON_LOCAL)  # compiles
    for scan in found:
        for mask, lines in masks(scan):
            both = (outcome(scan, lines, recipe) for recipe in (LOCAL, NON_LOCAL))
            pairs.append(Pair(scan.name, mask, len(lines), *both))
            print(pairs[-1].image, mask, len(lines), f"{pairs[-1].change:+.1f} %", flush=True)
    page = given.out / ("non-local-held-out.md" if given.held_out else "non-local.md")
    put_table(page, "By kind of mask", summary(pairs), None, {name: ".1f" for name in summary(pairs)[0]})
    put_table(page, "Every mask", [row_of(pair) for pair in pairs])


if __name__ == "__main__":
    main()
