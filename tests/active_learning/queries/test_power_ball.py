"""The quadratic in a ball against brute force and a general solver, hard case included."""

import numpy as np
import pytest
import scipy.optimize

from mri_design.active_learning.queries.feasible import maximise_in_ball, minimise_in_ball


def value(c, w, y):
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
                best = (sign * value(c, slope, R * points)).max()
                assert sign * value(c, slope, y) >= best - 1e-10 * (1 + abs(best))


def test_the_multiplier_conditions_hold(rng):
    c, w = np.sort(rng.random(8)), rng.standard_normal((20, 8))
    R = rng.uniform(0.1, 3, 20)
    y = maximise_in_ball(c, w, R)
    multipliers = np.sum((2 * c * y + w) * y, axis=1) / (2 * R**2)
    np.testing.assert_allclose(2 * c * y + w, 2 * multipliers[:, None] * y, atol=1e-9)
    assert np.all(multipliers >= c.max() - 1e-9)
    np.testing.assert_allclose(np.linalg.norm(y, axis=1), R, rtol=1e-12)


def test_the_hard_case_fills_the_ball_along_the_top_eigenvector():
    c, w = np.array([1.0, 3.0]), np.array([[1.0, 0.0]])
    y = maximise_in_ball(c, w, np.array([2.0]))[0]
    np.testing.assert_allclose(y[0], 1 / (2 * (3 - 1)))
    np.testing.assert_allclose(np.hypot(*y), 2)
    # Within a smaller ball the slope alone reaches the edge: no hard case there.
    np.testing.assert_allclose(maximise_in_ball(c, w, np.array([0.2]))[0], [0.2, 0], atol=1e-12)


def test_an_interior_minimum_stays_inside():
    np.testing.assert_allclose(
        minimise_in_ball(np.array([1.0, 2.0]), np.array([[1.0, -2.0]]), np.array([9.0])), [[-0.5, 0.5]]
    )


def test_no_room_and_no_dimensions():
    assert not maximise_in_ball(np.ones(2), np.ones((1, 2)), np.zeros(1)).any()
    assert maximise_in_ball(np.ones(0), np.ones((3, 0)), np.ones(3)).shape == (3, 0)


def test_slsqp_finds_nothing_better(rng):
    c, w = rng.standard_normal(4), rng.standard_normal((1, 4))
    y = maximise_in_ball(c, w, np.array([1.5]))
    best = max(
        -scipy.optimize.minimize(
            lambda y: -value(c, w[0], y),
            rng.standard_normal(4),
            method="SLSQP",
            constraints={"type": "ineq", "fun": lambda y: 1.5**2 - y @ y},
        ).fun
        for _ in range(10)
    )
    np.testing.assert_allclose(value(c, w[0], y[0]), best, rtol=1e-6)
