"""Sites t(s): factors of prior and likelihood, each a function of one coefficient or of a few."""

from mri_design.potentials.base import (
    Expectation,
    MovingSite,
    Site,
    SuperGaussian,
    line_expectation,
    radial_expectation,
)
from mri_design.potentials.likelihoods import (
    BernoulliResponse,
    GaussianResponse,
    Hinge,
    Logistic,
    Poisson,
    PoissonResponse,
    ResponseFamily,
)
from mri_design.potentials.mixture import PositiveMixture, ShiftedMixture, Tilted
from mri_design.potentials.priors import ExponentialPower, Gaussian, Generic, Laplace, Sech2, StudentT
from mri_design.potentials.requirements import departure_from_super_gaussian, require_offers

__all__ = [
    "BernoulliResponse",
    "Expectation",
    "ExponentialPower",
    "Gaussian",
    "GaussianResponse",
    "Generic",
    "Hinge",
    "Laplace",
    "Logistic",
    "MovingSite",
    "Poisson",
    "PoissonResponse",
    "PositiveMixture",
    "ResponseFamily",
    "Sech2",
    "ShiftedMixture",
    "Site",
    "StudentT",
    "SuperGaussian",
    "Tilted",
    "departure_from_super_gaussian",
    "line_expectation",
    "radial_expectation",
    "require_offers",
]
