"""``mri-design demo``: the main job on embedded data, in a few minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.options import Overwrite, Quiet, Seed
from mri_design.cli.terminal import ending, exits, kept_on_interruption, progress, say

__all__ = ["demo"]

HEAD, TRAINING = "phantom:t2w", "phantom:t1w"
MATRIX = 128
COUNTS = (24, 32, 48)
STRATEGIES = ("calibrated", "vd-polynomial", "fastmri-random", "low-pass")
DRAWS = 5
SCAN = "phantom:lf-gre"
LINES = 64
BLOCK = 4


@exits
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("demo-run"),
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Choose lines for a head whose truth is known, against random ones; then for a real low-field scan.

    Uses the embedded scans only. Ends with the report to open.
    """
    from mri_design.evaluation.output.identity import finished_status
    from mri_design.evaluation.output.run_folder import RunFolder
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import scan_sources
    from mri_design.runs.compare.run import compare_into
    from mri_design.runs.demo.page import save_demo
    from mri_design.runs.design.run import design_into

    recipe = load_recipe(None)
    command = sys.argv[1:]
    with (
        kept_on_interruption(out / "compare"),
        RunFolder(out, overwrite=overwrite) as folder,
        progress(quiet) as bar,
    ):
        finished_status(folder, "demo")  # the demo itself leaves no manifest: one that is there is another run's
        folder.begin()
        with RunFolder(out / "compare", overwrite=overwrite) as study:
            first = compare_into(
                study,
                scan_sources([HEAD], "middle"),
                recipe.replacing("simulation", matrix=MATRIX),
                strategies=STRATEGIES,
                lines=COUNTS,
                train=scan_sources([TRAINING], "middle"),
                seeds=DRAWS,
                seed=seed,
                jobs=2,
                command=command,
                show=bar.update,
            )
        with RunFolder(out / "design", overwrite=overwrite) as scan:
            second = design_into(
                scan,
                SCAN,
                recipe.replacing("design", block=BLOCK),
                LINES,
                seed=seed,
                resume=not overwrite,
                command=command,
                show=bar.update,
            )
        save_demo(folder, out / "compare", out / "design")
    say(f"Open {out / 'report.html'}", quiet)
    return ending(first, second)
