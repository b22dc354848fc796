"""MAP estimates against general optimisers and their duality gap, and maps of the noise."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mri_design as md
from mri_design import Status
from mri_design.estimation import (
    ADMM,
    IRLS,
    LBFGS,
    MaximumAPosteriori,
    PenalisedProblem,
    duality_gap,
    least_squares,
    least_squares_noise,
    posterior_noise,
    zero_filled,
)
from mri_design.model import GaussianPosterior, GeneralizedLinearModel, PosteriorPrecision, SiteBlock, Variances
from mri_design.operators import CartesianLines, CartesianSamples, Identity
from mri_design.scan.scenes import simulate_coil_maps
from mri_design.sites import Gaussian, Laplace, StudentT
from mri_design.status import Convergence
from tests.arrays import as_real, noise
from tests.estimation.problems import problem_of, value_at, with_offsets_and_odd_parts
from tests.slow_cases import slow_case

ACCURATE = IRLS(tolerance=1e-9, max_iterations=500, solver_tolerance=1e-2, solver_iterations=300)
SHAPE = (7, 6)


def test_approaches_soft_thresholding_as_the_smoothing_goes():
    """All lines and Laplace sites on pixels: the MAP image is the data's own, soft-thresholded at tau sigma."""
    X, tau, sigma = md.operators.cartesian(range(SHAPE[0]), SHAPE), 1.0, 0.5
    sites = (md.SiteBlock("pixels", Identity(SHAPE), Laplace(tau)),)
    model = md.GeneralizedLinearModel(X, X(noise(SHAPE)), sigma**2, sites)
    given = model.back_projection()
    exact = given * np.maximum(1 - tau * 0.5 / np.abs(given), 0)
    assert (exact == 0).any() and (exact != 0).any()
    errors = []
    for smoothing in (1e-1, 1e-3, 1e-5):
        u, convergence = MaximumAPosteriori(smoothing, stages=5, inner=ACCURATE)(model)
        assert convergence.converged
        errors.append(np.abs(u - exact).max())
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert errors[-1] < 0.005 * tau * 0.5


def test_satisfies_the_optimality_conditions_of_l1(tiny_model):
    """With s = u: X^T (y - X u) = lambda sign(u) where u is not zero, and at most lambda where it is."""
    full = tiny_model("matrix", scale=5.0)
    model = md.GeneralizedLinearModel(full.measurement, full.data, full.noise_variance, full.blocks[:1])
    level = 5.0 * 0.1
    u, convergence = MaximumAPosteriori(1e-6, stages=7, inner=replace(ACCURATE, tolerance=1e-7))(model)
    force = model.measurement.adjoint(model.data - model.measurement(u))
    support = np.abs(u) > 1e-3
    assert convergence.converged and 0 < support.sum() < 8
    np.testing.assert_allclose(force[support], level * np.sign(u[support]), rtol=5e-3)
    assert (np.abs(force[~support]) <= level * 1.005).all()


def test_a_good_start_leads_to_the_same_answer_and_stopping_short_is_flagged(tiny_model):
    model = tiny_model("groups")
    estimate = MaximumAPosteriori(1e-2, stages=1, inner=ACCURATE)
    cold, first = estimate(model)
    warm, second = estimate(model, start=cold)
    np.testing.assert_allclose(warm, cold, atol=1e-3)
    assert second.matvecs < first.matvecs
    model = tiny_model("moduli", scale=3.0)
    _, convergence = MaximumAPosteriori(inner=IRLS(tolerance=1e-12, max_iterations=1))(model)
    assert convergence.status is md.Status.MAX_ITERATIONS
    assert convergence.iterations == MaximumAPosteriori().stages  # one in each


@pytest.mark.slow
def test_converges_near_the_minimum_where_site_precisions_span_decades():
    """Dark pixels and flat regions of a head: linear solves take more than a hundred iterations in the end."""
    scan = md.load_phantom("brain", shape=32, rng=np.random.default_rng(0))
    model = scan.slice_model().model(range(8, 24))

    def unsmoothed(u: np.ndarray) -> float:
        return PenalisedProblem.smoothed(model, (np.zeros(1),) * 2).value(
            model.data - model.measurement(u), model.analysis_coefficients(u)
        )

    u, convergence = MaximumAPosteriori()(model)
    best, _ = MaximumAPosteriori(1e-7, stages=9, inner=replace(MaximumAPosteriori().inner, tolerance=1e-6))(model)
    assert convergence.converged and convergence.matvecs < 2000
    assert unsmoothed(u) < 1.001 * unsmoothed(best)


