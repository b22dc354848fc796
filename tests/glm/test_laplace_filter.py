"""The Laplace filter: one site against a general optimiser and full inverses, many against exact engines."""

import numpy as np
import pytest
import scipy.optimize

import mri_design as md

SITES = [
    md.Poisson(3),
    md.Poisson(0, exposure=4.0),
    md.Poisson(200),
    md.Logistic(-1.0),
    md.GaussianResponse(0.5).site(1.3),
    md.StudentT(3.0, 4.0),
]


def random_state(n, rng):
    covariance = np.cov(rng.standard_normal((n, n + 3)))
    return md.FilterState(rng.standard_normal(n), 0.5 * (covariance + covariance.T))


@pytest.mark.parametrize("site", SITES, ids=lambda s: type(s).__name__)
def test_one_update_is_the_laplace_approximation(site, rng):
    """Mean at the mode of all unknowns; covariance the inverse Hessian there (Woodbury), determinant with it."""
    state, x = random_state(5, rng), rng.standard_normal(5)
    new = md.LaplaceFilter().update(state, x, site)
    P = np.linalg.inv(state.covariance)

    def loss(u):
        return 0.5 * (u - state.mean) @ P @ (u - state.mean) - site.log_t(np.array([x @ u])).item()

    best = min(
        (scipy.optimize.minimize(loss, start, tol=1e-10) for start in (state.mean, new.mean)), key=lambda r: r.fun
    )
    assert loss(new.mean) <= best.fun + 1e-10 * (1 + abs(best.fun))
    np.testing.assert_allclose(new.mean, best.x, atol=1e-4)
    D = max(-site.d2log_t(np.array([x @ new.mean])).item(), 0.0)
    np.testing.assert_allclose(new.covariance, np.linalg.inv(P + D * np.outer(x, x)), rtol=1e-9, atol=1e-11)
    logs = [np.linalg.slogdet(s.covariance)[1] for s in (state, new)]
    np.testing.assert_allclose(logs[1], logs[0] - np.log1p(D * (x @ state.covariance @ x)))
    np.testing.assert_array_equal(new.covariance, new.covariance.T)


def test_where_log_t_is_convex_the_covariance_does_not_grow():
    """A Student-t site far out has D < 0."""
    site = md.StudentT(3.0, 1.0)
    state = md.FilterState(np.array([10.0]), np.array([[0.5]]))
    new = md.LaplaceFilter().update(state, np.ones(1), site)
    assert site.d2log_t(new.mean).item() > 0
    assert new.covariance.item() == 0.5
    # Wide enough, the better of two modes is the one at zero.
    wide = md.LaplaceFilter().update(
        md.FilterState(np.array([10.0]), np.array([[40.0]])), np.ones(1), md.StudentT(3.0, 100.0)
    )
    assert abs(wide.mean.item()) < 1 and wide.covariance.item() < 1


@pytest.mark.parametrize("drift", [0.1, "diagonal", "matrix"])
def test_gaussian_responses_make_it_the_kalman_filter(drift, rng):
    n = 4
    root = rng.standard_normal((n, n))
    Q = {"diagonal": np.array([0.0, 0.1, 0.2, 0.3]), "matrix": 0.1 * root @ root.T}.get(drift, drift)
    Q_matrix = Q if np.ndim(Q) == 2 else np.diag(np.broadcast_to(Q, n))
    state = random_state(n, rng)
    m, C = state.mean, state.covariance
    queries, answers = rng.standard_normal((6, n)), rng.standard_normal(6)
    for x, y in zip(queries, answers, strict=True):
        C = C + Q_matrix
        gain = C @ x / (x @ C @ x + 0.3)
        m, C = m + gain * (y - x @ m), C - np.outer(gain, x @ C)
    sites = [md.GaussianResponse(0.3).site(y) for y in answers]
    found = md.LaplaceFilter(drift=Q).track(state, queries, sites)
    np.testing.assert_allclose(found.mean, m, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, C, rtol=1e-9, atol=1e-12)


def with_prior(rows, site, offset=None, noise_variance=0.7):
    n = rows.shape[1]
    prior = md.SiteBlock("prior", md.Identity((n,), is_complex=False), md.Gaussian(2.0), offset=np.linspace(-1, 1, n))
    return md.GeneralizedLinearModel.of_sites(
        [md.SiteBlock("sites", md.Dense(rows), site, offset=offset), prior], noise_variance
    )


@pytest.mark.parametrize("family", [md.PoissonResponse(0.5), md.BernoulliResponse(1.5)], ids=["counts", "labels"])
def test_infer_is_update_after_update(family, rng):
    rows = rng.standard_normal((9, 3))
    answers = family.draw(rows @ np.array([0.5, -0.3, 0.1]), rng)
    site = md.Poisson(answers, 0.5) if isinstance(family, md.PoissonResponse) else md.Logistic(answers, 1.5)
    offset, sigma = rng.standard_normal(9), np.sqrt(0.7)
    model = with_prior(rows, site, offset)
    found = md.LaplaceFilter().infer(model, rng)
    # An offset is one more unknown that is known.
    state = md.FilterState(np.append(np.linspace(-1, 1, 3), 1.0), np.diag([0.35, 0.35, 0.35, 1e-14]))
    queries = np.column_stack([rows, -offset]) / sigma
    state = md.LaplaceFilter().track(state, queries, [family.site(float(a)) for a in answers])
    np.testing.assert_allclose(found.mean, state.mean[:3], rtol=1e-6)
    covariance = 0.7 * np.linalg.inv(found.precision.dense_real())
    np.testing.assert_allclose(covariance, state.covariance[:3, :3], rtol=1e-6, atol=1e-10)
    assert found.convergence.converged and found.convergence.iterations == 9
    again = md.FilterState.from_posterior(found)
    np.testing.assert_allclose(again.covariance, covariance, rtol=1e-10)


@pytest.mark.parametrize(
    "site", [md.Poisson(np.arange(9)), md.Logistic(np.tile([1.0, -1.0, 1.0], 3))], ids=["counts", "labels"]
)
def test_it_is_one_serial_sweep_of_laplace_propagation_with_a_site_a_chunk(site, rng):
    model = with_prior(rng.standard_normal((9, 4)), site, rng.standard_normal(9))
    found = md.LaplaceFilter().infer(model, rng)
    sweep = md.LaplacePropagation(partition="contiguous", chunk_size=1, max_sweeps=1).infer(model, rng)
    np.testing.assert_allclose(found.mean, sweep.mean, rtol=1e-8, atol=1e-10)
    for ours, theirs in zip(found.marginals.values, sweep.marginals.values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_scales_that_differ_from_site_to_site_go_with_their_sites(rng):
    """Also inside a tilted site."""
    rows, scales = rng.standard_normal((3, 2)), np.array([0.5, 1.0, 2.0])
    site = md.Tilted(md.Logistic(np.array([1.0, -1.0, 1.0]), scales), np.array([0.1, 0.2, 0.3]))
    found = md.LaplaceFilter().infer(with_prior(rows, site, noise_variance=1.0), rng)
    state = md.FilterState(np.linspace(-1, 1, 2), 0.5 * np.eye(2))
    one_by_one = [
        md.Tilted(md.Logistic(c, s), b) for c, s, b in zip((1.0, -1.0, 1.0), scales, (0.1, 0.2, 0.3), strict=True)
    ]
    np.testing.assert_allclose(found.mean, md.LaplaceFilter().track(state, rows, one_by_one).mean, rtol=1e-9)
