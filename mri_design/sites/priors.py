"""Sites of priors: Gaussian, Laplace, sech^2, Student-t, exponential power, mixtures, and one by a user's functions.

Sites are made of other sites with an odd part, or as positive mixtures, which are super-Gaussian where their parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Self

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, require_instance
from mri_design.sites.base import (
    GRID,
    LEAST,
    SMOOTH,
    Expectation,
    MovingSite,
    Site,
    SuperGaussian,
    Values,
    departure_from_smooth,
    log_sphere,
    mixed_sites,
    one_number,
    positive_array,
    represented,
    unfit_derivatives,
)


class Gaussian(SuperGaussian):
    """t(s) = exp(-(precision / 2) |s|^2 / sigma^2), so g(x) = -precision x / 2 and pi = precision."""

    offers = SuperGaussian.offers | SMOOTH | {"log_concave", "scale"}

    def __init__(self, precision: ArrayLike) -> None:
        self.precision = positive_array("Gaussian precision", precision)

    def g(self, x: Values) -> Values:
        return -0.5 * self.precision.astype(x.dtype) * x

    def dg(self, x: Values) -> Values:
        return np.broadcast_to(-0.5 * self.precision.astype(x.dtype), x.shape)

    def d2g(self, x: Values) -> Values:
        return np.zeros_like(x)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """In closed form: -p (mean^2 + dimensions variance) / 2."""
        m, v = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
        slope = np.broadcast_to(-0.5 * dimensions * self.precision, np.broadcast_shapes(m.shape, self.precision.shape))
        return Expectation(-0.5 * self.precision * m**2 + slope * v, -self.precision * m, slope)

    @property
    def gaussian_precision(self) -> Values:
        return self.precision

    @property
    def start_variance(self) -> Values | float:
        return 1 / self.precision

    def rescaled(self, factor: ArrayLike) -> Gaussian:
        return Gaussian(self.precision * np.square(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        return 0.5 * dimensions * np.log(2 * np.pi / self.precision)


def mean_modulus(mean: ArrayLike, variance: ArrayLike, dimensions: int = 1) -> Expectation:
    """E |s| for s ~ N(mean, variance I), and its derivatives in the mean (its modulus) and the variance.

    Parameters
    ----------
    mean : array
        Of s on the line, its modulus in more dimensions.
    variance : array
        Of each real number.
    dimensions : int
        d; of Rice's distribution 2.

    Notes
    -----
    With x = m^2 / (2 v): E |s| = c sqrt(2 v) 1F1(-1/2; d/2; -x), c = Gamma((d + 1) / 2) / Gamma(d / 2); on the line
    m (2 Phi(m / sd) - 1) + 2 sd phi(m / sd).
    """
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST))
    spread = np.sqrt(v)
    if dimensions == 1:
        inside = scipy.special.erf(m / (spread * np.sqrt(2)))
        density = np.exp(-0.5 * (m / spread) ** 2) / np.sqrt(2 * np.pi)
        return Expectation(m * inside + 2 * spread * density, inside, density / spread)
    x = 0.5 * (m / spread) ** 2
    half = 0.5 * dimensions
    scale = np.exp(scipy.special.gammaln(half + 0.5) - scipy.special.gammaln(half)) * np.sqrt(2)
    # The variance's derivative is half the expected Laplacian of |s|, (d - 1) / 2 E[1 / |s|].
    return Expectation(
        scale * spread * _kummer(-0.5, half, x),
        scale * _kummer(0.5, half + 1, x) / dimensions * m / spread,
        0.5 * scale / spread * _kummer(0.5, half, x),
    )


def _kummer(a: float, b: float, x: Values) -> Values:
    """1F1(a; b; -x) for x >= 0: beyond 50 by its asymptotic series."""
    near = scipy.special.hyp1f1(a, b, -np.minimum(x, 50.0))
    far = np.maximum(x, 50.0)
    term, total = np.ones_like(far), np.ones_like(far)
    for k in range(12):
        term = term * (a + k) * (a - b + 1 + k) / ((k + 1) * far)
        total = total + term
    lead = np.exp(scipy.special.gammaln(b) - scipy.special.gammaln(b - a)) * far**-a
    return np.asarray(np.where(x > 50.0, lead * total, near))


TINY = 1e-12
"""Keeps 1 / sqrt(x) finite; x and z are in units of the noise variance."""


class _Rate(SuperGaussian):
    """A log-concave site with one rate: log t is a function of (tau / sigma) s."""

    offers = SuperGaussian.offers | {"log_concave", "scale"}

    def __init__(self, rate: ArrayLike) -> None:
        self.rate = positive_array(f"{type(self).__name__} rate", rate)

    def _tau(self, x: Values) -> Values:
        return self.rate.astype(x.dtype)

    @property
    def start_variance(self) -> Values | float:
        return 0.09 / self.rate**2

    def rescaled(self, factor: ArrayLike) -> Self:
        return type(self)(self.rate * np.asarray(factor))


class Laplace(_Rate):
    """t(s) = exp(-(tau / sigma) |s|): log-concave, g(x) = -tau sqrt(x), h(gamma) = tau^2 gamma.

    Parameters
    ----------
    rate : float or array
        tau, dimensionless; an array is broadcast against the coefficients (one tau per subband, say).
    """

    def g(self, x: Values) -> Values:
        return -self._tau(x) * np.sqrt(x)

    def dg(self, x: Values) -> Values:
        return (-0.5 * self._tau(x)) / np.sqrt(np.maximum(x, TINY))

    def d2g(self, x: Values) -> Values:
        return self._tau(x) / (4 * np.maximum(x, TINY) ** 1.5)

    def dlog_t(self, s: Values) -> Values:
        return -self._tau(s) * np.sign(s)

    def d2log_t(self, s: Values) -> Values:
        """Zero: all curvature is in the kink, which no derivative shows."""
        return np.zeros(np.broadcast_shapes(s.shape, self.rate.shape), dtype=s.dtype)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """In closed form: -tau E |s|."""
        modulus = mean_modulus(mean, variance, dimensions)
        return Expectation(-self.rate * modulus.value, -self.rate * modulus.d_mean, -self.rate * modulus.d_variance)

    def conjugate_maximum(self, alpha: Values, beta: Values, weight: Values) -> tuple[Values, Values]:
        """In closed form: h / sd follows from alpha alone."""
        rho = scipy.special.ndtri(0.5 * (1 + alpha / self.rate))
        density = np.exp(-0.5 * rho**2) / np.sqrt(2 * np.pi)
        spread = np.maximum((beta - 2 * self.rate * density) / weight, 0.0)
        return rho * spread, spread

    def dual_form(self, t: Values) -> tuple[Values, float, float]:
        """h(gamma) = tau^2 gamma."""
        return self.rate**2, 0.0, 0.0

    @property
    def modulus_rate(self) -> Values:
        return self.rate

    def log_normaliser(self, dimensions: int = 1) -> Values:
        return log_sphere(dimensions) + scipy.special.gammaln(dimensions) - dimensions * np.log(self.rate)


class SharedLaplace(_Rate):
    """t(s) = exp(-tau sqrt(|s|^2 / sigma^2 + c)): a Laplace site on a vector of which s is a part and the rest is held.

    Parameters
    ----------
    rate : float or array
        tau, dimensionless.
    others : float or array
        c >= 0, the expected square of the rest, in units of sigma^2.
    """

    offers = _Rate.offers - {"scale"}

    def __init__(self, rate: ArrayLike, others: ArrayLike) -> None:
        super().__init__(rate)
        self.whole, self.others = Laplace(rate), np.asarray(others, dtype=float)

    def _square(self, x: Values) -> Values:
        return x + self.others.astype(x.dtype)

    def g(self, x: Values) -> Values:
        return self.whole.g(self._square(x))

    def dg(self, x: Values) -> Values:
        return self.whole.dg(self._square(x))

    def d2g(self, x: Values) -> Values:
        return self.whole.d2g(self._square(x))


def log_cosh(v: Values) -> Values:
    """log cosh v for v >= 0."""
    return v + np.log1p(np.exp(-2 * v)) - v.dtype.type(np.log(2))


def tanh_ratio(v: Values) -> Values:
    """tanh(v) / v for v >= 0, one at zero."""
    safe = np.maximum(v, 1e-4)
    return np.where(v < 1e-4, 1 - v**2 / 3, np.tanh(safe) / safe)


def tanh_ratio_fall(v: Values) -> Values:
    """(tanh(v) / v - 1 / cosh(v)^2) / v^2 for v >= 0, 2/3 at zero: minus the slope of tanh(v) / v, over v."""
    safe = np.maximum(v, 0.1)
    tanh = np.tanh(safe)
    square = np.minimum(v, 0.2) ** 2
    series = 2 / 3 - square * (8 / 15 - square * (34 / 105 - square * (496 / 2835 - square * (2764 / 31185))))
    return np.where(v < 0.1, series, (tanh / safe - (1 - tanh) * (1 + tanh)) / safe**2)


class Sech2(_Rate):
    """t(s) = 1 / cosh(tau s / sigma)^2, the logistic density with its peak at one: log-concave.

    Parameters
    ----------
    rate : float or array
        tau, dimensionless: log t falls as -2 (tau / sigma) |s| far out, as -(tau s / sigma)^2 near zero.
    """

    offers = _Rate.offers | SMOOTH

    def g(self, x: Values) -> Values:
        return -2 * log_cosh(self._tau(x) * np.sqrt(x))

    def dg(self, x: Values) -> Values:
        tau = self._tau(x)
        return -(tau**2) * tanh_ratio(tau * np.sqrt(x))

    def d2g(self, x: Values) -> Values:
        tau = self._tau(x)
        return 0.5 * tau**4 * tanh_ratio_fall(tau * np.sqrt(x))


class StudentT(SuperGaussian):
    """t(s) = (1 + (tau / nu) |s|^2 / sigma^2)^(-(nu + 1) / 2): inference has local optima.

    Parameters
    ----------
    degrees : float
        nu > 0.
    precision : float or array
        tau > 0, dimensionless: that of the Gaussian site which this one becomes for large nu.
    """

    offers = SuperGaussian.offers | SMOOTH | {"scale"}

    def __init__(self, degrees: float, precision: ArrayLike) -> None:
        self.degrees = one_number("Student-t degrees of freedom", degrees)
        self.precision = positive_array("Student-t precision", precision)

    def _rate(self, x: Values) -> Values:
        return (self.precision / self.degrees).astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -0.5 * (self.degrees + 1) * np.log1p(self._rate(x) * x)

    def dg(self, x: Values) -> Values:
        rate = self._rate(x)
        return -0.5 * (self.degrees + 1) * rate / (1 + rate * x)

    def d2g(self, x: Values) -> Values:
        rate = self._rate(x)
        return 0.5 * (self.degrees + 1) * (rate / (1 + rate * x)) ** 2

    def dual_form(self, t: Values) -> tuple[float, float, Values]:
        """h(gamma) = (nu + 1) log gamma + nu / (tau gamma)."""
        return 0.0, self.degrees + 1, self.degrees / self.precision

    @property
    def start_variance(self) -> Values | float:
        return 0.09 / self.precision

    def rescaled(self, factor: ArrayLike) -> StudentT:
        return StudentT(self.degrees, self.precision * np.square(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        excess = self.degrees + 1 - dimensions
        if excess <= 0:
            return np.full_like(self.precision, np.inf)
        tails = scipy.special.betaln(0.5 * dimensions, 0.5 * excess) - np.log(2)
        return log_sphere(dimensions) + tails + 0.5 * dimensions * np.log(self.degrees / self.precision)


class ExponentialPower(SuperGaussian):
    """t(s) = exp(-(tau |s| / sigma)^p): super-Gaussian for 0 < p <= 2, log-concave where p >= 1.

    Parameters
    ----------
    power : float
        p in (0, 2]: 2 is a Gaussian of precision 2 tau^2, 1 a Laplace site.
    rate : float or array
        tau, dimensionless.

    Raises
    ------
    InputError
        For another power (above 2 the site is not super-Gaussian), or a rate that is not positive.

    Notes
    -----
    h(gamma) is proportional to gamma^(p / (2 - p)), convex iff p >= 1 (TR-175 section 3.2).
    """

    def __init__(self, power: float, rate: ArrayLike) -> None:
        given = np.asarray(power)
        if given.ndim or given.dtype.kind not in "fiu" or not 0 < given <= 2:
            raise InputError(
                "exponential power", repr(power), "one number in (0, 2]: above 2 the site is not super-Gaussian"
            )
        self.power = float(given)
        self.rate = positive_array("exponential power rate", rate)
        declared = SuperGaussian.offers | {"scale"}
        if self.power >= 1:
            declared |= {"log_concave"}
        self.offers = declared | SMOOTH if self.power == 2 else declared

    def _rate(self, x: Values) -> Values:
        return (self.rate**self.power).astype(x.dtype)

    def g(self, x: Values) -> Values:
        return -self._rate(x) * x ** (self.power / 2)

    def dg(self, x: Values) -> Values:
        half = self.power / 2
        return -half * self._rate(x) * np.maximum(x, TINY) ** (half - 1)

    def d2g(self, x: Values) -> Values:
        half = self.power / 2
        return half * (1 - half) * self._rate(x) * np.maximum(x, TINY) ** (half - 2)

    def dual_form(self, t: Values) -> tuple[Values, float, float] | None:
        """For powers below one, where h is concave as a whole: its tangent, of slope t pi^2."""
        return None if self.power >= 1 else (t * self.site_precision(t) ** 2, 0.0, 0.0)

    @property
    def start_variance(self) -> Values | float:
        """0.09 / tau^2 for the Laplace site, and the same part of the variance for others."""
        spread = scipy.special.gammaln(3 / self.power) - scipy.special.gammaln(1 / self.power)
        return 0.045 * np.exp(min(spread, 12.0)) / self.rate**2

    def rescaled(self, factor: ArrayLike) -> ExponentialPower:
        return ExponentialPower(self.power, self.rate * np.asarray(factor))

    def log_normaliser(self, dimensions: int = 1) -> Values:
        radial = scipy.special.gammaln(dimensions / self.power) - np.log(self.power)
        return log_sphere(dimensions) + radial - dimensions * np.log(self.rate)


Function = Callable[[Values], Values]


class Generic(SuperGaussian):
    """log t(s) = g(x) with x = |s|^2 / sigma^2, for any convex and decreasing g.

    Parameters
    ----------
    g, dg, d2g : callable
        g and its derivatives, vectorised over arrays x >= 0 of any float type.
    log_concave : bool, optional
        Whether t is; found by its derivatives if not given.
    shape : tuple of int
        Shape of what g itself broadcasts over (its own scales), () for one site for all.
    start_variance : float or array, optional
        First guess of z; by default the x at which log t has fallen by 0.3.
    name : str
        For messages.

    Raises
    ------
    InputError
        Where g is not finite, not decreasing or not convex somewhere between 1e-6 and 1e6, the derivatives are not
        those of g, or the site is claimed to be log-concave and is not.
    """

    def __init__(
        self,
        g: Function,
        dg: Function,
        d2g: Function,
        *,
        log_concave: bool | None = None,
        shape: tuple[int, ...] = (),
        start_variance: ArrayLike | None = None,
        name: str = "generic site",
    ) -> None:
        self._functions, self._square, self._shape = (g, dg, d2g), np.asarray(1.0), shape
        self.name = name
        x = np.broadcast_to(GRID.reshape(-1, *(1 for _ in shape)), (GRID.size, *shape)).copy()
        values, slopes, curvatures = (self._evaluated(k, x) for k in range(3))
        self._refuse_unless_super_gaussian(x, values, slopes, curvatures)
        curvature_of_log_t = 2 * slopes + 4 * x * curvatures
        concave = bool((curvature_of_log_t <= 1e-6 * (np.abs(slopes) + x * curvatures)).all())
        if log_concave and not concave:
            raise self._refusal("log_concave=True, but log t is convex in s somewhere", "the truth", "Leave it out.")
        if start_variance is None:
            fallen = values > values[0] - 0.3
            start_variance = GRID[np.minimum(fallen.sum(axis=0), GRID.size - 1)]
        self._start_variance = positive_array(f"{name}: start_variance", start_variance)
        declared = SuperGaussian.offers | {"scale"}
        if concave if log_concave is None else log_concave:
            declared |= {"log_concave"}
        self.offers = declared if departure_from_smooth(self) else declared | SMOOTH

    def _evaluated(self, order: int, x: Values) -> Values:
        """The derivative of that order at x, of its shape."""
        try:
            return np.broadcast_to(np.asarray(self._functions[order](x), dtype=float), x.shape)
        except (TypeError, ValueError, ArithmeticError) as error:
            called = ("g", "dg", "d2g")[order]
            raise self._refusal(
                f"a {called} that cannot be had at {x.shape[0]} points x of shape {self._shape} ({error})",
                "vectorised functions of x, real and of its shape",
                "Say shape= where g has scales of its own.",
            ) from error

    def _refuse_unless_super_gaussian(self, x: Values, values: Values, slopes: Values, curvatures: Values) -> None:
        if not np.isfinite(values).all():
            raise self._refusal("values that are not finite", "g, g' and g'' finite for x > 0")
        rounding = 1e-9 * (np.abs(values).max() + 1e-300) / x
        not_super_gaussian = "It is not super-Gaussian, so no estimate here takes it: choose a site near it that is."
        fault = unfit_derivatives(x, slopes, curvatures)
        if fault is not None:
            raise self._refusal(fault, "g' < 0 and g'' >= 0, finite for every x > 0", not_super_gaussian)
        step = 1e-4 * x
        pairs = [(self._functions[k](x + step), self._functions[k](x - step)) for k in (0, 1)]
        g_slope, dg_slope = ((np.asarray(up) - np.asarray(down)) / (2 * step) for up, down in pairs)
        if (np.abs(g_slope - slopes) > 1e-4 * np.abs(slopes) + rounding).any():
            raise self._refusal("a dg that is not the derivative of g", "g'")
        if (np.abs(dg_slope - curvatures) > 1e-3 * np.abs(curvatures) + 1e-6 * np.abs(slopes) / x).any():
            raise self._refusal("a d2g that is not the derivative of dg", "g''")

    def _refusal(self, got: str, wanted: str, cure: str = "") -> InputError:
        return InputError(self.name, got, wanted, cure)

    def _derivative(self, order: int, x: Values) -> Values:
        square = self._square.astype(x.dtype)
        return np.asarray(square**order * self._functions[order](square * x)).astype(x.dtype, copy=False)

    def g(self, x: Values) -> Values:
        return self._derivative(0, x)

    def dg(self, x: Values) -> Values:
        return self._derivative(1, x)

    def d2g(self, x: Values) -> Values:
        return self._derivative(2, x)

    @property
    def start_variance(self) -> Values | float:
        return np.broadcast_to(self._start_variance, self._shape)

    def rescaled(self, factor: ArrayLike) -> Generic:
        other, square = copy(self), np.square(np.asarray(factor, dtype=float))
        other._square, other._start_variance = self._square * square, self._start_variance / square
        other._shape = np.broadcast_shapes(self._shape, square.shape)
        return other


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


def _stacked(parts: Iterable[ArrayLike]) -> Values:
    """Numbers of every part along a new first axis."""
    return np.array(np.broadcast_arrays(*parts))


def _curvature(q: Values, slopes: Values, curvatures: Values) -> Values:
    """Second derivative of log sum_k exp(f_k), by the derivatives of f_k and the share q_k of each in the sum."""
    return np.asarray(np.sum(q * (curvatures + (slopes - np.sum(q * slopes, axis=0)) ** 2), axis=0))


def _log_normaliser(sites: Sequence[Site], weights: Values, dimensions: int) -> Values:
    """log of the weighted sum of the sites' integrals."""
    own = [site.log_normaliser(dimensions) + np.log(w) for site, w in zip(sites, weights, strict=True)]
    return np.asarray(scipy.special.logsumexp(_stacked(own), axis=0))


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
    precision pi = sum_k q_k / gamma_k and slope b = sum_k q_k c_k / gamma_k, both moving. Next to a tangent z pi of
    log|A| its minimum over q and gamma is closed: psi(s) = -2 log sum_k w_k exp g_k((s / sigma - c_k)^2 + z).
    """

    def __init__(self, weights: ArrayLike, sites: Sequence[SuperGaussian], positions: ArrayLike) -> None:
        self.weights = positive_array("mixture weights", weights)
        self.sites = mixed_sites(sites)
        self.positions = number_array("mixture positions", positions, wanted="real numbers", kind="real").astype(float)
        if not self.sites or self.weights.shape != (len(self.sites),) or self.positions.shape != self.weights.shape:
            raise InputError("shifted mixture", f"{len(self.sites)} sites", "a weight and a position for each")
        self.breaks = tuple(sorted({float(c) for c in self.positions}))
        self.offers = _with_parts(MovingSite.offers, self.sites)

    def _log_terms(self, s: Values, z: Values | float) -> tuple[Values, Values]:
        """g_k at (s - c_k)^2 + z plus log w_k, and those arguments, along a new first axis."""
        arguments = [((s - s.dtype.type(c)) ** 2 + z).astype(s.dtype) for c in self.positions]
        triples = zip(self.sites, self.weights, arguments, strict=True)
        terms = [site.g(t) + s.dtype.type(np.log(w)) for site, w, t in triples]
        return _stacked(terms), _stacked(arguments)

    def log_t(self, s: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(s, 0.0)[0], axis=0))

    def dlog_t(self, s: Values) -> Values:
        """Slopes of the parts, weighted by their responsibilities at s."""
        q, slopes, _ = self._parts_at(s)
        return np.asarray(np.sum(q * slopes, axis=0))

    def d2log_t(self, s: Values) -> Values:
        return _curvature(*self._parts_at(s))

    def _parts_at(self, s: Values) -> tuple[Values, Values, Values]:
        """Responsibilities, and both derivatives of every log t_k at s - c_k, along a new first axis."""
        terms = self._log_terms(s, 0.0)[0]
        apart = [s - s.dtype.type(c) for c in self.positions]
        pairs = list(zip(self.sites, apart, strict=True))
        slopes, curvatures = (
            _stacked(each) for each in zip(*((t.dlog_t(a), t.d2log_t(a)) for t, a in pairs), strict=True)
        )
        return _fractions(terms), slopes, curvatures

    def smoothed_log_t(self, s: Values, z: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(s, z)[0], axis=0))

    def gaussian_form(self, s: Values, z: Values) -> SuperGaussian:
        """N^U(s | b, pi) with the b and pi that touch psi at s."""
        terms, arguments = self._log_terms(s, z)
        q = _fractions(terms)
        weights = np.array([w * site.site_precision(t) for w, site, t in zip(q, self.sites, arguments, strict=True)])
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
        return _log_normaliser(self.sites, self.weights, 1)


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
        self.weights = positive_array("mixture weights", weights)
        self.sites = mixed_sites(sites)
        if not self.sites or self.weights.shape != (len(self.sites),):
            raise InputError(
                "mixture weights", f"shape {self.weights.shape}", f"one for each of {len(self.sites)} sites"
            )
        self.offers = _with_parts(SuperGaussian.offers, self.sites)

    def _log_terms(self, x: Values) -> Values:
        terms = [site.g(x) + x.dtype.type(np.log(w)) for site, w in zip(self.sites, self.weights, strict=True)]
        return _stacked(terms)

    def responsibilities(self, x: Values) -> Values:
        """q_k = w_k t_k / t along a new first axis."""
        return _fractions(self._log_terms(x))

    def parts_at(self, t: Values) -> tuple[tuple[Values | float, SuperGaussian], ...]:
        """The parts, with their responsibilities at t: log of a sum from below by its terms."""
        return tuple(zip(self.responsibilities(t), self.sites, strict=True))

    def g(self, x: Values) -> Values:
        return np.asarray(scipy.special.logsumexp(self._log_terms(x), axis=0))

    def dg(self, x: Values) -> Values:
        return np.asarray(np.sum(self.responsibilities(x) * _stacked(site.dg(x) for site in self.sites), axis=0))

    def d2g(self, x: Values) -> Values:
        slopes, curvatures = (_stacked(each) for each in zip(*((t.dg(x), t.d2g(x)) for t in self.sites), strict=True))
        return _curvature(self.responsibilities(x), slopes, curvatures)

    @property
    def start_variance(self) -> Values | float:
        """The mean of the sites' own, weighted by height times width."""
        own = [np.asarray(site.start_variance, dtype=float) for site in self.sites]
        masses = [w * np.sqrt(z) for w, z in zip(self.weights, own, strict=True)]
        return np.asarray(sum(m * z for m, z in zip(masses, own, strict=True)) / sum(masses))

    def rescaled(self, factor: ArrayLike) -> PositiveMixture:
        return PositiveMixture(self.weights, [represented(site.rescaled(factor)) for site in self.sites])

    def log_normaliser(self, dimensions: int = 1) -> Values:
        return _log_normaliser(self.sites, self.weights, dimensions)
