"""How uncertain: marginal variances z = diag(B A^-1 B^H)."""

from mri_design.variances.base import VarianceEstimator
from mri_design.variances.exact import ExactVariances
from mri_design.variances.lanczos import LanczosVariances
from mri_design.variances.monte_carlo import PerturbAndSolve

__all__ = ["ExactVariances", "LanczosVariances", "PerturbAndSolve", "VarianceEstimator"]
