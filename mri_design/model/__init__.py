"""The probabilistic model and its Gaussian posterior."""

from mri_design.model.determined import require_determined
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock, require_model
from mri_design.model.marginals import VarianceKind, Variances
from mri_design.model.mr_image import DEFAULT_PRIOR, MRSlice, SparsityBlock
from mri_design.model.noise_covariance import with_noise_covariance
from mri_design.model.phase_map import PhaseMap, estimate_phase
from mri_design.model.phase_prior import PhasePrior, PhaseSites
from mri_design.model.phase_variants import phase_refined, phase_variants
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.model.precision import PosteriorPrecision

__all__ = [
    "DEFAULT_PRIOR",
    "GaussianPosterior",
    "GeneralizedLinearModel",
    "MRSlice",
    "PhaseMap",
    "PhasePrior",
    "PhaseSites",
    "PosteriorPrecision",
    "SiteBlock",
    "SparsityBlock",
    "VarianceKind",
    "Variances",
    "estimate_phase",
    "phase_refined",
    "phase_variants",
    "require_determined",
    "require_model",
    "require_posterior",
    "with_noise_covariance",
]
