"""Sites are held to their claim of being super-Gaussian; those of the package keep it."""

import numpy as np
import pytest

from mri_design import ExponentialPower, Gaussian, Laplace, Logistic, PositiveMixture, Sech2, StudentT, Tilted
from mri_design.potentials.base import SuperGaussian
from mri_design.potentials.requirements import departure_from_super_gaussian


class Quartic(SuperGaussian):
    """t = exp(-|s|^4 / sigma^4), which claims by default to be super-Gaussian."""

    offers = SuperGaussian.offers | {"log_concave"}
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
        PositiveMixture([1.0, 100.0], [Gaussian(1.0), Gaussian(1e4)]),
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