SITES = {"Laplace": Laplace, "Gaussian": lambda scale: Gaussian(scale**2)}


def lowest(problem: PenalisedProblem, tolerance: float = 1e-13) -> float:
    u, convergence = LBFGS(tolerance=tolerance, max_iterations=5000)(problem, problem.model.back_projection())
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
def test_bounds_the_excess_anywhere_and_closes_at_the_minimum(site, offsets, tiny_model, model_name):
    model = tiny_model(model_name, SITES[site])
    model = with_offsets_and_odd_parts(model) if offsets else model
    problem = problem_of(model)
    best, rng = lowest(problem), np.random.default_rng(0)
    minimiser, _ = LBFGS(tolerance=1e-13, max_iterations=3000)(problem, model.back_projection())
    gaps = []
    for amount in (0.0, 1e-3, 1e-2, 1e-1, 1.0):
        u = minimiser + amount * rng.standard_normal(minimiser.shape)
        gap = duality_gap(problem, u)
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
    estimate = md.map_estimate(model, smoothing=0.0, inner=LBFGS(tolerance=1e-6, max_iterations=5000))
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


@pytest.mark.parametrize(
    ("name", "scale", "tolerance", "limits"),
    [
        ("moduli", 3.0, 1e-11, (3, 20, 33, 40, 51, 77)),  # between two looks, between two gaps, and before the first
        ("coils", 3.0, 1e-11, (3, 20, 33, 40, 51, 77)),
        ("matrix", 0.5, 1e-4, (*range(23, 60, 9), 103, 203)),  # the estimate is too hopeful long before the gap is
        ("moduli", 0.5, 1e-4, (*range(23, 60, 9), 103, 203)),
    ],
)
def test_the_gap_is_that_of_the_image_returned_wherever_the_loop_ends(name, scale, tolerance, limits, tiny_model):
    model = tiny_model(name, scale=scale)
    size, seen = model.measurement.in_size, []
    for limit in limits:
        estimate = MaximumAPosteriori(0.0, stages=1, inner=ADMM(tolerance, limit)).estimate(model)
        assert estimate.gap.primal == pytest.approx(in_double_precision(model, estimate.image), rel=1e-13)
        assert estimate.gap.dual <= estimate.gap.primal
        assert estimate.convergence.residual == estimate.gap.absolute / size
        assert estimate.convergence.converged == (estimate.convergence.residual < tolerance)
        seen.append(estimate.convergence)
    assert seen[0].status is md.Status.MAX_ITERATIONS and seen[-1].residual < 0.2 * seen[0].residual
    assert seen[-1].converged == (tolerance == 1e-4)


