"""`demo`: a design that ends by its own error bars, and comparisons where the truth is known, on one page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from mri_design.evaluation.page import Page, dated, write_page
from mri_design.evaluation.run_folder import PROGRESS, RunFolder
from mri_design.evaluation.tables import Row, read_csv
from mri_design.experiment.inputs import scan_sources
from mri_design.experiment.recipe import load_recipe
from mri_design.runs.compare import (
    ComparisonRequest,
    ComparisonResult,
    compare_strategies,
    report_comparison,
)
from mri_design.runs.design_report import design_in_folder
from mri_design.runs.design_request import DesignRequest
from mri_design.runs.store import FolderKeep, Run
from mri_design.runs.stored_run import Stored
from mri_design.runs.work import Progress
from mri_design.status import Status

STUDY, EXAM, DESIGN = "compare", "exam", "design"
"""Folders of the three runs, within the demo's."""
HEAD, TRAINING = "phantom:t2w", "phantom:t1w"
OTHER = "phantom:t1w-6a"
"""Another contrast of the same head."""
MATRIX = 128
LINES = 32
TUNED_DENSITY = "vd-polynomial"
STRATEGIES = ("calibrated", TUNED_DENSITY, "fastmri-random")
DRAWS = 5
RECIPE = "local"
"""Of the comparison: its images cost a fraction of the default recipe's (results/speed/demo.md has both)."""
POWER = 6.0
"""Of the tuned density, as ``mri-design demo --tune`` finds it on `TRAINING`."""
JOBS = 2
SCAN, WANTED = "phantom:head-16ch", 0.1
"""A real scan, and the relative error with which its design ends."""
DESIGNED, RIVAL = "calibrated", "vd-polynomial@tuned"
"""The strategy of the designed masks, and the strong competitor that it is compared with."""


def run_demo(run: Run, *, tune: bool = False) -> list[Stored]:
    """Design the lines of a real scan; then compare on a head whose truth is known, without and with another contrast.

    Every part has a folder of its own, in which what is finished is kept, and all share one page. With ``tune`` the
    density's powers are tuned anew.

    Returns
    -------
    list of Stored
        Of `DESIGN`, `EXAM` and `STUDY`.

    Raises
    ------
    UsageError
        Where one of the folders holds something else.
    """
    run.finished("demo")  # the demo itself leaves no manifest: one that is there is another run's
    run.folder.begin()
    overwrite, head = run.folder.overwrite, scan_sources([HEAD], "middle")
    quiet = replace(run, jobs=JOBS, resume=not overwrite, progress=Progress(run.progress.show))
    common: dict[str, Any] = {
        "recipe": load_recipe(RECIPE).replacing("input", matrix=MATRIX),
        "lines": (LINES,),
    }
    comparisons = {
        STUDY: ComparisonRequest(
            sources=head,
            strategies=STRATEGIES,
            train=scan_sources([TRAINING], "middle"),
            seeds=DRAWS,
            powers={} if tune else {(TUNED_DENSITY, LINES): POWER},
            **common,
        ),
        EXAM: ComparisonRequest(
            sources=[replace(source, companions=(OTHER,)) for source in head],
            strategies=(DESIGNED,),
            seeds=1,
            **common,
        ),
    }
    studies, endings = dict[str, ComparisonResult](), list[Stored]()
    for name in (DESIGN, EXAM, STUDY):
        with RunFolder(run.folder.path / name, overwrite=overwrite, png=run.folder.png) as folder:
            part = quiet.within(folder)
            if name == DESIGN:
                request = DesignRequest(SCAN, load_recipe(None).replacing("design", until_error=WANTED))
                endings.append(design_in_folder(request, part))
            else:
                record = comparisons[name].record(part)
                part.finished(record.identity, checkpoint=PROGRESS)
                studies[name] = compare_strategies(comparisons[name], part, FolderKeep(part, record))
                endings.append(part.save(record, report_comparison(folder, studies[name])))
    _report(run, studies[STUDY], studies[EXAM])
    return endings


def _report(run: Run, study: ComparisonResult, exam: ComparisonResult) -> None:
    """Write the page over the design, whose figures and errors are read from files, and the comparisons."""
    rows, warnings, figures = list[dict[str, object]](), [], dict[str, dict[str, str]]()
    for part in (run.folder.path / name for name in (DESIGN, EXAM, STUDY)):
        manifest = json.loads((part / "manifest.json").read_text(encoding="utf-8"))
        rows.append({"run": part.name, "status": manifest["status"], "seconds": float(manifest["wall_seconds"])})
        figures[part.name] = {svg.stem: svg.read_text(encoding="utf-8") for svg in (part / "figures").glob("*.svg")}
        if manifest["status"] != Status.CONVERGED.value:
            warnings.append(f"{part.name}: {manifest['status']}.")
    made = run.folder.path / DESIGN
    errors, maps = read_csv(made / "metrics.csv")[0], made / "coil_maps.npy"
    design = {
        "run": DESIGN,
        "lines": errors["lines"],
        "of": len(np.load(made / "mask.npy", allow_pickle=False)),
        "coils": len(np.load(maps, mmap_mode="r", allow_pickle=False)) if maps.exists() else 1,
        "wanted": WANTED,
        "predicted": errors["predicted_error"],
        "found": errors["found_error"],
    }
    mine, rival = (_summary(study, name) for name in (DESIGNED, RIVAL))
    facts = {
        "design": design,
        "grid": len(study.shown[0].mask),
        "duel": {"lines": LINES, "mine": _error(mine), "rival": _error(rival), "spread": float(str(rival["sd_draws"]))},
        "known": _error(_summary(exam, DESIGNED)),
        "recipe": RECIPE,
        "other": OTHER,
        "study": study.study,
        "errors": study.errors,
        "figures": figures,
        "runs": rows,
    }
    page = Page("demo", facts)
    write_page(run.folder.output_path("report.html"), page, None, warnings, **dated(run.command))


def _summary(study: ComparisonResult, name: str) -> Row:
    """What a strategy has come to."""
    return next(row for row in study.errors.tables["summary"] if row["strategy"] == name)


def _error(row: Row) -> float:
    return float(str(row["relative_l2"]))
