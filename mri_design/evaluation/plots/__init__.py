"""Figures of results; the only place that imports the plotting library."""

from mri_design.evaluation.plots.acquisition import acquisition_order, information_gained
from mri_design.evaluation.plots.curves import ErrorCurve, calibration, error_against_lines
from mri_design.evaluation.plots.images import (
    ImagePanel,
    error_maps,
    image_grid,
    metric_caption,
    std_against_error,
    std_map,
)
from mri_design.evaluation.plots.masks import mask_barcodes
from mri_design.evaluation.plots.scores import score_map, score_profiles

__all__ = [
    "ErrorCurve",
    "ImagePanel",
    "acquisition_order",
    "calibration",
    "error_against_lines",
    "error_maps",
    "image_grid",
    "information_gained",
    "mask_barcodes",
    "metric_caption",
    "score_map",
    "score_profiles",
    "std_against_error",
    "std_map",
]
