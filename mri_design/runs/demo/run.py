"""The demo's two runs on embedded data: a comparison where the truth is known, and a design of a real scan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.slice_choice import scan_sources
from mri_design.runs.compare.report import report_comparison
from mri_design.runs.compare.run import ComparisonRequest, compare_strategies
from mri_design.runs.design.report import report_design
from mri_design.runs.design.run import DesignRequest, design_scan
from mri_design.runs.run import Ending, Progress, Run

__all__ = ["DemoResult", "run_demo"]

HEAD, TRAINING = "phantom:t2w", "phantom:t1w"
MATRIX = 128
COUNTS = (24, 32, 48)
STRATEGIES = ("calibrated", "vd-polynomial", "fastmri-random", "low-pass")
DRAWS = 5
JOBS = 2
SCAN = "phantom:lf-gre"
LINES = 64
BLOCK = 4


@dataclass(frozen=True)
class DemoResult:
    """What the demo came to.

    Parameters
    ----------
    study, scan : Path
        Finished run folders of the comparison and of the design.
    endings : tuple of Ending
        Of both.
    """

    study: Path
    scan: Path
    endings: tuple[Ending, ...]


def run_demo(run: Run) -> DemoResult:
    """Carry out both runs, each with a report of its own, in folders within the run's; what is finished is kept.

    Raises
    ------
    UsageError
        Where the folder, or one of those within it, holds something else.
    """
    run.finished("demo")  # the demo itself leaves no manifest: one that is there is another run's
    run.begin()
    recipe, overwrite = load_recipe(None), run.folder.overwrite
    study, scan = run.folder.path / "compare", run.folder.path / "design"
    quiet = replace(run, jobs=JOBS, resume=not overwrite, progress=Progress(run.progress.show))
    comparison = ComparisonRequest(
        scan_sources([HEAD], "middle"),
        recipe.replacing("simulation", matrix=MATRIX),
        STRATEGIES,
        COUNTS,
        scan_sources([TRAINING], "middle"),
        DRAWS,
    )
    with RunFolder(study, overwrite=overwrite) as folder:
        part = quiet.within(folder)
        first = report_comparison(part, compare_strategies(comparison, part))
    design = DesignRequest(SCAN, recipe.replacing("design", block=BLOCK), LINES)
    with RunFolder(scan, overwrite=overwrite) as folder:
        part = quiet.within(folder)
        second = report_design(part, design_scan(design, part))
    return DemoResult(study, scan, (first, second))
