"""``mri-design demo``: the main job on embedded data, in a few minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.options import Overwrite, Quiet, Seed
from mri_design.cli.terminal import ending, exits, kept_on_interruption, progress, say

__all__ = ["demo"]

SCAN = "phantom:lf-gre"
HEAD, TRAINING = "phantom:t2w", "phantom:t1w"
LINES = 64
MATRIX = 128
COUNTS = (24, 32, 48)
STRATEGIES = ("calibrated", "information-gain", "vd-polynomial", "fastmri-random", "low-pass")
DESIGN_FIGURES = {
    "mask": "The chosen lines: a filled centre, and gaps that grow outwards.",
    "order": "Which line was measured when.",
    "scores": "How much each candidate line would tell, step by step; the chosen one is marked.",
    "images": "The fully sampled scan, and the reconstruction from a third of its lines.",
    "std": "Error bars beside the actual difference (the full scan is itself noisy).",
    "calibration": "Every line was predicted before it was measured: on the diagonal the prediction was right.",
}
COMPARISON_FIGURES = {
    "error-curves": "Error against lines, lower is better.",
    "masks": "The masks side by side.",
    "reconstructions": "What each mask gives, same reconstruction for all.",
    "errors": "The errors, one scale.",
}
COMPARISON_TABLES = {
    "winners.csv": "Which strategy had the least mean error at each line count, which came second, and the first one's "
    "error relative to it.",
    "paired.csv": "Designed masks against the best of the others at each count: relative change of the error, negative "
    "is better. One test image proves nothing in general.",
    "summary.csv": "All strategies; lower relative_l2 is better.",
}


@exits
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("demo-run"),
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Design a real low-field brain scan line by line, then compare strategies on another head.

    Uses the embedded scans only. Ends with the report to open.
    """
    from mri_design.evaluation import RunFolder
    from mri_design.evaluation.comparison_run import compare_into
    from mri_design.evaluation.design_run import design_into
    from mri_design.evaluation.finished_run import finished_status
    from mri_design.evaluation.overview import RunSummary, save_overview
    from mri_design.experiment import load_recipe, scan_sources

    recipe = load_recipe(None)
    command = sys.argv[1:]
    with (
        kept_on_interruption(out / "design"),
        RunFolder(out, overwrite=overwrite) as folder,
        progress(quiet) as bar,
    ):
        finished_status(folder, "demo")  # the demo itself leaves no manifest: one that is there is another run's
        with RunFolder(out / "design", overwrite=overwrite) as scan_folder:
            first = design_into(
                scan_folder, SCAN, recipe, LINES, seed=seed, resume=not overwrite, command=command, show=bar.update
            )
        with RunFolder(out / "compare", overwrite=overwrite) as study:
            second = compare_into(
                study,
                scan_sources([HEAD], "middle"),
                recipe.replacing("simulation", matrix=MATRIX),
                strategies=STRATEGIES,
                lines=COUNTS,
                train=scan_sources([TRAINING], "middle"),
                seeds=3,
                seed=seed,
                jobs=2,
                command=command,
                show=bar.update,
            )
        runs = [
            RunSummary(
                "A scan, designed line by line",
                f"A real low-field head (0.055 T, gradient echo, one coil): {LINES} of 196 phase-encode lines, chosen "
                "one after another from the posterior over the image, and the image they give with its error bars.",
                out / "design",
                DESIGN_FIGURES,
                {"metrics.csv": "Errors are of the magnitude, relative to the fully sampled scan."},
            ),
            RunSummary(
                "Against other ways to sample",
                f"A 3 T head at {MATRIX} x {MATRIX}: k-space was simulated from its magnitude image, with smooth phase "
                "and noise added, so that the truth is known; the variable density was tuned on another head, and the "
                "fixed design (@train) comes from that head too.",
                out / "compare",
                COMPARISON_FIGURES,
                COMPARISON_TABLES,
            ),
        ]
        save_overview(folder, "mri-design demo", runs)
    say(f"Open {out / 'report.html'}", quiet)
    return ending(first, second)
