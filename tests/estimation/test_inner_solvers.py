"""Every solver of the inner problem: the minimum of a general optimiser, single precision, honest status and counts."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import ADMM, IRLS, LBFGS, Automatic, Gaussian, Laplace, PenalisedProblem, Status, StudentT, cartesian
from mri_design.estimation import Line, linear_step, powers_along
from mri_design.operators.kernels.pointwise import laplace_along
from tests.estimation.problems import problem_of, value_at
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
def test_reaches_the_minimum_of_a_general_optimiser(tight, tiny_model, model_name, objective_of, minimum_of, embedded):
    model = tiny_model(model_name, scale=0.3)
    problem = problem_of(model)
    u, convergence = tight(problem, model.back_projection())
    is_complex = model.measurement.in_complex
    objective = objective_of(problem)
    lowest, place = minimum_of(objective, embedded(model.back_projection(), is_complex))
    assert convergence.converged
    assert abs(value_at(problem, u) - lowest) <= 1e-9 * max(abs(lowest), 1)
    np.testing.assert_allclose(embedded(u, is_complex), place, atol=2e-5)


@pytest.mark.parametrize("model_name", ["groups", "coils", "matrix", slow_case("parts")])
def test_offsets_and_odd_parts_move_the_minimum_to_where_the_gradient_vanishes(
    tight, tiny_model, model_name, with_offsets_and_odd_parts
):
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


def test_the_gradient_of_the_penalty_is_its_slope(tiny_model, model_name, with_offsets_and_odd_parts):
    model = with_offsets_and_odd_parts(tiny_model(model_name))
    problem = problem_of(model)
    rng = np.random.default_rng(0)
    u, d = (rng.standard_normal(model.image_shape) for _ in range(2))
    if model.measurement.in_complex:
        u, d = u + 1j * rng.standard_normal(u.shape), d + 1j * rng.standard_normal(u.shape)
    s, step = model.analysis_coefficients(u), 1e-5
    gradient = problem.site_gradient(s, problem.site_precisions(s))
    ahead, behind = (problem.penalty_value(model.analysis_coefficients(u + t * d)) for t in (step, -step))
    slope = 2 / model.noise_variance * np.sum((np.conj(gradient) * d).real)
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("model_name", ["matrix", "wavelet"])
def test_sites_that_are_not_log_concave_end_in_a_stationary_point(
    tight, tiny_model, model_name, objective_of, embedded
):
    """ADMM need not converge on them; then it says so."""
    model = tiny_model(model_name, student_t)
    problem = problem_of(model)
    start = model.back_projection()
    solver = replace(tight, max_iterations=200) if isinstance(tight, ADMM) else tight
    u, convergence = solver(problem, start)
    objective = objective_of(problem)
    gradients = [np.linalg.norm(objective(embedded(v, model.measurement.in_complex))[1]) for v in (u, start)]
    if isinstance(tight, ADMM) and not convergence.converged:
        assert convergence.status is Status.MAX_ITERATIONS and convergence.iterations == 200
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
def test_stopping_short_is_flagged(tight, iterations, tiny_model):
    problem = problem_of(tiny_model("moduli"), z=1e-4)
    _, convergence = replace(tight, max_iterations=iterations)(problem, problem.model.back_projection())
    assert convergence.status is Status.MAX_ITERATIONS and not convergence.converged
    assert convergence.iterations == iterations


def test_a_non_finite_start_is_flagged(tight, tiny_model):
    problem = problem_of(tiny_model("coils"))
    with np.errstate(invalid="ignore"):
        _, convergence = tight(problem, np.full(problem.model.image_shape, np.nan + 0j))
    assert convergence.status is Status.BREAKDOWN


def test_the_automatic_choice_follows_structure_and_sharpness(tiny_model):
    def chosen(name: str, z: float, site=Laplace) -> type:
        problem = problem_of(tiny_model(name, site, scale=3.0), z)
        return type(Automatic().chosen(problem, problem.model.back_projection()))

    assert chosen("moduli", 1.0) is LBFGS and chosen("moduli", 1e-8) is ADMM
    assert chosen("coils", 1.0) is LBFGS and chosen("coils", 1e-8) is ADMM
    assert chosen("matrix", 1e-8) is LBFGS  # no exact step
    assert chosen("moduli", 1e-8, student_t) is LBFGS


def test_copies_of_coils_and_of_what_they_miss_follow_the_textbook(tiny_model):
    """Over-relaxed ADMM with one more coil, of which there are no data, so that the powers of all maps are the same."""
    model = tiny_model("coils")
    shape, rng = model.image_shape, np.random.default_rng(3)
    maps = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    X = cartesian(model.measurement.lines.tolist(), shape, maps)
    model = replace(model, measurement=X, data=X(rng.standard_normal(shape) + 0j))
    power = np.sum(np.abs(maps) ** 2, axis=0)
    every = np.concatenate([maps, np.sqrt(power.max() - power)[None]])
    one, rho, own = X.of_uniform_coil(), 0.3, 0.7
    back, grams = one.adjoint(model.data[:, None]), [block.analysis.gram_spectrum() for block in model.blocks]
    spectrum = rho * power.max() + own * sum(grams)
    u = model.back_projection()
    copies = every * u
    scaled = np.concatenate([(one.gram(copies[:2]) - back) / rho, np.zeros((1, *shape))])
    step = linear_step(model, u, 1.7, 0.1, 4)
    step.set_weights([own] * len(model.blocks))
    found = u
    for _ in range(4):
        gathered = rng.standard_normal(shape) + 0j
        found = step(gathered.copy(), found, False)
        pulled = gathered + rho * np.sum(np.conj(every) * (copies - scaled), axis=0)
        u = np.fft.ifft2(np.fft.fft2(pulled) / spectrum)
        np.testing.assert_allclose(found, u, atol=1e-10)
        relaxed = 1.7 * every * u - 0.7 * copies
        v = relaxed + scaled
        seen = v[:2] + (back - one.gram(v[:2])) / (1 + rho)
        copies = np.concatenate([seen, v[2:]])
        scaled = v - copies


SITES = {
    "Laplace": Laplace,
    "Student-t": lambda scale: StudentT(3.0, scale**2),
    "heavy tails": lambda scale: StudentT(0.5, 10 * scale**2),
    "Gaussian": lambda scale: Gaussian(scale**2),
}
TIGHT = IRLS(tolerance=1e-13, max_iterations=500, solver_tolerance=1e-3, solver_iterations=300)


def test_the_objective_is_the_written_out_one(tiny_model, model_name, objective_of, embedded):
    model = tiny_model(model_name)
    problem = problem_of(model)
    u = model.back_projection()
    reference, _ = objective_of(problem)(embedded(u, model.measurement.in_complex))
    assert value_at(problem, u) == pytest.approx(reference, rel=1e-12)


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
    _, convergence = IRLS(tolerance=0.0, max_iterations=3, solver_iterations=4, solver_tolerance=0.0)(
        problem, problem.model.back_projection()
    )
    assert convergence.iterations == 3
    assert convergence.matvecs == 1 + 3 * (2 + 4)


@pytest.mark.slow
def test_small_decreases_of_linear_solves_cut_short_do_not_count_as_converged(tiny_model):
    """One gradient step at a time lowers J slowly, far from its minimum."""
    problem = problem_of(tiny_model("moduli"), z=1e-4)
    start, size = problem.model.back_projection(), problem.model.measurement.in_size
    short = IRLS(tolerance=1e-3, max_iterations=80, solver_tolerance=1e-3, solver_iterations=1)
    u, convergence = short(problem, start)
    best, _ = TIGHT(problem, start)
    assert convergence.residual < short.tolerance
    assert value_at(problem, u) - value_at(problem, best) > 20 * short.tolerance * size
    assert convergence.status is Status.MAX_ITERATIONS


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

    line = Line(problem.penalties, powers_along(problem, s, along), model.odd_part(along), 0.0)
    for t in (0.0, 0.4, 1.0):
        slope, curvature = line.bound(t)
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
