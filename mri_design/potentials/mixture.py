"""Sites made of other sites: with an odd part, or positive mixtures, which are super-Gaussian where their parts are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, require_instance
from mri_design.potentials.base import (
    SMOOTH,
    Expectation,
    MovingSite,
    Site,
    SuperGaussian,
    Values,
    mixed_sites,
    positive_scale,
)
from mri_design.potentials.priors import Gaussian
from mri_design.potentials.requirements import represented


class Tilted(SuperGaussian):
    """t(s) = t_0(s) exp(b s / sigma): the odd part of TR-175 section 2.1 (their beta is b sigma).

    Parameters
    ----------
    potential : SuperGaussian
        t_0; an odd part of its own is added to.
    shift : float or array
        b, dimensionless, broadcast against the coefficients.

    Raises
    ------
    InputError
        For a slope that is not finite, or a site without a representation g.
    """

    def __init__(self, potential: SuperGaussian, shift: ArrayLike) -> None:
        require_instance(Site, wanted="a site", potential=potential)
        potential = represented(potential, "tilted site")
        slope = number_array("slope of a tilted site", shift, wanted="finite real numbers", kind="real").astype(float)
        self.potential = potential
        self.shift = slope + np.asarray(potential.shift)
        kept = potential.offers - {"probability"}
        self.offers = kept - {"moduli"} if np.any(self.shift) else kept

    def g(self, x: Values) -> Values:
        return self.potential.g(x)

    def dg(self, x: Values) -> Values:
        return self.potential.dg(x)

    def d2g(self, x: Values) -> Values:
        return self.potential.d2g(x)

    @property
    def _own_shift(self) -> Values:
        return np.asarray(self.shift) - np.asarray(self.potential.shift)

    def dlog_t(self, s: Values) -> Values:
        return self.potential.dlog_t(s) + self._own_shift

    def d2log_t(self, s: Values) -> Values:
        return self.potential.d2log_t(s)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """E log t_0, by its closed form where it has one, plus b times the mean."""
        self._refuse_moduli(dimensions)
        own, even = self._own_shift, self.potential.expected_log_t(mean, variance, dimensions)
        return Expectation(even.value + own * mean, even.d_mean + own, even.d_variance)

    def at(self, place: tuple[int, ...], shape: tuple[int, ...]) -> Tilted:
        return Tilted(represented(self.potential.at(place, shape)), np.broadcast_to(self._own_shift, shape)[place])

    @property
    def even(self) -> SuperGaussian:
        return self.potential.even

    @property
    def start_variance(self) -> Values | float:
        even = np.asarray(self.potential.start_variance)
        return np.broadcast_to(even, np.broadcast_shapes(even.shape, np.shape(self.shift)))

    def rescaled(self, factor: ArrayLike) -> Tilted:
        return Tilted(represented(self.potential.rescaled(factor)), self._own_shift * np.asarray(factor))


def _with_parts(offers: frozenset[str], sites: Sequence[Site]) -> frozenset[str]:
    """The offers of a mixture: those of its kind, and to be smooth and to be rescaled, where all of its parts are."""
    shared = frozenset.intersection(*(site.offers for site in sites))
    return offers | (shared & (SMOOTH | {"scale"}))


def _fractions(log_terms: Values) -> Values:
    """Each of the terms over their sum along the first axis; SciPy's softmax is slow on small arrays."""
    terms = np.exp(log_terms - log_terms.max(axis=0))
    return np.asarray(terms / terms.sum(axis=0))


