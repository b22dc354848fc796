"""The certificate: never below the truth, closing at the minimum, refused where it is not known."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import duality_gap
from tests.estimation.problems import problem_of, value_at
from tests.slow_cases import slow_case

SITES = {"Laplace": md.Laplace, "Gaussian": lambda scale: md.Gaussian(scale**2)}


def lowest(problem: md.PenalisedProblem, tolerance: float = 1e-13) -> float:
    u, convergence = md.LBFGS(tolerance=tolerance, max_iterations=5000)(problem, problem.model.back_projection())
    assert convergence.converged
    return value_at(problem, u)


@pytest.mark.parametrize(
    ("site", "offsets", "model_name"),
    [
        ("Laplace", True, "groups"),
        ("Laplace", True, "coils"),
        ("Laplace", True, "matrix"),
        slow_case("Laplace", True, "parts"),
        slow_case("Laplace", True, "real image"),
        slow_case("Laplace", True, "wavelet"),
        ("Gaussian", False, "groups"),
        ("Gaussian", False, "coils"),
    ],
)
def test_bounds_the_excess_anywhere_and_closes_at_the_minimum(
    site, offsets, tiny_model, model_name, with_offsets_and_odd_parts
):
    model = tiny_model(model_name, SITES[site])
    model = with_offsets_and_odd_parts(model) if offsets else model
    problem = problem_of(model)
    best, rng = lowest(problem), np.random.default_rng(0)
    minimiser, _ = md.LBFGS(tolerance=1e-13, max_iterations=3000)(problem, model.back_projection())
    gaps = []
    for amount in (0.0, 1e-3, 1e-2, 1e-1, 1.0):
        u = minimiser + amount * rng.standard_normal(minimiser.shape)
        gap = duality_gap(problem, u)
        assert gap is not None
        assert gap.primal == pytest.approx(value_at(problem, u), rel=1e-12)
        assert gap.dual <= best + 1e-9 * abs(best)
        assert gap.absolute >= value_at(problem, u) - best - 1e-9 * abs(best)
        gaps.append(gap.absolute)
    assert gaps[0] < 1e-4 * abs(best)
    assert gaps[0] < gaps[-1]


@pytest.mark.parametrize("model_name", ["groups", "coils", "matrix"])
def test_multipliers_that_are_far_off_give_a_bound_still(tiny_model, model_name):
    problem = problem_of(tiny_model(model_name))
    rng = np.random.default_rng(0)
    best = lowest(problem)
    for size in (1e-3, 0.1, 10.0):
        w = tuple(size * rng.standard_normal(b.analysis.out_shape) for b in problem.model.blocks)
        gap = duality_gap(problem, problem.model.back_projection(), w)
        assert gap is None or gap.dual <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("model_name", ["groups", "coils", slow_case("parts"), slow_case("matrix")])
def test_the_exact_map_image_is_certified(tiny_model, model_name):
    """Against a smoothed problem, whose minimum is above, solved by another method."""
    model = tiny_model(model_name, scale=5.0)
    estimate = md.map_estimate(model, smoothing=0.0, inner=md.LBFGS(tolerance=1e-6, max_iterations=5000))
    assert estimate.convergence.converged and estimate.gap is not None
    size = model.measurement.in_size
    assert estimate.gap.absolute < 1e-6 * size
    assert estimate.convergence.residual == pytest.approx(estimate.gap.absolute / size)
    exact = problem_of(model, 0.0)
    smoothed = lowest(problem_of(model, 1e-3), 1e-7)
    assert estimate.gap.dual <= value_at(exact, estimate.image) <= smoothed + 1e-6 * size


def in_double_precision(model: md.GeneralizedLinearModel, image: np.ndarray) -> float:
    """J of an image without smoothing."""
    exact = problem_of(replace(model, data=model.data.astype(np.result_type(model.data, np.float64))), 0.0)
    return value_at(exact, image.astype(np.result_type(image, np.float64)))


@pytest.mark.parametrize("name", ["moduli", "coils"])
def test_the_gap_is_that_of_the_image_returned_wherever_the_limit_falls(name, tiny_model):
    """Gaps are looked at now and then; the loop ends between two looks, between two gaps, and before the first."""
    model = tiny_model(name, scale=3.0)
    size, residuals = model.measurement.in_size, []
    for limit in (3, 20, 33, 40, 51, 77):
        estimate = md.MapEstimate(0.0, stages=1, inner=md.ADMM(1e-11, limit)).estimate(model)
        assert estimate.convergence.status is md.Status.MAX_ITERATIONS and estimate.gap is not None
        assert estimate.gap.primal == pytest.approx(in_double_precision(model, estimate.image), rel=1e-13)
        assert estimate.gap.dual <= estimate.gap.primal
        assert estimate.convergence.residual == estimate.gap.absolute / size
        residuals.append(estimate.convergence.residual)
    assert residuals[-1] < 0.2 * residuals[0]


@pytest.mark.parametrize("name", ["matrix", "moduli"])
def test_an_estimate_that_was_too_hopeful_leaves_no_older_gap_behind(name, tiny_model):
    """The estimate is below the tolerance long before the gap is, so that gaps are made on the way."""
    model, statuses = tiny_model(name, scale=0.5), set()
    for limit in (*range(23, 60, 9), 103, 203):
        estimate = md.MapEstimate(0.0, stages=1, inner=md.ADMM(1e-4, limit)).estimate(model)
        assert estimate.gap is not None
        assert estimate.gap.primal == pytest.approx(in_double_precision(model, estimate.image), rel=1e-13)
        assert estimate.convergence.residual == estimate.gap.absolute / model.measurement.in_size
        assert estimate.convergence.converged == (estimate.convergence.residual < 1e-4)
        statuses.add(estimate.convergence.status)
    assert statuses == {md.Status.CONVERGED, md.Status.MAX_ITERATIONS}


@pytest.mark.parametrize(
    ("method", "status", "real"),
    [
        (md.MapEstimate(0.0, inner=md.ADMM(1e-4)), md.Status.CONVERGED, np.float32),
        (md.MapEstimate(1e-2, inner=md.LBFGS(1e-3)), md.Status.CONVERGED, np.float64),
        (md.MapEstimate(1e-2, inner=md.ADMM(1e-9, 12)), md.Status.MAX_ITERATIONS, np.float64),
        (md.MapEstimate(1e-8, inner=md.LBFGS(1e-16, 5000)), md.Status.STALLED, np.float32),
    ],
)
def test_every_ending_has_the_gap_of_its_image(method, status, real, tiny_model):
    model = tiny_model("groups", scale=3.0, real=real)
    estimate = method.estimate(model)
    assert estimate.convergence.status is status and estimate.gap is not None
    assert estimate.gap.primal == pytest.approx(in_double_precision(model, estimate.image), rel=1e-13)
    assert estimate.gap.dual <= estimate.gap.primal


def test_breakdowns_and_sites_that_are_not_log_concave_have_no_certificate(tiny_model):
    problem = problem_of(tiny_model("moduli"), 0.0)
    with np.errstate(invalid="ignore"):
        start = np.full(problem.model.image_shape, np.nan + 0j)
        _, convergence, gap = md.ADMM(max_iterations=3).certified(problem, start)
    assert convergence.status is md.Status.BREAKDOWN and gap is None
    assert convergence.residual == np.inf
    model = tiny_model("moduli", lambda scale: md.StudentT(3.0, scale**2))
    assert duality_gap(problem_of(model), model.back_projection()) is None
    estimate = md.map_estimate(model, smoothing=0.0)
    assert estimate.gap is None and estimate.convergence.converged


def test_single_precision_is_certified_in_double(tiny_model):
    single = problem_of(tiny_model("groups", real=np.float32))
    u, _, gap = md.ADMM(tolerance=1e-4).certified(single, single.model.back_projection())
    assert u.dtype == np.complex64 and gap is not None
    assert gap.absolute < 1e-4 * single.model.measurement.in_size
