"""A figure that stands in the run folder and in the report."""

from __future__ import annotations

from mri_design.evaluation.picture import Drawing
from mri_design.evaluation.report import ReportFigure
from mri_design.evaluation.run_folder import RunFolder

__all__ = ["saved_figure"]


def saved_figure(folder: RunFolder, name: str, figure: Drawing, caption: str) -> ReportFigure:
    """Write figures/NAME.png and figures/NAME.svg; the latter under a caption for the report."""
    path = folder.write_figure(name, figure)
    return ReportFigure(path.with_suffix(".svg").read_text(encoding="utf-8"), caption)
