"""What a non-local block of the prior does to the posterior mean: error, time and error bars, as a table in Markdown.

    python benchmarks/non_local.py DATA [--matrix 128] [--images 0,1,2,3,4,5] [--out results/benchmarks/non-local.md]
    python benchmarks/non_local.py DATA --held-out --out results/benchmarks/non-local-held-out.md

DATA is the folder of the study's scans (`study/split.py`). Only training subjects are used, or with ``--held-out`` only
test subjects, after all settings had been chosen. Every mask is reconstructed by the shipped recipe ``local`` and by
the default one, without what a scan chooses by lines held back (`phase_choice.py`). Masks are designed by
``calibrated``, or drawn at random with variable density.

``--noisy`` adds training heads with 4 and 12 times the noise, ``--coils`` training heads with 8 coils.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from study.scans import NOISE, Scan, combined, denoised, echo, raw, repeated, simulated, simulating
from study.split import COIL_TEST_HEADS, MIDDLE, TEST_HEADS, TEST_SUBJECTS, TRAINED_ON, TRAINING_SUBJECT

from mri_design.design.strategies.line_masks import VariableDensity
from mri_design.evaluation.metrics import relative_l2, relative_l2_complex
from mri_design.experiment.designing import run_design, start_lines
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.experiment.strategy_names import make_strategy

SHARES = (1 / 8, 1 / 4, 1 / 2)
KINDS = ("low-field", "hearts", "noisy", "coils")
GOOD = (0.7, 1.4)
"""Variance ratios that count as right."""
LOCAL = load_recipe("local")
NON_LOCAL = Recipe().replacing("phase", model="modulus").replacing("reconstruction", band_factors=False)
"""The default recipe without what a scan chooses by lines held back, which `phase_choice.py` measures."""


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
        """Of the error, in per cent."""
        return 100 * (self.non_local.error / self.local.error - 1)

    @property
    def complex_change(self) -> float:
        """Of the complex image's error, in per cent."""
        return 100 * (self.non_local.complex_error / self.local.complex_error - 1)

    @property
    def times(self) -> float:
        """Seconds of the non-local mean over those of the local one."""
        return self.non_local.seconds / self.local.seconds


def outcome(scan: Scan, lines: Sequence[int], recipe: Recipe) -> Outcome:
    """The posterior mean with error bars."""
    began = time.process_time()
    result = reconstruct(scan.prepared.slice_model(0, recipe), sorted(lines), "mean", recipe, np.random.default_rng(2))
    seconds = time.process_time() - began
    assert result.std is not None
    wrong = float(np.sum(np.abs(result.image - scan.reference) ** 2))
    error = relative_l2(result.image, scan.reference)
    ratio = float(np.sum(result.std.astype(float) ** 2)) / wrong
    factor = 1.0 if result.std_factor is None else result.std_factor.factor
    complex_error = relative_l2_complex(result.image, scan.reference)
    return Outcome(error, complex_error, seconds, ratio, ratio / factor**2)


def masks(scan: Scan, designed: bool) -> Iterator[tuple[str, list[int]]]:
    """Masks of several sizes; the shorter designed ones are the beginnings of the longest."""
    counts = [round(share * scan.n_lines) for share in SHARES]
    one = scan.prepared.slice_model(0, LOCAL)
    if designed:
        strategy = make_strategy("calibrated")
        start = start_lines(one.measured, strategy, counts[0], LOCAL)
        order = run_design([one], strategy, counts[-1], LOCAL, seed=0, start=start).trace.lines
        yield from (("calibrated", list(order[:count])) for count in counts)
    density = VariableDensity(family="polynomial", power=4.0)
    for count in counts:
        start = start_lines(one.measured, density, count, LOCAL)
        order = run_design([one], density, count, LOCAL, seed=0, start=start).trace.lines
        yield "random, variable density", list(order)


