"""`demo`: a design that ends by its own error bars, and other masks of as many lines of the same scan, on one page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from mri_design.evaluation.page import Page, dated, write_page
from mri_design.evaluation.run_folder import PROGRESS, RunFolder
from mri_design.evaluation.tables import read_csv
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

DESIGN, STUDY = "design", "compare"
"""Folders of the two runs, within the demo's."""
SCAN, WANTED = "phantom:head-16ch", 0.1
"""A real scan, and the relative error with which its design ends."""
TRAINING, COILS, MATRIX = "phantom:t1w", 16, 128
"""Head of another subject, on which masks are learnt, and how it is simulated."""
LINES, START = 29, 10
"""Of every mask: as many as the design takes with seed 0, and the centre lines of equispaced masks as in fastMRI."""
MASKS = {
    "calibrated": "chosen",
    "calibrated@train": "learnt",
    "vd-polynomial:1 draw=systematic": "even",
    "vd-polynomial:2": "random",
    "fastmri-equispaced": "equispaced",
}
"""Strategies of the comparison as tables name them, and their names on the page. The powers of densities are those with
the least error on `TRAINING` (results/speed/demo.md)."""
DRAWS = 3
RECIPE = "local"
"""Of the comparison: its images cost a fraction of the default recipe's (results/speed/demo.md)."""
JOBS = 2


def run_demo(run: Run) -> list[Stored]:
    """Design the lines of a real scan, then compare masks of as many lines of it.

    Every part has a folder of its own, in which what is finished is kept, and both share one page.

    Returns
    -------
    list of Stored
        Of `DESIGN` and `STUDY`.

    Raises
    ------
    UsageError
        Where one of the folders holds something else.
    """
    run.finished("demo")  # the demo itself leaves no manifest: one that is there is another run's
    run.folder.begin()
    overwrite = run.folder.overwrite
    quiet = replace(run, jobs=JOBS, resume=not overwrite, progress=Progress(run.progress.show))

    def folder_of(name: str) -> RunFolder:
        return RunFolder(run.folder.path / name, overwrite=overwrite, png=run.folder.png)

    with folder_of(DESIGN) as folder:
        request = DesignRequest(SCAN, load_recipe(None).replacing("design", until_error=WANTED))
        designed = design_in_folder(request, quiet.within(folder))
    recipe = load_recipe(RECIPE).replacing("input", matrix=MATRIX).replacing("simulation", coils=COILS)
    comparison = ComparisonRequest(
        sources=scan_sources([SCAN], "middle", maps_from=[SCAN]),
        strategies=[name for name in MASKS if name != "calibrated@train"],  # which comes with the training scan
        lines=(LINES,),
        train=scan_sources([TRAINING], "middle"),
        seeds=DRAWS,
        recipe=recipe.replacing("design", start=START),
    )
    with folder_of(STUDY) as folder:
        part = quiet.within(folder)
        record = comparison.record(part)
        part.finished(record.identity, checkpoint=PROGRESS)
        study = compare_strategies(comparison, part, FolderKeep(part, record))
        compared = part.save(record, report_comparison(folder, study))
    _report(run, study)
    return [designed, compared]


def _report(run: Run, study: ComparisonResult) -> None:
    """Write the page over the design, whose figures and errors are read from files, and the comparison."""
    rows, warnings, figures = list[dict[str, object]](), [], dict[str, dict[str, str]]()
    parts = [run.folder.path / name for name in (DESIGN, STUDY)]
    manifests = [json.loads((part / "manifest.json").read_text(encoding="utf-8")) for part in parts]
    for part, manifest in zip(parts, manifests, strict=True):
        rows.append({"run": part.name, "status": manifest["status"], "seconds": float(manifest["wall_seconds"])})
        figures[part.name] = {svg.stem: svg.read_text(encoding="utf-8") for svg in (part / "figures").glob("*.svg")}
        if manifest["status"] != Status.CONVERGED.value:
            warnings.append(f"{part.name}: {manifest['status']}.")
    made = run.folder.path / DESIGN
    errors, maps = read_csv(made / "metrics.csv")[0], made / "coil_maps.npy"
    facts = {
        "design": {
            "run": DESIGN,
            "lines": errors["lines"],
            "of": len(np.load(made / "mask.npy", allow_pickle=False)),
            "coils": len(np.load(maps, mmap_mode="r", allow_pickle=False)) if maps.exists() else 1,
            "combined": manifests[0]["settings"]["coil_compression"],
            "wanted": WANTED,
            "predicted": errors["predicted_error"],
            "found": errors["found_error"],
        },
        "masks": {MASKS[str(row["strategy"])]: row for row in study.errors.tables["summary"]},
        "lines": LINES,
        "start": START,
        "draws": DRAWS,
        "figures": figures,
        "runs": rows,
    }
    page = Page("demo", facts)
    write_page(run.folder.output_path("report.html"), page, None, warnings, **dated(run.command))