class ShiftedMixture(MovingSite):
    """t(s) = sum_k w_k t_k(s - c_k sigma) on real coefficients: a site whose Gaussian bound has a position of its own.

    Parameters
    ----------
    weights : sequence of float
        w_k > 0, of the sites as they are.
    sites : sequence of SuperGaussian
        t_k, super-Gaussian and even.
    positions : sequence of float
        c_k, in units of sigma.

    Raises
    ------
    InputError
        For unequally many weights, sites and positions, weights that are not positive, positions that are not finite,
        sites that are not super-Gaussian and even.

    Notes
    -----
    TR-175 appendix A.4. For any responsibilities q that add up to one and widths gamma_k,
    log t >= -1/2 sum_k q_k ((s / sigma - c_k)^2 / gamma_k + h_k(gamma_k) - 2 log w_k + 2 log q_k), a Gaussian form with
    precision pi = sum_k q_k / gamma_k and slope b = sum_k q_k c_k / gamma_k, both moving. Beside a tangent z pi of
    log|A| its minimum over q and gamma is closed: psi(s) = -2 log sum_k w_k exp g_k((s / sigma - c_k)^2 + z).
    """

    def __init__(self, weights: ArrayLike, sites: Sequence[SuperGaussian], positions: ArrayLike) -> None:
        self.weights = positive_scale("mixture weights", weights)
        self.sites = mixed_sites(sites)
        self.positions = number_array("mixture positions", positions, wanted="real numbers", kind="real").astype(float)
        if not self.sites or self.weights.shape != (len(self.sites),) or self.positions.shape != self.weights.shape:
            raise InputError(
                "shifted mixture",
                f"{len(self.sites)} sites, weights {self.weights.shape}, positions {self.positions.shape}",
                "one weight and one position for each site",
            )
        if not np.isfinite(self.positions).all():
            raise InputError("mixture positions", str(positions), "finite numbers")
        self.breaks = tuple(sorted({float(c) for c in self.positions}))
        self.offers = _with_parts(MovingSite.offers, self.sites)

    def _log_terms(self, s: Values, z: Values | float) -> tuple[Values, Values]:
        """g_k at (s - c_k)^2 + z plus log w_k, and those arguments, along a new first axis."""
        arguments = [((s - s.dtype.type(c)) ** 2 + z).astype(s.dtype) for c in self.positions]
        triples = zip(self.sites, self.weights, arguments, strict=True)
        terms = [site.g(t) + s.dtype.type(np.log(w)) for site, w, t in triples]
        return np.array(np.broadcast_arrays(*terms)), np.array(np.broadcast_arrays(*arguments))

    def log_t(self, s: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(s, 0.0)[0], axis=0))

    def dlog_t(self, s: Values) -> Values:
        """Slopes of the parts, weighted by their responsibilities at s."""
        q, slopes, _ = self._parts_at(s)
        return np.asarray(np.sum(q * slopes, axis=0))

    def d2log_t(self, s: Values) -> Values:
        q, slopes, curvatures = self._parts_at(s)
        return np.asarray(np.sum(q * (curvatures + (slopes - np.sum(q * slopes, axis=0)) ** 2), axis=0))

    def _parts_at(self, s: Values) -> tuple[Values, Values, Values]:
        """Responsibilities, and both derivatives of every log t_k at s - c_k, along a new first axis."""
        terms = self._log_terms(s, 0.0)[0]
        apart = [s - s.dtype.type(c) for c in self.positions]
        pairs = list(zip(self.sites, apart, strict=True))
        slopes = np.array(np.broadcast_arrays(*(site.dlog_t(a) for site, a in pairs)))
        curvatures = np.array(np.broadcast_arrays(*(site.d2log_t(a) for site, a in pairs)))
        return _fractions(terms), slopes, curvatures

    def smoothed_log_t(self, s: Values, z: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(s, z)[0], axis=0))

    def gaussian_form(self, s: Values, z: Values) -> SuperGaussian:
        """N^U(s | b, pi) with the b and pi that touch psi at s."""
        terms, arguments = self._log_terms(s, z)
        q = _fractions(terms)
        weights = np.array(
            [weight * site.site_precision(t) for weight, site, t in zip(q, self.sites, arguments, strict=True)]
        )
        pi = np.maximum(weights.sum(axis=0), np.finfo(s.dtype).tiny)
        return Tilted(Gaussian(pi), np.tensordot(self.positions, weights, axes=1))

    @property
    def start_variance(self) -> Values | float:
        own = [np.asarray(site.start_variance, dtype=float) for site in self.sites]
        return np.asarray(sum(w * z for w, z in zip(self.weights, own, strict=True)) / self.weights.sum())

    def rescaled(self, factor: ArrayLike) -> ShiftedMixture:
        scalar = np.asarray(factor, dtype=float)
        if scalar.ndim:
            raise InputError("factor", f"shape {scalar.shape}", "one number for a shifted mixture")
        return ShiftedMixture(
            self.weights, [represented(s.rescaled(scalar)) for s in self.sites], self.positions / float(scalar)
        )

    def log_normaliser(self, dimensions: int = 1) -> Values:
        own = [s.log_normaliser(1) + np.log(w) for s, w in zip(self.sites, self.weights, strict=True)]
        return np.asarray(scipy.special.logsumexp(np.array(np.broadcast_arrays(*own)), axis=0))


