"""What the image is: point estimates."""

from mri_design.estimation.irls import IRLS
from mri_design.estimation.least_squares import least_squares, zero_filled
from mri_design.estimation.map_estimate import MapEstimate
from mri_design.estimation.penalised import PenalisedProblem, SitePenalty, Smoothed

__all__ = ["IRLS", "MapEstimate", "PenalisedProblem", "SitePenalty", "Smoothed", "least_squares", "zero_filled"]
