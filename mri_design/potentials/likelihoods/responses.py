"""What a trial may answer: families of sites, one per response, with the information a trial will bring.

The response to a query x has a distribution that depends on eps = x^T u alone. D(r, eps) = -d^2 log p(r | eps) /
d eps^2 is the observed information; for canonical links it does not depend on r. Lewi, Butera & Paninski 2007,
equations (1) and (9).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.errors import InputError, require_random
from mri_design.potentials.base import Site, Values, one_number
from mri_design.potentials.gaussian import Gaussian
from mri_design.potentials.likelihoods.logistic import Logistic
from mri_design.potentials.likelihoods.poisson import Poisson
from mri_design.potentials.tilted import Tilted

LARGEST_EXPONENT = 700.0


class ResponseFamily(ABC):
    """Responses whose log-likelihood is concave in eps.

    ``monotone`` is True where a query with the larger variance of eps, at the same mean, is always the better one;
    ``reach`` is the change of eps by which odds or rates change e-fold.
    """

    monotone: bool = False
    reach: float = 1.0

    @abstractmethod
    def site(self, response: float) -> Site:
        """The likelihood of one response as a function of eps (sigma is 1)."""

    @abstractmethod
    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        """A response to each eps."""

    @abstractmethod
    def fisher(self, eps: Values) -> Values:
        """E_r D(r, eps)."""

    def log_gain(self, eps: Values, variance: Values) -> Values:
        """E_r log(1 + D(r, eps) variance); as it stands for canonical links, where D is the Fisher information."""
        return np.log1p(self.fisher(eps) * variance)

    def expected_fisher(self, mean: Values, variance: Values) -> Values | None:
        """E D under eps ~ N(mean, variance) where it has a closed form; None otherwise."""
        return None


class PoissonResponse(ResponseFamily):
    """Counts of mean exposure exp(eps).

    Parameters
    ----------
    exposure : float
        Positive.
    """

    monotone = True

    def __init__(self, exposure: float = 1.0) -> None:
        self.exposure = one_number("exposure", exposure)

    def site(self, response: float) -> Site:
        return Poisson(response, self.exposure)

    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        require_random(rng)
        return np.asarray(rng.poisson(self.fisher(np.asarray(projections, dtype=float))), dtype=float)

    def fisher(self, eps: Values) -> Values:
        return self.exposure * np.exp(np.minimum(eps, LARGEST_EXPONENT))

    def log_gain(self, eps: Values, variance: Values) -> Values:
        with np.errstate(divide="ignore"):
            return np.logaddexp(0.0, eps + np.log(self.exposure * np.asarray(variance, dtype=float)))

    def expected_fisher(self, mean: Values, variance: Values) -> Values | None:
        return self.fisher(np.asarray(mean) + 0.5 * np.asarray(variance))


class BernoulliResponse(ResponseFamily):
    """Labels -1 and +1 with log odds scale eps.

    Parameters
    ----------
    scale : float
        Positive.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = one_number("scale", scale)
        self.reach = 1 / self.scale

    def site(self, response: float) -> Site:
        return Logistic(response, self.scale)

    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        require_random(rng)
        p = scipy.special.expit(self.scale * np.asarray(projections, dtype=float))
        return np.where(rng.random(p.shape) < p, 1.0, -1.0)

    def fisher(self, eps: Values) -> Values:
        odds = self.scale * np.asarray(eps)
        return np.asarray(self.scale**2 * scipy.special.expit(odds) * scipy.special.expit(-odds))


class GaussianResponse(ResponseFamily):
    """eps with Gaussian noise.

    Parameters
    ----------
    noise_variance : float
        Positive.
    """

    monotone = True

    def __init__(self, noise_variance: float = 1.0) -> None:
        self.noise_variance = one_number("noise_variance", noise_variance)

    def site(self, response: float) -> Site:
        if not np.isfinite(response):
            raise InputError("response", str(response), "a finite number")
        return Tilted(Gaussian(1 / self.noise_variance), float(response) / self.noise_variance)

    def draw(self, projections: ArrayLike, rng: np.random.Generator) -> Values:
        require_random(rng)
        means = np.asarray(projections, dtype=float)
        return means + np.sqrt(self.noise_variance) * rng.standard_normal(means.shape)

    def fisher(self, eps: Values) -> Values:
        return np.full(np.shape(eps), 1 / self.noise_variance)

    def expected_fisher(self, mean: Values, variance: Values) -> Values | None:
        return np.full(np.broadcast_shapes(np.shape(mean), np.shape(variance)), 1 / self.noise_variance)
