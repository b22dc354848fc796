"""Marginal variances of the posterior: z = diag(B A^-1 B^H)."""

from mri_design.variances.base import VarianceEstimator, require_estimator
from mri_design.variances.columns import ColumnControl, ExactByColumns
from mri_design.variances.control_variate import CirculantControl, ControlVariate, MonteCarlo
from mri_design.variances.exact import Exact
from mri_design.variances.lanczos import Lanczos

__all__ = [
    "CirculantControl",
    "ColumnControl",
    "ControlVariate",
    "Exact",
    "ExactByColumns",
    "Lanczos",
    "MonteCarlo",
    "VarianceEstimator",
    "require_estimator",
]
