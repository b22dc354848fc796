"""The expected gain against adaptive quadrature and closed forms."""

import numpy as np
import pytest
import scipy.integrate

from mri_design.active_learning.queries.infomax import expected_gain
from mri_design.errors import InputError
from mri_design.potentials.responses import BernoulliResponse, GaussianResponse, PoissonResponse

FAMILIES = [PoissonResponse(0.5), BernoulliResponse(2.0), GaussianResponse(0.3)]


@pytest.mark.parametrize("response", FAMILIES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize(("mean", "spread"), [(0.0, 0.1), (1.0, 1.0), (-4.0, 3.0), (3.0, 30.0)])
def test_against_adaptive_quadrature(response, mean, spread):
    def density(t):
        eps = np.array([mean + spread * t])
        return response.log_gain(eps, np.array([spread**2])).item() * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)

    wanted = scipy.integrate.quad(density, -10, 10, epsabs=1e-12, epsrel=1e-12, limit=400, points=[-mean / spread])[0]
    np.testing.assert_allclose(expected_gain(response, mean, spread**2), wanted, rtol=1e-8)


@pytest.mark.parametrize("response", FAMILIES, ids=lambda r: type(r).__name__)
def test_the_linearised_gain_is_the_limit_for_small_variances_and_lies_above(response):
    mean, small = np.array([-1.0, 0.3]), 1e-6
    both = [expected_gain(response, mean, small, kind) for kind in ("mutual_information", "linearised")]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-5)
    assert np.all(expected_gain(response, mean, 2.0, "linearised") > expected_gain(response, mean, 2.0))


def test_closed_form_of_the_poisson_rate():
    response, nodes = PoissonResponse(2.0), np.linspace(-9, 9, 2001)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    wanted = 0.7 * weights @ (2 * np.exp(0.4 + np.sqrt(0.7) * nodes))
    np.testing.assert_allclose(expected_gain(response, 0.4, 0.7, "linearised"), wanted, rtol=1e-10)


def test_gains_rise_with_the_variance_where_the_family_says_so():
    variances = np.linspace(0, 9, 50)
    for response in (r for r in FAMILIES if r.monotone):
        assert np.all(np.diff(expected_gain(response, -1.0, variances)) > 0)


def test_a_negative_variance_is_refused():
    with pytest.raises(InputError, match="variance"):
        expected_gain(PoissonResponse(), 0.0, -1.0)
