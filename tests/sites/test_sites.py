"""Sites: representations, derivatives, expectations and conjugates against quadrature, and what makes no site."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special

import mri_design as md
from mri_design.operators import Identity
from mri_design.sites import (
    BernoulliResponse,
    ExponentialPower,
    Gaussian,
    Generic,
    Hinge,
    Laplace,
    Logistic,
    Poisson,
    PoissonResponse,
    PositiveMixture,
    Sech2,
    ShiftedMixture,
    StudentT,
    SuperGaussian,
    Tilted,
    departure_from_super_gaussian,
    line_expectation,
    radial_expectation,
    represented,
    require_offers,
)
from mri_design.sites.base import SMOOTH
from tests.refusals import refused
from tests.unfit_sites import Quartic

SITES: dict[str, Callable[[], SuperGaussian]] = {
    "Laplace": lambda: Laplace(20.0),
    "Student-t, heavy": lambda: StudentT(1.0, 2.0),
    "Student-t, light": lambda: StudentT(5.0, 0.4),
    "Gaussian": lambda: Gaussian(1.7),
    "logistic": lambda: Logistic(-1.0, 12.0),
    "exponential power 0.4": lambda: ExponentialPower(0.4, 0.8),
    "exponential power 1.5": lambda: ExponentialPower(1.5, 2.0),
    "exponential power 2": lambda: ExponentialPower(2.0, 0.6),
    "sech^2": lambda: Sech2(1.4),
    "mixture of Gaussians": lambda: PositiveMixture([0.7, 0.05], [Gaussian(4.0), Gaussian(0.05)]),
    "mixture of others": lambda: PositiveMixture([0.5, 1.5], [Laplace(2.0), StudentT(3.0, 0.1)]),
    "own": lambda: Generic(
        lambda x: -np.sqrt(1 + x), lambda x: -0.5 / np.sqrt(1 + x), lambda x: 0.25 * (1 + x) ** -1.5, name="charbonnier"
    ),
    "tilted": lambda: Tilted(Laplace(1.1), 0.4),
}
ONE_WIDTH = ("Gaussian", "exponential power 2")
X = np.geomspace(1e-3, 1e3, 25)


@pytest.fixture(params=list(SITES))
def site_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def site(site_name: str) -> SuperGaussian:
    return SITES[site_name]()


def h_by_brute_force(site: SuperGaussian, gamma: float) -> float:
    """max over x >= 0 of -x / gamma - 2 g(x): the smallest h for which the bound holds everywhere."""

    def negative(log_x: np.ndarray) -> np.ndarray:
        x = np.exp(log_x)
        return x / gamma + 2 * site.g(x)

    def at(log_x: float) -> float:
        return float(negative(np.array(log_x)))

    grid = np.linspace(-60, 12, 721)
    best = grid[np.argmin(negative(grid))]
    found = scipy.optimize.minimize_scalar(at, bounds=(best - 0.1, best + 0.1), options={"xatol": 1e-12})
    return -min(float(found.fun), at(best))


@pytest.mark.parametrize(
    ("site", "log_t"),
    [
        (Laplace(0.7), lambda s, sigma: -0.7 / sigma * np.abs(s)),
        (StudentT(3.0, 0.5), lambda s, sigma: -2 * np.log(1 + 0.5 / 3 * s**2 / sigma**2)),
        (Gaussian(0.6), lambda s, sigma: -0.3 * s**2 / sigma**2),
        (Logistic(1.0, 0.9), lambda s, sigma: -np.log1p(np.exp(-0.9 * s / sigma))),
        (Logistic(-1.0, 0.9), lambda s, sigma: -np.log1p(np.exp(0.9 * s / sigma))),
        (Hinge(-1.0, 0.9), lambda s, sigma: -0.9 * np.maximum(0, 1 + s / sigma)),
        (ExponentialPower(0.5, 0.7), lambda s, sigma: -np.sqrt(0.7 * np.abs(s) / sigma)),
        (Sech2(0.7), lambda s, sigma: -2 * np.log(np.cosh(0.7 * s / sigma))),
        (Tilted(Laplace(0.7), -0.2), lambda s, sigma: -0.7 * np.abs(s) / sigma - 0.2 * s / sigma),
        (
            PositiveMixture([0.4, 2.0], [Laplace(1.0), Gaussian(0.3)]),
            lambda s, sigma: np.log(0.4 * np.exp(-np.abs(s) / sigma) + 2 * np.exp(-0.15 * s**2 / sigma**2)),
        ),
        (
            ShiftedMixture([0.4, 2.0], [Laplace(1.0), Gaussian(0.3)], [-1.0, 2.0]),
            lambda s, sigma: np.log(0.4 * np.exp(-np.abs(s / sigma + 1)) + 2 * np.exp(-0.15 * (s / sigma - 2) ** 2)),
        ),
    ],
)
def test_values_are_those_of_the_named_density(site, log_t):
    s, sigma = np.linspace(-4, 4, 9), 0.8
    np.testing.assert_allclose(site.log_t(s / sigma), log_t(s, sigma), rtol=1e-13)


def test_derivatives_match_finite_differences(site):
    step = 1e-5 * X
    slope = (site.g(X + step) - site.g(X - step)) / (2 * step)
    np.testing.assert_allclose(site.dg(X), slope, rtol=1e-7)
    curvature = (site.dg(X + step) - site.dg(X - step)) / (2 * step)
    np.testing.assert_allclose(site.d2g(X), curvature, rtol=1e-6, atol=1e-12)
    assert (site.dg(X) < 0).all()
    np.testing.assert_allclose(site.site_precision(X), -2 * site.dg(X))


def test_super_gaussian_means_convex_and_decreasing_in_x(site):
    a, b = np.meshgrid(X, X)
    middle_below_chord = site.g((a + b) / 2) <= (site.g(a) + site.g(b)) / 2 + 1e-12
    assert ("bound" in site.offers) == bool(middle_below_chord.all() and (np.diff(site.g(X)) < 0).all())
    assert (site.d2g(X) >= 0).all()


def test_log_concave_means_concave_in_s(site):
    s = np.linspace(-30, 30, 301)
    a, b = np.meshgrid(s, s)
    middle_above_chord = site.log_t((a + b) / 2) >= (site.log_t(a) + site.log_t(b)) / 2 - 1e-9
    assert site.log_concave == bool(middle_above_chord.all())


@pytest.mark.parametrize("t", [0.01, 1.2, 200.0])
def test_optimal_width_by_brute_force(site_name, site, t):
    """min over gamma of t / gamma + h(gamma) is -2 g(t), at 1 / gamma = -2 g'(t)."""
    t = np.array(t)
    gamma = 1 / float(site.site_precision(t))
    h = h_by_brute_force(site, gamma)
    assert float(site.h_at_optimum(t)) == pytest.approx(h, rel=1e-7, abs=1e-9)
    assert t / gamma + h == pytest.approx(-2 * float(site.g(t)), rel=1e-7, abs=1e-9)
    for other in (0.5, 0.9, 1.1, 2.0):
        if site_name in ONE_WIDTH:
            continue  # h is infinite for wider ones
        above = t / (other * gamma) + h_by_brute_force(site, other * gamma)
        assert above > -2 * float(site.g(t)) + 1e-8


