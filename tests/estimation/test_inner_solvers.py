"""Solvers of the inner problem: the minimum of a general optimiser, scalar problems on a fine grid, how they end."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import (
    ADMM,
    IRLS,
    LBFGS,
    Automatic,
    MaximumAPosteriori,
    PenalisedProblem,
    Smoothed,
    bound_along,
    odd_part,
    powers_along,
    rounded_threshold,
    shrinkage,
    shrunken_moduli,
)
from mri_design.model import PosteriorPrecision
from mri_design.operators import FiniteDifferences, Identity
from mri_design.operators.kernels.pixels import laplace_along
from mri_design.sites import ExponentialPower, Gaussian, Laplace, StudentT, SuperGaussian, Tilted
from tests.arrays import as_real, noise
from tests.estimation.problems import minimum_of, objective_of, problem_of, value_at, with_offsets_and_odd_parts
from tests.slow_cases import slow_case

SOLVERS = {
    "L-BFGS": LBFGS(tolerance=1e-13, max_iterations=3000),
    "ADMM": ADMM(tolerance=1e-12, max_iterations=5000, solver_tolerance=1e-3, solver_iterations=50),
    "IRLS": IRLS(tolerance=1e-13, max_iterations=500, solver_tolerance=1e-3, solver_iterations=300),
    "automatic": Automatic(tolerance=1e-13, max_iterations=3000),
}


def student_t(scale: float) -> StudentT:
    return StudentT(3.0, scale**2)


@pytest.fixture(params=SOLVERS)
def tight(request):
    """Every solver, with settings that reach the minimum."""
    return SOLVERS[request.param]


@pytest.mark.parametrize("model_name", ["groups", "coils", slow_case("wavelet"), slow_case("real image")])
def test_reaches_the_minimum_of_a_general_optimiser(tight, tiny_model, model_name):
    model = tiny_model(model_name, scale=0.3)
    problem = problem_of(model)
    u, convergence = tight(problem, model.back_projection())
    is_complex = model.measurement.in_complex
    objective = objective_of(problem)
    lowest, place = minimum_of(objective, as_real(model.back_projection(), is_complex))
    assert convergence.converged
    assert abs(value_at(problem, u) - lowest) <= 1e-9 * max(abs(lowest), 1)
    np.testing.assert_allclose(as_real(u, is_complex), place, atol=2e-5)


@pytest.mark.parametrize("model_name", ["groups", "coils", "matrix", slow_case("parts")])
def test_offsets_and_odd_parts_move_the_minimum_to_where_the_gradient_vanishes(tight, tiny_model, model_name):
    model = with_offsets_and_odd_parts(tiny_model(model_name))
    problem = problem_of(model)
    u, convergence = tight(problem, model.back_projection())
    s = model.analysis_coefficients(u)
    pull = model.measurement.adjoint(model.data - model.measurement(u))
    gradient = problem.site_gradient(s, problem.site_precisions(s)) - pull
    assert convergence.converged
    assert np.linalg.norm(gradient) < 2e-4 * np.linalg.norm(pull)
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = u + 0.01 * rng.standard_normal(u.shape)
        assert value_at(problem, other) > value_at(problem, u)


def test_the_gradient_of_the_penalty_is_its_slope(tiny_model, model_name):
    model = with_offsets_and_odd_parts(tiny_model(model_name))
    problem = problem_of(model)
    u, d = noise((2, *model.image_shape), "D" if model.measurement.in_complex else "d")
    s, step = model.analysis_coefficients(u), 1e-5
    gradient = problem.site_gradient(s, problem.site_precisions(s))
    ahead, behind = (problem.penalty_value(model.analysis_coefficients(u + t * d)) for t in (step, -step))
    slope = 2 / model.noise_variance * np.sum((np.conj(gradient) * d).real)
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
    plain = problem_of(tiny_model(model_name))  # the objective is the written out one
    reference, _ = objective_of(plain)(as_real(u, model.measurement.in_complex))
    assert value_at(plain, u) == pytest.approx(reference, rel=1e-12)


@pytest.mark.parametrize("model_name", ["matrix", "wavelet"])
def test_sites_that_are_not_log_concave_end_in_a_stationary_point(tight, tiny_model, model_name):
    """ADMM need not converge on them; then it says so."""
    model = tiny_model(model_name, student_t)
    problem = problem_of(model)
    start = model.back_projection()
    solver = replace(tight, max_iterations=200) if isinstance(tight, ADMM) else tight
    u, convergence = solver(problem, start)
    objective = objective_of(problem)
    gradients = [np.linalg.norm(objective(as_real(v, model.measurement.in_complex))[1]) for v in (u, start)]
    if isinstance(tight, ADMM) and not convergence.converged:
        assert convergence.status is md.Status.MAX_ITERATIONS and convergence.iterations == 200
        assert np.isfinite(u).all()
    else:
        assert convergence.converged
        assert gradients[0] < 1e-4 * gradients[1]
        assert value_at(problem, u) < value_at(problem, start)


@pytest.mark.parametrize(("model_name", "tolerance"), [("coils", 1e-2), ("groups", 1e-4)])
def test_the_tolerance_is_an_excess_per_unknown(tight, tolerance, tiny_model, model_name):
    """Estimated, so held to ten times."""
    problem = problem_of(tiny_model(model_name), z=1e-2)
    start = problem.model.back_projection()
    u, convergence = replace(tight, tolerance=tolerance)(problem, start)
    best, _ = tight(problem, start)
    assert convergence.converged and convergence.residual < tolerance
    assert value_at(problem, u) - value_at(problem, best) < 10 * tolerance * problem.model.measurement.in_size


@pytest.mark.parametrize("model_name", ["groups", "matrix"])
def test_single_precision_stays_single_and_agrees(tight, tiny_model, model_name):
    double, single = (problem_of(tiny_model(model_name, real=real)) for real in (np.float64, np.float32))
    u, convergence = replace(tight, tolerance=1e-6)(single, single.model.back_projection())
    reference, _ = tight(double, double.model.back_projection())
    assert convergence.converged
    assert u.dtype == single.model.back_projection().dtype
    np.testing.assert_allclose(u, reference, atol=3e-3)


def test_the_start_is_left_alone_and_a_good_one_saves_work(tight, tiny_model):
    problem = problem_of(tiny_model("moduli"))
    start = problem.model.back_projection()
    kept = start.copy()
    solver = replace(tight, tolerance=1e-6)
    u, cold = tight(problem, start)
    np.testing.assert_array_equal(start, kept)
    _, cold = solver(problem, start)
    _, warm = solver(problem, u)
    assert warm.matvecs <= cold.matvecs


@pytest.mark.parametrize("iterations", [0, 5])
def test_stopping_short_and_a_non_finite_start_are_flagged(tight, iterations, tiny_model):
    problem = problem_of(tiny_model("moduli"), z=1e-4)
    _, convergence = replace(tight, max_iterations=iterations)(problem, problem.model.back_projection())
    assert convergence.status is md.Status.MAX_ITERATIONS and not convergence.converged
    assert convergence.iterations == iterations
    problem = problem_of(tiny_model("coils"))
    with np.errstate(invalid="ignore"):
        _, convergence = tight(problem, np.full(problem.model.image_shape, np.nan + 0j))
    assert convergence.status is md.Status.BREAKDOWN


def test_a_precision_near_the_start_preconditions_and_leaves_the_minimum_where_it_is(tiny_model):
    problem = problem_of(tiny_model("coils", scale=0.3))
    model, asked = problem.model, []

    class Watched(PosteriorPrecision):
        @property
        def preconditioner(self):
            asked.append(1)
            return super().preconditioner

    near = Watched(model.measurement, model.blocks, tuple(np.full(b.site_shape, 0.7) for b in model.blocks))
    found = [SOLVERS["L-BFGS"](replace(problem, near=one), model.back_projection())[0] for one in (None, near)]
    assert asked
    np.testing.assert_allclose(found[1], found[0], atol=2e-5)


def test_the_automatic_choice_follows_structure_and_sharpness(tiny_model):
    def chosen(name: str, z: float, site=Laplace) -> type:
        problem = problem_of(tiny_model(name, site, scale=3.0), z)
        return type(Automatic().chosen(problem, problem.model.back_projection()))

    assert chosen("moduli", 1.0) is LBFGS and chosen("moduli", 1e-8) is ADMM
    assert chosen("coils", 1.0) is LBFGS and chosen("coils", 1e-8) is LBFGS  # no exact step
    assert chosen("matrix", 1e-8) is LBFGS  # no exact step
    assert chosen("moduli", 1e-8, student_t) is LBFGS


SITES = {
    "Laplace": Laplace,
    "heavy tails": lambda scale: StudentT(0.5, 10 * scale**2),
    "Gaussian": lambda scale: Gaussian(scale**2),
}
TIGHT = SOLVERS["IRLS"]


@pytest.mark.parametrize(
    ("site", "solver"),
    [
        ("Laplace", IRLS(solver_tolerance=0.9, solver_iterations=1)),
        ("heavy tails", IRLS(solver_tolerance=1e-6, solver_iterations=500)),
    ],
)
@pytest.mark.parametrize("model_name", ["groups", "coils", "matrix"])
def test_no_iteration_raises_the_objective(site, solver, tiny_model, model_name):
    one = replace(solver, tolerance=0.0, max_iterations=1)
    for scale, z in [(0.1, 1e-8), (1.0, 1e-8), (30.0, 1e-3)]:
        problem = problem_of(tiny_model(model_name, SITES[site], scale=scale), z)
        u = problem.model.back_projection()
        value = value_at(problem, u)
        for _ in range(5):
            u, _ = one(problem, u)
            value, last = value_at(problem, u), value
            assert value <= last + 1e-12 * abs(last)


def test_gaussian_sites_are_one_linear_solve_and_products_are_counted(tiny_model):
    model = tiny_model("coils", SITES["Gaussian"])
    _, convergence = replace(TIGHT, solver_tolerance=1e-12)(problem_of(model), model.back_projection())
    assert convergence.iterations <= 2
    # X^H X and B^H pi B together are one; X and B of the step, needed for the line search, another
    problem = problem_of(tiny_model("moduli"))
    solver = IRLS(tolerance=0.0, max_iterations=3, solver_iterations=4, solver_tolerance=0.0)
    _, convergence = solver(problem, problem.model.back_projection())
    assert convergence.iterations == 3
    assert convergence.matvecs == 1 + 3 * (2 + 4)


@pytest.mark.slow
def test_small_decreases_of_linear_solves_cut_short_do_not_count_as_converged(tiny_model):
    """One gradient step at a time lowers J slowly, far from its minimum."""
    problem = problem_of(tiny_model("moduli"), z=1e-6)
    start, size = problem.model.back_projection(), problem.model.measurement.in_size
    short = IRLS(tolerance=1e-3, max_iterations=80, solver_tolerance=1e-3, solver_iterations=1)
    u, convergence = short(problem, start)
    best, _ = TIGHT(problem, start)
    assert convergence.residual < short.tolerance
    assert value_at(problem, u) - value_at(problem, best) > 20 * short.tolerance * size
    assert convergence.status is md.Status.MAX_ITERATIONS


@pytest.mark.parametrize("name", ["moduli", "groups", "real"])
def test_the_derivative_along_a_line_is_that_of_the_objective(name, tiny_model):
    model = tiny_model(name)
    rng = np.random.default_rng(0)
    u, d = model.back_projection(), rng.standard_normal(model.image_shape)
    problem = PenalisedProblem.smoothed(model, tuple(np.full(b.site_shape, 0.3) for b in model.blocks))
    s, along = model.analysis_coefficients(u), tuple(block.analysis(d) for block in model.blocks)

    def objective(t):
        moved = tuple(a + t * b for a, b in zip(s, along, strict=True))
        return problem.penalty_value(moved)

    bound = bound_along(problem.penalties, powers_along(problem, s, along), model.odd_part(along), 0.0)
    for t in (0.0, 0.4, 1.0):
        slope, curvature = bound(t)
        assert slope == pytest.approx((objective(t + 1e-5) - objective(t - 1e-5)) / 4e-5, rel=1e-5)
        for far in (-0.5, 0.5):  # the quadratic that touches at t lies above
            assert objective(t) + 2 * far * slope + far**2 * curvature >= objective(t + far)


def test_sums_over_laplace_sites_are_those_of_arrays():
    rng = np.random.default_rng(1)
    x, cross, power, z, rate = rng.uniform(0.1, 2, (5, 1300))
    cross = cross - 1
    there = np.maximum(x + 2 * 0.7 * cross + 0.7**2 * power, 0)
    pi = rate / np.sqrt(there + z)
    expected = np.sum(pi * (cross + 0.7 * power)), np.sum(pi * power)
    np.testing.assert_allclose(laplace_along((x, cross, power), z, rate, 0.7, 1e-12), expected, rtol=1e-12)
    single = [v.astype(np.float32) for v in (x, cross, power, z, rate)]
    np.testing.assert_allclose(laplace_along(tuple(single[:3]), *single[3:], 0.7, 1e-12), expected, rtol=1e-5)


def square(site: SuperGaussian, data_scale: float = 1.0, real: type = np.float64) -> md.GeneralizedLinearModel:
    """A noisy square of 16 x 16 pixels on six lines, sites on pixels and differences."""
    shape, image = (16, 16), np.zeros((16, 16), complex)
    X = md.operators.cartesian([7, 8, 9, 6, 2, 12], shape)
    image[4:12, 4:12] = 1
    data = (data_scale * (X(image) + 0.05 * noise(X.out_shape))).astype(np.result_type(real, np.complex64))
    operators = {"pixels": Identity(shape), "differences": FiniteDifferences(shape)}
    blocks = tuple(md.SiteBlock(name, B, site) for name, B in operators.items())
    return md.GeneralizedLinearModel(X, data, 0.0025, blocks)


def test_admm_on_cusps_does_not_take_a_useless_point_for_converged():
    model = square(ExponentialPower(0.5, 1.0))
    problem = MaximumAPosteriori().smoothed_problem(model, 0.0)
    solver = ADMM(tolerance=1e-5, max_iterations=200)
    u, convergence = solver(problem, model.back_projection())
    best, _ = MaximumAPosteriori(1e-8, 9)(model)
    assert value_at(problem, u) > 2 * value_at(problem, best)  # it is a useless point
    assert convergence.status is md.Status.MAX_ITERATIONS
    assert convergence.residual > solver.tolerance


@pytest.mark.parametrize("inner", [ADMM(max_iterations=500), IRLS(max_iterations=500), LBFGS()])
def test_without_smoothing_sites_with_cusps_end_where_a_continuation_ends(inner):
    model = square(ExponentialPower(0.5, 1.0))
    problem = MaximumAPosteriori().smoothed_problem(model, 0.0)
    u, convergence = MaximumAPosteriori(0.0, inner=inner)(model)
    reference, _ = MaximumAPosteriori(1e-8, 9)(model)
    assert value_at(problem, u) < 1.02 * value_at(problem, reference)
    assert convergence.status in (md.Status.CONVERGED, md.Status.STALLED)


@pytest.mark.parametrize(
    ("solver", "real"), [(LBFGS(1e-14, 3000), np.float64), (IRLS(1e-14, 300, solver_tolerance=1e-3), np.float32)]
)
def test_converged_without_progress_is_the_minimum_to_rounding(solver, real):
    """Tighter than the precision allows: converged only within the rounding of J, and that is true."""
    problem = MaximumAPosteriori().smoothed_problem(square(Laplace(1.0), real=real), 1.0)
    double = MaximumAPosteriori().smoothed_problem(square(Laplace(1.0)), 1.0)
    u, convergence = solver(problem, problem.model.back_projection())
    best, _ = IRLS(1e-14, 2000, solver_tolerance=1e-3)(double, double.model.back_projection())
    lowest, size = value_at(double, best), problem.model.measurement.in_size
    assert convergence.status in (md.Status.CONVERGED, md.Status.STALLED)
    assert convergence.residual > 0
    if convergence.converged:
        excess = (value_at(double, u.astype(complex)) - lowest) / size
        assert excess <= 50 * np.finfo(real).eps * abs(lowest) / size


def test_admm_started_at_the_minimum_has_converged():
    model = square(Laplace(1.0), data_scale=0.0)
    u, convergence = ADMM()(MaximumAPosteriori().smoothed_problem(model, 0.0), model.back_projection())
    assert convergence.converged and convergence.iterations <= 10
    assert not u.any()
    estimate = MaximumAPosteriori(0.0).estimate(model)
    assert estimate.convergence.converged and not estimate.image.any()
    assert estimate.gap is not None and estimate.gap.absolute == 0


SIGMA2 = 0.04
N = 7


def proximal_step(block, penalty, rho, v):
    odd = odd_part(block, SIGMA2, rho, v.real.dtype)
    v = v if odd is None else v + odd
    return v * shrinkage(block, penalty, SIGMA2, rho, block.site_power(v))


@pytest.mark.parametrize(("z", "rho"), [(0.0, 1.0), (1e-6, 0.01), (0.1, 30.0), (5.0, 1.0)])
@pytest.mark.parametrize(
    "site",
    [Laplace(0.7), Gaussian(0.7), Tilted(Laplace(0.7), 0.3), StudentT(3.0, 0.1)],
    ids=lambda s: type(s).__name__,
)
def test_nothing_on_a_fine_grid_is_lower(site, rho, z):
    block = md.SiteBlock("entries", Identity((N,), is_complex=False), site)
    penalty = Smoothed(site, np.full(N, z))
    v = np.linspace(-3, 3, N)
    s = proximal_step(block, penalty, rho, v)

    def objective(s: np.ndarray) -> np.ndarray:
        odd = np.sqrt(SIGMA2) * np.asarray(site.shift) * s
        return 0.5 * SIGMA2 * penalty.value(s**2 / SIGMA2) - odd + 0.5 * rho * (s - v) ** 2

    grid = np.linspace(-8, 8, 4001)[:, None] * np.ones(N)
    if isinstance(site, StudentT):  # several minima: only stationary
        grid = s + np.linspace(-1e-4, 1e-4, 21)[:, None]
    assert (objective(s) <= objective(grid).min(axis=0) + 1e-12 * np.abs(objective(s))).all()


@pytest.mark.parametrize("z", [1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_both_ways_to_a_rounded_threshold_agree(z, precision):
    modulus = np.abs(np.random.default_rng(0).standard_normal(500)).astype(precision)
    site = Laplace(2.0)
    general = shrunken_moduli(Smoothed(site, np.asarray(z, dtype=precision)), SIGMA2, 0.5, modulus, 100)
    level, epsilon = np.asarray(2.0 * np.sqrt(SIGMA2) / 0.5, precision), np.asarray(SIGMA2 * z, precision)
    own = modulus * rounded_threshold(level, epsilon, modulus**2)
    assert own.dtype == general.dtype == precision
    np.testing.assert_allclose(own, general, rtol=0, atol=50 * np.finfo(precision).eps)


@pytest.mark.parametrize(
    ("unit", "level", "rounding"), [(1e-11, 0.4, 1e-4), (1.0, 2.0, 0.3), (1e-6, 1e-3, 1e-6), (1e14, 300.0, 30.0)]
)
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_rounded_threshold_is_the_same_in_any_unit(unit, level, rounding, precision):
    modulus = np.exp(3 * np.random.default_rng(0).standard_normal(700))
    low, high = np.zeros(700), np.ones(700)
    for _ in range(100):
        share = (low + high) / 2
        above = share * modulus * (1 + level / np.sqrt((share * modulus) ** 2 + rounding**2)) > modulus
        low, high = np.where(above, low, share), np.where(above, share, high)
    sizes = (np.asarray(value, precision) for value in (unit * level, (unit * rounding) ** 2))
    found = rounded_threshold(*sizes, ((unit * modulus) ** 2).astype(precision))
    np.testing.assert_allclose(found, share, rtol=0, atol=100 * np.finfo(precision).eps)


def test_what_is_nothing_stays_nothing():
    powers = np.array([0.0, 1e-38, np.finfo(np.float32).max], np.float32)
    found = rounded_threshold(np.float32(0.5), np.float32(1e-4), powers)
    assert np.isfinite(found).all() and (found * np.sqrt(powers))[0] == 0
    np.testing.assert_allclose(found, [1 / 51, 1 / 51, 1], rtol=1e-5)
