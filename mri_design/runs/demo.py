"""`demo`: a comparison where the truth is known and a design of a real scan, on embedded data and on one page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mri_design.evaluation.page import Page, dated, write_page
from mri_design.evaluation.run_folder import PROGRESS, RunFolder
from mri_design.evaluation.tables import alike, read_csv
from mri_design.experiment.inputs import scan_sources
from mri_design.experiment.recipe import load_recipe
from mri_design.runs.compare import (
    ComparisonRequest,
    ComparisonResult,
    compare_strategies,
    pair_facts,
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
DESIGNED, RIVAL = "calibrated", "vd-polynomial@tuned"
"""The strategy of the designed masks, and the strong competitor that it is compared with."""


def run_demo(run: Run, *, tune: bool = False) -> list[Stored]:
    """Compare on a head whose truth is known, without and with another contrast of it; then design a real scan's lines.

    Every part has a folder of its own, in which what is finished is kept, and all share one page. With ``tune`` the
    density's powers are tuned anew.

    Returns
    -------
    list of Stored
        Of `STUDY`, `EXAM` and `DESIGN`.

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
        "lines": COUNTS,
    }
    comparisons = {
        STUDY: ComparisonRequest(
            sources=head,
            strategies=STRATEGIES,
            train=scan_sources([TRAINING], "middle"),
            seeds=DRAWS,
            powers={} if tune else {(TUNED_DENSITY, count): power for count, power in POWERS.items()},
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
    for name in (STUDY, EXAM, DESIGN):
        with RunFolder(run.folder.path / name, overwrite=overwrite, png=run.folder.png) as folder:
            part = quiet.within(folder)
            if name == DESIGN:
                request = DesignRequest(SCAN, load_recipe(None).replacing("design", block=BLOCK), LINES)
                endings.append(design_in_folder(request, part))
            else:
                record = comparisons[name].record(part)
                part.finished(record.identity, checkpoint=PROGRESS)
                studies[name] = compare_strategies(comparisons[name], part, FolderKeep(part, record))
                endings.append(part.save(record, report_comparison(folder, studies[name])))
    _report(run, studies[STUDY], studies[EXAM])
    return endings


def _report(run: Run, study: ComparisonResult, exam: ComparisonResult) -> None:
    """Write the page over the comparisons and the design of a real scan, whose mask and errors are read from files."""
    rows, warnings, figures = list[dict[str, object]](), [], dict[str, dict[str, str]]()
    for part in (run.folder.path / name for name in (STUDY, EXAM, DESIGN)):
        manifest = json.loads((part / "manifest.json").read_text(encoding="utf-8"))
        rows.append({"run": part.name, "status": manifest["status"], "seconds": float(manifest["wall_seconds"])})
        figures[part.name] = {svg.stem: svg.read_text(encoding="utf-8") for svg in (part / "figures").glob("*.svg")}
        if manifest["status"] != Status.CONVERGED.value:
            warnings.append(f"{part.name}: {manifest['status']}.")
    fought = {count: _duel(study, count) for count in study.study.lines}
    shown, outcomes = int(study.shown[0].mask.sum()), dict[str, list[int]]()
    for outcome in ("better", "as good", "worse"):
        if counts := [count for count, duel in fought.items() if duel["outcome"] == outcome]:
            outcomes[outcome] = counts
    facts = pair_facts(study, (DESIGNED, RIVAL)) | {
        "grid": len(study.shown[0].mask),
        "duel": fought[shown],
        "outcomes": outcomes,
        "recipe": RECIPE,
        "other": OTHER,
        "designed": DESIGNED,
        "exam": exam,
        "figures": figures,
        "runs": rows,
        "scan_errors": read_csv(run.folder.path / DESIGN / "metrics.csv"),
    }
    page = Page("demo", facts)
    write_page(run.folder.output_path("report.html"), page, None, warnings, **dated(run.command))


def _duel(study: ComparisonResult, count: int) -> dict[str, Any]:
    """Designed lines and the strong competitor at one number of lines: errors, spread over draws, and who is better."""
    rows = [row for row in study.errors.tables["summary"] if row[study.study.counted] == count]
    mine, rival = (next(row for row in rows if row["strategy"] == name) for name in (DESIGNED, RIVAL))
    errors = float(str(mine["relative_l2"])), float(str(rival["relative_l2"]))
    spread = float(str(rival["sd_draws"]))
    same = abs(errors[0] - errors[1]) <= spread or alike(*errors)
    outcome = "as good" if same else "better" if errors[0] < errors[1] else "worse"
    return {"lines": count, "mine": errors[0], "rival": errors[1], "spread": spread, "outcome": outcome}
