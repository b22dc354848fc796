"""Sites t(s), the factors of a generalized linear model: their base classes, and E log t(s) under a Gaussian.

A `Site` knows log t and, where it has them, the derivatives. What it can do it declares in `Site.offers`; what an
engine needs is compared with that in one place, `require_offers`.

A `SuperGaussian` site is given by a representation as well: with x = |s|^2 / sigma^2, log t(s) = g(x) + b s / sigma. It
is super-Gaussian where g is convex and decreasing; then g(x) = max over gamma > 0 of -(x / gamma + h(gamma)) / 2
(TR-175 section 2), and

    min over gamma of (z + x) / gamma + h(gamma) = -2 g(x + z),   attained at 1 / gamma = -2 g'(x + z),

so that an engine needs g and its derivatives only. Sites on complex coefficients act on the modulus, and have b = 0.
The paper's beta is b sigma. A `MovingSite` has a bound of Gaussian form of which both parameters move, width and
position (TR-175 appendix A.4).

Expectations are by quadrature where a site has no closed form (`line_expectation`, `radial_expectation`). With
f = log t and s ~ N(m, v) on the line, d/dm E f = E f' and d/dv E f = E f'' / 2 = E[f'(s) (s - m)] / (2 v): first
derivatives are all that is needed, and kinks do no harm. On a modulus s is a vector of d real numbers with covariance
v I, and f a function of |s|.

Sites declare what they can do in `Site.offers`, engines what they need in ``needs``. `require_offers` compares the two
and writes every refusal: which block, which site, what is missing, and which engine can. What a site claims is probed
as well (`unmet_claim`): g' < 0 and g'' >= 0 over twelve decades, and no corner where it says that it has a curvature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.brief import brief_attributes
from mri_design.errors import InputError, number_array, sequence_of

Values = NDArray[np.floating]
Function = Callable[[Values], Values]

REACH = 10.0  # standard deviations on either side: what lies beyond is below rounding
LEAST = 1e-200  # variances are kept above: their roots and reciprocals stay finite


@dataclass(frozen=True)
class Expectation:
    """E log t(s) for s ~ N(mean, variance), per site and in units of sigma.

    Parameters
    ----------
    value : array
        E log t.
    d_mean : array
        Its derivative in the mean (on moduli: in the modulus of the mean).
    d_variance : array
        Its derivative in the variance per real number: twice it is E (log t)'' on the line, the expected Laplacian
        of log t on a modulus.
    """

    value: Values
    d_mean: Values
    d_variance: Values


@cache
def _tanh_sinh() -> tuple[Values, Values, Values]:
    """Distances from either end and weights on (0, 1); ends where the site is not smooth cost no accuracy."""
    t = np.arange(-3.2, 3.2001, 0.04)
    near = 1 / (1 + np.exp(np.pi * np.sinh(-t)))
    far = 1 / (1 + np.exp(np.pi * np.sinh(t)))
    return near, far, 0.04 * np.pi * np.cosh(t) * near * far


def line_expectation(
    log_t: Function, dlog_t: Function, mean: ArrayLike, variance: ArrayLike, breaks: Sequence[float] = (0.0,)
) -> Expectation:
    """The expectation of a site on real coefficients.

    Parameters
    ----------
    log_t, dlog_t : callable
        Site and derivative, of arrays of shape (nodes, *sites).
    mean, variance : arrays
        Of s, in units of sigma.
    breaks : sequence of float
        Where the site has kinks, or its structure of smallest scale: ends of the intervals of integration.

    Notes
    -----
    The tanh-sinh rule of Takahasi & Mori (1974) on every interval between breaks within ten standard deviations.
    """
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST))
    spread = np.sqrt(v)
    near, far, weights = (a.reshape(-1, *(1 for _ in m.shape)) for a in _tanh_sinh())
    ends = [m - REACH * spread, *(np.clip(b, m - REACH * spread, m + REACH * spread) for b in sorted(breaks))]
    ends.append(m + REACH * spread)
    value, slope, curvature = (np.zeros(m.shape) for _ in range(3))
    reference = np.asarray(dlog_t(m))
    for low, high in pairwise(ends):
        length = high - low
        s = np.where(near < 0.5, low + near * length, high - far * length)
        ahead = np.where(near < 0.5, (low - m) + near * length, (high - m) - far * length)
        mass = weights * (length / spread) * np.exp(-0.5 * (ahead / spread) ** 2) / np.sqrt(2 * np.pi)
        slopes = dlog_t(s)
        value = value + np.sum(mass * log_t(s), axis=0)
        slope = slope + np.sum(mass * slopes, axis=0)
        curvature = curvature + np.sum(mass * (slopes - reference) * (ahead / spread), axis=0)
    return Expectation(value, slope, 0.5 * curvature / spread)


def radial_expectation(
    g: Function, dg: Function, modulus: ArrayLike, variance: ArrayLike, dimensions: int
) -> Expectation:
    """E g(|s|^2) of a Gaussian vector s of ``dimensions`` >= 2 real numbers, and its derivatives in mean and variance.

    Parameters
    ----------
    g, dg : callable
        log t as a function of |s|^2 and its derivative, of arrays of shape (nodes, *sites).
    modulus : array
        |E s|, in units of sigma.
    variance : array
        Of each real component of s; components are independent.
    dimensions : int
        Length of s.

    Notes
    -----
    |s| has a non-central chi density, and given |s| the cosine between s and its mean the expectation
    I_(d/2) / I_(d/2 - 1) of |s| |E s| / v. With F(r) = g(r^2): d/dm E F = E[F' cos], and
    d/dv E F = E[F' (r - m cos)] / (2 v).
    """
    m, v = np.broadcast_arrays(np.asarray(modulus, dtype=float), np.maximum(np.asarray(variance, dtype=float), LEAST))
    spread = np.sqrt(v)
    near, _, weights = (a.reshape(-1, *(1 for _ in m.shape)) for a in _tanh_sinh())
    low = np.maximum(-m, -REACH * spread)  # relative to m
    length = (REACH + np.sqrt(dimensions)) * spread - low
    ahead = low + near * length
    r = np.where(near < 0.5, (m + low) + near * length, m + ahead)
    kappa = r * (m / v)
    log_mass = (dimensions - 1) * np.log(np.maximum(r / spread, 1e-300)) - 0.5 * (ahead / spread) ** 2
    mass = weights * (length / spread) * np.exp(log_mass) * _scaled_bessel(0.5 * dimensions - 1, kappa)
    aside = _cosine_deficit(dimensions, kappa)
    slopes = 2 * r * dg(r**2)
    reference = 2 * m * dg(m**2)
    curvature = (slopes - reference) * ahead + aside * (m * slopes + reference * r)
    return Expectation(
        np.sum(mass * g(r**2), axis=0),
        np.sum(mass * slopes * (1 - aside), axis=0),
        0.5 * np.sum(mass * curvature, axis=0) / v,
    )


def _scaled_bessel(order: float, kappa: Values) -> Values:
    """kappa^-order exp(-kappa) I_order(kappa), finite at zero."""
    near, middle, far = np.minimum(kappa, 1e-4), np.clip(kappa, 1e-4, 1e4), np.maximum(kappa, 1e4)
    start = np.exp(-near) * 0.5**order / scipy.special.gamma(order + 1) * (1 + 0.25 * near**2 / (order + 1))
    e = 4 * order**2
    end = far ** (-order - 0.5) / np.sqrt(2 * np.pi)
    end = end * (1 - (e - 1) / (8 * far) * (1 - (e - 9) / (16 * far) * (1 - (e - 25) / (24 * far))))
    between = scipy.special.ive(order, middle) / middle**order
    return np.asarray(np.where(kappa < 1e-4, start, np.where(kappa > 1e4, end, between)))


def _cosine_deficit(dimensions: int, kappa: Values) -> Values:
    """1 - I_(d/2)(kappa) / I_(d/2 - 1)(kappa), without cancellation far out."""
    order = 0.5 * dimensions - 1
    small = np.clip(kappa, 1e-4, 1e3)
    ratio = scipy.special.ive(order + 1, small) / scipy.special.ive(order, small)
    k, e = np.maximum(kappa, 1e3), float(dimensions)
    far = (e - 1) / (2 * k) - (e - 1) * (e - 3) / (8 * k**2) - (e - 1) * (e - 3) / (8 * k**3)
    return np.asarray(np.where(kappa < 1e-4, 1 - kappa / dimensions, np.where(kappa > 1e3, far, 1 - ratio)))


Role = Literal["prior", "likelihood"]
SMOOTH = frozenset({"curvature", "expansion"})
"""Offers of sites whose log t has a second derivative everywhere."""


class Site(ABC):
    """One factor t(s), vectorised over coefficients s in units of sigma.

    A site subclasses this class, or `SuperGaussian` where it has a representation g, and says in ``offers`` what it can
    do. The names that the engines of this package know are listed below; others may be agreed on between a new site and
    a new engine.

    ====================  ============================================================================================
    ``"g"``               log t = g(|s|^2) + b s, at a fixed position (`SuperGaussian`)
    ``"bound"``           a bound of Gaussian form at every s: g is convex and decreasing, or `MovingSite`
    ``"fixed"``           the position of the site does not move with its bound
    ``"moduli"``          the site is a function of |s|, and may act on the modulus of complex numbers and of groups
    ``"log_concave"``     log t is concave in s, which makes inference a convex problem
    ``"curvature"``       log t has a second derivative everywhere
    ``"expansion"``       the mode of many sites times a Gaussian can be found: they have a curvature, or are margins
    ``"conjugate"``       Newton's method finds the maximum of E log t minus a quadratic function
    ``"scale"``           `rescaled` is written
    ``"normaliser"``      t can be normalised over its data: `log_normaliser`, or it is a probability as it stands
    ``"probability"``     t is the probability of its datum as it stands
    ====================  ============================================================================================
    """

    offers: frozenset[str] = frozenset({"fixed", "conjugate"})
    """Capabilities of the site; an instance may have more or less than its class."""
    role: Role = "prior"
    """Role of a block of these sites by default: prior knowledge, or data."""
    shift: Values | float = 0.0
    """The slope b of the odd part b s / sigma, dimensionless, broadcastable to the coefficients."""
    breaks: tuple[float, ...] = (0.0,)
    """Where log t has kinks or its finest structure, in units of sigma (`line_expectation`)."""
    per_site: ClassVar[tuple[str, ...]] = ("rate", "precision", "shift")
    """The attributes that may be arrays with one value per site, which `at` takes apart; a new site with others lists
    them: ``per_site = ("width", "shift")``."""

    def __repr__(self) -> str:
        return brief_attributes(self)

    @abstractmethod
    def log_t(self, s: Values) -> Values:
        """log t at real coefficients s, in units of sigma."""

    @abstractmethod
    def dlog_t(self, s: Values) -> Values:
        """Derivative of `log_t` in s, in units of sigma."""

    @abstractmethod
    def d2log_t(self, s: Values) -> Values:
        """Second derivative of `log_t` in s, in units of sigma; away from kinks."""

    @property
    @abstractmethod
    def start_variance(self) -> Values | float:
        """A first guess of z = Var[s] / sigma^2 for a cold start, from the site's own scale."""

    @property
    def start_mean(self) -> Values | float | None:
        """A first guess of E s for a cold start, where the site knows one: None leaves it to the data."""
        return None

    @property
    def log_concave(self) -> bool:
        """Whether log t is concave in s."""
        return "log_concave" in self.offers

    @property
    def gaussian_precision(self) -> Values | None:
        """p where log t = -p |s|^2 / 2; None for sites that are not Gaussian. Engines take Gaussian sites exactly."""
        return None

    @property
    def modulus_rate(self) -> Values | None:
        """tau where log t = -tau |s|; None for other sites."""
        return None

    @property
    def margins(self) -> tuple[Values, Values] | None:
        """c and C where log t = -C max(0, 1 - c s) with c = +-1; None for other sites."""
        return None

    def rescaled(self, factor: ArrayLike) -> Site:
        """The site s -> t(factor s), its rate multiplied: g(factor^2 x), and factor b; ``factor`` may be an array."""
        raise InputError(type(self).__name__, "no scale", "a site with a scale", 'Write `rescaled`, and offer "scale".')

    def at(self, place: tuple[int, ...], shape: tuple[int, ...]) -> Site:
        """The one site at ``place`` of sites of this ``shape``: array rates and slopes become numbers."""
        site = copy(self)
        for name in self.per_site:
            value = vars(self).get(name, 0.0)
            if np.ndim(value):
                setattr(site, name, np.asarray(np.broadcast_to(value, shape)[place]))
        return site

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """E log t(s) for s ~ N(mean, variance), with its derivatives in both; in units of sigma and double precision.

        Parameters
        ----------
        mean : array
            Of the coefficients; its modulus where the site acts on moduli.
        variance : array
            Of every real number that shares the site.
        dimensions : int
            How many share it: 1 for a real coefficient, 2 for a modulus, more for groups. Beyond 1 they are taken for
            independent and equally uncertain, which complex coefficients of a complex-linear model are; in groups the
            variance is the mean over the group.

        Returns
        -------
        Expectation
            ``value``, ``d_mean`` and ``d_variance``; -2 ``d_variance`` / ``dimensions`` is the site precision that a
            variational Gaussian needs (Khan 2014, equation 10).

        Notes
        -----
        By quadrature to about ten digits, fewer for mixtures whose parts take over from each other far from any of
        ``breaks`` (five at a standard deviation of six). Sites with a closed form override it.
        """
        self._refuse_moduli(dimensions)
        m, v = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
        return line_expectation(self.log_t, self.dlog_t, m, v, self.breaks)

    def conjugate_maximum(self, alpha: Values, beta: Values, weight: Values) -> tuple[Values, Values] | None:
        """The h and sd >= 0 that maximise E log t + alpha h + beta sd - weight sd^2 / 2 over N(h, sd^2).

        Returns
        -------
        tuple of arrays or None
            In closed form; None where the site has none, and Newton's method has to find it.
        """
        return None

    def log_normaliser(self, dimensions: int = 1) -> Values:
        """log of the integral of t over one site, s in units of sigma: over the line, the plane of a modulus, or more.

        Parameters
        ----------
        dimensions : int
            Real numbers that share the site: 1 for a real coefficient, 2 for a modulus, more for groups.

        Returns
        -------
        array
            Of the shape of the scales; infinite where t is not integrable.

        Notes
        -----
        By the trapezoidal rule on log s, exact to rounding for smooth sites; sites with a closed form override it.
        """
        spread = np.sqrt(np.asarray(self.start_variance, dtype=float))
        log_terms = []
        for offset in np.arange(-40.0, 40.0, 0.05):
            r = spread * np.exp(offset)
            log_terms.append(self._log_mean_around(r, dimensions) + dimensions * np.log(r))
        terms = np.array(np.broadcast_arrays(*log_terms))
        total = scipy.special.logsumexp(terms, axis=0) + np.log(0.05) + log_sphere(dimensions)
        return np.where(terms[-1] > terms.max(axis=0) - 30, np.inf, total)

    def _log_mean_around(self, r: Values, dimensions: int) -> Values:
        """log of the mean of t over the sphere |s| = r."""
        self._refuse_moduli(dimensions)
        return np.asarray(np.logaddexp(self.log_t(r), self.log_t(-r)) - np.log(2))

    def _refuse_moduli(self, dimensions: int) -> None:
        if dimensions > 1 and "moduli" not in self.offers:
            raise InputError(type(self).__name__, f"moduli of {dimensions} real numbers", "real coefficients")


class SuperGaussian(Site):
    """A site with a representation log t = g(|s|^2 / sigma^2) + b s / sigma, g convex and decreasing.

    A new site writes g, dg, d2g, which answer in the precision of x (``self.width.astype(x.dtype)``), and
    ``start_variance``, and adds to ``offers`` what else holds of it: ``"log_concave"``, `SMOOTH`, ``"scale"``. What it
    claims is held against its derivatives where engines rely on it (`unmet_claim`). A site with a g that
    is not super-Gaussian takes ``"bound"`` out of its offers.
    """

    offers = Site.offers | {"g", "bound", "moduli", "normaliser"}

    @abstractmethod
    def g(self, x: Values) -> Values:
        """log t as a function of x = |s|^2 / sigma^2 (x >= 0)."""

    @abstractmethod
    def dg(self, x: Values) -> Values:
        """Derivative of g (negative)."""

    @abstractmethod
    def d2g(self, x: Values) -> Values:
        """Second derivative of g (non-negative where super-Gaussian)."""

    def log_t(self, s: Values) -> Values:
        """log t at real coefficients s, in units of sigma: g(s^2) + b s."""
        return self.g(s**2) + self.shift * s

    def dlog_t(self, s: Values) -> Values:
        """Derivative of `log_t` in s, in units of sigma: 2 s g'(s^2) + b; at a kink zero plus b."""
        return 2 * s * self.dg(s**2) + self.shift

    def d2log_t(self, s: Values) -> Values:
        """Second derivative of `log_t` in s, in units of sigma: 2 g' + 4 s^2 g''; away from kinks."""
        return 2 * self.dg(s**2) + 4 * s**2 * self.d2g(s**2)

    def expected_log_t(self, mean: Values, variance: Values, dimensions: int = 1) -> Expectation:
        """E log t(s) and its derivatives as `Site.expected_log_t` has them, on moduli as well."""
        if dimensions == 1:
            return super().expected_log_t(mean, variance)
        self._refuse_moduli(dimensions)
        m, v = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
        return radial_expectation(self.g, self.dg, m, v, dimensions)

    def _log_mean_around(self, r: Values, dimensions: int) -> Values:
        even = self.g(r**2)
        sides = np.logaddexp(self.shift * r, -self.shift * r) - np.log(2) if dimensions == 1 else 0.0
        return even + sides

    @property
    def even(self) -> SuperGaussian:
        return self

    def site_precision(self, x_plus_z: Values) -> Values:
        """pi = 1 / gamma = -2 g'(x + z), the optimal site precision."""
        return -2 * self.dg(x_plus_z)

    def h_at_optimum(self, x_plus_z: Values) -> Values:
        """h(gamma) at the gamma that is optimal for x + z: -(t pi + 2 g(t)), t = x + z."""
        return -(x_plus_z * self.site_precision(x_plus_z) + 2 * self.g(x_plus_z))

    def dual_form(self, t: Values) -> tuple[Values | float, Values | float, Values | float] | None:
        """h(gamma) = a gamma + b log gamma + c / gamma + const, or a tangent of it from above at the gamma of t.

        None where it is not known; else a, b and c, broadcastable to the sites, none of them negative.
        The bounds of the double loop's first class and hybrid are then roots of quadratic equations.
        """
        return None

    def parts_at(self, t: Values) -> tuple[tuple[Values | float, SuperGaussian], ...]:
        """Weights q_k and sites t_k with log t >= sum_k q_k log t_k + const, equal at t; by default the site itself."""
        return ((1.0, self),)


class MovingSite(Site):
    """A site whose bound of Gaussian form has a position of its own, renewed as s moves (TR-175 appendix A.4)."""

    offers = (Site.offers - {"fixed"}) | {"bound", "normaliser"}

    @abstractmethod
    def smoothed_log_t(self, s: Values, z: Values) -> Values:
        """-psi / 2 at real s, in units of sigma, for the tangent z of log|A|: log t for z = 0."""

    @abstractmethod
    def gaussian_form(self, s: Values, z: Values) -> SuperGaussian:
        """The site of Gaussian form that bounds this one and touches it at s (in units of sigma), for the tangent z."""


def positive_array(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """``values`` as an array, refused unless real, positive and finite."""
    given = number_array(name, values, wanted="positive finite numbers")
    if given.dtype.kind == "c" or not given.size or not (np.isfinite(given).all() and (given > 0).all()):
        raise InputError(name, str(values), "positive finite numbers")
    return given.astype(float)


def label_signs(name: str, labels: ArrayLike) -> NDArray[np.float64]:
    """``labels`` as an array, refused unless every one is -1 or +1."""
    given = number_array(name, labels, wanted="-1 or +1")
    if not (given.dtype.kind in "fiu" and given.size and (np.abs(given) == 1).all()):
        raise InputError(name, str(labels), "-1 or +1", "Map labels 0 and 1 to -1 and +1.")
    return given.astype(float)


def mixed_sites(sites: Sequence[Site]) -> tuple[SuperGaussian, ...]:
    """The sites of a mixture, refused unless each is an even and super-Gaussian site."""
    parts = sequence_of(Site, "sites of a mixture", sites, wanted="a list of sites")
    for k, site in enumerate(parts):
        if not {"g", "bound"} <= site.offers or np.any(site.shift):
            raise InputError(
                f"site {k} of a mixture",
                f"{type(site).__name__}, which is not super-Gaussian and even",
                "even super-Gaussian sites",
                "Tilt the mixture, not its sites; ShiftedMixture takes sites that are not centred.",
            )
    return parts


def one_number(name: str, value: ArrayLike) -> float:
    """``value`` as one positive number, where a site takes no array."""
    array = positive_array(name, value)
    if array.ndim:
        raise InputError(name, f"an array of shape {array.shape}", "one positive number for all sites")
    return float(array)


def log_sphere(dimensions: int) -> float:
    """log of the area of the unit sphere in so many dimensions (2 points, a circle, ...)."""
    return float(np.log(2) + 0.5 * dimensions * np.log(np.pi) - scipy.special.gammaln(0.5 * dimensions))


GRID = np.geomspace(1e-6, 1e6, 241)
PASSES = 8
NEAR, NEARER = 1e-6, 1e-10
"""Two values of x, in units of the site's own, between which a bounded curvature hardly changes."""
BESIDE = 1e-7

ENGINES: dict[str, frozenset[str]] = {
    "VariationalGaussian": frozenset(),
    "LaplacePropagation": frozenset({"expansion"}),
    "LaplaceFilter": frozenset({"line", "fixed", "curvature"}),
    "DoubleLoop": frozenset({"bound"}),
    "DecoupledGaussian": frozenset({"line", "conjugate", "log_concave"}),
}
"""Needs of the engines with their default settings; ``"line"`` is offered by blocks on real coefficients.

The table stands below the engines, which take their ``needs`` from it, so that a refusal can name engines whose files
were never loaded. An engine of another file enters itself when its class is made (`inference.base.Engine`).
"""


_SAY_SMOOTH = "add SMOOTH to its offers where it has one"
_SAY_BOUND = 'add "bound" to its offers where it is'
_SECH2 = "choose a smooth site near it (Sech2 has Laplace tails)"
_PARTS = "put RealAndImaginary {}in front, without group axes"
_WORDS = {  # what a site lacks completes "Hinge, which ..."; what is wanted; another way, an imperative, or none
    "g": ("has no even representation g(|s|^2)", "sites log t = g(|s|^2) + b s with a fixed position", ""),
    "bound": (
        "is not super-Gaussian",
        "super-Gaussian sites: g' < 0 and g'' >= 0, finite for every x > 0",
        "choose a site near it that is super-Gaussian",
    ),
    "fixed": ("moves with its bound", "sites with a fixed position", ""),
    "moduli": (
        "is no function of |s| and cannot act on moduli",
        "real coefficients with a site each",
        _PARTS.format("or a real image "),
    ),
    "line": ("acts on moduli here", "real coefficients with a site each", _PARTS.format("")),
    "log_concave": ("is not log-concave", "log-concave sites", ""),
    "curvature": ("has a corner in its log", "sites with a second derivative", _SECH2),
    "expansion": ("has a corner in its log", "sites with a second derivative, or margins", _SECH2),
    "conjugate": (
        "has a conjugate that runs off to infinity where a margin is kept with certainty",
        "sites whose conjugates Newton's method finds",
        "",
    ),
    "normaliser": (
        "is no probability of its data",
        "a likelihood that adds up to one over the data",
        "use Logistic sites to compare models of labels",
    ),
}


def require_offers(
    field: str,
    site: Site,
    needs: Collection[str],
    *,
    user: str,
    offers: frozenset[str] | None = None,
    shape: tuple[int, ...] = (),
    relief: str = "",
) -> None:
    """Refuse a site that lacks a capability that its user needs, or claims one that it visibly does not have.

    Parameters
    ----------
    field : str
        The name for the message, as ``"block 'edges'"``.
    site : Site
        The site.
    needs : collection of str
        Capabilities, as `Site` lists them.
    user : str
        The name of the engine or function that needs them.
    offers : frozenset of str, optional
        Offers of the site in its block, which may add to them; by default those of the site itself.
    shape : tuple of int
        Of the sites, which scales broadcast to.
    relief : str
        A setting of the user's own with which it would do without, as an imperative sentence.

    Raises
    ------
    InputError
        Naming the site, the first capability missing in alphabetical order, and the engines that take the site.
    """
    offered = site.offers if offers is None else offers
    for need in sorted(needs):
        if need not in offered:
            raise refusal(field, site, need, user=user, offers=offered, relief=relief)
        fault = unmet_claim(site, need, shape)
        if fault is not None:
            without = offered - (SMOOTH if need in SMOOTH else {need})
            raise refusal(field, site, need, user=user, offers=without, relief=relief, fault=fault)


def refusal(
    field: str,
    site: Site,
    need: str,
    *,
    user: str = "",
    offers: frozenset[str] | None = None,
    relief: str = "",
    fault: str = "",
) -> InputError:
    """The message of a site that lacks one capability: of `require_offers`, and of blocks that cannot be built.

    If ``offers`` is given, engines that take the site are named.
    """
    lacking, wanted, instead = _WORDS.get(need, (f"does not offer {need!r}", f"sites that offer {need!r}", ""))
    if need in SMOOTH and not fault and departure_from_smooth(site) is None:
        lacking, instead = "does not say that its log has a second derivative", _SAY_SMOOTH
    if need == "bound" and not fault and isinstance(site, SuperGaussian) and not departure_from_super_gaussian(site):
        lacking, instead = "does not say that it is super-Gaussian", _SAY_BOUND
    needed_by_some = {"g"}.union(*ENGINES.values())
    able = [name for name, needed in ENGINES.items() if name != user and offers is not None and needed <= offers]
    others = " or ".join(filter(None, (", ".join(able[:-1]), *able[-1:])))
    ways = [f"infer with {others}"] if able and need in needed_by_some else []
    cure = ", or ".join(filter(None, (*ways, instead)))
    sentences = [relief, f"{cure[0].upper()}{cure[1:]}." if cure else ""]
    return InputError(
        field,
        f"{type(site).__name__}{f' with {fault}' if fault else f', which {lacking}'}",
        f"{wanted}, as {user} needs them" if user else wanted,
        " ".join(sentence for sentence in sentences if sentence),
    )


def represented(site: Site, field: str = "site") -> SuperGaussian:
    """The site, where it has a representation g.

    Raises
    ------
    InputError
        For others.
    """
    if not isinstance(site, SuperGaussian):
        raise refusal(field, site, "g", offers=site.offers | {"line"})
    return site


def unmet_claim(site: Site, offered: str, shape: tuple[int, ...] = ()) -> str | None:
    """The fault of a capability that a site claims; None if the probe finds none."""
    if offered == "bound" and isinstance(site, SuperGaussian):
        return departure_from_super_gaussian(site, shape)
    if offered == "curvature" or (offered == "expansion" and "curvature" in site.offers):
        return departure_from_smooth(site)
    return None


def departure_from_super_gaussian(site: SuperGaussian, shape: tuple[int, ...] = ()) -> str | None:
    """The reason why a site is not super-Gaussian, in words; None if the probe finds none.

    Parameters
    ----------
    site : SuperGaussian
        With a representation g of its own.
    shape : tuple of int
        Of the sites, which scales broadcast to.

    Notes
    -----
    Every site is tried at 8 points x, and 241 different points are tried where there are as many sites, or one site
    for all of them: what a probe can see, no proof. TR-175 section 2.1.
    """
    one_for_all = np.ndim(site.start_variance) == 0 and all(np.ndim(v) == 0 for v in vars(site).values())
    step = GRID.size // PASSES
    points = [GRID] if one_for_all else [np.resize(np.roll(GRID, k * step), shape) for k in range(PASSES)]
    for x in points:
        fault = unfit_derivatives(x, site.dg(x), site.d2g(x))
        if fault is not None:
            return fault
    return None


def unfit_derivatives(x: Values, slopes: Values, curvatures: Values) -> str | None:
    """The fault of g' and g'' at x > 0: not finite, not decreasing, or not convex beyond rounding."""
    if not (np.isfinite(slopes).all() and np.isfinite(curvatures).all()):
        return "values that are not finite"
    if (np.asarray(slopes) >= 0).any():
        return "a g that does not decrease"
    if (np.asarray(curvatures) < -1e-9 * np.abs(slopes) / x).any():
        return "a g that is not convex"
    return None


def departure_from_smooth(site: Site) -> str | None:
    """Where the log of a site is seen to have a corner; None where its slope changes as its curvature says.

    Sites with a representation g are tried at zero, where -2 g' must stay finite; others at their ``breaks``.
    """
    if isinstance(site, SuperGaussian):
        unit = np.asarray(site.start_variance, dtype=float)
        near, nearer = site.dg(NEAR * unit), site.dg(NEARER * unit)
        flat = np.isfinite(nearer).all() and bool(np.all(np.abs(nearer) <= 1.1 * np.abs(near)))
        return None if flat else "a log that has a corner at zero"
    for middle in site.breaks:
        points = np.array([middle - BESIDE, middle + BESIDE]).reshape(2, *(1 for _ in np.shape(site.start_variance)))
        slopes, curvatures = np.broadcast_arrays(site.dlog_t(points), site.d2log_t(points))
        rounding = 16 * np.finfo(float).eps * np.abs(slopes).max(axis=0)
        smooth = np.abs(slopes[1] - slopes[0]) <= rounding + 4 * BESIDE * np.abs(curvatures).max(axis=0)
        if not (np.isfinite(slopes).all() and np.isfinite(curvatures).all() and np.all(smooth)):
            return "a log that has a corner"
    return None
