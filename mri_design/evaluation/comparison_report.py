"""What a comparison leaves in its folder: tables, masks, figures and the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mri_design.evaluation import plots
from mri_design.evaluation.comparison import Comparison, base_name
from mri_design.evaluation.comparison_progress import ComparisonProgress
from mri_design.evaluation.comparison_tables import FORMATS, errors_by_image, paired_table, summary_table, winners_table
from mri_design.evaluation.manifest import Manifest
from mri_design.evaluation.metrics import measure
from mri_design.evaluation.plots import ErrorCurve, ImagePanel, metric_caption
from mri_design.evaluation.report import Paragraph, ReportFigure, ReportTable, Section, write_report
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.scan_facts import simulation_summary
from mri_design.evaluation.tables import Row, markdown_text, write_csv
from mri_design.experiment import ORACLES, Reconstruction, make_strategy, reconstruct, strategy_label
from mri_design.io.atomic import write_json, write_text
from mri_design.kspace import Orientation
from mri_design.operators import Array

__all__ = ["save_comparison"]


def save_comparison(
    folder: RunFolder,
    comparison: Comparison,
    progress: ComparisonProgress,
    manifest: Manifest,
    orientation: Orientation,
) -> None:
    """Write metrics.csv, winners.csv/.md, summary.csv/.md, paired.csv/.md, masks.json, figures, manifest and report."""
    names = comparison.expanded()
    rows = [progress.rows["|".join(map(str, cell))] for cell in comparison.rows_wanted()]
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
    write_json(folder.output_path("masks.json"), _masks(comparison, progress))
    sections = [_errors_section(folder, comparison, rows, names, tables)]
    if progress.tuned:
        tuned: list[Row] = []
        for key, power in progress.tuned.items():
            family, count, grid = key.split("|")
            tuned.append({"family": family, "lines": int(count), "grid": int(grid), "power": power})
        write_csv(folder.output_path("tuned.csv"), tuned)
        sections.append(Section("Densities tuned on the training scans", [ReportTable(tuned)]))
    sections.append(_pictures_section(folder, comparison, progress, names, orientation))
    folder.write_manifest(manifest)
    write_report(
        folder.output_path("report.html"),
        "Comparison of sampling strategies",
        {
            "test images": len(comparison.tests),
            "training images": len(comparison.training),
            **simulation_summary([t.simulated for t in (*comparison.tests, *comparison.training)]),
            "strategies": len(names),
            "line counts": ", ".join(map(str, comparison.lines)),
            "reconstruction": comparison.recipe.reconstruction.method,
            "draws of random masks": comparison.seeds,
            "seconds": round(manifest.wall_seconds, 1),
            "status": manifest.status,
        },
        sections,
        warnings=manifest.warnings,
        manifest=manifest,
    )


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
    blocks: list[Paragraph | ReportTable | ReportFigure] = []
    curves = []
    for name in names:
        per_count = [errors_by_image(rows, name, count) for count in comparison.lines]
        draws = len(per_count[0]) > 1
        # Bands: over draws where the mask is random, over images where it is not.
        runs = [table.mean(axis=1) if draws else table.mean(axis=0) for table in per_count]
        curves.append(ErrorCurve(strategy_label(name), np.array(comparison.lines), np.array(runs).T))
    if len(comparison.lines) > 1:
        path = folder.write_figure("error-curves", plots.error_against_lines(curves))
        blocks.append(
            ReportFigure(
                path.read_bytes(),
                "Error against lines; lower is better. Bands: one standard deviation over draws for random masks, over "
                "images for the others.",
            )
        )
    blocks.append(
        ReportTable(
            tables["winners"],
            "The strategy with the least mean error at each count, the second, and the first one's error relative to "
            "it.",
            FORMATS,
        )
    )
    blocks.append(
        ReportTable(
            tables["summary"],
            "relative_l2 is the error of the magnitude, mean over images and draws; sd_images and sd_draws its spread "
            "over images and over draws; worst is the worst image.",
            FORMATS,
        )
    )
    if "paired" in tables:
        blocks.append(
            ReportTable(
                tables["paired"],
                "Designed masks against the best of the others at each count, image by image: mean relative change of "
                "the error (negative is better), worst image, p of a two-sided sign test.",
                FORMATS,
            )
        )
    return Section("Errors", blocks)


def _pictures_section(
    folder: RunFolder,
    comparison: Comparison,
    progress: ComparisonProgress,
    names: Sequence[str],
    orientation: Orientation,
) -> Section:
    """Masks, reconstructions and errors of the first test image at the middle count."""
    count = sorted(comparison.lines)[len(comparison.lines) // 2]
    test = comparison.tests[0]
    masks: dict[str, Array] = {}
    panels: list[ImagePanel] = []
    std: tuple[str, Reconstruction] | None = None
    for name in names:
        lines = comparison.mask_lines(progress, name, count, 0, 0)
        flags = np.zeros(test.one.shape[0], dtype=bool)
        flags[list(lines)] = True
        label = strategy_label(name)
        masks[label] = flags
        wants_std = std is None and make_strategy(base_name(name)).needs_posterior
        result = _shown(comparison, lines, wants_std)
        std = (label, result) if wants_std and result.std is not None else std
        panels.append(ImagePanel(result.image, label, metric_caption(measure(result.image, test.reference))))
    figures = [
        ("masks", plots.mask_barcodes(masks), "Lines over ky, first draw of random masks. DC is marked."),
        (
            "reconstructions",
            plots.image_grid([ImagePanel(test.reference, "reference", ""), *panels], orientation),
            "One grey scale.",
        ),
        (
            "errors",
            plots.error_maps(panels, test.reference, orientation),
            "Errors of the magnitude on one scale. Ghosts along the phase-encode direction are aliasing.",
        ),
    ]
    if std is not None:
        name, result = std
        if result.std is not None:
            figures.append(
                (
                    "std",
                    plots.std_against_error(result.std, result.image, test.reference, orientation),
                    f"Posterior standard deviation for {name} beside the actual error.",
                )
            )
    blocks: list[Paragraph | ReportTable | ReportFigure] = [
        Paragraph(f"{test.name}, {count} lines of {test.one.shape[0]} ({test.one.shape[0] / count:.2f}x).")
    ]
    for key, figure, caption in figures:
        blocks.append(ReportFigure(folder.write_figure(key, figure).read_bytes(), caption))
    return Section("Pictures", blocks)


def _shown(comparison: Comparison, lines: Sequence[int], with_std: bool) -> Reconstruction:
    return reconstruct(
        comparison.tests[0].one,
        sorted(lines),
        comparison.recipe.reconstruction.method,
        comparison.recipe,
        np.random.default_rng([comparison.seed, 2]),
        with_std=with_std,
    )
