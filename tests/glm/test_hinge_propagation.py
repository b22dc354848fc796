"""With hinge sites Laplace propagation is the chunking of support vector machines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import mri_design as md
from mri_design.glm import (
    DecoupledGaussian,
    LaplaceFilter,
    LaplacePropagation,
    VariationalGaussian,
    best_gaussian,
    minimise_in_box,
)
from mri_design.operators import Dense, Identity
from mri_design.sites import Gaussian, Hinge
from mri_design.variances import Exact
from tests.refusals import refused

SEED = 3
C = 0.8


def machine(q: int = 80, n: int = 6):
    """A support vector machine without offset, w = sum_j y_j alpha_j x_j."""
    rng = np.random.default_rng(SEED)
    rows = rng.standard_normal((q, n))
    labels = np.where(rows @ rng.standard_normal(n) + rng.standard_normal(q) > 0, 1.0, -1.0)
    blocks = [
        md.SiteBlock("labels", Dense(rows), Hinge(labels, C)),
        md.SiteBlock("weights", Dense(np.eye(n)), Gaussian(1.0)),
    ]
    return md.GeneralizedLinearModel.of_sites(blocks), rows, labels


def dual_solution(H, linear):
    """Minimum of alpha^T H alpha / 2 - linear^T alpha over [0, C] by a bounded quasi-Newton method."""
    return scipy.optimize.minimize(
        lambda a: (0.5 * a @ H @ a - linear @ a, H @ a - linear),
        np.full(len(H), C / 2),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, C)] * len(H),
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 0, "gtol": 1e-12},
    ).x


@pytest.mark.parametrize("n", [6, 80])  # more rows than coordinates, and fewer
def test_a_serial_sweep_is_a_round_of_chunking(n) -> None:
    model, rows, labels = machine(n=n)
    H = labels[:, None] * (rows @ rows.T) * labels
    alpha = np.zeros(len(rows))
    for part in np.array_split(np.arange(len(rows)), 4):  # equation (12): the others' alpha enter linearly
        rest = np.setdiff1d(np.arange(len(rows)), part)
        alpha[part] = dual_solution(H[np.ix_(part, part)], 1 - H[np.ix_(part, rest)] @ alpha[rest])
    engine = LaplacePropagation(partition="contiguous", chunk_size=20, max_sweeps=1)
    posterior, sweeps = engine.propagate(model, np.random.default_rng(0))
    np.testing.assert_allclose(posterior.mean, rows.T @ (labels * alpha), atol=1e-7)
    for message, part in zip(sweeps.messages, np.array_split(np.arange(len(rows)), 4), strict=True):
        assert not message.curvature.any()
        dual = message.slope[:, 0] * labels[part]
        assert dual.min() >= 0 and dual.max() <= C
    assert not np.any(posterior.precision.site_precisions[0])


def test_sweeps_converge_to_the_whole_machine() -> None:
    model, rows, labels = machine()
    H = labels[:, None] * (rows @ rows.T) * labels
    alpha = dual_solution(H, np.ones(len(rows)))
    engine = LaplacePropagation(chunk_size=20, max_sweeps=300, tolerance=1e-8)
    posterior, sweeps = engine.propagate(model, np.random.default_rng(0))
    assert posterior.convergence.converged
    w = posterior.mean
    np.testing.assert_allclose(w, rows.T @ (labels * alpha), atol=1e-6)
    dual = np.empty(len(rows))
    for chunk, message in zip(sweeps.chunks, sweeps.messages, strict=True):
        dual[chunk[1]] = labels[chunk[1]] * message.slope[:, 0]
    primal = 0.5 * w @ w + C * np.sum(np.maximum(0, 1 - labels * (rows @ w)))
    assert primal - (dual.sum() - 0.5 * dual @ H @ dual) <= 1e-7 * primal  # no gap: optimal


@pytest.mark.parametrize("rank", [3, 30])
def test_the_box_quadratic_meets_its_conditions(rank) -> None:
    rng = np.random.default_rng(rank)
    root = rng.standard_normal((20, rank))
    K, b, upper = root @ root.T, rng.standard_normal(20), rng.uniform(0.2, 1, 20)
    alpha, convergence = minimise_in_box(K, b, upper)
    assert convergence.converged
    gradient = K @ alpha - b
    inside = (alpha > 1e-9) & (alpha < upper - 1e-9)
    assert inside.any() and (alpha == 0).any()
    np.testing.assert_allclose(gradient[inside], 0, atol=1e-8)
    assert (gradient[alpha <= 1e-9] >= -1e-8).all() and (gradient[alpha >= upper - 1e-9] <= 1e-8).all()


def test_engines_take_hinge_sites_right_or_name_those_that_do() -> None:
    rng = np.random.default_rng(0)
    sites = md.SiteBlock(
        "margins", Dense(rng.standard_normal((9, 3))), Hinge(np.where(rng.random(9) < 0.5, -1, 1), 1.5)
    )
    weights = md.SiteBlock("weights", Identity((3,), is_complex=False), Gaussian(1.0))
    model = md.GeneralizedLinearModel.of_sites([sites, weights])
    mean, criterion = best_gaussian(model, 1e-7)
    found = VariationalGaussian(Exact(), tolerance=1e-7).infer(model, rng)
    assert found.convergence.converged
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)
    np.testing.assert_allclose(found.criterion[-1], criterion, rtol=1e-10)
    for engine in (md.DoubleLoop(), LaplaceFilter(), DecoupledGaussian()):
        with refused("block 'margins'"):
            engine.infer(model, rng)
