"""Inner problems of tiny models, J of an image with dense real matrices, and its minimum by a general optimiser."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.optimize

from mri_design import GeneralizedLinearModel
from mri_design.estimation import PenalisedProblem
from mri_design.operators import Array
from mri_design.sites import Tilted
from tests.arrays import as_real

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def problem_of(model: GeneralizedLinearModel, z: float = 0.3) -> PenalisedProblem:
    """The inner problem with all z equal."""
    real = model.data.real.dtype
    return PenalisedProblem.smoothed(model, tuple(np.full(b.site_shape, z, dtype=real) for b in model.blocks))


def value_at(problem: PenalisedProblem, u: Array) -> float:
    """J(u)."""
    model = problem.model
    return problem.value(model.data - model.measurement(u), model.analysis_coefficients(u))


def objective_of(problem: PenalisedProblem) -> Objective:
    """J and its gradient on (real parts, imaginary parts) of the image."""
    model, z = problem.model, tuple(penalty.z for penalty in problem.penalties)
    X, sigma2 = model.measurement.to_dense_real(), model.noise_variance
    y = as_real(model.data, model.measurement.out_complex)
    blocks = []
    for block, z_block in zip(model.blocks, z, strict=True):
        numbers = np.arange(np.prod(block.site_shape)).reshape(block.site_shape)
        site = np.broadcast_to(numbers, block.analysis.out_shape).ravel()
        site = np.tile(site, 2) if block.analysis.out_complex else site
        blocks.append((block, block.analysis.to_dense_real(), site, np.broadcast_to(z_block, block.site_shape)))

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        residual = X @ u - y
        value, gradient = residual @ residual / sigma2, 2 * X.T @ residual / sigma2
        for block, B, site, z_block in blocks:
            s = B @ u
            power = np.bincount(site, weights=s**2, minlength=z_block.size).reshape(z_block.shape)
            x = power / sigma2 + z_block
            value -= 2 * block.potential.g(x).sum()
            slope = np.broadcast_to(block.potential.dg(x), z_block.shape).ravel()
            gradient -= 4 * B.T @ (slope[site] * s) / sigma2
        return float(value), gradient

    return objective


def minimum_of(objective: Objective, start: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and place of the minimum by quasi-Newton."""
    for _ in range(3):  # restarts clear the memory of a stalled line search
        found = scipy.optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-10}
        )
        start = found.x
    return float(found.fun), found.x


def with_offsets_and_odd_parts(model: GeneralizedLinearModel) -> GeneralizedLinearModel:
    """A model whose sites act on B u - offset, and are tilted where the coefficients are real."""
    rng = np.random.default_rng(3)
    blocks = []
    for block in model.blocks:
        offset = 0.2 * rng.standard_normal(block.analysis.out_shape)
        if block.analysis.out_complex:
            offset = offset + 0.1j * rng.standard_normal(block.analysis.out_shape)
        real = not (block.analysis.out_complex or block.group_axes)
        site = Tilted(block.potential, 0.3) if real else block.potential
        blocks.append(replace(block, offset=offset, potential=site))
    return replace(model, blocks=tuple(blocks))