class PositiveMixture(SuperGaussian):
    """t(s) = sum_k w_k t_k(s), every t_k even and super-Gaussian: not log-concave in general, and not taken for it.

    Parameters
    ----------
    weights : sequence of float
        w_k > 0, of the sites as they are (most have t_k(0) = 1), not of densities.
    sites : sequence of SuperGaussian
        t_k, without odd parts.

    Raises
    ------
    InputError
        For weights that are not positive, no or unequally many sites, sites that are not super-Gaussian or not even.

    Notes
    -----
    log sum exp is convex and increasing, so g is convex and decreasing as the g_k are (TR-175 section 2.1).
    """

    def __init__(self, weights: ArrayLike, sites: Sequence[SuperGaussian]) -> None:
        self.weights = positive_scale("mixture weights", weights)
        self.sites = mixed_sites(sites)
        if not self.sites or self.weights.shape != (len(self.sites),):
            raise InputError(
                "mixture weights", f"shape {self.weights.shape}", f"one for each of {len(self.sites)} sites"
            )
        self.offers = _with_parts(SuperGaussian.offers, self.sites)

    def _log_terms(self, x: Values) -> Values:
        terms = [site.g(x) + x.dtype.type(np.log(w)) for site, w in zip(self.sites, self.weights, strict=True)]
        return np.array(np.broadcast_arrays(*terms))

    def responsibilities(self, x: Values) -> Values:
        """q_k = w_k t_k / t along a new first axis."""
        return _fractions(self._log_terms(x))

    def parts_at(self, t: Values) -> tuple[tuple[Values | float, SuperGaussian], ...]:
        """The parts, with their responsibilities at t: log of a sum from below by its terms."""
        return tuple(zip(self.responsibilities(t), self.sites, strict=True))

    def g(self, x: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(x), axis=0))

    def dg(self, x: Values) -> Values:
        slopes = np.array(np.broadcast_arrays(*(site.dg(x) for site in self.sites)))
        return np.asarray(np.sum(self.responsibilities(x) * slopes, axis=0))

    def d2g(self, x: Values) -> Values:
        q = self.responsibilities(x)
        slopes = np.array(np.broadcast_arrays(*(site.dg(x) for site in self.sites)))
        curvatures = np.array(np.broadcast_arrays(*(site.d2g(x) for site in self.sites)))
        return np.asarray(np.sum(q * (curvatures + (slopes - np.sum(q * slopes, axis=0)) ** 2), axis=0))

    @property
    def start_variance(self) -> Values | float:
        """The mean of the sites' own, weighted by height times width."""
        own = [np.asarray(site.start_variance, dtype=float) for site in self.sites]
        masses = [w * np.sqrt(z) for w, z in zip(self.weights, own, strict=True)]
        return np.asarray(sum(m * z for m, z in zip(masses, own, strict=True)) / sum(masses))

    def rescaled(self, factor: ArrayLike) -> PositiveMixture:
        return PositiveMixture(self.weights, [represented(site.rescaled(factor)) for site in self.sites])

    def log_normaliser(self, dimensions: int = 1) -> Values:
        own = [s.log_normaliser(dimensions) + np.log(w) for s, w in zip(self.sites, self.weights, strict=True)]
        return np.asarray(scipy.special.logsumexp(np.array(np.broadcast_arrays(*own)), axis=0))
