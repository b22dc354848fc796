"""One report over several runs: their key pictures and tables on one page."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mri_design.evaluation.report import Paragraph, ReportFigure, ReportTable, Section, write_report
from mri_design.evaluation.run_folder import RunFolder

__all__ = ["RunSummary", "save_overview"]


@dataclass(frozen=True)
class RunSummary:
    """One run folder on the overview.

    Parameters
    ----------
    title, text : str
        Heading, and what happened in plain words.
    folder : Path
        A finished run folder.
    figures : mapping of str to str
        Figure name (in ``figures/``, without ending) to caption.
    tables : mapping of str to str
        Name of a CSV file in the folder to caption; shown before the figures, in this order.
    """

    title: str
    text: str
    folder: Path
    figures: Mapping[str, str]
    tables: Mapping[str, str] = field(default_factory=dict)


def save_overview(folder: RunFolder, title: str, runs: Sequence[RunSummary]) -> Path:
    """Write ``report.html`` into ``folder`` from finished runs; returns its path."""
    sections = []
    summary: dict[str, object] = {}
    warnings = []
    for run in runs:
        manifest = json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))
        summary[f"{run.title}: status"] = manifest["status"]
        summary[f"{run.title}: seconds"] = manifest["wall_seconds"]
        if manifest["status"] != "converged":
            warnings.append(f"{run.title}: {manifest['status']}.")
        blocks: list[Paragraph | ReportTable | ReportFigure] = [Paragraph(run.text)]
        for name, caption in run.tables.items():
            with (run.folder / name).open(encoding="utf-8", newline="") as stream:
                blocks.append(ReportTable(list(csv.DictReader(stream)), caption))
        for name, caption in run.figures.items():
            blocks.append(ReportFigure((run.folder / "figures" / f"{name}.png").read_bytes(), caption))
        blocks.append(Paragraph(f"Full report and arrays: folder {run.folder.name}."))
        sections.append(Section(run.title, blocks))
    path = folder.output_path("report.html")
    write_report(path, title, summary, sections, warnings=warnings)
    return path
