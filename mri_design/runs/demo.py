"""`demo`: a comparison where the truth is known and a design of a real scan, on embedded data and on one page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mri_design.evaluation.page import (
    Block,
    FirstScreen,
    Links,
    Paragraph,
    ReportFigure,
    ReportTable,
    Section,
    SideBySide,
    dated,
    sentence,
    write_report,
)
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row, read_csv
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.sources import scan_sources
from mri_design.runs.compare import (
    ComparisonRequest,
    ComparisonResult,
    compare_strategies,
    pair_screen,
    report_comparison,
)
from mri_design.runs.design.report import report_design
from mri_design.runs.design.run import DesignRequest, design_scan
from mri_design.runs.error_tables import Duel
from mri_design.runs.image_sections import error_table
from mri_design.runs.run import Ending, Progress, Run
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
"""The strategy whose masks are called designed, and the strong competitor that it is held against."""


def run_demo(run: Run, *, tune: bool = False) -> list[Ending]:
    """Compare on a head whose truth is known, without and with another contrast of it; then design a real scan's lines.

    Every part has a folder of its own, in which what is finished is kept, and all share one page. With ``tune`` the
    density's powers are tuned anew.

    Returns
    -------
    list of Ending
        Of `STUDY`, `EXAM` and `DESIGN`.

    Raises
    ------
    UsageError
        Where one of the folders holds something else.
    """
    run.finished("demo")  # the demo itself leaves no manifest: one that is there is another run's
    run.begin()
    overwrite, head = run.folder.overwrite, scan_sources([HEAD], "middle")
    quiet = replace(run, jobs=JOBS, resume=not overwrite, progress=Progress(run.progress.show))
    common: dict[str, Any] = {
        "recipe": load_recipe(RECIPE).replacing("simulation", matrix=MATRIX),
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
    studies, endings = dict[str, ComparisonResult](), list[Ending]()
    for name in (STUDY, EXAM, DESIGN):
        with RunFolder(run.folder.path / name, overwrite=overwrite, png=run.folder.png) as folder:
            part = quiet.within(folder)
            if name == DESIGN:
                request = DesignRequest(SCAN, load_recipe(None).replacing("design", block=BLOCK), LINES)
                endings.append(report_design(part, design_scan(request, part)))
            else:
                studies[name] = compare_strategies(comparisons[name], part)
                endings.append(report_comparison(part, studies[name]))
    _report(run, studies[STUDY], studies[EXAM])
    return endings


def _report(run: Run, study: ComparisonResult, exam: ComparisonResult) -> None:
    """Write the page over the comparisons and the design of a real scan, whose mask and errors are read from files."""
    compared, beside, scan = (run.folder.path / name for name in (STUDY, EXAM, DESIGN))
    rows, links, warnings = list[Row](), dict[str, str](), []
    for part in (compared, beside, scan):
        manifest = json.loads((part / "manifest.json").read_text(encoding="utf-8"))
        rows.append({"run": part.name, "status": manifest["status"], "seconds": float(manifest["wall_seconds"])})
        links[f"{part.name}/report.html"] = f"the full report of {part.name}, with links to its files"
        if manifest["status"] != Status.CONVERGED.value:
            warnings.append(f"{part.name}: {manifest['status']}.")
    sections = [
        _pictures(compared, study),
        _numbers(compared, study),
        _other_contrast(exam),
        _real_scan(scan),
        Section("Full reports", [Links(links), ReportTable(rows, "How the runs ended.", {"seconds": ".1f"})]),
    ]
    path, title = run.folder.output_path("report.html"), "mri-design demo: which lines to measure"
    write_report(path, title, dated(_first_screen(study), run.command), sections, warnings=warnings)


def _first_screen(study: ComparisonResult) -> FirstScreen:
    """Designed lines beside the strong competitor, and what follows."""
    rows = {(str(row["strategy"]), int(str(row["lines"]))): row for row in study.errors.tables["summary"]}
    fought = list[Duel]()
    for count in study.study.lines:
        mine, rival = rows[DESIGNED, count], rows[RIVAL, count]
        numbers = (mine["relative_l2"], rival["relative_l2"], rival["sd_draws"])
        fought.append(Duel(count, *(float(str(number)) for number in numbers)))
    shown, grid = int(study.shown[0].mask.sum()), len(study.shown[0].mask)
    at = next(duel for duel in fought if duel.lines == shown)
    outcomes = [(name, [d.lines for d in fought if d.outcome == name]) for name in ("better", "as good", "worse")]
    found = {name: counts for name, counts in outcomes if counts}
    return pair_screen(study, (DESIGNED, RIVAL), sentence("duel_verdict", at, grid, study.study.seeds, found))


def _figures(run: Path, captions: Mapping[str, str]) -> Block:
    """Figures of a finished run, by name (in ``figures/``, without ending), side by side where there is room."""
    figures = [
        ReportFigure((run / "figures" / f"{name}.svg").read_text(encoding="utf-8"), caption)
        for name, caption in captions.items()
    ]
    return figures[0] if len(figures) == 1 else SideBySide(figures)


def _pictures(folder: Path, study: ComparisonResult) -> Section:
    first = study.shown[0].mask
    shown, grid = int(first.sum()), len(first)
    look = (
        f"Look at the error maps, which share one scale: the darker, the better the {shown} of {grid} lines were "
        "chosen. A 3 T magnitude image stands for the truth: k-space was simulated from it, with a smooth phase and "
        f"noise added, so that errors are exact. Images are made by the recipe {RECIPE}, which is quicker than the "
        "default one; there all errors are smaller, and the three best strategies change places."
    )
    images = {
        "reconstructions": "The true image, and what each choice of lines gives.",
        "errors": "Errors of the magnitude. Of random masks the draw with the median error is shown.",
    }
    lines = {
        "masks": "The lines behind the images; the centre of k-space is marked.",
        "std": f"Error bars of {DESIGNED}, which are known without the truth, beside the actual error, on one scale.",
    }
    blocks = [Paragraph(look), _figures(folder, images), _figures(folder, lines)]
    return Section("Designed lines against others", blocks)


def _numbers(folder: Path, study: ComparisonResult) -> Section:
    curves = {"error-curves": "Error against lines; lower is better. Random masks: mean over all draws."}
    return Section("Fewer and more lines", [_figures(folder, curves), *study.errors.blocks(study.study.words)])


def _other_contrast(exam: ComparisonResult) -> Section:
    """What a T1-weighted image of the head does for its T2-weighted one, from the same lines."""
    text = (
        f"Few exams have one scan. Here the prior may know a T1-weighted scan of the same head (`--with {OTHER}`). "
        "Lines that are held back decide whether it does, and it may say so little that lesions which the other image "
        f"does not show keep nearly all of their contrast. Hold errors against those of {DESIGNED} above."
    )
    return Section("Another contrast of the same head", [Paragraph(text), *exam.errors.blocks(exam.study.words)])


def _real_scan(scan: Path) -> Section:
    text = (
        "The second scan comes from a scanner (0.055 T, gradient echo, one coil) and is replayed: lines are chosen and "
        "measured a few at a time. It has no noise-free truth, only the full scan to be held against."
    )
    images = {
        "images": "The full scan, the image from the chosen lines, and these lines without a model.",
        "std": "Error bars beside the difference to the full scan.",
    }
    course = {
        "mask-growth": "The mask at every step, from top to bottom.",
        "calibration": "Each dot is a chosen line, predicted before it was measured; on the diagonal it was right.",
    }
    table = error_table(read_csv(scan / "metrics.csv"), "The two images.", noisy=True)
    return Section("A real scan", [Paragraph(text), _figures(scan, images), table, _figures(scan, course)])
