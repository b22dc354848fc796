"""``mri-design demo``: the main job on embedded data, in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.options import Overwrite, Png, Quiet, Seed
from mri_design.cli.terminal import ending, exits, kept_on_interruption, run_into, say


@exits
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("demo-run"),
    seed: Seed = 0,
    tune: Annotated[
        bool, typer.Option("--tune", help="Tune the random density anew, in place of the powers that are shipped.")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    png: Png = False,
) -> int:
    """Choose lines for a head whose truth is known, against random ones; then for a real low-field scan.

    Uses the embedded scans only. Ends with the report to open.
    """
    from mri_design.runs.compare import report_comparison
    from mri_design.runs.demo import (
        DESIGN,
        STUDY,
        begin_demo,
        compare_on_head,
        design_real_scan,
        part_of_demo,
        report_demo,
    )
    from mri_design.runs.design.report import report_design

    with kept_on_interruption(out / STUDY), run_into(out, seed=seed, overwrite=overwrite, quiet=quiet, png=png) as run:
        begin_demo(run)
        with part_of_demo(run, STUDY) as part:
            study = compare_on_head(part, tune=tune)
            compared = report_comparison(part, study)
        with part_of_demo(run, DESIGN) as part:
            designed = design_real_scan(part)
            ended = report_design(part, designed)
        report_demo(run, study, designed)
    say(f"Open {out / 'report.html'}", quiet)
    return ending(compared.status, ended.status)
