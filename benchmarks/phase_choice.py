"""What the choice by held-back lines and the factors of k-space bands do to the posterior mean, as a table in Markdown.

    python benchmarks/phase_choice.py DATA [--out results/benchmarks/phase-choice.md]
    python benchmarks/phase_choice.py DATA --held-out --out results/benchmarks/phase-choice-held-out.md

DATA is the folder of the study's scans (`study/split.py`). Only training subjects are used, or with ``--held-out`` only
test subjects, after all settings had been chosen. Masks are those of `non_local.py`. Every mask is reconstructed by the
default recipe under moduli, by the phase-aware model, and by the default recipe as it is, which chooses between the two
and corrects bands; then by the default recipe without the correction.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from non_local import held_out, masks, scans
from study.scans import Scan

from mri_design.evaluation.metrics import relative_l2, relative_l2_complex
from mri_design.evaluation.tables import markdown_text
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, reconstruct

PLAIN = Recipe().replacing("reconstruction", band_factors=False)
RECIPES = {
    "modulus": PLAIN.replacing("phase", model="modulus"),
    "phase-aware": PLAIN.replacing("phase", model="aware"),
    "chosen": PLAIN,
    "default": Recipe(),
}
KINDS = ("low-field", "hearts", "noisy", "coils")


@dataclass(frozen=True)
class Judged:
    """One reconstruction: its error, and seconds of processor time."""

    result: Reconstruction
    error: float
    complex_error: float
    seconds: float


@dataclass(frozen=True)
class Case:
    """All reconstructions of one mask, by the names of `RECIPES`."""

    scan: str
    mask: str
    lines: int
    by: dict[str, Judged]

    def change(self, name: str) -> float:
        """Of the error against moduli, in per cent."""
        return 100 * (self.by[name].error / self.by["modulus"].error - 1)

    def complex_change(self, name: str) -> float:
        """Of the complex image's error, in per cent."""
        return 100 * (self.by[name].complex_error / self.by["modulus"].complex_error - 1)

    @property
    def took_phase(self) -> bool:
        """Whether the scan chose the phase-aware model."""
        choice = self.by["default"].result.phase_choice
        return choice is not None and choice.phase is not None


def judged(scan: Scan, lines: Sequence[int], recipe: Recipe) -> Judged:
    """The posterior mean, without error bars."""
    began, one = time.process_time(), scan.prepared.slice_model(0, recipe)
    result = reconstruct(one, sorted(lines), "mean", recipe, np.random.default_rng(2), with_std=False)
    seconds = time.process_time() - began
    return Judged(
        result,
        relative_l2(result.image, scan.reference),
        relative_l2_complex(result.image, scan.reference),
        seconds,
    )


def document(cases: Sequence[Case], command: str, subjects: str) -> str:
    """The page."""
    better = [min(0.0, case.change("phase-aware")) for case in cases]
    totals = [
        {
            "mean": name,
            "masks": len(cases),
            "change, %": np.mean([case.change(name) for case in cases]),
            "complex, %": np.mean([case.complex_change(name) for case in cases]),
            "worst, %": max(case.change(name) for case in cases),
            "worse by more than 1 %": sum(case.change(name) > 1 for case in cases),
            "seconds": np.median([case.by[name].seconds / case.by["modulus"].seconds for case in cases]),
        }
        for name in RECIPES
        if name != "modulus"
    ]
    rows = [
        {
            "image": case.scan,
            "mask": case.mask,
            "lines": case.lines,
            "error of moduli": f"{case.by['modulus'].error:.4f}",
            "phase-aware, %": f"{case.change('phase-aware'):+.1f}",
            "taken": "yes" if case.took_phase else "no",
            "chosen, %": f"{case.change('chosen'):+.1f}",
            "share of band factors": f"{case.by['default'].result.band_strength or 0:.2f}",
            "default, %": f"{case.change('default'):+.1f}",
            "default, complex, %": f"{case.complex_change('default'):+.1f}",
        }
        for case in cases
    ]
    return "\n".join(
        [
            "# The model of the phase, chosen by lines held back",
            "",
            f"Error of posterior means against that of the default recipe under moduli, on {subjects} subjects: of the",
            "phase-aware model for every mask, of the model that lines held back choose, and of the default recipe,",
            "which also corrects bands of k-space by as much as these lines ask for. Seconds of processor time are",
            "ratios to moduli, medians. Error: relative L2 of the magnitude; beside it that of the complex image.",
            "",
            f"    OMP_NUM_THREADS=1 {command}",
            "",
            markdown_text(totals),
            "",
            f"The better of the two models for every mask, known only by hindsight: {np.mean(better):+.2f} %.",
            "",
            markdown_text(rows),
            "",
        ]
    )


def main() -> None:
    """Compute and write the page, row by row on the screen."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("data", type=Path)
    reader.add_argument("--held-out", action="store_true", help="test subjects")
    reader.add_argument("--random-only", action="store_true", help="no designed masks, which take longest")
    reader.add_argument("--out", type=Path)
    given = reader.parse_args()
    found = held_out(given.data) if given.held_out else scans(given.data, 128, range(6), KINDS)
    judged(found[0], range(found[0].n_lines // 4, found[0].n_lines // 2), Recipe())  # compiles
    cases: list[Case] = []
    for scan in found:
        for mask, lines in masks(scan, not given.random_only):
            made = {name: judged(scan, lines, recipe) for name, recipe in RECIPES.items()}
            cases.append(Case(scan.name, mask, len(lines), made))
            changes = ", ".join(f"{name} {cases[-1].change(name):+.1f} %" for name in RECIPES)
            print(scan.name, mask, len(lines), changes, flush=True)
    command = "python benchmarks/phase_choice.py DATA" + " --held-out" * given.held_out
    text = document(cases, command + " --random-only" * given.random_only, "test" if given.held_out else "training")
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
