"""A figure that stands in the run folder and in the report."""

from __future__ import annotations

from mri_design.evaluation.picture import Drawing
from mri_design.evaluation.report import ReportFigure
from mri_design.evaluation.run_folder import RunFolder

__all__ = ["saved_figure"]


def saved_figure(folder: RunFolder, name: str, figure: Drawing, caption: str) -> ReportFigure:
    """Write figures/NAME.png; the same bytes under a caption for the report."""
    return ReportFigure(folder.write_figure(name, figure).read_bytes(), caption)
