"""The proposed query against random feasible ones, the queries that are feasible, and information in the long run."""

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import mri_design as md
from mri_design.glm import (
    FeasibleQueries,
    FilterState,
    InfomaxQuery,
    LaplaceFilter,
    expected_gain,
    maximise_in_ball,
    minimise_in_ball,
)
from mri_design.sites import BernoulliResponse, GaussianResponse, PoissonResponse
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


def test_the_poisson_rate_has_a_closed_form_and_gains_rise_with_the_variance_in_monotone_families():
    response, nodes = PoissonResponse(2.0), np.linspace(-9, 9, 2001)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    wanted = 0.7 * weights @ (2 * np.exp(0.4 + np.sqrt(0.7) * nodes))
    np.testing.assert_allclose(expected_gain(response, 0.4, 0.7, "linearised"), wanted, rtol=1e-10)
    variances = np.linspace(0, 9, 50)
    for response in (r for r in NOISY_FAMILIES if r.monotone):
        assert np.all(np.diff(expected_gain(response, -1.0, variances)) > 0)


@pytest.mark.parametrize("fixed", [(), (0.7,), (0.3, -0.4)])
@pytest.mark.parametrize("krylov", [0, 6])
def test_coordinates_mean_what_they_say(fixed, krylov, rng):
    """Mean, variance and norm of x are those of alpha and y (equations 15 and 30 to 34), in part of the space too."""
    state = random_state(14 + len(fixed), rng)
    feasible = FeasibleQueries.of(state, 2.0, np.array(fixed), krylov)
    assert len(feasible.curvatures) == (krylov or 13)
    np.testing.assert_allclose(feasible.basis.T @ feasible.basis, np.eye(len(feasible.curvatures)), atol=1e-10)
    for _ in range(5):
        alpha, y = rng.standard_normal(), rng.standard_normal(len(feasible.curvatures))
        x = feasible.query(alpha, y)
        mean, variance = state.projection(x)
        np.testing.assert_allclose(feasible.means(np.array([alpha]))[0], mean, rtol=1e-10)
        np.testing.assert_allclose(feasible.variances(np.array([alpha]), y[None])[0], variance, rtol=1e-10)
        np.testing.assert_allclose(x @ x, alpha**2 + y @ y + np.sum(np.square(fixed)))
        np.testing.assert_array_equal(x[14:], fixed)


def quadratic(c, w, y):
    return y**2 @ c + y @ w


@pytest.mark.parametrize("signs", ["mixed", "positive", "negative"])
@pytest.mark.parametrize("slopes", ["generic", "none", "none along the top", "next to none along the top"])
def test_nothing_in_the_ball_is_better(signs, slopes, rng):
    for n in (1, 2, 5):
        c = rng.standard_normal(n)
        c = {"mixed": c, "positive": np.abs(c), "negative": -np.abs(c)}[signs]
        w, radii = rng.standard_normal((3, n)), np.array([0.1, 1.0, 4.0])
        if slopes == "none":
            w[:] = 0
        elif slopes != "generic":
            w[:, np.argmax(c)] = 0 if slopes.startswith("none") else 1e-17
        points = rng.standard_normal((4000, n))
        points /= np.linalg.norm(points, axis=1)[:, None]
        points = np.concatenate([points, points * rng.random((4000, 1))])
        for solve, sign in ((maximise_in_ball, 1), (minimise_in_ball, -1)):
            found = solve(c, w, radii)
            assert np.all(np.linalg.norm(found, axis=1) <= radii * (1 + 1e-12))
            for y, slope, R in zip(found, w, radii, strict=True):
                best = (sign * quadratic(c, slope, R * points)).max()
                assert sign * quadratic(c, slope, y) >= best - 1e-10 * (1 + abs(best))


def test_an_interior_minimum_no_room_and_no_dimensions():
    inside = minimise_in_ball(np.array([1.0, 2.0]), np.array([[1.0, -2.0]]), np.array([9.0]))
    np.testing.assert_allclose(inside, [[-0.5, 0.5]])
    assert not maximise_in_ball(np.ones(2), np.ones((1, 2)), np.zeros(1)).any()
    assert maximise_in_ball(np.ones(0), np.ones((3, 0)), np.ones(3)).shape == (3, 0)


def test_known_values():
    """Poisson counts, n = 20, e = 2, |theta| = 1: one point, and both ways' eigenvalues to all digits known."""
    theta = np.ones(20) / np.sqrt(20)
    best = md.glm.asymptotic_information(PoissonResponse(), theta, 2.0)
    np.testing.assert_allclose(best.support, [1.3037], atol=1e-4)
    np.testing.assert_allclose([best.along, best.across], [6.259, 0.4459], rtol=1e-3)
    sphere = md.glm.asymptotic_information(PoissonResponse(), theta, 2.0, "sphere")
    np.testing.assert_allclose([sphere.along, sphere.across], [0.2585, 0.2190], rtol=1e-3)
    np.testing.assert_allclose(best.variances(4), [1 / (4 * best.along), 1 / (4 * best.across)])


@pytest.mark.parametrize("response", [PoissonResponse(0.5), BernoulliResponse()], ids=["counts", "labels"])
def test_the_sphere_is_what_random_queries_tell(response, rng):
    theta = np.array([0.0, 1.2, 0.0, 0.5])
    x = rng.standard_normal((400_000, 4))
    x *= 1.5 / np.linalg.norm(x, axis=1)[:, None]
    J = (x * response.fisher(x @ theta)[:, None]).T @ x / len(x)
    found = md.glm.asymptotic_information(response, theta, 1.5, "sphere")
    unit = theta / np.linalg.norm(theta)
    np.testing.assert_allclose(unit @ J @ unit, found.along, rtol=1e-2)
    np.testing.assert_allclose((np.trace(J) - unit @ J @ unit) / 3, found.across, rtol=1e-2)


@pytest.mark.parametrize("response", [PoissonResponse(), BernoulliResponse(), BernoulliResponse(3.0)])
@pytest.mark.parametrize("power", [0.5, 2.0, 6.0])
def test_no_query_is_more_sensitive_than_the_optimal_ones(response, power):
    found = md.glm.asymptotic_information(response, np.array([1.0, 0, 0, 0, 0]), power)
    assert len(found.support) <= 2 and np.isclose(found.weights.sum(), 1)
    assert -1e-9 < found.excess < 1e-6
    x = np.linspace(-power, power, 777)
    D = response.fisher(x)
    assert np.all(D * (x**2 / found.along + (power**2 - x**2) / found.across) <= 5 * (1 + 1e-6))
