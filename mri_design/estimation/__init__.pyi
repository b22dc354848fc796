"""Point estimates: the most probable image by L-BFGS, ADMM or IRLS, least squares, and bounds on what is left."""

from .admm import ADMM as ADMM
from .admm import duality_gap as duality_gap
from .admm import odd_part as odd_part
from .admm import rounded_threshold as rounded_threshold
from .admm import shrinkage as shrinkage
from .admm import shrunken_moduli as shrunken_moduli
from .compressed_sensing import TEXTBOOK as TEXTBOOK
from .compressed_sensing import textbook as textbook
from .map_estimate import Automatic as Automatic
from .map_estimate import MaximumAPosteriori as MaximumAPosteriori
from .map_estimate import NoiseMap as NoiseMap
from .map_estimate import least_squares as least_squares
from .map_estimate import least_squares_noise as least_squares_noise
from .map_estimate import posterior_noise as posterior_noise
from .map_estimate import zero_filled as zero_filled
from .penalised import IRLS as IRLS
from .penalised import LBFGS as LBFGS
from .penalised import InnerSolver as InnerSolver
from .penalised import PenalisedProblem as PenalisedProblem
from .penalised import SitePenalty as SitePenalty
from .penalised import Smoothed as Smoothed
from .penalised import bound_along as bound_along
from .penalised import powers_along as powers_along
from .penalised import require_solver as require_solver

__all__ = [
    "ADMM",
    "IRLS",
    "LBFGS",
    "Automatic",
    "MaximumAPosteriori",
    "PenalisedProblem",
    "least_squares",
    "zero_filled",
]
