"""The sparse linear model: a likelihood, blocks of sites, and its posterior's precision matrix."""

from .circulant import ScaledCirculantInverse as ScaledCirculantInverse
from .circulant import circulant_inverse as circulant_inverse
from .circulant import mirrored as mirrored
from .circulant import scaled_circulant_inverse as scaled_circulant_inverse
from .generalized_linear import GeneralizedLinearModel as GeneralizedLinearModel
from .generalized_linear import SiteBlock as SiteBlock
from .generalized_linear import require_determined as require_determined
from .generalized_linear import require_model as require_model
from .generalized_linear import with_noise_covariance as with_noise_covariance
from .posterior import DEFAULT_MEMORY as DEFAULT_MEMORY
from .posterior import GaussianPosterior as GaussianPosterior
from .posterior import PosteriorPrecision as PosteriorPrecision
from .posterior import Products as Products
from .posterior import Variances as Variances
from .posterior import add_weighted_grams as add_weighted_grams
from .posterior import draws_at_once as draws_at_once
from .posterior import keep_freed_memory as keep_freed_memory
from .posterior import least_memory as least_memory
from .posterior import noise_memory as noise_memory
from .posterior import pooled_products as pooled_products
from .posterior import require_posterior as require_posterior
from .slice import SliceModel as SliceModel
from .slice import non_locally_refined as non_locally_refined
from .slice import phase_refined as phase_refined
from .slice import phase_variants as phase_variants
from .sparsity import AlikePatches as AlikePatches
from .sparsity import Coefficients as Coefficients
from .sparsity import Companion as Companion
from .sparsity import ExpectedImage as ExpectedImage
from .sparsity import ImageFacts as ImageFacts
from .sparsity import PhaseMap as PhaseMap
from .sparsity import PhasePrior as PhasePrior
from .sparsity import SparsityBlock as SparsityBlock
from .sparsity import companion_patches as companion_patches
from .sparsity import estimate_phase as estimate_phase
from .sparsity import find_alike as find_alike
from .sparsity import prior_blocks as prior_blocks
from .sparsity import unit_modulus as unit_modulus

__all__ = [
    "Coefficients",
    "GaussianPosterior",
    "GeneralizedLinearModel",
    "ImageFacts",
    "SiteBlock",
    "SliceModel",
    "SparsityBlock",
    "with_noise_covariance",
]
