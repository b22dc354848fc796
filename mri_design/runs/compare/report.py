"""What a comparison leaves in its folder: tables, masks, figures and the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.design.trials import ReferenceSlice
from mri_design.evaluation import plots
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.output.page import Block, Paragraph, ReportTable, Section, saved_figure
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.output.tables import Row, markdown_text, write_csv
from mri_design.evaluation.plots.curves import ErrorCurve
from mri_design.evaluation.plots.images import ImagePanel, error_caption, metric_caption
from mri_design.evaluation.reference_noise import noise_caption
from mri_design.experiment.strategy_names import ORACLES, make_strategy, strategy_label
from mri_design.operators.base import Array
from mri_design.runs.compare.run import ComparisonResult, ShownMask
from mri_design.runs.held_out.comparison import Comparison, base_name
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.held_out.tables import (
    FORMATS,
    errors_by_image,
    paired_caption,
    paired_table,
    summary_table,
    winners_table,
)
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import simulation_summary
from mri_design.scan.data import Orientation
from mri_design.scan.io.atomic import write_json, write_text

__all__ = ["report_comparison"]

MOST_BANDS = 4
"""Curves whose bands can be told apart."""


def report_comparison(run: Run, result: ComparisonResult) -> Ending:
    """Write metrics.csv, winners.csv/.md, summary.csv/.md, paired.csv/.md, masks.json, figures, manifest and page."""
    comparison, pieces, folder = result.comparison, result.pieces, run.folder
    names = comparison.expanded()
    rows = [pieces.rows["|".join(map(str, cell))] for cell in comparison.rows_wanted()]
    folder.write_metrics([{**row, "strategy": strategy_label(str(row["strategy"]))} for row in rows])
    summary = summary_table(rows, names, comparison.lines)
    real = [n for n in names if n not in ORACLES]
    blind = [n for n in real if not make_strategy(base_name(n)).needs_posterior]
    designed = [n for n in real if n not in blind]
    tables = {"winners": winners_table(rows, real or names, comparison.lines), "summary": summary}
    if designed and blind:
        tables["paired"] = paired_table(rows, designed, blind, comparison.lines)
    tables = {name: [_labelled(row) for row in table] for name, table in tables.items()}
    for name, table in tables.items():
        write_csv(folder.output_path(f"{name}.csv"), table, formats=FORMATS)
        write_text(folder.output_path(f"{name}.md"), markdown_text(table, formats=FORMATS))
    write_json(folder.output_path("masks.json"), _masks(comparison, pieces))
    sections = [_errors_section(folder, comparison, rows, names, tables)]
    if pieces.tuned:
        tuned: list[Row] = []
        for key, power in pieces.tuned.items():
            family, count, grid = key.split("|")
            tuned.append({"family": family, "lines": int(count), "grid": int(grid), "power": power})
        write_csv(folder.output_path("tuned.csv"), tuned)
        sections.append(Section("Densities tuned on the training scans", [ReportTable(tuned)]))
    sections.append(_pictures_section(folder, comparison.tests[0], result.shown, result.orientation))
    numbers = {
        "test images": len(comparison.tests),
        "training images": len(comparison.training),
        **simulation_summary([t.simulated for t in (*comparison.tests, *comparison.training)]),
        "strategies": len(names),
        "line counts": ", ".join(map(str, comparison.lines)),
        "reconstruction": comparison.recipe.reconstruction.method,
        "draws of random masks": comparison.seeds,
    }
    return run.finish(result.ending, result.record, "Comparison of sampling strategies", numbers, sections)


def _labelled(row: Row) -> Row:
    """Names without the folders of files."""
    return {
        key: strategy_label(value) if isinstance(value, str) and key in _NAMES else value for key, value in row.items()
    }


_NAMES = ("strategy", "against", "best", "second")
"""Columns that hold names of strategies."""


def _masks(comparison: Comparison, progress: ComparisonProgress) -> list[dict[str, object]]:
    """Every mask as its lines in acquisition order."""
    return [
        {
            "strategy": strategy_label(name),
            "lines": count,
            "draw": draw,
            "image": comparison.tests[image].name,
            "order": list(comparison.mask_lines(progress, name, count, draw, image)),
        }
        for name, count, draw, image in comparison.rows_wanted()
    ]


def _errors_section(
    folder: RunFolder, comparison: Comparison, rows: Sequence[Row], names: Sequence[str], tables: dict[str, list[Row]]
) -> Section:
    blocks: list[Block] = []
    curves = []
    for name in names:
        per_count = [errors_by_image(rows, name, count) for count in comparison.lines]
        draws = len(per_count[0]) > 1
        # Bands: over draws where the mask is random, over images where it is not.
        runs = [table.mean(axis=1) if draws else table.mean(axis=0) for table in per_count]
        curves.append(ErrorCurve(strategy_label(name), np.array(comparison.lines), np.array(runs).T))
    if len(comparison.lines) > 1:
        bands = len(curves) <= MOST_BANDS
        caption = "Error against lines; lower is better. Random masks count draws as runs, the others images."
        if bands:
            caption += " Bands: one standard deviation over runs."
        drawn = plots.error_against_lines(curves, bands=bands)
        blocks.append(saved_figure(folder, "error-curves", drawn, caption))
    blocks += [
        ReportTable(
            tables["winners"],
            "The strategy with the least mean error at each count, the second, and the first one's error relative to "
            "it.",
            FORMATS,
        ),
        ReportTable(
            tables["summary"],
            "relative l2 is the error of the magnitude, mean over images and draws; sd images and sd draws are its "
            "spread over images and over draws; worst is the worst image."
            + noise_caption([test.noise for test in comparison.tests]),
            FORMATS,
        ),
    ]
    if "paired" in tables:
        blocks.append(ReportTable(tables["paired"], f"Designed masks. {paired_caption(tables['paired'])}", FORMATS))
    return Section("Errors", blocks)


def _pictures_section(
    folder: RunFolder, test: ReferenceSlice, shown: Sequence[ShownMask], orientation: Orientation
) -> Section:
    """Masks, reconstructions and errors of one test image at one count."""
    count = len(shown[0].lines)
    masks: dict[str, Array] = {}
    panels, errors = list[ImagePanel](), list[ImagePanel]()
    for mask in shown:
        flags = np.zeros(test.one.shape[0], dtype=bool)
        flags[list(mask.lines)] = True
        label, image = strategy_label(mask.strategy), mask.reconstruction.image
        masks[label] = flags
        found = measure(image, test.reference)
        panels.append(ImagePanel(image, label, metric_caption(found)))
        errors.append(ImagePanel(image, label, error_caption(found)))
    blocks: list[Block] = [
        Paragraph(
            f"{test.name}, {count} lines of {test.one.shape[0]} ({test.one.shape[0] / count:.2f}x). Of random masks "
            "the draw with the median error on this image is shown."
        ),
        saved_figure(folder, "masks", plots.mask_barcodes(masks), "Measured lines over ky. DC is marked."),
        saved_figure(
            folder,
            "reconstructions",
            plots.image_grid([ImagePanel(test.reference, "reference", ""), *panels], orientation),
            "Magnitudes on one grey scale, the same reconstruction for every mask.",
        ),
        saved_figure(
            folder,
            "errors",
            plots.error_maps(errors, test.reference, orientation),
            "Errors of the magnitude on one scale. Ghosts along the phase-encode direction are aliasing.",
        ),
    ]
    for mask in shown:
        image, std = mask.reconstruction.image, mask.reconstruction.std
        if std is not None:
            drawn = plots.std_against_error(std, image, test.reference, orientation)
            caption = f"Posterior standard deviation for {strategy_label(mask.strategy)} beside the actual error."
            blocks.append(saved_figure(folder, "std", drawn, caption))
    return Section("Pictures", blocks)
