"""Every site: derivatives, the super-Gaussian representation by brute force, and what its flags claim."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from mri_design.errors import InputError
from mri_design.potentials import Gaussian, Laplace, Potential, StudentT

SITES: dict[str, Callable[[], Potential]] = {
    "Laplace, weak": lambda: Laplace(0.3),
    "Laplace, strong": lambda: Laplace(20.0),
    "Student-t, heavy": lambda: StudentT(1.0, 2.0),
    "Student-t, light": lambda: StudentT(5.0, 0.4),
    "Gaussian": lambda: Gaussian(1.7),
}
X = np.geomspace(1e-3, 1e3, 25)


@pytest.fixture(params=list(SITES))
def site(request: pytest.FixtureRequest) -> Potential:
    return SITES[request.param]()


def h_by_brute_force(site: Potential, gamma: float) -> float:
    """max over x >= 0 of -x / gamma - 2 g(x): the smallest h for which the bound holds everywhere."""

    def negative(log_x: float) -> float:
        x = np.array(np.exp(log_x))
        return float(x / gamma + 2 * site.g(x))

    grid = np.linspace(-60, 12, 1441)
    best = grid[np.argmin([negative(v) for v in grid])]
    found = scipy.optimize.minimize_scalar(negative, bounds=(best - 0.1, best + 0.1), options={"xatol": 1e-12})
    return -min(float(found.fun), negative(best))


@pytest.mark.parametrize(
    ("site", "log_t"),
    [
        (Laplace(0.7), lambda s, sigma: -0.7 / sigma * np.abs(s)),
        (StudentT(3.0, 0.5), lambda s, sigma: -2 * np.log(1 + 0.5 / 3 * s**2 / sigma**2)),
        (Gaussian(0.6), lambda s, sigma: -0.3 * s**2 / sigma**2),
    ],
)
def test_values_are_those_of_the_named_density(site, log_t):
    s, sigma = np.linspace(-4, 4, 9), 0.8
    np.testing.assert_allclose(site.g(s**2 / sigma**2), log_t(s, sigma), rtol=1e-13)


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
    assert site.super_gaussian == bool(middle_below_chord.all() and (np.diff(site.g(X)) < 0).all())
    assert (site.d2g(X) >= 0).all()


def test_log_concave_means_concave_in_s(site):
    s = np.linspace(-30, 30, 301)
    a, b = np.meshgrid(s, s)
    middle_above_chord = site.g(((a + b) / 2) ** 2) >= (site.g(a**2) + site.g(b**2)) / 2 - 1e-9
    assert site.log_concave == bool(middle_above_chord.all())


@pytest.mark.parametrize("z", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("x", [0.0, 0.2, 50.0])
def test_optimal_width_by_brute_force(site, z, x):
    """min over gamma of (z + x) / gamma + h(gamma) is -2 g(x + z), at 1 / gamma = -2 g'(x + z)."""
    t = np.array(x + z)
    gamma = 1 / float(site.site_precision(t))
    assert (x + z) / gamma + h_by_brute_force(site, gamma) == pytest.approx(-2 * float(site.g(t)), rel=1e-7, abs=1e-9)
    for other in (0.5, 0.9, 1.1, 2.0):
        if isinstance(site, Gaussian):
            continue  # a Gaussian has one width only: h is infinite for wider ones
        above = (x + z) / (other * gamma) + h_by_brute_force(site, other * gamma)
        assert above > -2 * float(site.g(t)) + 1e-6


@pytest.mark.parametrize("t", [0.01, 1.0, 200.0])
def test_h_at_optimum_is_the_legendre_dual(site, t):
    t = np.array(t)
    gamma = 1 / float(site.site_precision(t))
    assert float(site.h_at_optimum(t)) == pytest.approx(h_by_brute_force(site, gamma), rel=1e-7, abs=1e-9)


def test_h_of_laplace_is_the_published_one():
    t = np.geomspace(0.01, 100, 7)
    gamma = 1 / Laplace(1.3).site_precision(t)
    np.testing.assert_allclose(Laplace(1.3).h_at_optimum(t), 1.3**2 * gamma, rtol=1e-12)


def test_the_bound_lies_below_the_site_and_touches_it(site):
    """log t >= -(x / gamma + h(gamma)) / 2 for every gamma, with equality at its own."""
    for t in (0.1, 3.0, 40.0):
        pi, h = float(site.site_precision(np.array(t))), float(site.h_at_optimum(np.array(t)))
        assert (-(X * pi + h) / 2 <= site.g(X) + 1e-12).all()
        assert -(t * pi + h) / 2 == pytest.approx(float(site.g(np.array(t))), rel=1e-12)


def test_scales_broadcast_and_precision_is_kept():
    scales = np.array([[1.0], [2.0]])
    for many, one in [
        (Laplace(scales), Laplace),
        (StudentT(3, scales), lambda scale: StudentT(3, scale)),
        (Gaussian(scales), Gaussian),
    ]:
        x = np.geomspace(0.1, 10, 3).astype(np.float32)
        for function in ("g", "dg", "d2g", "site_precision", "h_at_optimum"):
            values = getattr(many, function)(np.broadcast_to(x, (2, 3)))
            assert values.dtype == np.float32 and values.shape == (2, 3)
            rows = [getattr(one(scale), function)(x) for scale in (1.0, 2.0)]
            np.testing.assert_allclose(values, rows, rtol=1e-6, atol=1e-6)
        assert np.shape(many.start_variance) == (2, 1)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_laplace_stays_finite_at_zero(real):
    site, zero = Laplace(2.0), np.zeros(3, dtype=real)
    assert (site.g(zero) == 0).all()
    for values in (site.dg(zero), site.d2g(zero), site.h_at_optimum(zero)):
        assert np.isfinite(values).all()


def test_start_variance_is_of_the_order_of_the_site(site):
    """Within a factor of 100 of the second moment of the site as a density (where it has one)."""
    if isinstance(site, StudentT) and site.degrees <= 2:
        assert site.start_variance > 0
        return
    mass, moment = (
        scipy.integrate.quad(lambda s, p=p: s**p * np.exp(float(site.g(np.array(s**2)))), 0, np.inf)[0] for p in (0, 2)
    )
    assert 0.01 < float(site.start_variance) / (moment / mass) < 100


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0], [[2.0], [np.nan]]])
def test_scales_that_are_not_positive_numbers_are_refused_by_name(scale):
    with pytest.raises(InputError, match=r"Laplace scale.*positive finite"):
        Laplace(scale)
    with pytest.raises(InputError, match=r"Gaussian precision.*positive finite"):
        Gaussian(scale)
    with pytest.raises(InputError, match=r"Student-t scale.*positive finite"):
        StudentT(3.0, scale)
    if np.ndim(scale) == 0:
        with pytest.raises(InputError, match=r"degrees of freedom.*positive finite"):
            StudentT(scale, 1.0)