def test_scales_broadcast_and_precision_is_kept():
    scales = np.array([[1.0], [2.0]])
    for many, one in [
        (Laplace(scales), Laplace),
        (StudentT(3, scales), lambda scale: StudentT(3, scale)),
        (Gaussian(scales), Gaussian),
        (Logistic(-1.0, scales), lambda scale: Logistic(-1.0, scale)),
        (ExponentialPower(0.7, scales), lambda scale: ExponentialPower(0.7, scale)),
        (Sech2(scales), Sech2),
        (
            PositiveMixture([1, 2], [Laplace(scales), Gaussian(scales)]),
            lambda scale: PositiveMixture([1, 2], [Laplace(scale), Gaussian(scale)]),
        ),
        (Tilted(Laplace(scales), 0.3), lambda scale: Tilted(Laplace(scale), 0.3)),
        (Laplace(1.0).rescaled(scales), Laplace),
    ]:
        x = np.geomspace(0.1, 10, 3).astype(np.float32)
        for function in ("g", "dg", "d2g", "site_precision", "h_at_optimum"):
            values = getattr(many, function)(np.broadcast_to(x, (2, 3)))
            assert values.dtype == np.float32 and values.shape == (2, 3)
            rows = [getattr(one(scale), function)(x) for scale in (1.0, 2.0)]
            np.testing.assert_allclose(values, rows, rtol=1e-6, atol=1e-6)
        assert np.shape(many.start_variance) == (2, 1)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_sites_stay_finite_at_zero_and_far_out(site, real):
    for x in (np.zeros(3, dtype=real), np.full(3, 1e12, dtype=real)):
        for values in (site.g(x), site.dg(x), site.d2g(x), site.h_at_optimum(x)):
            assert np.isfinite(values).all() and values.dtype == real


