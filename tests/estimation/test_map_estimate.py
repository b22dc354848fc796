"""MAP: closed-form soft thresholding, optimality conditions, and the smoothing that leads there."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mri_design as md

ACCURATE = md.IRLS(tolerance=1e-9, max_iterations=500, solver_tolerance=1e-2, solver_iterations=300)
SHAPE = (7, 6)


def denoising(tau: float, sigma: float = 0.5) -> md.GeneralizedLinearModel:
    """All lines and Laplace sites on pixels: the MAP image is the data's own, soft-thresholded at tau sigma."""
    rng = np.random.default_rng(0)
    X = md.cartesian(range(SHAPE[0]), SHAPE)
    u = rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)
    return md.GeneralizedLinearModel(X, X(u), sigma**2, (md.SiteBlock("pixels", md.Identity(SHAPE), md.Laplace(tau)),))


def soft_threshold(u: np.ndarray, level: float) -> np.ndarray:
    return u * np.maximum(1 - level / np.abs(u), 0)


def test_approaches_soft_thresholding_as_the_smoothing_goes():
    tau = 1.0
    model = denoising(tau)
    exact = soft_threshold(model.back_projection(), tau * 0.5)
    assert (exact == 0).any() and (exact != 0).any()
    errors = []
    for smoothing in (1e-1, 1e-3, 1e-5):
        u, convergence = md.MapEstimate(smoothing, stages=5, inner=ACCURATE)(model)
        assert convergence.converged
        errors.append(np.abs(u - exact).max())
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 0.005 * tau * 0.5


def test_satisfies_the_optimality_conditions_of_l1(tiny_model):
    """With s = u: X^T (y - X u) = lambda sign(u) where u is not zero, and at most lambda where it is."""
    full = tiny_model("matrix", scale=5.0)
    model = md.GeneralizedLinearModel(full.measurement, full.data, full.noise_variance, full.blocks[:1])
    level = 5.0 * 0.1
    u, convergence = md.MapEstimate(1e-6, stages=7, inner=replace(ACCURATE, tolerance=1e-7))(model)
    force = model.measurement.adjoint(model.data - model.measurement(u))
    support = np.abs(u) > 1e-3
    assert convergence.converged and 0 < support.sum() < 8
    np.testing.assert_allclose(force[support], level * np.sign(u[support]), rtol=5e-3)
    assert (np.abs(force[~support]) <= level * 1.005).all()


def test_a_good_start_leads_to_the_same_answer_and_stopping_short_is_flagged(tiny_model):
    model = tiny_model("groups")
    estimate = md.MapEstimate(1e-2, stages=1, inner=ACCURATE)
    cold, first = estimate(model)
    warm, second = estimate(model, start=cold)
    np.testing.assert_allclose(warm, cold, atol=1e-3)
    assert second.matvecs < first.matvecs
    model = tiny_model("moduli", scale=3.0)
    _, convergence = md.MapEstimate(inner=md.IRLS(tolerance=1e-12, max_iterations=1))(model)
    assert convergence.status is md.Status.MAX_ITERATIONS
    assert convergence.iterations == md.MapEstimate().stages  # one in each


@pytest.mark.slow
def test_converges_near_the_minimum_where_site_precisions_span_decades():
    """Dark pixels and flat regions of a head: linear solves take more than a hundred iterations in the end."""
    scan = md.load_phantom("brain", shape=32, rng=np.random.default_rng(0))
    model = scan.slice_model().model(range(8, 24))

    def unsmoothed(u: np.ndarray) -> float:
        return md.PenalisedProblem.smoothed(model, (np.zeros(1),) * 2).value(
            model.data - model.measurement(u), model.analysis_coefficients(u)
        )

    u, convergence = md.MapEstimate()(model)
    best, _ = md.MapEstimate(1e-7, stages=9, inner=replace(md.MapEstimate().inner, tolerance=1e-6))(model)
    assert convergence.converged and convergence.matvecs < 2000
    assert unsmoothed(u) < 1.001 * unsmoothed(best)
