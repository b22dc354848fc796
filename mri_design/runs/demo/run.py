"""The demo's two runs on embedded data: a comparison where the truth is known, and a design of a real scan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from mri_design.evaluation.run_folder import RunFolder
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.slice_choice import scan_sources
from mri_design.runs.compare.run import ComparisonRequest, ComparisonResult, compare_strategies
from mri_design.runs.design.run import DesignRequest, DesignResult, design_scan
from mri_design.runs.run import Ending, Progress, Run

STUDY, DESIGN = "compare", "design"
"""Folders of the two runs, within the demo's."""
HEAD, TRAINING = "phantom:t2w", "phantom:t1w"
MATRIX = 128
COUNTS = (24, 32, 48)
TUNED_DENSITY = "vd-polynomial"
STRATEGIES = ("calibrated", TUNED_DENSITY, "fastmri-random", "low-pass")
DRAWS = 5
RECIPE = "local"
"""Of the comparison: its images cost a fraction of the default recipe's (results/speed/demo.md has both)."""
POWERS = {24: 9.0, 32: 6.0, 48: 3.0}
"""Of the tuned density by number of lines, as ``mri-design demo --tune`` finds them on `TRAINING`."""
JOBS = 2
SCAN = "phantom:lf-gre"
LINES = 64
BLOCK = 4


def begin_demo(run: Run) -> None:
    """Begin the demo in its folder; what is finished there is kept.

    Raises
    ------
    UsageError
        Where the folder holds something else.
    """
    run.finished("demo")  # the demo itself leaves no manifest: one that is there is another run's
    run.begin()


@contextmanager
def part_of_demo(run: Run, name: str) -> Iterator[Run]:
    """Open the folder of one of the two runs, `STUDY` or `DESIGN`, within the demo's.

    Raises
    ------
    UsageError
        Where the folder holds something else.
    """
    overwrite = run.folder.overwrite
    quiet = replace(run, jobs=JOBS, resume=not overwrite, progress=Progress(run.progress.show))
    with RunFolder(run.folder.path / name, overwrite=overwrite, png=run.folder.png) as folder:
        yield quiet.within(folder)


def compare_on_head(run: Run, *, tune: bool = False) -> ComparisonResult:
    """Compare designed with other masks on a head whose truth is known; ``tune`` tunes the density's powers anew."""
    return compare_strategies(
        ComparisonRequest(
            sources=scan_sources([HEAD], "middle"),
            recipe=load_recipe(RECIPE).replacing("simulation", matrix=MATRIX),
            strategies=STRATEGIES,
            lines=COUNTS,
            train=scan_sources([TRAINING], "middle"),
            seeds=DRAWS,
            powers={} if tune else {(TUNED_DENSITY, count): power for count, power in POWERS.items()},
        ),
        run,
    )


def design_real_scan(run: Run) -> DesignResult | Ending:
    """Choose the lines of a scan that comes from a scanner."""
    return design_scan(DesignRequest(SCAN, load_recipe(None).replacing("design", block=BLOCK), LINES), run)
