"""One report over several runs: their key pictures and tables on one page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from urllib.parse import quote

from mri_design.evaluation.page import (
    Block,
    Links,
    Paragraph,
    ReportFigure,
    ReportTable,
    Section,
    SideBySide,
    write_report,
)
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import read_csv
from mri_design.status import Status


@dataclass(frozen=True)
class FigureFiles:
    """Figures of a run, side by side where there is room.

    Parameters
    ----------
    captions : mapping of str to str
        Figure name (in ``figures/``, without ending) to caption.
    """

    captions: Mapping[str, str]


@dataclass(frozen=True)
class TableFile:
    """A table of a run.

    Parameters
    ----------
    name, caption : str
        CSV file in the run's folder; what stands under the table.
    formats : mapping of str to str
        As for `ReportTable`.
    only : mapping of str to object
        Values that rows must have to be shown, for example ``{"lines": 32}``.
    """

    name: str
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, object] = field(default_factory=dict)


Content = str | FigureFiles | TableFile | Block
"""What stands in a part: text, pieces of a run, or anything that a report can show."""


@dataclass(frozen=True)
class Part:
    """A section of the overview that shows one run; several parts may show the same one.

    Parameters
    ----------
    title : str
        Heading.
    folder : Path
        A finished run folder.
    contents : sequence of Content
        Text, figures and tables in the order shown.
    """

    title: str
    folder: Path
    contents: Sequence[Content]


def save_overview(folder: RunFolder, title: str, parts: Sequence[Part]) -> Path:
    """Write ``report.html`` into ``folder`` from finished runs, with links to their own reports; returns its path."""
    sections = [Section(part.title, [_block(part.folder, content) for content in part.contents]) for part in parts]
    rows, links, warnings = [], dict[str, str](), []
    for run in dict.fromkeys(part.folder for part in parts):
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        rows.append({"run": run.name, "status": manifest["status"], "seconds": float(manifest["wall_seconds"])})
        links[_address(run / "report.html", folder.path)] = f"the full report of {run.name}, with links to its files"
        if manifest["status"] != Status.CONVERGED.value:
            warnings.append(f"{run.name}: {manifest['status']}.")
    sections.append(
        Section("Full reports", [Links(links), ReportTable(rows, "How the runs ended.", {"seconds": ".1f"})])
    )
    path = folder.output_path("report.html")
    write_report(path, title, {}, sections, warnings=warnings)
    return path


def _block(run: Path, content: Content) -> Block:
    if isinstance(content, str):
        return Paragraph(content)
    if isinstance(content, TableFile):
        rows = read_csv(run / content.name)
        shown = [row for row in rows if all(row[name] == value for name, value in content.only.items())]
        return ReportTable(shown, content.caption, content.formats)
    if not isinstance(content, FigureFiles):
        return content
    figures = [
        ReportFigure((run / "figures" / f"{name}.svg").read_text(encoding="utf-8"), caption)
        for name, caption in content.captions.items()
    ]
    return figures[0] if len(figures) == 1 else SideBySide(figures)


def _address(file: Path, start: Path) -> str:
    """Where a file lies as seen from a folder, as a page writes it."""
    return quote(PurePath(os.path.relpath(file, start)).as_posix())
