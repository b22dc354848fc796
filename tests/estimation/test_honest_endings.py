"""Solvers that cannot go on say why: converged to rounding, stalled above it, or never at a useless point."""

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import RemainingExcess, rounding_of, stalled_status
from mri_design.potentials import SuperGaussian
from tests.estimation.problems import value_at


def square(site: SuperGaussian, data_scale: float = 1.0, real: type = np.float64) -> md.GeneralizedLinearModel:
    """A noisy square of 16 x 16 pixels on six lines, sites on pixels and differences."""
    rng = np.random.default_rng(0)
    shape = (16, 16)
    X = md.cartesian([7, 8, 9, 6, 2, 12], shape)
    image = np.zeros(shape, complex)
    image[4:12, 4:12] = 1
    y = X(image) + 0.05 * (rng.standard_normal(X.out_shape) + 1j * rng.standard_normal(X.out_shape))
    data = (data_scale * y).astype(np.result_type(real, np.complex64))
    blocks = (
        md.SiteBlock("pixels", md.Identity(shape), site),
        md.SiteBlock("differences", md.FiniteDifferences(shape), site),
    )
    return md.GeneralizedLinearModel(X, data, 0.0025, blocks)


def test_admm_on_cusps_does_not_take_a_useless_point_for_converged():
    model = square(md.ExponentialPower(0.5, 1.0))
    problem = md.MapEstimate().smoothed_problem(model, 0.0)
    solver = md.ADMM(tolerance=1e-5, max_iterations=200)
    u, convergence = solver(problem, model.back_projection())
    best, _ = md.MapEstimate(1e-8, 9)(model)
    assert value_at(problem, u) > 2 * value_at(problem, best)  # it is a useless point
    assert convergence.status is md.Status.MAX_ITERATIONS
    assert convergence.residual > solver.tolerance


@pytest.mark.parametrize("inner", [md.ADMM(max_iterations=500), md.IRLS(max_iterations=500), md.LBFGS()])
def test_without_smoothing_sites_with_cusps_end_where_a_continuation_ends(inner):
    model = square(md.ExponentialPower(0.5, 1.0))
    problem = md.MapEstimate().smoothed_problem(model, 0.0)
    u, convergence = md.MapEstimate(0.0, inner=inner)(model)
    reference, _ = md.MapEstimate(1e-8, 9)(model)
    assert value_at(problem, u) < 1.02 * value_at(problem, reference)
    assert convergence.status in (md.Status.CONVERGED, md.Status.STALLED)


@pytest.mark.parametrize(
    ("solver", "real"), [(md.LBFGS(1e-14, 3000), np.float64), (md.IRLS(1e-14, 300, solver_tolerance=1e-3), np.float32)]
)
def test_converged_without_progress_is_the_minimum_to_rounding(solver, real):
    """Tighter than the precision allows: converged only within the rounding of J, and that is true."""
    problem = md.MapEstimate().smoothed_problem(square(md.Laplace(1.0), real=real), 1.0)
    double = md.MapEstimate().smoothed_problem(square(md.Laplace(1.0)), 1.0)
    u, convergence = solver(problem, problem.model.back_projection())
    best, _ = md.IRLS(1e-14, 2000, solver_tolerance=1e-3)(double, double.model.back_projection())
    lowest, size = value_at(double, best), problem.model.measurement.in_size
    assert convergence.status in (md.Status.CONVERGED, md.Status.STALLED)
    assert convergence.residual > 0
    if convergence.converged:
        excess = (value_at(double, u.astype(complex)) - lowest) / size
        assert excess <= 50 * np.finfo(real).eps * abs(lowest) / size


def test_the_status_of_a_stall_and_what_remains_where_j_stood_still():
    rounding = rounding_of(3.0, -5.0, np.zeros(1, np.complex64))
    assert rounding == pytest.approx(80 * np.finfo(np.float32).eps)
    assert stalled_status(1e-3, 1e-2, 0.0) is md.Status.CONVERGED
    assert stalled_status(1e-3, 1e-4, 1e-2) is md.Status.CONVERGED
    assert stalled_status(1e-3, 1e-4, 1e-5) is md.Status.STALLED
    assert stalled_status(np.nan, 1e-4, 1e-5) is md.Status.BREAKDOWN
    excess = RemainingExcess(7.0)
    assert excess.after(7.0) == np.inf
    assert excess.after(7.0) == 0.0


def test_admm_started_at_the_minimum_has_converged():
    model = square(md.Laplace(1.0), data_scale=0.0)
    u, convergence = md.ADMM()(md.MapEstimate().smoothed_problem(model, 0.0), model.back_projection())
    assert convergence.converged and convergence.iterations <= 10
    assert not u.any()
    estimate = md.MapEstimate(0.0).estimate(model)
    assert estimate.convergence.converged and not estimate.image.any()
    assert estimate.gap is not None and estimate.gap.absolute == 0


@pytest.mark.parametrize("smoothing", [1e-2, 0.0])
def test_the_certificate_is_counted(smoothing):
    model = square(md.Laplace(1.0))
    method = md.MapEstimate(smoothing)
    _, convergence = method(model)
    estimate = method.estimate(model)
    assert estimate.gap is not None and estimate.gap.matvecs > 0
    extra = estimate.gap.matvecs if smoothing else 0  # without smoothing it is what ends the call as well
    assert estimate.convergence.matvecs == convergence.matvecs + extra
