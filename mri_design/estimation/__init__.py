"""What the image is: point estimates."""

from mri_design.estimation.admm import ADMM
from mri_design.estimation.automatic import Automatic
from mri_design.estimation.base import InnerSolver, require_solver
from mri_design.estimation.duality import DualityGap, duality_gap
from mri_design.estimation.irls import IRLS
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.least_squares import least_squares, zero_filled
from mri_design.estimation.map_estimate import MapEstimate, PointEstimate, map_estimate
from mri_design.estimation.penalised import PenalisedProblem, SitePenalty, Smoothed

__all__ = [
    "ADMM",
    "IRLS",
    "LBFGS",
    "Automatic",
    "DualityGap",
    "InnerSolver",
    "MapEstimate",
    "PenalisedProblem",
    "PointEstimate",
    "SitePenalty",
    "Smoothed",
    "duality_gap",
    "least_squares",
    "map_estimate",
    "require_solver",
    "zero_filled",
]
