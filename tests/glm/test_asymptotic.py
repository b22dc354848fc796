"""Information per trial: simulated queries, the equivalence theorem, and numbers had from another program."""

import numpy as np
import pytest

from mri_design import BernoulliResponse, GaussianResponse, PoissonResponse, asymptotic_information


def test_known_values():
    """Poisson counts, n = 20, e = 2, |theta| = 1: one point, and both ways' eigenvalues to all digits known."""
    theta = np.ones(20) / np.sqrt(20)
    best = asymptotic_information(PoissonResponse(), theta, 2.0)
    np.testing.assert_allclose(best.support, [1.3037], atol=1e-4)
    np.testing.assert_allclose([best.along, best.across], [6.259, 0.4459], rtol=1e-3)
    sphere = asymptotic_information(PoissonResponse(), theta, 2.0, "sphere")
    np.testing.assert_allclose([sphere.along, sphere.across], [0.2585, 0.2190], rtol=1e-3)
    np.testing.assert_allclose(best.variances(4), [1 / (4 * best.along), 1 / (4 * best.across)])


@pytest.mark.parametrize("response", [PoissonResponse(0.5), BernoulliResponse()], ids=["counts", "labels"])
def test_the_sphere_is_what_random_queries_tell(response, rng):
    theta = np.array([0.0, 1.2, 0.0, 0.5])
    x = rng.standard_normal((400_000, 4))
    x *= 1.5 / np.linalg.norm(x, axis=1)[:, None]
    J = (x * response.fisher(x @ theta)[:, None]).T @ x / len(x)
    found = asymptotic_information(response, theta, 1.5, "sphere")
    unit = theta / np.linalg.norm(theta)
    np.testing.assert_allclose(unit @ J @ unit, found.along, rtol=1e-2)
    np.testing.assert_allclose((np.trace(J) - unit @ J @ unit) / 3, found.across, rtol=1e-2)


@pytest.mark.parametrize("response", [PoissonResponse(), BernoulliResponse(), BernoulliResponse(3.0)])
@pytest.mark.parametrize("power", [0.5, 2.0, 6.0])
def test_no_query_is_more_sensitive_than_the_optimal_ones(response, power):
    found = asymptotic_information(response, np.array([1.0, 0, 0, 0, 0]), power)
    assert len(found.support) <= 2 and np.isclose(found.weights.sum(), 1)
    assert -1e-9 < found.excess < 1e-6
    x = np.linspace(-power, power, 777)
    D = response.fisher(x)
    assert np.all(D * (x**2 / found.along + (power**2 - x**2) / found.across) <= 5 * (1 + 1e-6))


def test_gaussian_responses_gain_nothing_from_design():
    best, sphere = (
        asymptotic_information(GaussianResponse(0.5), np.ones(4), 2.0, how) for how in ("optimal", "sphere")
    )
    np.testing.assert_allclose([best.along, best.across], [2.0, 2.0], rtol=1e-4)  # e^2 / (n noise variance)
    np.testing.assert_allclose([sphere.along, sphere.across], [2.0, 2.0], rtol=1e-6)
