"""What a comparison leaves in its folder: tables, masks, figures and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mri_design.design.trials import ReferenceSlice
from mri_design.evaluation import plots
from mri_design.evaluation.page import Block, Paragraph, ReportTable, Section, saved_figure
from mri_design.evaluation.plots.panels import ErrorCurve, ImagePanel, error_caption, metric_caption
from mri_design.evaluation.reference_noise import noise_caption
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import markdown_text, write_csv
from mri_design.experiment.strategy_names import strategy_label
from mri_design.operators.encodings import KINDS, LineEncoding, PlaneEncoding, ShotEncoding, count_text
from mri_design.runs.compare.run import ComparisonResult, ShownMask, StrategyErrors
from mri_design.runs.held_out.comparison import Comparison
from mri_design.runs.held_out.tables import FORMATS, paired_caption
from mri_design.runs.image_sections import curves_figure, error_bars_figure, layout_of
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import doubts_of_all, simulation_summary
from mri_design.scan.data import Orientation
from mri_design.scan.io.atomic import write_json, write_text

MOST_BANDS = 4
"""Curves whose bands can be told apart."""


def report_comparison(run: Run, result: ComparisonResult) -> Ending:
    """Write metrics.csv, winners.csv/.md, summary.csv/.md, paired.csv/.md, masks.json, figures, manifest and page."""
    comparison, errors, folder = result.comparison, result.errors, run.folder
    folder.write_metrics(errors.rows)
    tables = {
        "winners": errors.winners,
        "summary": errors.summary,
        **({"paired": errors.paired} if errors.paired else {}),
    }
    for name, table in tables.items():
        write_csv(folder.output_path(f"{name}.csv"), table, formats=FORMATS)
        write_text(folder.output_path(f"{name}.md"), markdown_text(table, formats=FORMATS))
    write_json(folder.output_path("masks.json"), result.masks)
    sections = [_errors_section(folder, comparison, errors)]
    if result.tuned:
        write_csv(folder.output_path("tuned.csv"), result.tuned)
        sections.append(Section("Densities tuned on the training scans", [ReportTable(result.tuned)]))
    if result.shown:
        sections.append(_pictures_section(folder, comparison.tests[0], result.shown, result.orientation))
    facts, told = doubts_of_all([*comparison.tests, *comparison.training])
    numbers = {
        "test images": len(comparison.tests),
        "training images": len(comparison.training),
        **simulation_summary([t.simulated for t in (*comparison.tests, *comparison.training)]),
        **told,
        "strategies": len(errors.runs),
        f"{comparison.counted.removesuffix('s')} counts": ", ".join(map(str, comparison.lines)),
        "reconstruction": comparison.recipe.reconstruction.method,
        "draws of random masks": comparison.seeds,
    }
    record = replace(result.record, settings={**result.record.settings, **facts})
    return run.finish(result.ending, record, "Comparison of sampling strategies", numbers, sections)


def _errors_section(folder: RunFolder, comparison: Comparison, errors: StrategyErrors) -> Section:
    blocks: list[Block] = []
    counts = np.array(comparison.lines)
    curves = [ErrorCurve(name, counts, runs) for name, runs in errors.runs.items()]
    if len(comparison.lines) > 1:
        unit = KINDS[comparison.recipe.design.encoding].unit
        bands = len(curves) <= MOST_BANDS
        caption = (
            f"Error against {comparison.counted}; lower is better. Random masks count draws as runs, the others images."
        )
        if bands:
            caption += " Bands: one standard deviation over runs."
        figure = saved_figure(
            folder, "error-curves", lambda: plots.error_against_lines(curves, bands=bands, unit=unit), caption
        )
        blocks.append(figure)
    blocks += [
        ReportTable(
            errors.winners,
            "The strategy with the least mean error at each count, the second, and the first one's error relative to "
            "it.",
            FORMATS,
        ),
        ReportTable(
            errors.summary,
            "relative l2 is the error of the magnitude, mean over images and draws; sd images and sd draws are its "
            "spread over images and over draws; worst is the worst image."
            + noise_caption([test.noise for test in comparison.tests]),
            FORMATS,
        ),
    ]
    if errors.paired:
        blocks.append(ReportTable(errors.paired, f"Designed masks. {paired_caption(errors.paired)}", FORMATS))
    return Section("Errors", blocks)


def _masks_figure(folder: RunFolder, shown: Sequence[ShownMask]) -> Block:
    """What each strategy measured."""
    first = shown[0].encoding
    if isinstance(first, ShotEncoding):
        curves = {
            strategy_label(m.strategy): m.encoding.shots[m.mask] for m in shown if isinstance(m.encoding, ShotEncoding)
        }
        lowest = f"the measured {first.unit} with the lowest number among the strategy's candidates"
        return curves_figure(folder, "masks", curves, first.grid, first.unit, lowest)
    masks = {strategy_label(mask.strategy): mask.mask for mask in shown}
    if isinstance(first, PlaneEncoding):
        caption = "Measured samples (ky, kz), DC in the middle."
        return saved_figure(folder, "masks", lambda: plots.plane_masks(masks), caption)
    return saved_figure(folder, "masks", lambda: plots.mask_barcodes(masks), "Measured lines over ky. DC is marked.")


def _pictures_section(
    folder: RunFolder, test: ReferenceSlice, shown: Sequence[ShownMask], orientation: Orientation
) -> Section:
    """Masks, reconstructions and errors of one test image at one count."""
    count, n_lines = int(shown[0].mask.sum()), shown[0].mask.size
    encoding = shown[0].encoding
    measured, layout = count_text(count, encoding.unit), layout_of(encoding, orientation)
    panels, errors = list[ImagePanel](), list[ImagePanel]()
    for mask in shown:
        label, image = strategy_label(mask.strategy), mask.reconstruction.image
        panels.append(ImagePanel(image, label, metric_caption(mask.errors)))
        errors.append(ImagePanel(image, label, error_caption(mask.errors)))
    blocks: list[Block] = [
        Paragraph(
            f"{test.name}, {measured}. Each strategy has candidates of its own: a grid of angles, or its set."
            if isinstance(encoding, ShotEncoding)
            else f"{test.name}, {measured} of {n_lines} ({n_lines / count:.2f}x). Of random masks the draw with "
            "the median error on this image is shown."
        ),
        _masks_figure(folder, shown),
        saved_figure(
            folder,
            "reconstructions",
            lambda: plots.image_grid([ImagePanel(test.shown, "reference", ""), *panels], layout),
            "Magnitudes on one grey scale, the same reconstruction for every mask.",
        ),
        saved_figure(
            folder,
            "errors",
            lambda: plots.error_maps(errors, test.shown, layout),
            "Errors of the magnitude on one scale."
            + (" Ghosts along the phase-encode direction are aliasing." if isinstance(encoding, LineEncoding) else ""),
        ),
    ]
    for mask in shown:
        if mask.reconstruction.std is not None:
            caption = f"Posterior standard deviation for {strategy_label(mask.strategy)} beside the actual error."
            blocks.append(error_bars_figure(folder, mask.reconstruction, test.shown, layout, caption))
    return Section("Pictures", blocks)
