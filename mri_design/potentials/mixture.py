"""Positive mixtures of super-Gaussian sites are super-Gaussian."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from mri_design.errors import InputError
from mri_design.potentials.base import Potential, Values, mixed_sites, positive_scale
from mri_design.potentials.gaussian import Gaussian

__all__ = ["PositiveMixture"]


class PositiveMixture(Potential):
    """t(s) = sum_k w_k t_k(s), every t_k even and super-Gaussian: not log-concave in general, and not taken for it.

    Parameters
    ----------
    weights : sequence of float
        w_k > 0, of the sites as they are (most have t_k(0) = 1), not of densities.
    sites : sequence of Potential
        t_k, without odd parts.

    Raises
    ------
    InputError
        For weights that are not positive, no or unequally many sites, sites that are not super-Gaussian or not even.

    Notes
    -----
    log sum exp is convex and increasing, so g is convex and decreasing as the g_k are (TR-175 section 2.1).
    """

    log_concave = False

    def __init__(self, weights: ArrayLike, sites: Sequence[Potential]) -> None:
        self.weights = positive_scale("mixture weights", weights)
        self.sites = mixed_sites(sites)
        if not self.sites or self.weights.shape != (len(self.sites),):
            raise InputError(
                field="mixture weights",
                got=f"shape {self.weights.shape}",
                wanted=f"one for each of {len(self.sites)} sites",
            )
        for k, site in enumerate(self.sites):
            if not site.super_gaussian or site.two_parameter or np.any(site.shift):
                raise InputError(
                    field=f"site {k} of a mixture",
                    got=f"{type(site).__name__}, which is not super-Gaussian and even",
                    wanted="even super-Gaussian sites",
                    cure="Tilt the mixture, not its sites; ShiftedMixture takes sites that are not centred.",
                )

    @classmethod
    def of_gaussians(cls, weights: ArrayLike, precisions: ArrayLike) -> PositiveMixture:
        """The scale mixture sum_k w_k N(s | 0, sigma^2 / p_k) on real coefficients, with t(0) = 1.

        Raises
        ------
        InputError
            For weights or precisions that are not lists of positive numbers, as many of the one as of the other.
        """
        p = positive_scale("mixture precisions", precisions)
        w = positive_scale("mixture weights", weights)
        if p.ndim != 1 or w.shape != p.shape:
            raise InputError(
                field="mixture precisions",
                got=f"shape {p.shape} beside weights of shape {w.shape}",
                wanted="a list of as many precisions as weights",
            )
        heights = w * np.sqrt(p)
        return cls(heights / heights.sum(), [Gaussian(one) for one in p])

    def _log_terms(self, x: Values) -> Values:
        terms = [site.g(x) + x.dtype.type(np.log(w)) for site, w in zip(self.sites, self.weights, strict=True)]
        return np.array(np.broadcast_arrays(*terms))

    def responsibilities(self, x: Values) -> Values:
        """q_k = w_k t_k / t along a new first axis."""
        terms = self._log_terms(x)
        return np.asarray(np.exp(terms - scipy.special.logsumexp(terms, axis=0)))

    def g(self, x: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(x), axis=0))

    def dg(self, x: Values) -> Values:
        slopes = np.array(np.broadcast_arrays(*(site.dg(x) for site in self.sites)))
        return np.asarray(np.sum(self.responsibilities(x) * slopes, axis=0))

    def d2g(self, x: Values) -> Values:
        q = self.responsibilities(x)
        slopes = np.array(np.broadcast_arrays(*(site.dg(x) for site in self.sites)))
        bends = np.array(np.broadcast_arrays(*(site.d2g(x) for site in self.sites)))
        return np.asarray(np.sum(q * (bends + (slopes - np.sum(q * slopes, axis=0)) ** 2), axis=0))

    @property
    def start_variance(self) -> Values | float:
        """Of the sites' own, weighted by height times width."""
        own = [np.asarray(site.start_variance, dtype=float) for site in self.sites]
        masses = [w * np.sqrt(z) for w, z in zip(self.weights, own, strict=True)]
        return np.asarray(sum(m * z for m, z in zip(masses, own, strict=True)) / sum(masses))

    def rescaled(self, factor: ArrayLike) -> PositiveMixture:
        return PositiveMixture(self.weights, [site.rescaled(factor) for site in self.sites])

    def log_normaliser(self, dimensions: int = 1) -> Values:
        own = [s.log_normaliser(dimensions) + np.log(w) for s, w in zip(self.sites, self.weights, strict=True)]
        return np.asarray(scipy.special.logsumexp(np.array(np.broadcast_arrays(*own)), axis=0))
