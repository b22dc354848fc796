"""IRLS: the objective itself, monotone descent, the minimum of a general optimiser, honest status."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import IRLS, Gaussian, Laplace, PenalisedProblem, Status, StudentT
from tests.slow_cases import slow_case

SITES = {
    "Laplace": Laplace,
    "Student-t": lambda scale: StudentT(3.0, scale**2),
    "heavy tails": lambda scale: StudentT(0.5, 10 * scale**2),
    "Gaussian": lambda scale: Gaussian(scale**2),
}
TIGHT = IRLS(tolerance=1e-13, max_iterations=500, solver_tolerance=1e-3, solver_iterations=300)


def problem_of(model, z: float = 0.3) -> PenalisedProblem:
    return PenalisedProblem.smoothed(model, tuple(np.full(b.site_shape, z) for b in model.blocks))


def z_of(problem: PenalisedProblem) -> tuple[np.ndarray, ...]:
    return tuple(penalty.z for penalty in problem.penalties)


def value_at(problem: PenalisedProblem, u: np.ndarray) -> float:
    model = problem.model
    return problem.value(model.data - model.measurement(u), model.analysis_coefficients(u))


def test_the_objective_is_the_written_out_one(tiny_model, model_name, objective_of, embedded):
    model = tiny_model(model_name)
    problem = problem_of(model)
    u = model.back_projection()
    reference, _ = objective_of(model, z_of(problem))(embedded(u, model.measurement.in_complex))
    assert value_at(problem, u) == pytest.approx(reference, rel=1e-12)


@pytest.mark.parametrize("site", ["Laplace", slow_case("Student-t"), "heavy tails"])
@pytest.mark.parametrize(
    "solver",
    [IRLS(), IRLS(solver_tolerance=0.9, solver_iterations=1), IRLS(solver_tolerance=1e-6, solver_iterations=500)],
    ids=["default", "hardly solved", "solved"],
)
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


@pytest.mark.parametrize("site", ["Laplace", "Gaussian"])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_reaches_the_minimum_of_a_general_optimiser(
    site, scale, tiny_model, model_name, objective_of, minimum_of, embedded
):
    model = tiny_model(model_name, SITES[site], scale=scale)
    problem = problem_of(model)
    u, convergence = TIGHT(problem, model.back_projection())
    is_complex = model.measurement.in_complex
    objective = objective_of(model, z_of(problem))
    lowest, place = minimum_of(objective, embedded(model.back_projection(), is_complex))
    assert convergence.converged
    assert abs(value_at(problem, u) - lowest) <= 1e-10 * max(abs(lowest), 1)
    np.testing.assert_allclose(embedded(u, is_complex), place, atol=1e-5)


def test_sites_that_are_not_log_concave_end_in_a_stationary_point(tiny_model, model_name, objective_of, embedded):
    model = tiny_model(model_name, SITES["Student-t"])
    problem = problem_of(model)
    start = model.back_projection()
    u, convergence = TIGHT(problem, start)
    objective = objective_of(model, z_of(problem))
    gradients = [np.linalg.norm(objective(embedded(v, model.measurement.in_complex))[1]) for v in (u, start)]
    assert convergence.converged
    assert gradients[0] < 1e-4 * gradients[1]


def test_gaussian_sites_are_one_linear_solve(tiny_model):
    model = tiny_model("coils", SITES["Gaussian"])
    _, convergence = replace(TIGHT, solver_tolerance=1e-12)(problem_of(model), model.back_projection())
    assert convergence.iterations <= 2


def test_default_settings_come_close(tiny_model, model_name):
    """Within the tolerance of 1e-4 per unknown, times the iterations it may still need."""
    problem = problem_of(tiny_model(model_name))
    start = problem.model.back_projection()
    u, convergence = IRLS()(problem, start)
    best, _ = TIGHT(problem, start)
    assert convergence.converged
    assert value_at(problem, u) - value_at(problem, best) < 1e-3 * problem.model.measurement.in_size


def test_single_precision_stays_single_and_agrees(tiny_model):
    double = problem_of(tiny_model("groups"))
    single = problem_of(tiny_model("groups", real=np.float32))
    single = PenalisedProblem.smoothed(single.model, tuple(z.astype(np.float32) for z in z_of(single)))
    u, convergence = IRLS(tolerance=1e-6)(single, single.model.back_projection())
    reference, _ = TIGHT(double, double.model.back_projection())
    assert convergence.converged and u.dtype == np.complex64
    np.testing.assert_allclose(u, reference, atol=1e-3)


def test_the_start_is_left_alone_and_a_good_one_saves_work(tiny_model):
    problem = problem_of(tiny_model("moduli"))
    start = problem.model.back_projection()
    kept = start.copy()
    u, cold = TIGHT(problem, start)
    np.testing.assert_array_equal(start, kept)
    _, warm = TIGHT(problem, u)
    assert warm.iterations <= 2 and warm.matvecs < cold.matvecs / 5


def test_multiplications_are_counted(tiny_model):
    """X^H X and B^H pi B together are one; X and B of the step, needed for the line search, another."""
    problem = problem_of(tiny_model("moduli"))
    _, convergence = IRLS(tolerance=0.0, max_iterations=3, solver_iterations=4, solver_tolerance=0.0)(
        problem, problem.model.back_projection()
    )
    assert convergence.iterations == 3
    assert convergence.matvecs == 1 + 3 * (2 + 4)


@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_stopping_short_is_flagged(iterations, tiny_model):
    problem = problem_of(tiny_model("moduli"), z=1e-4)
    solver = IRLS(tolerance=1e-9, max_iterations=iterations)
    _, convergence = solver(problem, problem.model.back_projection())
    assert convergence.status is Status.MAX_ITERATIONS and not convergence.converged
    assert convergence.iterations == iterations


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


def test_a_non_finite_start_is_flagged(tiny_model):
    problem = problem_of(tiny_model("moduli"))
    with np.errstate(invalid="ignore"):
        _, convergence = IRLS()(problem, np.full(problem.model.image_shape, np.nan + 0j))
    assert convergence.status is Status.BREAKDOWN
