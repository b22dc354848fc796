"""What a protocol's design leaves in its folder: mask, order, exchanges, errors on other subjects, report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.design.training.exchanges import Refinement
from mri_design.evaluation.page import Paragraph, ReportTable, Section
from mri_design.evaluation.reference_noise import noise_caption
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import markdown_text, write_csv
from mri_design.experiment.strategy_names import strategy_label
from mri_design.runs.design_sections import model_sections, model_settings, save_acquisition, save_design
from mri_design.runs.held_out.tables import FORMATS as COMPARISON_FORMATS
from mri_design.runs.held_out.tables import paired_caption
from mri_design.runs.protocol.run import CHECKPOINTS, HeldOutErrors, ProtocolResult
from mri_design.runs.run import Ending, Run
from mri_design.runs.scan_facts import doubts_of_all, simulation_summary
from mri_design.scan.io.atomic import write_text

FORMATS = COMPARISON_FORMATS | {"error": ".5f"}


def report_protocol(run: Run, result: ProtocolResult | Ending) -> Ending:
    """Write mask.npy, lines.csv, exchanges.csv, metrics.csv, summary and paired tables, manifest and page.

    A protocol that was finished before stays as it is.
    """
    if isinstance(result, Ending):
        return result
    folder, trace, training, recipe = run.folder, result.account.trace, result.training, result.request.recipe
    noise = float(np.mean([image.slice_model.noise_variance for image in training]))
    sections = [
        *save_design(folder, result.account, noise),
        *model_sections(folder, result.account),
        *save_acquisition(folder, result.acquisition, recipe),
    ]
    if result.refined is not None:
        sections.append(_exchange_section(folder, result.refined))
    if result.tested is not None:
        sections.append(_test_section(folder, result.tested, [image.noise for image in result.tests]))
    names = [image.name for image in training]
    doubts, told = doubts_of_all([*training, *result.tests])
    summary: dict[str, object] = {
        "lines": f"{len(trace.lines)} of {trace.n_lines}",
        "acceleration": trace.n_lines / len(trace.lines),
        "start lines": len(trace.start),
        "strategy": strategy_label(trace.strategy),
        "training images": f"{len(names)}: {', '.join(names)}",
        "test images": len(result.tests),
        **simulation_summary([image.simulated for image in training]),
        **told,
    }
    facts = {"start": len(trace.start), **model_settings(result.designed.models), **doubts}
    record = replace(result.record, settings={**result.record.settings, **facts})
    return run.finish(result.ending, record, "One mask for many scans", summary, sections, CHECKPOINTS)


def _exchange_section(folder: RunFolder, refined: Refinement) -> Section:
    rows: list[dict[str, object]] = [
        {"attempt": i, "removed": e.removed, "added": e.added, "error": e.error, "accepted": e.accepted}
        for i, e in enumerate(refined.exchanges, 1)
    ]
    kept = sum(exchange.accepted for exchange in refined.exchanges)
    text = (
        f"{kept} of {len(rows)} exchanges stayed; the mean error over the training images is {refined.error:.5f} now. "
        f"They took {refined.reconstructions} reconstructions."
    )
    if not rows:
        return Section("Exchanges", [Paragraph(text)])
    folder.write_table("exchanges.csv", rows)
    caption = "Mean error over the training images with each exchange made; it stays only where that is a new low."
    return Section("Exchanges", [Paragraph(text), ReportTable(rows, caption, FORMATS)])


def _test_section(folder: RunFolder, tested: HeldOutErrors, noise: list[float | None]) -> Section:
    folder.write_metrics(tested.rows)
    tables = {"summary": tested.summary, **({"paired": tested.paired} if tested.paired else {})}
    for name, table in tables.items():
        write_csv(folder.output_path(f"{name}.csv"), table, formats=FORMATS)
        write_text(folder.output_path(f"{name}.md"), markdown_text(table, formats=FORMATS))
    captions = {
        "summary": "Errors on scans that the mask has not seen, the same reconstruction for all; lower is better."
        + noise_caption(noise),
        "paired": paired_caption(tested.paired),
    }
    return Section("On other scans", [ReportTable(table, captions[name], FORMATS) for name, table in tables.items()])
