"""The linear half of ADMM: warm conjugate gradients keep their residual, and are the dense solution in the end."""

import numpy as np
import pytest

from mri_design.estimation.admm import ADMM
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.estimation.splitting import linear_step
from mri_design.model.precision import PosteriorPrecision


def system_of(model, rho: float) -> PosteriorPrecision:
    weights = tuple(np.full((1,) * len(block.analysis.out_shape), rho) for block in model.blocks)
    return PosteriorPrecision(model.measurement, model.blocks, weights)


@pytest.mark.parametrize("look", [True, False])
def test_steps_cut_short_end_at_the_dense_solution_with_a_product_an_iteration(tiny_model, look: bool) -> None:
    model, rho, calls = tiny_model("coils"), 0.4, 30
    rng = np.random.default_rng(0)
    gathered = rng.standard_normal(model.image_shape) + 1j * rng.standard_normal(model.image_shape)
    step = linear_step(model, solver_tolerance=0.0, solver_iterations=2)
    step.set_weights([rho] * len(model.blocks))
    u = np.zeros_like(gathered)
    for _ in range(calls):
        u = step(gathered, u, look)
    wanted = model.back_projection() + gathered
    dense = np.linalg.solve(
        system_of(model, rho).dense_real(), np.concatenate([wanted.real.ravel(), wanted.imag.ravel()])
    )
    np.testing.assert_allclose(np.concatenate([u.real.ravel(), u.imag.ravel()]), dense, rtol=1e-8, atol=1e-10)
    assert step.matvecs == calls * 2 + (calls if look else 1)


def test_what_is_left_is_true_for_targets_that_change(tiny_model) -> None:
    """One call for a target, after others, is one from its u anew."""
    model, rho = tiny_model("coils"), 0.4
    rng = np.random.default_rng(1)
    made = rng.standard_normal((4, 2, *model.image_shape)) @ np.ones(model.image_shape[-1:] * 2)
    targets = made[:, 0] + 1j * made[:, 1]
    step, fresh = (linear_step(model, 0.0, 2) for _ in range(2))
    step.set_weights([rho] * len(model.blocks))
    u = np.zeros_like(targets[0])
    for target in targets:
        fresh.set_weights([rho] * len(model.blocks))
        anew = fresh(target, u, look=False)
        u = step(target, u, look=False)
        np.testing.assert_allclose(u, anew, rtol=1e-9, atol=1e-9 * np.abs(anew).max())
    assert fresh.matvecs - step.matvecs == len(targets) - 1


def test_products_of_admm_with_coils_are_those_of_its_steps_and_looks(tiny_model) -> None:
    model = tiny_model("coils", scale=3.0)
    z = tuple(np.full(block.site_shape, 1e-6) for block in model.blocks)
    solver = ADMM(tolerance=0.0, max_iterations=20, solver_tolerance=0.0, solver_iterations=2)
    _, convergence = solver(PenalisedProblem.smoothed(model, z), model.back_projection())
    looks, begun = 1 + 20 // solver.check, 20 // solver.check  # J; and the residual, after each new set of weights
    assert convergence.matvecs == 2 * 20 + begun + looks
