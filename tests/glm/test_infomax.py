"""The proposed query: against random feasible ones, within its power, and in a closed loop."""

import numpy as np
import pytest
import scipy.integrate

from mri_design import (
    BernoulliResponse,
    FilterState,
    GaussianResponse,
    InfomaxQuery,
    LaplaceFilter,
    PoissonResponse,
)
from mri_design.glm import expected_gain
from tests.slow_cases import slow_case

FAMILIES = [PoissonResponse(), BernoulliResponse(), GaussianResponse(0.5)]


def random_state(n, rng, scale=1.0):
    root = rng.standard_normal((n, n + 2))
    return FilterState(scale * rng.standard_normal(n), scale * root @ root.T / n)


def in_ball(n, radius, count, rng):
    """Half of them on the sphere."""
    x = rng.standard_normal((count, n))
    x *= radius / np.linalg.norm(x, axis=1)[:, None]
    x[count // 2 :] *= rng.random((count - count // 2, 1)) ** (1 / n)
    return x


@pytest.mark.parametrize("response", FAMILIES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("fixed", [slow_case(()), (0.7,), slow_case((0.3, -0.4))])
@pytest.mark.parametrize("criterion", ["mutual_information", slow_case("linearised")])
def test_no_random_query_is_better(response, fixed, criterion, rng):
    state = random_state(3 + len(fixed), rng)
    search = InfomaxQuery(2.0, fixed, response, criterion)
    query = search.propose(state)
    free = in_ball(3, np.sqrt(4 - np.sum(np.square(fixed))), 100_000, rng)
    scores = search.score(state, np.concatenate([free, np.tile(fixed, (len(free), 1))], axis=1))
    assert query.score >= scores.max() * (1 - 1e-9)
    assert query.score <= scores.max() * (1 + 1e-2)
    assert np.linalg.norm(query.x) <= 2 * (1 + 1e-12)
    np.testing.assert_array_equal(query.x[3:], fixed)
    np.testing.assert_allclose([query.mean, query.variance], state.projection(query.x))
    np.testing.assert_allclose(search.score(state, query.x[None])[0], query.score)


def test_the_line_finds_what_the_plane_finds_where_the_gain_is_monotone(rng):
    state = random_state(6, rng)
    line, plane = (InfomaxQuery(2.0, (0.5,), search=how).propose(state) for how in ("1d", "2d"))
    np.testing.assert_allclose(line.score, plane.score, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(line.x), 2)


def test_without_a_mean_any_direction_may_stand_for_it():
    """The hard case: no slope at all, and the top eigenvector is the answer."""
    state = FilterState(np.zeros(3), np.diag([1.0, 3.0, 2.0]))
    query = InfomaxQuery(2.0, response=GaussianResponse()).propose(state)
    np.testing.assert_allclose(np.abs(query.x), [0, 2, 0], atol=1e-3)
    np.testing.assert_allclose(query.score, np.log1p(4 * 3), rtol=1e-6)
    query = InfomaxQuery(2.0).propose(FilterState(np.array([0.5]), np.array([[1.0]])))
    np.testing.assert_allclose(query.x, [2.0])


@pytest.mark.parametrize("response", [FAMILIES[0], slow_case(FAMILIES[1])], ids=lambda r: type(r).__name__)
def test_krylov_directions_lose_nothing_along_a_run(response, rng):
    theta = np.sin(np.linspace(0, 2 * np.pi, 60))
    state, loop = FilterState(np.zeros(60), np.eye(60)), LaplaceFilter()
    for _ in range(25):
        part, whole = (InfomaxQuery(2.0, (), response, krylov=k).propose(state) for k in (24, 0))
        np.testing.assert_allclose(part.score, whole.score, rtol=1e-6)
        state = loop.update(state, part.x, response.site(float(response.draw(theta @ part.x, rng))))


NOISY_FAMILIES = [PoissonResponse(0.5), BernoulliResponse(2.0), GaussianResponse(0.3)]


@pytest.mark.parametrize("response", NOISY_FAMILIES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize(("mean", "spread"), [(0.0, 0.1), (1.0, 1.0), (-4.0, 3.0), (3.0, 30.0)])
def test_against_adaptive_quadrature(response, mean, spread):
    def density(t):
        eps = np.array([mean + spread * t])
        return response.log_gain(eps, np.array([spread**2])).item() * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)

    wanted = scipy.integrate.quad(density, -10, 10, epsabs=1e-12, epsrel=1e-12, limit=400, points=[-mean / spread])[0]
    np.testing.assert_allclose(expected_gain(response, mean, spread**2), wanted, rtol=1e-8)


@pytest.mark.parametrize("response", NOISY_FAMILIES, ids=lambda r: type(r).__name__)
def test_the_linearised_gain_is_the_limit_for_small_variances_and_lies_above(response):
    mean, small = np.array([-1.0, 0.3]), 1e-6
    both = [expected_gain(response, mean, small, kind) for kind in ("mutual_information", "linearised")]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-5)
    assert np.all(expected_gain(response, mean, 2.0, "linearised") > expected_gain(response, mean, 2.0))


def test_the_poisson_rate_has_a_closed_form_and_gains_rise_with_the_variance_in_monotone_families():
    response, nodes = PoissonResponse(2.0), np.linspace(-9, 9, 2001)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    wanted = 0.7 * weights @ (2 * np.exp(0.4 + np.sqrt(0.7) * nodes))
    np.testing.assert_allclose(expected_gain(response, 0.4, 0.7, "linearised"), wanted, rtol=1e-10)
    variances = np.linspace(0, 9, 50)
    for response in (r for r in NOISY_FAMILIES if r.monotone):
        assert np.all(np.diff(expected_gain(response, -1.0, variances)) > 0)
