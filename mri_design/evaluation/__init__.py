"""Numbers, figures and the folder of a run; figures are in `mri_design.evaluation.plots`."""

from mri_design.evaluation.manifest import InputFile, Manifest, installed_versions
from mri_design.evaluation.metrics import (
    ImageMetrics,
    mean_and_spread,
    measure,
    paired_sign_test,
    psnr,
    relative_l2,
    relative_l2_complex,
    ssim,
)
from mri_design.evaluation.report import Paragraph, ReportFigure, ReportTable, Section, write_report
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import csv_text, markdown_text, write_csv, write_markdown

__all__ = [
    "ImageMetrics",
    "InputFile",
    "Manifest",
    "Paragraph",
    "ReportFigure",
    "ReportTable",
    "RunFolder",
    "Section",
    "csv_text",
    "installed_versions",
    "markdown_text",
    "mean_and_spread",
    "measure",
    "paired_sign_test",
    "psnr",
    "relative_l2",
    "relative_l2_complex",
    "ssim",
    "write_csv",
    "write_markdown",
    "write_report",
]
