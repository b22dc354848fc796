"""One site t(s) of a generalized linear model, through its super-Gaussian representation.

With x = |s|^2 / sigma^2 a site is log t(s) = g(x) + b s / sigma. It is super-Gaussian where g is convex and decreasing;
then g(x) = max over gamma > 0 of -(x / gamma + h(gamma)) / 2 (TR-175 section 2), and

    min over gamma of (z + x) / gamma + h(gamma) = -2 g(x + z),   attained at 1 / gamma = -2 g'(x + z),

so that an engine needs g and its derivatives only. Sites on complex coefficients act on the modulus, and have b = 0.
The paper's beta is b sigma. Sites that are not of this form may have a Gaussian-form bound of which both parameters
move, width and position (TR-175 appendix A.4): see `two_parameter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, sequence_of
from mri_design.potentials.expectation import Expectation, line_expectation, radial_expectation

__all__ = ["Potential", "label_signs", "log_sphere", "mixed_sites", "one_number", "positive_scale"]

Values = NDArray[np.floating]


class Potential(ABC):
    """A site, vectorised over coefficients.

    ``log_concave`` decides whether inference is a convex problem; ``super_gaussian`` whether the double loop applies;
    ``shift`` is the slope b of the odd part b s / sigma, dimensionless, broadcastable to the coefficients.
    """

    log_concave: bool
    super_gaussian: bool = True
    shift: Values | float = 0.0
    two_parameter: bool = False
    """True where the site is bounded through `gaussian_form`, not through g."""
    on_the_line: bool = False
    """True where the site has no representation g(|s|^2): it acts on real coefficients, by `log_t` alone."""
    breaks: tuple[float, ...] = (0.0,)
    """Where log t has kinks or its finest structure, in units of sigma (`expectation.line_expectation`)."""

    @abstractmethod
    def g(self, x: Values) -> Values:
        """log t as a function of x = |s|^2 / sigma^2 (x >= 0)."""

    @abstractmethod
    def dg(self, x: Values) -> Values:
        """Derivative of g (negative)."""

    @abstractmethod
    def d2g(self, x: Values) -> Values:
        """Second derivative of g (non-negative where super-Gaussian)."""

    @property
    @abstractmethod
    def start_variance(self) -> Values | float:
        """A first guess of z = Var[s] / sigma^2 for a cold start, from the site's own scale."""

    def rescaled(self, factor: ArrayLike) -> Potential:
        """The site s -> t(factor s), its rate multiplied: g(factor^2 x), and factor b; ``factor`` may be an array."""
        raise InputError(
            field=type(self).__name__,
            got="a site whose scale cannot be changed",
            wanted="a site with a scale",
            cure="Write its method `rescaled`.",
        )

    def at(self, place: tuple[int, ...], shape: tuple[int, ...]) -> Potential:
        """The one site at ``place`` of sites of this ``shape``: array scales and slopes become numbers."""
        one = copy(self)
        for name in ("scale", "precision", "shift"):
            value = vars(self).get(name, 0.0)
            if np.ndim(value):
                setattr(one, name, np.asarray(np.broadcast_to(value, shape)[place]))
        return one

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
            variational Gaussian asks for (Khan 2014, equation 10).

        Notes
        -----
        By quadrature to about ten digits, fewer for mixtures whose parts take over from each other far from any of
        ``breaks`` (five at a standard deviation of six). Sites with a closed form override it.
        """
        m, v = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
        if dimensions > 1:
            self._refuse_moduli(dimensions)
            return radial_expectation(self.g, self.dg, m, v, dimensions)
        return line_expectation(self.log_t, self.dlog_t, m, v, self.breaks)

    def _refuse_moduli(self, dimensions: int) -> None:
        if dimensions > 1 and (self.on_the_line or self.two_parameter or np.any(self.shift)):
            raise InputError(
                field=type(self).__name__, got=f"moduli of {dimensions} real numbers", wanted="real coefficients"
            )

    def _no_even_part(self) -> InputError:
        return InputError(
            field="site",
            got=f"{type(self).__name__}, which has no even representation g(|s|^2)",
            wanted="a super-Gaussian site",
            cure="Infer with VariationalGaussian, LaplacePropagation or LaplaceFilter, which need log t alone.",
        )

    @property
    def start_mean(self) -> Values | float | None:
        """A first guess of E s for a cold start, where the site knows one: None leaves it to the data."""
        return None

    def smoothed_log_t(self, s: Values, z: Values) -> Values:
        """-psi / 2 at real s, in units of sigma, for the tangent z of log|A|: g(s^2 + z) + b s, and log t for z = 0."""
        return self.g((s**2 + z).astype(s.dtype, copy=False)) + self.shift * s

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
        offsets = np.arange(-40.0, 40.0, 0.05)
        log_terms = []
        for offset in offsets:
            r = spread * np.exp(offset)
            even = self.g(r**2)
            sides = np.logaddexp(self.shift * r, -self.shift * r) - np.log(2) if dimensions == 1 else 0.0
            log_terms.append(even + sides + dimensions * np.log(r))
        terms = np.array(np.broadcast_arrays(*log_terms))
        total = scipy.special.logsumexp(terms, axis=0) + np.log(0.05) + log_sphere(dimensions)
        return np.where(terms[-1] > terms.max(axis=0) - 30, np.inf, total)

    def gaussian_form(self, s: Values, z: Values) -> Potential:
        """What bounds the site while s (in units of sigma) and z are near these: itself, unless `two_parameter`."""
        return self

    def site_precision(self, x_plus_z: Values) -> Values:
        """pi = 1 / gamma = -2 g'(x + z), the optimal site precision."""
        return -2 * self.dg(x_plus_z)

    def h_at_optimum(self, x_plus_z: Values) -> Values:
        """h(gamma) at the gamma that is optimal for x + z: -(t pi + 2 g(t)), t = x + z."""
        return -(x_plus_z * self.site_precision(x_plus_z) + 2 * self.g(x_plus_z))


def positive_scale(name: str, scale: ArrayLike) -> NDArray[np.float64]:
    """``scale`` as an array, refused unless real, positive and finite."""
    given = number_array(name, scale, wanted="positive finite numbers")
    fits = given.dtype.kind in "fiub" and given.size > 0
    array = given.astype(float) if fits else np.zeros(1)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise InputError(field=name, got=str(scale), wanted="positive finite numbers")
    return array


def label_signs(name: str, labels: ArrayLike) -> NDArray[np.float64]:
    """``labels`` as an array, refused unless every one is -1 or +1."""
    given = number_array(name, labels, wanted="-1 or +1")
    if not (given.dtype.kind in "fiu" and given.size and (np.abs(given) == 1).all()):
        raise InputError(field=name, got=str(labels), wanted="-1 or +1", cure="Map labels 0 and 1 to -1 and +1.")
    return given.astype(float)


def mixed_sites(sites: object) -> tuple[Potential, ...]:
    """The sites of a mixture, refused unless each is a Potential."""
    return sequence_of(Potential, "sites of a mixture", sites, wanted="a list of Potentials")


def one_number(name: str, value: ArrayLike) -> float:
    """``value`` as one positive number, where a site takes no array."""
    array = positive_scale(name, value)
    if array.ndim:
        raise InputError(field=name, got=f"an array of shape {array.shape}", wanted="one positive number for all sites")
    return float(array)


def log_sphere(dimensions: int) -> float:
    """log of the area of the unit sphere in so many dimensions (2 points, a circle, ...)."""
    return float(np.log(2) + 0.5 * dimensions * np.log(np.pi) - scipy.special.gammaln(0.5 * dimensions))