@pytest.mark.parametrize("site", [Logistic(1.0, 2.0), Sech2(1.0)], ids=["logistic", "sech^2"])
def test_series_near_zero_join_the_closed_forms(site):
    """With rate 1 the argument of the hyperbolic functions is sqrt(x): both sides of every switch."""
    for v in (1e-4, 0.1):
        x = np.array([v * (1 - 1e-9), v * (1 + 1e-9)]) ** 2
        for function in (site.g, site.dg, site.d2g):
            below, above = function(x)
            assert below == pytest.approx(above, rel=1e-8, abs=1e-13)


def test_rescaling_multiplies_the_rate(site):
    s = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(site.rescaled(2.5).log_t(s), site.log_t(2.5 * s), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_normalisers_by_quadrature(site, dimensions):
    found = site.log_normaliser(dimensions)
    if isinstance(site, Logistic):
        return  # a likelihood of labels, checked below
    if isinstance(site, StudentT) and dimensions >= site.degrees + 1:
        assert np.isinf(found)
        return
    area = {1: 1.0, 2: 2 * np.pi, 3: 4 * np.pi}[dimensions]

    def integrand(log_r: float) -> float:
        r = np.array(np.exp(log_r))
        density = np.exp(site.log_t(r)) + np.exp(site.log_t(-r)) if dimensions == 1 else np.exp(site.g(r**2))
        return float(area * density * r**dimensions)

    total = scipy.integrate.quad(integrand, -30, 30, limit=400, points=[-5, 0, 3])[0]
    assert float(found) == pytest.approx(np.log(total), abs=1e-6)


def own(g, dg, d2g, **more):
    return Generic(g, dg, d2g, name="my site", **more)


def test_own_sites_find_out_whether_they_are_log_concave_and_where_to_start():
    charbonnier, student = (
        SITES["own"](),
        own(lambda x: -np.log1p(x), lambda x: -1 / (1 + x), lambda x: (1 + x) ** -2.0),
    )
    assert charbonnier.log_concave and not student.log_concave
    assert float(student.start_variance) == pytest.approx(np.expm1(0.3), rel=0.15)
    rates = np.array([[1.0], [4.0]])
    many = own(
        lambda x: -np.log1p(rates * x),
        lambda x: -rates / (1 + rates * x),
        lambda x: (rates / (1 + rates * x)) ** 2,
        shape=(2, 1),
    )
    assert many.start_variance.shape == (2, 1) and many.start_variance[0, 0] > many.start_variance[1, 0]


@pytest.mark.parametrize("z", [0.1, 2.0])
def test_the_gaussian_form_of_a_shifted_mixture_lies_below_it_and_touches(z):
    """psi and its Gaussian form have equal value and slope at s0, and -psi / 2 - (Gaussian form) is never negative."""
    site = ShiftedMixture([0.6, 1.0, 0.2], [Laplace(1.0), Gaussian(0.5), StudentT(2.0, 1.0)], [-3.0, 1.0, 4.0])
    s, z = np.linspace(-8, 8, 401), np.array(z)
    for s0 in (-4.0, -1.0, 0.7, 5.0):
        form = site.gaussian_form(np.array([s0]), z)
        touch = site.smoothed_log_t(np.array([s0]), z) - form.log_t(np.array([s0]))
        assert (site.smoothed_log_t(s, z) - form.log_t(s) >= touch - 1e-12).all()
    np.testing.assert_allclose(site.smoothed_log_t(s, 0 * z), site.log_t(s))


class Unsaid(Laplace):
    offers = Laplace.offers - {"bound"}


class Silent(Sech2):
    offers = Sech2.offers - SMOOTH


SCALED = {
    "Laplace rate": Laplace,
    "Gaussian precision": Gaussian,
    "Student-t precision": lambda s: StudentT(3.0, s),
    "Student-t degrees of freedom": lambda s: StudentT(s, 1.0),
    "Sech2 rate": Sech2,
    "Logistic rate": lambda s: Logistic(1.0, s),
    "exponential power rate": lambda s: ExponentialPower(1.0, s),
    "Hinge rate": lambda s: Hinge(1.0, s),
    "Poisson exposure": lambda s: Poisson(1, s),
}
BELL = Laplace(1.0)
REFUSED = [
    *((field, lambda make=make, s=s: make(s)) for field, make in SCALED.items() for s in (0.0, np.nan, np.inf)),
    *(("Laplace rate", lambda s=s: Laplace(s)) for s in ([1.0, -1.0], "x", 1 + 1j, [], None)),
    *(("Logistic labels", lambda c=c: Logistic(c)) for c in (0.0, [1, 0], np.nan)),
    ("Hinge labels", lambda: Hinge(np.array([0.0, 1.0]))),
    *(("exponential power", lambda p=p: ExponentialPower(p, 1.0)) for p in (0.0, -1.0, 2.1, np.nan, [1.0, 2.0])),
    ("Student-t degrees of freedom", lambda: StudentT([1.0, 2.0], 1.0)),
    *(("slope of a tilted site", lambda b=b: Tilted(BELL, b)) for b in (np.nan, "x", 1j)),
    ("mixture weights", lambda: PositiveMixture([1.0, -1.0], [BELL, Laplace(2.0)])),
    ("mixture weights", lambda: PositiveMixture([1.0, 1.0], [BELL])),
    ("site 1 of a mixture", lambda: PositiveMixture([1.0, 1.0], [BELL, Tilted(BELL, 0.1)])),
    ("site 0 of a mixture", lambda: PositiveMixture([1.0], [ShiftedMixture([1.0], [BELL], [2.0])])),
    ("mixture positions", lambda: ShiftedMixture([1.0], [BELL], [np.inf])),
    ("mixture positions", lambda: ShiftedMixture([1.0], [BELL], ["x"])),
    ("mixture weights", lambda: ShiftedMixture([], [], [])),
    *(("site", lambda s=s: represented(s)) for s in (ShiftedMixture([1.0], [BELL], [1.0]), Poisson(2), Hinge(1.0))),
    ("block 'counts'", lambda: md.SiteBlock("counts", Identity((3,)), Poisson(np.ones(3)))),
    ("block 'margins'", lambda: md.SiteBlock("margins", Identity((2,)), Hinge(np.array([1.0, -1.0])))),
    *(("Poisson counts", lambda y=y: PoissonResponse().site(y)) for y in (-1, 1.5)),
    ("Logistic labels", lambda: BernoulliResponse().site(0)),
    ("my site", lambda: own(lambda x: -(x**2), lambda x: -2 * x, lambda x: -2 + 0 * x)),
    ("my site", lambda: own(lambda x: x, lambda x: 1 + 0 * x, lambda x: 0 * x)),
    ("my site", lambda: own(lambda x: -np.sqrt(x), lambda x: -1 / np.sqrt(x), lambda x: 0.5 * x**-1.5)),
    ("my site", lambda: own(lambda x: -np.sqrt(x), lambda x: -0.5 / np.sqrt(x), lambda x: x**-1.5)),
    ("my site", lambda: own(lambda x: np.nan * x, lambda x: -1 + 0 * x, lambda x: 0 * x)),
    (
        "my site",
        lambda: own(lambda x: -np.log1p(x), lambda x: -1 / (1 + x), lambda x: (1 + x) ** -2.0, log_concave=True),
    ),
    ("my site", lambda: own(lambda x: -np.ones(3), lambda x: -x, lambda x: x)),
    ("my site: start_variance", lambda: own(lambda x: -x, lambda x: -1 + 0 * x, lambda x: 0 * x, start_variance=-1.0)),
    ("block 'a'", lambda: require_offers("block 'a'", Unsaid(1.0), {"bound"}, user="DoubleLoop")),
    ("block 'a'", lambda: require_offers("block 'a'", Silent(1.0), {"curvature"}, user="LaplaceFilter")),
]


@pytest.mark.parametrize(("field", "build"), REFUSED)
def test_sites_that_cannot_be_are_refused_by_their_field(field, build):
    with refused(field):
        build()


class Rising(Quartic):
    def dg(self, x):
        return np.ones_like(x)


class Undefined(Laplace):
    def dg(self, x):
        return np.nan * x


@pytest.mark.parametrize(
    ("site", "keeps"),
    [
        (Laplace(np.geomspace(1e-3, 1e3, 7)[:, None]), True),
        (Laplace(3.0), True),
        (Gaussian(2.0), True),
        (ExponentialPower(2.0, 1.0), True),
        (ExponentialPower(0.3, 1.0), True),
        (StudentT(0.5, 1e4), True),
        (Sech2(1e3), True),
        (Sech2(1e-3), True),
        (Logistic([1.0, -1.0]), True),
        (Tilted(Laplace(1.0), np.ones(2)), True),
        (PositiveMixture([1.0, 100.0], [Gaussian(1.0), Gaussian(1e4)]), True),
        (Quartic(1.0), False),
        (Rising(1.0), False),
        (Undefined(1.0), False),
        (Undefined([1, 2]), False),
    ],
)
def test_sites_are_held_to_their_claim_of_being_super_gaussian(site: SuperGaussian, keeps: bool):
    assert (departure_from_super_gaussian(site, (7, 2)) is None) == keeps


LINE = [
    Gaussian(1.7),
    Laplace(0.8),
    Logistic(1, 1.3),
    Logistic(-1, 0.4),
    Poisson(3, 0.6),
    Poisson(0),
    Hinge(1.0, 1.3),
    Hinge(-1.0, 0.4),
    Sech2(1.1),
    StudentT(2.1, 1.4),
    ExponentialPower(0.7, 1.2),
    Tilted(Laplace(0.8), -0.6),
    Tilted(Logistic(1, 1.3), 0.3),
    PositiveMixture([0.4, 1.0], [Gaussian(0.3), Laplace(2.0)]),
    ShiftedMixture([0.5, 0.5], [Laplace(3.0), Gaussian(1.0)], [-1.0, 2.0]),
]
COARSE = (PositiveMixture, ShiftedMixture)  # whose parts take over from each other where no break is
EVEN = [Gaussian(1.7), Laplace(0.8), Sech2(1.1), StudentT(2.1, 1.4), ExponentialPower(1.3, 0.9)]


def name(site: object) -> str:
    return type(site).__name__


@pytest.mark.parametrize("site", LINE, ids=name)
@pytest.mark.parametrize(("mean", "variance"), [(0.7, 0.04), (-2.0, 3.0), (1.5, 40.0)])
def test_the_value_is_the_integral(site: SuperGaussian, mean: float, variance: float) -> None:
    sd = np.sqrt(variance)

    def integrand(s: float) -> float:
        return float(site.log_t(np.array(s)) * np.exp(-0.5 * ((s - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)))

    edges = [mean - 18 * sd, *sorted({b for b in site.breaks if abs(b - mean) < 18 * sd}), mean + 18 * sd]
    parts = [scipy.integrate.quad(integrand, a, b, epsabs=1e-12, epsrel=1e-12, limit=400) for a, b in pairwise(edges)]
    total = sum(part[0] for part in parts)
    got = site.expected_log_t(np.array(mean), np.array(variance))
    assert float(got.value) == pytest.approx(total, rel=1e-4 if isinstance(site, COARSE) else 1e-9, abs=1e-10)


@pytest.mark.parametrize("site", LINE, ids=name)
def test_the_derivatives_are_those_of_the_value_and_of_the_integral(site: SuperGaussian) -> None:
    mean, variance = np.array([-1.4, 0.0, 0.3, 2.2]), np.array([0.5, 1.3, 0.02, 6.0])
    got = site.expected_log_t(mean, variance)
    rough = 1e-4 if isinstance(site, COARSE) else 1e-5
    h = 1e-4 * np.sqrt(variance)
    up, down = (site.expected_log_t(mean + one, variance).value for one in (h, -h))
    np.testing.assert_allclose(got.d_mean, (up - down) / (2 * h), rtol=rough, atol=1e-6)
    k = 1e-4 * variance
    up, down = (site.expected_log_t(mean, variance + one).value for one in (k, -k))
    np.testing.assert_allclose(got.d_variance, (up - down) / (2 * k), rtol=rough, atol=1e-6)
    again = line_expectation(site.log_t, site.dlog_t, mean, variance, site.breaks)
    for closed, summed in zip(vars(got).values(), vars(again).values(), strict=True):
        np.testing.assert_allclose(closed, summed, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("site", LINE, ids=name)
def test_the_derivatives_of_log_t_which_a_sharp_gaussian_gives(site: SuperGaussian) -> None:
    s = np.array([-2.3, -0.4, 0.31, 1.7, 6.0])
    h = 1e-5
    np.testing.assert_allclose(site.dlog_t(s), (site.log_t(s + h) - site.log_t(s - h)) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        site.d2log_t(s), (site.dlog_t(s + h) - site.dlog_t(s - h)) / (2 * h), rtol=1e-5, atol=1e-7
    )
    s = np.array([-1.6, 0.45, 3.1])
    got = site.expected_log_t(s, np.full(3, 1e-12))
    np.testing.assert_allclose(got.value, site.log_t(s), rtol=1e-9)
    np.testing.assert_allclose(got.d_mean, site.dlog_t(s), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(2 * got.d_variance, site.d2log_t(s), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dimensions", [2, 5])
@pytest.mark.parametrize("site", EVEN, ids=name)
def test_moduli_against_draws_and_against_the_laplacian(site: SuperGaussian, dimensions: int) -> None:
    rng = np.random.default_rng(3)
    half = rng.standard_normal((20_000, dimensions))
    draws = np.concatenate([half, -half])
    for mean, variance in [(0.0, 1.0), (1.5, 0.3), (4.0, 2.0)]:
        s = draws * np.sqrt(variance)
        s[:, 0] += mean
        x = np.sum(s**2, axis=1)
        got = site.expected_log_t(np.array(mean), np.array(variance), dimensions)
        assert float(got.value) == pytest.approx(site.g(x).mean(), abs=6 * site.g(x).std() / np.sqrt(len(x)))
        slopes = 2 * site.dg(x)
        one = slopes * s[:, 0]
        assert float(got.d_mean) == pytest.approx(one.mean(), abs=6 * one.std() / np.sqrt(len(x)) + 1e-12)
        laplacian = dimensions * slopes + 4 * x * site.d2g(x)
        error = 6 * laplacian.std() / np.sqrt(len(x)) + 1e-12
        assert 2 * float(got.d_variance) == pytest.approx(laplacian.mean(), abs=error)


@pytest.mark.parametrize("dimensions", [2, 7])
@pytest.mark.parametrize("site", [Gaussian(1.7), Laplace(0.8)], ids=name)
def test_closed_forms_on_moduli(site: SuperGaussian, dimensions: int) -> None:
    modulus = np.array([0.0, 1e-3, 0.4, 3.0, 60.0, 1e3])[:, None]
    variance = np.array([1e-6, 0.01, 1.0, 50.0])
    got = site.expected_log_t(modulus, variance, dimensions)
    summed = radial_expectation(site.g, site.dg, modulus, variance, dimensions)
    for closed, other in zip(vars(got).values(), vars(summed).values(), strict=True):
        np.testing.assert_allclose(np.broadcast_to(closed, other.shape), other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("sd", [0.2, 0.999, 1.0, 54.0, 300.0])
def test_the_logistic_expectation_holds_at_every_width(sd: float) -> None:
    for mean in (-30.0, 0.0, 2.5, 90.0):
        site = Logistic(-1)  # -log(1 + e^s)
        fine = mean + sd * np.linspace(-12, 12, 200_001)
        mass = np.exp(-0.5 * ((fine - mean) / sd) ** 2) * (24 / 200_000) / np.sqrt(2 * np.pi)
        got = site.expected_log_t(np.array(mean), np.array(sd**2))
        sig = scipy.special.expit(fine)
        assert float(got.value) == pytest.approx(-mass @ np.logaddexp(0, fine), rel=1e-10)
        assert float(got.d_mean) == pytest.approx(-mass @ sig, rel=1e-9, abs=1e-14)
        assert float(got.d_variance) == pytest.approx(-0.5 * mass @ (sig * (1 - sig)), rel=1e-9, abs=1e-14)


def test_counts_and_labels_add_up_to_one() -> None:
    s = np.array([-0.5, 0.9])
    total = sum(np.exp(Poisson(y, 2.5).log_t(s)) for y in range(80))
    np.testing.assert_allclose(total, 1, rtol=1e-12)
    np.testing.assert_allclose(sum(np.exp(Logistic(c, 0.7).log_t(s)) for c in (-1.0, 1.0)), 1)
    one = Poisson([1, 4], [0.5, 2.0]).at((1,), (2,))
    assert float(one.log_t(np.array(0.3))) == pytest.approx(float(Poisson(4, 2.0).log_t(np.array(0.3))))