def document(pairs: Sequence[Pair], command: str, subjects: str = "training") -> str:
    """The page."""
    rows = [
        f"| {p.image} | {p.mask} | {p.lines} | {p.local.error:.4f} | {p.change:+.1f} "
        f"| {p.complex_change:+.1f} | {p.times:.1f} "
        f"| {p.local.unscaled:.2f} | {p.local.variance_ratio:.2f} "
        f"| {p.non_local.unscaled:.2f} | {p.non_local.variance_ratio:.2f} |"
        for p in pairs
    ]
    changes = {mask: [p.change for p in pairs if p.mask == mask] for mask in dict.fromkeys(p.mask for p in pairs)}
    kinds = {mask: [p.complex_change for p in pairs if p.mask == mask] for mask in changes}
    means = [
        f"- {mask}: {np.mean(of):+.1f} % on average over {len(of)} masks, {min(of):+.1f} to {max(of):+.1f} %; error of "
        f"the complex image {np.mean(kinds[mask]):+.1f} %, {min(kinds[mask]):+.1f} to {max(kinds[mask]):+.1f} %"
        for mask, of in changes.items()
    ]
    seconds = np.median([p.times for p in pairs])
    ratios = {
        "`local` before": [p.local.unscaled for p in pairs],
        "`local` after": [p.local.variance_ratio for p in pairs],
        "the default before": [p.non_local.unscaled for p in pairs],
        "the default after": [p.non_local.variance_ratio for p in pairs],
    }
    low, high = GOOD
    held = [
        f"- variance ratio of {name}: {min(of):.2f} to {max(of):.2f}, "
        f"in {100 * np.mean([low <= ratio <= high for ratio in of]):.0f} % of all from {low:g} to {high:g}"
        for name, of in ratios.items()
    ]
    return "\n".join(
        [
            "# Non-local differences",
            "",
            "Error of the posterior mean with the default recipe, without what a scan chooses by lines held back (that",
            f"is in phase-choice.md), against the recipe `local`, on {subjects} subjects.",
            "Error: relative L2 of the magnitude. Variance ratio: summed pixel variance over the squared error, before",
            "and after error bars are scaled to the predicted error; the scaling is in the seconds of both.",
            "Low-field truths were denoised by non-local means, which favours a non-local prior: judge them with care.",
            "Repeats are raw low-field scans judged by a second scan, whose noise is in all errors alike; magnitudes",
            "of a noisy reference are too large where the image is dark: there the complex error is the fair one, and",
            "variance ratios are too small. The raw brain of 16 coils is judged by its own complete image, with its",
            "noise.",
            "",
            f"    OMP_NUM_THREADS=1 {command}",
            "",
            *means,
            f"- processor time: {seconds:.1f} times those of `local` in the median",
            *held,
            "",
            "| image | mask | lines | error of `local` | change, % | complex, % | seconds | `local`: variance ratio "
            "| scaled | default: variance ratio | scaled |",
            "| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
        ]
    )


def scans(data: Path, matrix: int, images: Sequence[int], kinds: Collection[str]) -> list[Scan]:
    """Training heads, and what else is asked for: low field, hearts, noisy scans, coils."""
    allowed = range(int(TRAINED_ON.split("-")[0]), int(TRAINED_ON.split("-")[1]) + 1)
    chosen = [number for number in images if number in allowed]
    found = heads(data, chosen, simulating(matrix))
    if "low-field" in kinds:
        found += [denoised(data / f"lf_{TRAINING_SUBJECT}_{kind}.npy", 2, matrix) for kind in ("gre", "fse")]
    if "hearts" in kinds:
        found += [echo(data / "img_heart_complex.npz", index, matrix) for index in (0, 1)]
    if "noisy" in kinds:
        for times in (4, 12):
            found += _named(f"noise x {times}", heads(data, chosen[::2], simulating(matrix, times * NOISE)))
    if "coils" in kinds:
        found += _named("8 coils", heads(data, chosen[::2], simulating(matrix, coils=8)))
    return found


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
    """Compute and write the page, row by row on the screen."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--matrix", type=int, default=128)
    reader.add_argument("--images", default="0,1,2,3,4,5")
    for kind in KINDS:
        reader.add_argument(f"--{kind}", action="append_const", const=kind, dest="kinds", default=[])
    reader.add_argument("--held-out", action="store_true", help="test subjects, 128 x 128, in place of all else")
    reader.add_argument("--random-only", action="store_true", help="no designed masks, which take longest")
    reader.add_argument("--out", type=Path)
    given = reader.parse_args()
    pairs: list[Pair] = []
    images = [int(number) for number in given.images.split(",")]
    found = held_out(given.data) if given.held_out else scans(given.data, given.matrix, images, given.kinds)
    outcome(found[0], range(found[0].n_lines // 4, found[0].n_lines // 2), NON_LOCAL)  # compiles
    for scan in found:
        for mask, lines in masks(scan, not given.random_only):
            both = (outcome(scan, lines, recipe) for recipe in (LOCAL, NON_LOCAL))
            pairs.append(Pair(scan.name, mask, len(lines), *both))
            print(pairs[-1].image, mask, len(lines), f"{pairs[-1].change:+.1f} %", flush=True)
    command = f"python benchmarks/non_local.py DATA --matrix {given.matrix} --images {given.images}"
    command += "".join(f" --{kind}" for kind in given.kinds)
    command += " --random-only" * given.random_only
    if given.held_out:
        command = "python benchmarks/non_local.py DATA --held-out"
    text = document(pairs, command, "test" if given.held_out else "training")
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
