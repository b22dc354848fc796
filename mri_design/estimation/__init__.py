"""What the image is: point estimates."""

from mri_design.estimation.admm import ADMM
from mri_design.estimation.base import InnerSolver
from mri_design.estimation.irls import IRLS
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.least_squares import least_squares, zero_filled
from mri_design.estimation.map_estimate import MapEstimate
from mri_design.estimation.penalised import PenalisedProblem, SitePenalty, Smoothed

__all__ = [
    "ADMM",
    "IRLS",
    "LBFGS",
    "InnerSolver",
    "MapEstimate",
    "PenalisedProblem",
    "SitePenalty",
    "Smoothed",
    "least_squares",
    "zero_filled",
]
