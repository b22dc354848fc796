"""Figures of results; the only place that imports the plotting library.

Names are looked up when first used: the library takes a third of a second to import, and runs without a report draw
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mri_design.evaluation.plots.acquisition import acquisition_order, information_gained, mask_growth
    from mri_design.evaluation.plots.curves import calibration, error_against_lines
    from mri_design.evaluation.plots.images import error_maps, image_grid, std_against_error, std_map
    from mri_design.evaluation.plots.masks import mask_barcodes
    from mri_design.evaluation.plots.panels import ErrorCurve, ImagePanel, LinePanel, error_caption, metric_caption
    from mri_design.evaluation.plots.pixels import pixels_png
    from mri_design.evaluation.plots.planes import block_course, plane_growth, plane_maps, plane_masks, plane_order
    from mri_design.evaluation.plots.prediction import error_course, innovation_course, line_predictions
    from mri_design.evaluation.plots.scores import score_map, score_profiles
    from mri_design.evaluation.plots.trajectories import angle_scores, point_spread_maps, trajectory_curves

_HOMES = {
    "ErrorCurve": "panels",
    "ImagePanel": "panels",
    "LinePanel": "panels",
    "acquisition_order": "acquisition",
    "angle_scores": "trajectories",
    "block_course": "planes",
    "calibration": "curves",
    "error_against_lines": "curves",
    "error_caption": "panels",
    "error_course": "prediction",
    "error_maps": "images",
    "image_grid": "images",
    "information_gained": "acquisition",
    "innovation_course": "prediction",
    "line_predictions": "prediction",
    "mask_barcodes": "masks",
    "mask_growth": "acquisition",
    "metric_caption": "panels",
    "pixels_png": "pixels",
    "plane_growth": "planes",
    "plane_maps": "planes",
    "plane_masks": "planes",
    "plane_order": "planes",
    "point_spread_maps": "trajectories",
    "score_map": "scores",
    "score_profiles": "scores",
    "std_against_error": "images",
    "std_map": "images",
    "trajectory_curves": "trajectories",
}

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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
