"""Sites t(s): factors of prior and likelihood, each a function of one coefficient or of a few."""

from .base import ENGINES as ENGINES
from .base import Expectation as Expectation
from .base import MovingSite as MovingSite
from .base import Role as Role
from .base import Site as Site
from .base import SuperGaussian as SuperGaussian
from .base import departure_from_super_gaussian as departure_from_super_gaussian
from .base import label_signs as label_signs
from .base import line_expectation as line_expectation
from .base import radial_expectation as radial_expectation
from .base import refusal as refusal
from .base import represented as represented
from .base import require_offers as require_offers
from .likelihoods import BernoulliResponse as BernoulliResponse
from .likelihoods import GaussianResponse as GaussianResponse
from .likelihoods import Hinge as Hinge
from .likelihoods import Logistic as Logistic
from .likelihoods import Poisson as Poisson
from .likelihoods import PoissonResponse as PoissonResponse
from .likelihoods import ResponseFamily as ResponseFamily
from .priors import TINY as TINY
from .priors import ExponentialPower as ExponentialPower
from .priors import Gaussian as Gaussian
from .priors import Generic as Generic
from .priors import Laplace as Laplace
from .priors import PositiveMixture as PositiveMixture
from .priors import Sech2 as Sech2
from .priors import ShiftedMixture as ShiftedMixture
from .priors import StudentT as StudentT
from .priors import Tilted as Tilted

__all__ = [
    "BernoulliResponse",
    "ExponentialPower",
    "Gaussian",
    "GaussianResponse",
    "Generic",
    "Hinge",
    "Laplace",
    "Logistic",
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
]
