"""Figures of results; the only place that imports the plotting library."""

from mri_design.evaluation.plots.acquisition import acquisition_order, information_gained, mask_growth
from mri_design.evaluation.plots.curves import ErrorCurve, calibration, error_against_lines
from mri_design.evaluation.plots.images import (
    ImagePanel,
    error_caption,
    error_maps,
    image_grid,
    metric_caption,
    std_against_error,
    std_map,
)
from mri_design.evaluation.plots.masks import mask_barcodes
from mri_design.evaluation.plots.pixels import pixels_png
from mri_design.evaluation.plots.planes import block_course, plane_growth, plane_maps, plane_masks, plane_order
from mri_design.evaluation.plots.prediction import LinePanel, error_course, innovation_course, line_predictions
from mri_design.evaluation.plots.scores import score_map, score_profiles
from mri_design.evaluation.plots.trajectories import angle_scores, point_spread_maps, trajectory_curves

__all__ = [
    "ErrorCurve",
    "ImagePanel",
    "LinePanel",
    "acquisition_order",
    "angle_scores",
    "block_course",
    "calibration",
    "error_against_lines",
    "error_caption",
    "error_course",
    "error_maps",
    "image_grid",
    "information_gained",
    "innovation_course",
    "line_predictions",
    "mask_barcodes",
    "mask_growth",
    "metric_caption",
    "pixels_png",
    "plane_growth",
    "plane_maps",
    "plane_masks",
    "plane_order",
    "point_spread_maps",
    "score_map",
    "score_profiles",
    "std_against_error",
    "std_map",
    "trajectory_curves",
]
