"""Sites t(s): what is believed about one coefficient."""

from mri_design.potentials.base import MovingSite, Potential, Site, SuperGaussian
from mri_design.potentials.expectation import Expectation, line_expectation, radial_expectation
from mri_design.potentials.exponential_power import ExponentialPower
from mri_design.potentials.gaussian import Gaussian
from mri_design.potentials.generic import Generic
from mri_design.potentials.laplace import Laplace
from mri_design.potentials.likelihoods.hinge import Hinge
from mri_design.potentials.likelihoods.logistic import Logistic
from mri_design.potentials.likelihoods.poisson import Poisson
from mri_design.potentials.likelihoods.responses import (
    BernoulliResponse,
    GaussianResponse,
    PoissonResponse,
    ResponseFamily,
)
from mri_design.potentials.mixture import PositiveMixture, ShiftedMixture
from mri_design.potentials.requirements import departure_from_super_gaussian, require_offers
from mri_design.potentials.sech2 import Sech2
from mri_design.potentials.student_t import StudentT
from mri_design.potentials.tilted import Tilted

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
    "Potential",
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
