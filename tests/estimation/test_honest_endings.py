"""Solvers that cannot go on say why: converged to rounding, stalled above it, or never at a useless point."""

import numpy as np
import pytest

from mri_design import (
    ADMM,
    IRLS,
    LBFGS,
    ExponentialPower,
    FiniteDifferences,
    GeneralizedLinearModel,
    Identity,
    Laplace,
    MapEstimate,
    SiteBlock,
    Status,
    cartesian,
)
from mri_design.estimation import RemainingExcess, rounding_of, stalled_status
from mri_design.potentials import SuperGaussian
from tests.estimation.problems import value_at


def square(site: SuperGaussian, data_scale: float = 1.0, real: type = np.float64) -> GeneralizedLinearModel:
    """A noisy square of 16 x 16 pixels on six lines, sites on pixels and differences."""
    rng = np.random.default_rng(0)
    shape = (16, 16)
    X = cartesian([7, 8, 9, 6, 2, 12], shape)
    image = np.zeros(shape, complex)
    image[4:12, 4:12] = 1
    y = X(image) + 0.05 * (rng.standard_normal(X.out_shape) + 1j * rng.standard_normal(X.out_shape))
    data = (data_scale * y).astype(np.result_type(real, np.complex64))
    blocks = (SiteBlock("pixels", Identity(shape), site), SiteBlock("differences", FiniteDifferences(shape), site))
    return GeneralizedLinearModel(X, data, 0.0025, blocks)


def test_admm_on_cusps_does_not_take_a_useless_point_for_converged():
    model = square(ExponentialPower(0.5, 1.0))
    problem = MapEstimate().smoothed_problem(model, 0.0)
    solver = ADMM(tolerance=1e-5, max_iterations=200)
    u, convergence = solver(problem, model.back_projection())
    best, _ = MapEstimate(1e-8, 9)(model)
    assert value_at(problem, u) > 2 * value_at(problem, best)  # it is a useless point
    assert convergence.status is Status.MAX_ITERATIONS
    assert convergence.residual > solver.tolerance


@pytest.mark.parametrize("inner", [ADMM(max_iterations=500), IRLS(max_iterations=500), LBFGS()])
def test_without_smoothing_sites_with_cusps_end_where_a_continuation_ends(inner):
    model = square(ExponentialPower(0.5, 1.0))
    problem = MapEstimate().smoothed_problem(model, 0.0)
    u, convergence = MapEstimate(0.0, inner=inner)(model)
    reference, _ = MapEstimate(1e-8, 9)(model)
    assert value_at(problem, u) < 1.02 * value_at(problem, reference)
    assert convergence.status in (Status.CONVERGED, Status.STALLED)


@pytest.mark.parametrize(
    ("solver", "real"), [(LBFGS(1e-14, 3000), np.float64), (IRLS(1e-14, 300, solver_tolerance=1e-3), np.float32)]
)
def test_converged_without_progress_is_the_minimum_to_rounding(solver, real):
    """Tighter than the precision allows: converged only within the rounding of J, and that is true."""
    problem = MapEstimate().smoothed_problem(square(Laplace(1.0), real=real), 1.0)
    double = MapEstimate().smoothed_problem(square(Laplace(1.0)), 1.0)
    u, convergence = solver(problem, problem.model.back_projection())
    best, _ = IRLS(1e-14, 2000, solver_tolerance=1e-3)(double, double.model.back_projection())
    lowest, size = value_at(double, best), problem.model.measurement.in_size
    assert convergence.status in (Status.CONVERGED, Status.STALLED)
    assert convergence.residual > 0
    if convergence.converged:
        excess = (value_at(double, u.astype(complex)) - lowest) / size
        assert excess <= 50 * np.finfo(real).eps * abs(lowest) / size


def test_the_status_of_a_stall_and_what_remains_where_j_stood_still():
    rounding = rounding_of(3.0, -5.0, np.zeros(1, np.complex64))
    assert rounding == pytest.approx(80 * np.finfo(np.float32).eps)
    assert stalled_status(1e-3, 1e-2, 0.0) is Status.CONVERGED
    assert stalled_status(1e-3, 1e-4, 1e-2) is Status.CONVERGED
    assert stalled_status(1e-3, 1e-4, 1e-5) is Status.STALLED
    assert stalled_status(np.nan, 1e-4, 1e-5) is Status.BREAKDOWN
    excess = RemainingExcess(7.0)
    assert excess.after(7.0) == np.inf
    assert excess.after(7.0) == 0.0


def test_admm_started_at_the_minimum_has_converged():
    model = square(Laplace(1.0), data_scale=0.0)
    u, convergence = ADMM()(MapEstimate().smoothed_problem(model, 0.0), model.back_projection())
    assert convergence.converged and convergence.iterations <= 10
    assert not u.any()
    estimate = MapEstimate(0.0).estimate(model)
    assert estimate.convergence.converged and not estimate.image.any()
    assert estimate.gap is not None and estimate.gap.absolute == 0


@pytest.mark.parametrize("smoothing", [1e-2, 0.0])
def test_the_certificate_is_counted(smoothing):
    model = square(Laplace(1.0))
    method = MapEstimate(smoothing)
    _, convergence = method(model)
    estimate = method.estimate(model)
    assert estimate.gap is not None and estimate.gap.matvecs > 0
    extra = estimate.gap.matvecs if smoothing else 0  # without smoothing it is what ends the call as well
    assert estimate.convergence.matvecs == convergence.matvecs + extra
