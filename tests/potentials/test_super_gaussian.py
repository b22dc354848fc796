"""Sites are held to their claim of being super-Gaussian; those of the package keep it."""

import numpy as np
import pytest

from mri_design import ExponentialPower, Gaussian, Laplace, Logistic, PositiveMixture, Sech2, StudentT, Tilted
from mri_design.potentials.base import Potential
from mri_design.potentials.requirements import departure_from_super_gaussian


class Quartic(Potential):
    """t = exp(-|s|^4 / sigma^4), which claims by default to be super-Gaussian."""

    offers = Potential.offers | {"log_concave"}
    start_variance = 1.0

    def g(self, x):
        return -(x**2)

    def dg(self, x):
        return -2 * x

    def d2g(self, x):
        return -2 * np.ones_like(x)


class Rising(Quartic):
    def dg(self, x):
        return np.ones_like(x)


class Undefined(Laplace):
    def dg(self, x):
        return np.nan * x


@pytest.mark.parametrize(
    "site",
    [
        Laplace(np.geomspace(1e-3, 1e3, 7)[:, None]),
        Laplace(3.0),
        Gaussian(2.0),
        ExponentialPower(2.0, 1.0),
        ExponentialPower(0.3, 1.0),
        StudentT(0.5, 1e4),
        Sech2(1e3),
        Sech2(1e-3),
        Logistic([1.0, -1.0]),
        Tilted(Laplace(1.0), np.ones(2)),
        PositiveMixture.of_gaussians([0.5, 0.5], [1.0, 1e4]),
    ],
)
def test_the_sites_of_the_package_pass(site):
    assert departure_from_super_gaussian(site, (7, 2)) is None


@pytest.mark.parametrize(
    ("site", "fault"),
    [(Quartic(), "not convex"), (Rising(), "not decrease"), (Undefined(1.0), "finite"), (Undefined([1, 2]), "finite")],
)
def test_departures_are_named(site, fault):
    assert fault in departure_from_super_gaussian(site, (3, 2))


@pytest.mark.parametrize(
    "site",
    [
        Laplace(1.3),
        Logistic(1, 0.7),
        Sech2(1.1),
        ExponentialPower(1.5, 1.0),
        ExponentialPower(0.5, 1.0),
        StudentT(3.0, 1.0),
    ],
    ids=lambda s: f"{type(s).__name__}, {'' if s.log_concave else 'not '}log-concave",
)
def test_h_is_convex_where_the_site_is_log_concave_and_only_there(site):
    """Theorem 2 of Nickisch & Seeger 2009, by divided differences of h over gamma."""
    t = np.geomspace(1e-2, 1e2, 400)
    gamma, h = 1 / site.site_precision(t), site.h_at_optimum(t)
    slopes = np.diff(h) / np.diff(gamma)
    bends = np.diff(slopes) / np.abs(slopes).max()
    assert (bends >= -1e-12).all() == site.log_concave
    assert site.log_concave or bends.min() < -1e-5
