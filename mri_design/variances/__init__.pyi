"""Marginal variances of the posterior: z = diag(B A^-1 B^H)."""

from .base import Exact as Exact
from .base import Lanczos as Lanczos
from .base import SolvedDraws as SolvedDraws
from .base import VarianceEstimator as VarianceEstimator
from .base import gain_from_values as gain_from_values
from .base import not_positive_definite as not_positive_definite
from .base import require_estimator as require_estimator
from .columns import ColumnControl as ColumnControl
from .columns import ColumnFactors as ColumnFactors
from .columns import ExactByColumns as ExactByColumns
from .control_variate import LEAST as LEAST
from .control_variate import CirculantControl as CirculantControl
from .control_variate import ControlVariate as ControlVariate
from .control_variate import MonteCarlo as MonteCarlo
from .control_variate import ScaledControl as ScaledControl
from .control_variate import best_share as best_share
from .control_variate import filter_control as filter_control

__all__ = [
    "ControlVariate",
    "Exact",
    "ExactByColumns",
    "Lanczos",
    "MonteCarlo",
    "VarianceEstimator",
]
