"""The Poisson site: the likelihood of a count whose log rate is the coefficient."""

from __future__ import annotations

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array
from mri_design.potentials.base import SMOOTH, Site, Values, positive_scale
from mri_design.potentials.expectation import LEAST, Expectation


class Poisson(Site):
    """t(s) = (e r)^y exp(-e r) / y! with the rate r = exp(s / sigma): log-concave, not super-Gaussian.

    Parameters
    ----------
    counts : array
        y, whole numbers from 0; broadcast against the coefficients.
    exposure : float or array
        e > 0: the time or area over which was counted.

    Raises
    ------
    InputError
        For counts that are negative or not whole, or an exposure that is not positive.

    Notes
    -----
    It has no representation g(|s|^2) and no super-Gaussian bound: `VariationalGaussian`, `LaplacePropagation` and
    `LaplaceFilter` infer with it, `DoubleLoop` does not. Khan 2014, equation (21).
    """

    offers = Site.offers | SMOOTH | {"log_concave", "normaliser", "probability"}
    role = "likelihood"
    per_site = ("counts", "exposure")

    def __init__(self, counts: ArrayLike, exposure: ArrayLike = 1.0) -> None:
        given = number_array("Poisson counts", counts, wanted="whole numbers, zero or more")
        numbers = given.astype(float) if given.dtype.kind in "fiub" and given.size else np.full(1, -1.0)
        if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers == np.round(numbers)).all()):
            raise InputError("Poisson counts", str(counts), "whole numbers, zero or more")
        self.counts = numbers
        self.exposure = positive_scale("Poisson exposure", exposure)

    def log_t(self, s: Values) -> Values:
        constant = self.counts * np.log(self.exposure) - scipy.special.gammaln(self.counts + 1)
        return self.counts * s - self._rate(s) + constant

    def dlog_t(self, s: Values) -> Values:
        return self.counts - self._rate(s)

    def d2log_t(self, s: Values) -> Values:
        return -self._rate(s)

    def _rate(self, s: Values) -> Values:
        """e exp(s), infinite rather than a warning where it overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(self.exposure * np.exp(s))

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """In closed form: E e^s = exp(mean + variance / 2)."""
        self._refuse_moduli(dimensions)
        v = np.maximum(variance, LEAST)
        rate = self._rate(mean + 0.5 * v)
        constant = self.counts * np.log(self.exposure) - scipy.special.gammaln(self.counts + 1)
        return Expectation(self.counts * mean - rate + constant, self.counts - rate, -0.5 * rate)

    def conjugate_maximum(self, alpha: Values, beta: Values, weight: Values) -> tuple[Values, Values]:
        """In closed form."""
        spread = beta / (self.counts + alpha + weight)
        return np.log((self.counts + alpha) / self.exposure) - 0.5 * spread**2, spread

    @property
    def observed(self) -> tuple[Values, ...]:
        return (self.counts,)

    @property
    def start_mean(self) -> Values | float:
        """log((y + 1/2) / e), near the site's own mode."""
        return np.asarray(np.log((self.counts + 0.5) / self.exposure))

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(1 / (self.counts + 0.5), np.broadcast_shapes(self.counts.shape, self.exposure.shape))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        """log of the integral over s: that of a gamma function, -log y; infinite at y = 0."""
        self._refuse_moduli(dimensions)
        shape = np.broadcast_shapes(self.counts.shape, self.exposure.shape)
        return np.where(self.counts > 0, -np.log(np.maximum(self.counts, 1.0)), np.inf) * np.ones(shape)