@pytest.mark.parametrize(
    ("method", "status", "real"),
    [
        (MaximumAPosteriori(0.0, inner=ADMM(1e-4)), md.Status.CONVERGED, np.float32),
        (MaximumAPosteriori(1e-2, inner=LBFGS(1e-3)), md.Status.CONVERGED, np.float64),
        (MaximumAPosteriori(1e-2, inner=ADMM(1e-9, 12)), md.Status.MAX_ITERATIONS, np.float64),
        (MaximumAPosteriori(1e-8, inner=LBFGS(1e-16, 5000)), md.Status.STALLED, np.float32),
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
        _, convergence, gap = ADMM(max_iterations=3).certified(problem, start)
    assert convergence.status is md.Status.BREAKDOWN and gap is None
    assert convergence.residual == np.inf
    model = tiny_model("moduli", lambda scale: StudentT(3.0, scale**2))
    assert duality_gap(problem_of(model), model.back_projection()) is None
    estimate = md.map_estimate(model, smoothing=0.0)
    assert estimate.gap is None and estimate.convergence.converged


GRID, VARIANCE = (24, 16), 0.25
NO_MARGINALS = Variances((), "exact", Convergence(Status.CONVERGED, 0, 0.0))


def unit_maps(coils: int) -> np.ndarray:
    maps = simulate_coil_maps(GRID, coils, np.random.default_rng(coils))
    return np.asarray(maps / np.linalg.norm(maps, axis=0), dtype=np.complex64)


def model_of(measurement: CartesianLines | CartesianSamples, data: np.ndarray | None = None) -> GeneralizedLinearModel:
    samples = np.zeros(measurement.out_shape, np.complex64) if data is None else data
    sites = SiteBlock("pixels", Identity(GRID), Laplace(1.0))  # which least squares do not look at
    return GeneralizedLinearModel(measurement, samples, VARIANCE, (sites,))


def folded_g_factor(maps: np.ndarray, step: int) -> np.ndarray:
    """Pruessmann's equation 23, pixel by pixel: pixels one field of view over ``step`` apart fold onto each other."""
    rows, columns = maps.shape[1:]
    found = np.empty((rows, columns))
    for y in range(rows // step):
        folded = y + rows // step * np.arange(step)
        for x in range(columns):
            sensitivities = maps[:, folded, x].astype(np.complex128)
            gram = sensitivities.conj().T @ sensitivities
            found[folded, x] = np.sqrt(np.diag(np.linalg.inv(gram)).real * np.diag(gram).real)
    return found


@pytest.mark.parametrize("step", [2, 3])
def test_every_nth_line_has_the_closed_g_factor_of_sense(step: int) -> None:
    maps = unit_maps(6)
    measurement = CartesianLines(range(0, GRID[0], step), GRID, maps)
    found = least_squares_noise(model_of(measurement), 1e-9, np.random.default_rng(0))
    np.testing.assert_allclose(found.g_factor, folded_g_factor(maps, step), rtol=1e-4)
    assert found.g_factor.max() > 1.05  # else nothing was tested
    np.testing.assert_allclose(found.std, np.sqrt(2 * VARIANCE * step) * found.g_factor, rtol=1e-5)
    assert found.replicas == 0


def test_samples_of_a_plane_get_replicas_near_the_exact_map_of_the_same_lines() -> None:
    lines, maps = list(range(0, GRID[0], 2)), unit_maps(6)
    mask = np.zeros(GRID, dtype=bool)
    mask[lines] = True
    exact = least_squares_noise(model_of(CartesianLines(lines, GRID, maps)), 1e-3, np.random.default_rng(0))
    drawn = least_squares_noise(model_of(CartesianSamples(mask, maps)), 1e-3, np.random.default_rng(0), replicas=100)
    assert drawn.replicas == 100
    assert np.sqrt(np.mean((drawn.std / exact.std - 1) ** 2)) < 0.07  # 1 / (2 sqrt(100)) of each is .05
    assert abs(np.mean(drawn.g_factor / exact.g_factor) - 1) < 0.01


def test_a_posterior_mean_has_less_noise_than_least_squares_and_that_of_dense_algebra() -> None:
    rng = np.random.default_rng(2)
    lines = [0, 2, 5, 7, 10, 11, 12, 13, 14, 17, 19, 22]
    measurement = CartesianLines(lines, GRID, unit_maps(4))
    model = model_of(measurement)
    rates = tuple(rng.uniform(0.05, 0.5, size=block.analysis.out_shape) for block in model.blocks)
    precision = PosteriorPrecision(measurement, model.blocks, rates)
    posterior = GaussianPosterior(
        model, np.zeros(GRID, np.complex64), precision, NO_MARGINALS, convergence=NO_MARGINALS.convergence
    )
    found = posterior_noise(posterior, np.random.default_rng(3), replicas=100)
    inverse, x = np.linalg.inv(precision.dense_real()), measurement.to_dense_real()
    exact = np.sqrt(VARIANCE * np.diag(inverse @ x.T @ x @ inverse).reshape(2, *GRID).sum(axis=0))
    assert np.sqrt(np.mean((found.std / exact - 1) ** 2)) < 0.07
    assert abs(np.mean(found.std / exact) - 1) < 0.01
    assert np.mean(found.std) < np.mean(least_squares_noise(model, 1e-3, rng).std)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_equals_the_dense_solution(damping, tiny_model, model_name):
    """For more unknowns than data: the one of minimum norm."""
    model = tiny_model(model_name)
    np.testing.assert_array_equal(zero_filled(model), model.measurement.adjoint(model.data))
    X, y = model.measurement.to_dense_real(), as_real(model.data, model.measurement.out_complex)
    n = X.shape[1]
    dense = np.linalg.lstsq(
        np.vstack([X, np.sqrt(damping) * np.eye(n)]), np.concatenate([y, np.zeros(n)]), rcond=1e-10
    )[0]
    u, convergence = least_squares(model, damping=damping, tolerance=1e-10, max_iterations=500)
    assert convergence.converged
    np.testing.assert_allclose(as_real(u, model.measurement.in_complex), dense, atol=1e-7)


def test_one_coil_is_zero_filling_and_several_take_iterations(tiny_model):
    model = tiny_model("moduli")
    u, convergence = least_squares(model)
    np.testing.assert_allclose(u, zero_filled(model), atol=1e-12)
    assert convergence.iterations == 1
    _, convergence = least_squares(tiny_model("coils"), tolerance=1e-12, max_iterations=2)
    assert convergence.status is Status.MAX_ITERATIONS
