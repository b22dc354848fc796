"""Laplace's method site by site and chunk by chunk, against dense algebra and general optimisers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

import mri_design as md
from mri_design.glm import (
    FilterState,
    LaplaceFilter,
    LaplacePropagation,
    coefficients_of_sites,
    load_chunk,
    partition_sites,
)
from mri_design.inference import WarmStart
from mri_design.operators import Dense, FiniteDifferences, Identity, RowsOnDisk
from mri_design.sites import (
    BernoulliResponse,
    Gaussian,
    GaussianResponse,
    Logistic,
    Poisson,
    PoissonResponse,
    Sech2,
    StudentT,
    Tilted,
)
from tests.refusals import refused

LP = LaplacePropagation
SEED = 7


def logistic_model(q: int = 600, n: int = 20, prior: float = 0.7, seed: int = 0):
    """Logistic regression with a Gaussian prior, and its rows and labels."""
    rng = np.random.default_rng(seed)
    rows = 2 * rng.standard_normal((q, n)) / np.sqrt(n)
    labels = np.where(rng.random(q) < 1 / (1 + np.exp(-rows @ rng.standard_normal(n))), 1.0, -1.0)
    blocks = [
        md.SiteBlock("labels", Dense(rows), Logistic(labels)),
        md.SiteBlock("weights", Dense(np.eye(n)), Gaussian(prior)),
    ]
    return md.GeneralizedLinearModel.of_sites(blocks), rows, labels, prior


def newton_map(rows, labels, prior):
    """MAP and Hessian of logistic regression by Newton's method on everything."""
    theta = np.zeros(rows.shape[1])
    for _ in range(40):
        p = 1 / (1 + np.exp(-labels * (rows @ theta)))
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + prior * np.eye(len(theta))
        theta = theta + np.linalg.solve(hessian, rows.T @ (labels * (1 - p)) - prior * theta)
    return theta, hessian


def run(model, warm_start=None, **settings):
    """The posterior, and the sweeps behind it."""
    return LP(**settings).propagate(model, np.random.default_rng(SEED), warm_start=warm_start)


def mean_of(model, **settings):
    return run(model, **settings)[0].mean


@pytest.mark.parametrize(
    ("schedule", "partition", "size"),
    [
        ("serial", "random", 60),
        ("parallel", "contiguous", 5),  # few rows
        ("serial", "groups", 7),
        ("serial", "random", 5),
    ],
)
def test_the_fixed_point_is_the_map_with_the_inverse_hessian(schedule, partition, size) -> None:
    model, rows, labels, prior = logistic_model(q=200)
    theta, hessian = newton_map(rows, labels, prior)
    posterior, sweeps = run(model, schedule=schedule, partition=partition, chunk_size=size, tolerance=1e-10)
    assert posterior.convergence.converged
    np.testing.assert_allclose(posterior.mean, theta, rtol=0, atol=3e-12)
    covariance = np.linalg.inv(posterior.precision.dense_real())
    inverse = np.linalg.inv(hessian)
    assert np.abs(covariance - inverse).max() <= 1e-9 * np.abs(inverse).max()
    z = posterior.marginals.values[0]
    np.testing.assert_allclose(z, np.einsum("ij,jk,ik->i", rows, inverse, rows), rtol=1e-8)
    np.testing.assert_allclose(posterior.image_variances, np.diag(inverse), rtol=1e-8)
    np.testing.assert_allclose(posterior.marginals.log_determinant, np.linalg.slogdet(hessian)[1], rtol=1e-9)
    for mode, place in zip(sweeps.modes, sweeps.coordinates, strict=True):
        np.testing.assert_allclose(mode, theta[place], atol=1e-7)


def test_serial_sweeps_converge_in_fewer_rounds_than_parallel_ones_and_damped_ones_linearly() -> None:
    model, rows, labels, prior = logistic_model()
    theta = newton_map(rows, labels, prior)[0]

    def errors(**settings):
        return np.array([np.abs(mean - theta).max() for mean in run(model, chunk_size=60, **settings)[1].means])

    needed = [1 + int(np.argmax(errors(schedule=schedule) < 1e-8)) for schedule in ("serial", "parallel")]
    assert needed[0] <= 3
    assert needed[0] < needed[1] <= 6
    slow = errors(damping=0.5, max_sweeps=12)
    np.testing.assert_allclose(slow[6:] / slow[5:-1], 0.5, atol=0.05)
    assert run(model, chunk_size=60, damping=0.5, max_sweeps=2)[0].convergence.status is md.Status.MAX_ITERATIONS


