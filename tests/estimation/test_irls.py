"""IRLS: the objective itself, monotone descent, the minimum of a general optimiser, honest status."""

from dataclasses import replace

import pytest

from mri_design import IRLS, Gaussian, Laplace, Status, StudentT
from tests.estimation.problems import problem_of, value_at

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