def test_one_parallel_sweep_is_the_bayes_committee_machine() -> None:
    model, rows, labels, prior = logistic_model(q=200, n=6)
    found, _ = run(model, chunk_size=50, partition="contiguous", schedule="parallel", max_sweeps=1)
    P, h = -(4 - 1) * prior * np.eye(6), np.zeros(6)  # product of p(theta | Z_i) over p(theta)^(N - 1)
    for part in np.array_split(np.arange(200), 4):
        mode, hessian = newton_map(rows[part], labels[part], prior)
        P, h = P + hessian, h + hessian @ mode
    np.testing.assert_allclose(found.mean, np.linalg.solve(P, h), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.precision.dense_real(), P, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("schedule", ["serial", "parallel"])
def test_message_passing_on_the_cliques_of_a_graph_equals_the_whole(schedule) -> None:
    unit = np.eye(5)  # p(1) p(2) p(3 | 1, 2) p(4 | 3) p(5 | 3), section 2.2; 4 has a count, 5 a label
    factors = {
        "1": (unit[0], Gaussian(1.0)),
        "2": (unit[1], Gaussian(2.0)),
        "3 | 1, 2": (unit[2] - 0.8 * unit[0] + 0.5 * unit[1], Sech2(1.5)),
        "4 | 3": (unit[3] - unit[2], Sech2(2.0)),
        "5 | 3": (unit[4] + 0.7 * unit[2], Sech2(1.0)),
        "count of 4": (unit[3], Poisson(4.0)),
        "label of 5": (unit[4], Logistic(-1.0, 3.0)),
    }
    blocks = [md.SiteBlock(name, Dense(row[None]), site) for name, (row, site) in factors.items()]
    start = WarmStart(np.zeros(5), tuple(np.ones(1) for _ in factors))
    found, sweeps = run(
        md.GeneralizedLinearModel.of_sites(blocks), start, schedule=schedule, partition="groups", tolerance=1e-10
    )
    touched = [len(np.arange(5)[place]) for place in sweeps.coordinates]
    assert touched == [3, 2, 2, 1, 1]  # a message lives on its clique; the Gaussian nodes need none

    def derivative(order: str, theta):
        return np.array([np.asarray(getattr(site, order)(row @ theta)).item() for row, site in factors.values()])

    rows = np.array([row for row, _ in factors.values()])
    np.testing.assert_allclose(rows.T @ derivative("dlog_t", found.mean), 0, atol=1e-9)  # log-concave: the mode
    hessian = -(rows.T * derivative("d2log_t", found.mean)) @ rows
    np.testing.assert_allclose(found.precision.dense_real(), hessian, rtol=1e-8, atol=1e-9)
    cliques = {(0, 1): [0, 1, 2], (3,): [3, 5], (4,): [4, 6]}  # nodes to sum out, and their factors
    precision = 0.0
    for nodes, members in cliques.items():
        P = -(rows[members].T * derivative("d2log_t", found.mean)[members]) @ rows[members]
        inner = np.linalg.inv(P[np.ix_(nodes, nodes)])
        precision += P[2, 2] - P[2, list(nodes)] @ inner @ P[list(nodes), 2]
    np.testing.assert_allclose(1 / precision, found.image_variances[2], rtol=1e-8)


@pytest.mark.parametrize(("groups", "size"), [(3, 30), (9, 9)])  # more rows than coordinates, and fewer
def test_chunks_live_on_the_coordinates_that_they_touch(groups, size) -> None:
    rng = np.random.default_rng(5)
    rows = np.zeros((groups * size, 4 * groups))
    for group in range(groups):  # groups of coordinates, with one shared by neighbours
        part = rows[size * group : size * (group + 1), 4 * group : 4 * group + 5]
        part[:] = rng.standard_normal(part.shape)
    labels = np.where(rng.random(len(rows)) < 0.5, 1.0, -1.0)
    blocks = [
        md.SiteBlock("labels", Dense(rows), Logistic(labels)),
        md.SiteBlock("weights", Dense(np.eye(4 * groups)), Gaussian(0.4)),
    ]
    model = md.GeneralizedLinearModel.of_sites(blocks)
    posterior, sweeps = run(model, partition="contiguous", chunk_size=size)
    np.testing.assert_array_equal(sweeps.coordinates[1], np.arange(4, 9))
    assert len(sweeps.modes[-1]) == 4
    np.testing.assert_allclose(posterior.mean, newton_map(rows, labels, 0.4)[0], atol=1e-11)


def gradient(model, u):
    """Slope of log p, for smooth sites with representation g."""
    slope = model.measurement.adjoint(model.data - model.measurement(u))
    for block in model.blocks:
        s = block.coefficients(u)
        slope = slope + block.analysis.adjoint(2 * block.potential.dg(block.site_power(s) / model.noise_variance) * s)
    return slope


def test_sites_on_moduli_reach_the_joint_map_in_few_sweeps() -> None:
    rng = np.random.default_rng(2)
    n, x = 10, rng.standard_normal((14, 10)) + 1j * rng.standard_normal((14, 10))
    b = rng.standard_normal((24, n)) + 1j * rng.standard_normal((24, n))
    data = rng.standard_normal(14) + 1j * rng.standard_normal(14)
    model = md.GeneralizedLinearModel(Dense(x), data, 0.5, (md.SiteBlock("b", Dense(b), Sech2(0.8)),))
    found, _ = run(model, chunk_size=5)
    assert found.convergence.iterations <= 6
    np.testing.assert_allclose(gradient(model, found.mean), 0, atol=1e-9)
    # The posterior has the site precisions of the double loop, so that its mean solves its own equations.
    pi = found.site_precisions
    np.testing.assert_allclose(found.precision(found.mean), x.conj().T @ data, atol=1e-9)
    a = x.conj().T @ x + b.conj().T @ (pi[:, None] * b)
    z = 2 * np.einsum("ij,jk,ik->i", b, np.linalg.inv(a), b.conj()).real
    np.testing.assert_allclose(found.variances.values, z, rtol=1e-9)


def test_groups_share_a_site() -> None:
    block = md.SiteBlock("tv", FiniteDifferences((3, 4)), Sech2(np.arange(1.0, 13).reshape(1, 3, 4)), (-3,))
    index = coefficients_of_sites(block, np.array([0, 5]))
    np.testing.assert_array_equal(index, [[0, 12], [5, 17]])
    model = md.GeneralizedLinearModel(Identity((3, 4)), np.zeros((3, 4), dtype=complex), 4.0, (block,))
    chunk = partition_sites(model.blocks, [0], "contiguous", 5, np.random.default_rng(0))[1]
    loaded = load_chunk(model, *chunk)
    assert loaded.parts == 4  # two differences, real and imaginary
    rng = np.random.default_rng(0)
    u = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    theta = np.concatenate([u.real.ravel(), u.imag.ravel()])
    power = np.sum((loaded.rows @ theta[loaded.coordinates]).reshape(-1, 4) ** 2, axis=1)
    np.testing.assert_allclose(power, block.site_power(block.analysis(u)).ravel()[chunk[1]])
    np.testing.assert_allclose(loaded.potential.rate, np.arange(1.0, 13)[chunk[1]])


def test_an_undetermined_gaussian_part_needs_a_warm_start() -> None:
    rng = np.random.default_rng(4)
    x, data = rng.standard_normal((4, 8)), rng.standard_normal(4)
    block = md.SiteBlock("b", Dense(rng.standard_normal((16, 8))), Sech2(1.0))
    model = md.GeneralizedLinearModel(Dense(x), data, 1.0, (block,))
    start = WarmStart(np.zeros(8), (np.ones(16),))
    for size in (3, 2):  # more rows than coordinates, and fewer
        with refused("a chunk and its cavity"):
            run(model, chunk_size=size)
        u = run(model, start, chunk_size=size)[0].mean
        gradient = x.T @ (data - x @ u) - block.analysis.adjoint(2 * np.tanh(block.analysis(u)))
        np.testing.assert_allclose(gradient, 0, atol=1e-9)


def test_rows_on_disk_are_those_in_memory(tmp_path) -> None:
    model, rows, *_ = logistic_model(q=120, n=6)
    np.save(tmp_path / "rows.npy", rows)
    on_disk = replace(model.blocks[0], analysis=RowsOnDisk(tmp_path / "rows.npy", slab_rows=30))
    settings = {"partition": "random", "chunk_size": 30, "max_sweeps": 4}
    found = run(replace(model, blocks=(on_disk, model.blocks[1])), **settings)[0].mean
    np.testing.assert_array_equal(found, run(model, **settings)[0].mean)


SITES = [
    Poisson(3),
    Poisson(0, exposure=4.0),
    Poisson(200),
    Logistic(-1.0),
    GaussianResponse(0.5).site(1.3),
    StudentT(3.0, 4.0),
]


def random_state(n, rng):
    covariance = np.cov(rng.standard_normal((n, n + 3)))
    return FilterState(rng.standard_normal(n), 0.5 * (covariance + covariance.T))


@pytest.mark.parametrize("site", SITES, ids=lambda s: type(s).__name__)
def test_one_update_is_the_laplace_approximation(site, rng):
    """Mean at the mode of all unknowns; covariance the inverse Hessian there (Woodbury), determinant with it."""
    state, x = random_state(5, rng), rng.standard_normal(5)
    new = LaplaceFilter().update(state, x, site)
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
    site = StudentT(3.0, 1.0)
    state = FilterState(np.array([10.0]), np.array([[0.5]]))
    new = LaplaceFilter().update(state, np.ones(1), site)
    assert site.d2log_t(new.mean).item() > 0
    assert new.covariance.item() == 0.5
    # Wide enough, the better of two modes is the one at zero.
    wide = LaplaceFilter().update(FilterState(np.array([10.0]), np.array([[40.0]])), np.ones(1), StudentT(3.0, 100.0))
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
    sites = [GaussianResponse(0.3).site(y) for y in answers]
    found = LaplaceFilter(drift=Q).track(state, queries, sites)
    np.testing.assert_allclose(found.mean, m, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, C, rtol=1e-9, atol=1e-12)


def with_prior(rows, site, offset=None, noise_variance=0.7):
    n = rows.shape[1]
    prior = md.SiteBlock("prior", Identity((n,), is_complex=False), Gaussian(2.0), offset=np.linspace(-1, 1, n))
    return md.GeneralizedLinearModel.of_sites(
        [md.SiteBlock("sites", Dense(rows), site, offset=offset), prior], noise_variance
    )


@pytest.mark.parametrize("family", [PoissonResponse(0.5), BernoulliResponse(1.5)], ids=["counts", "labels"])
def test_infer_is_update_after_update(family, rng):
    rows = rng.standard_normal((9, 3))
    answers = family.draw(rows @ np.array([0.5, -0.3, 0.1]), rng)
    site = Poisson(answers, 0.5) if isinstance(family, PoissonResponse) else Logistic(answers, 1.5)
    offset, sigma = rng.standard_normal(9), np.sqrt(0.7)
    model = with_prior(rows, site, offset)
    found = LaplaceFilter().infer(model, rng)
    # An offset is one more unknown that is known.
    state = FilterState(np.append(np.linspace(-1, 1, 3), 1.0), np.diag([0.35, 0.35, 0.35, 1e-14]))
    queries = np.column_stack([rows, -offset]) / sigma
    state = LaplaceFilter().track(state, queries, [family.site(float(a)) for a in answers])
    np.testing.assert_allclose(found.mean, state.mean[:3], rtol=1e-6)
    covariance = 0.7 * np.linalg.inv(found.precision.dense_real())
    np.testing.assert_allclose(covariance, state.covariance[:3, :3], rtol=1e-6, atol=1e-10)
    assert found.convergence.converged and found.convergence.iterations == 9
    again = FilterState.from_posterior(found)
    np.testing.assert_allclose(again.covariance, covariance, rtol=1e-10)


def test_scales_that_differ_from_site_to_site_go_with_their_sites(rng):
    """Also inside a tilted site."""
    rows, scales = rng.standard_normal((3, 2)), np.array([0.5, 1.0, 2.0])
    site = Tilted(Logistic(np.array([1.0, -1.0, 1.0]), scales), np.array([0.1, 0.2, 0.3]))
    found = LaplaceFilter().infer(with_prior(rows, site, noise_variance=1.0), rng)
    state = FilterState(np.linspace(-1, 1, 2), 0.5 * np.eye(2))
    one_by_one = [Tilted(Logistic(c, s), b) for c, s, b in zip((1.0, -1.0, 1.0), scales, (0.1, 0.2, 0.3), strict=True)]
    np.testing.assert_allclose(found.mean, LaplaceFilter().track(state, rows, one_by_one).mean, rtol=1e-9)
