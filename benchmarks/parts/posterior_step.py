"""What one design step spends, and how far the posterior it decides by is from the converged one at the same lines."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
from parts.dense_posterior import converged_posterior
from parts.paper_design import OurDesign, design_recipe, engine_for, our_design

from mri_design.evaluation.tables import Row
from mri_design.experiment import Recipe
from mri_design.inference import WarmStart, pooled_variances
from mri_design.operators import Array


def step_rows(grid: int, start: int, target: int, judged: int, exact: bool, seed: int) -> list[Row]:
    """Medians and worst values over ``judged`` warm steps spread over a design of ours, one coil.

    ``mean`` is |u - u*| / |u*| in the 2-norm, ``z`` the median over coefficients of |z - z*| / z*. With ``exact`` the
    converged posterior has exact variances (small grids); else it is the same estimator's with the same noise after
    many outer loops, so that z shows what stopping early costs and not the estimator's own error.
    """
    recipe = design_recipe(grid)
    design = our_design(grid, start, target, seed)
    counts = np.unique(np.linspace(start + 1, target - 1, judged).round().astype(int))
    distances = [_distance(design, int(count), recipe, exact, seed) for count in counts]
    steps = [design.states[target].trace.steps[count - start] for count in counts]
    warm = design.states[target].trace.steps[1:]
    means, zs = zip(*distances, strict=True)
    return [
        {
            "grid": grid,
            "design": f"{start} to {target} lines",
            "converged posterior": "exact variances" if exact else "same estimator and noise",
            "MVMs per step": median(step.matvecs for step in warm),
            "s per step": median(step.seconds for step in warm),
            "distance of the mean": median(means),
            "largest of the mean": max(means),
            "distance of z": median(zs),
            "largest of z": max(zs),
            "steps judged": len(steps),
        }
    ]


def _distance(design: OurDesign, count: int, recipe: Recipe, exact: bool, seed: int) -> tuple[float, float]:
    """Of the posterior behind the decision that followed ``count`` lines."""
    state = design.states[count + 1]
    warm = state.warm[0]
    model = design.model(count)
    if exact:
        far = converged_posterior(model, warm, tolerance=1e-4)
    else:
        engine = engine_for(recipe, seed)
        loops = replace(engine.inference, outer_iterations=12, tolerance=1e-4)
        rng = np.random.default_rng([seed, count - len(state.trace.start), 0])  # as the engine's step has it
        far = loops.infer(model, rng, warm_start=warm)
    return _relative(warm, WarmStart(far.mean, pooled_variances(model, far.marginals)))


def _relative(near: WarmStart, far: WarmStart) -> tuple[float, float]:
    mean = float(np.linalg.norm(near.mean - far.mean) / np.linalg.norm(far.mean))
    flat: Array = np.concatenate([np.abs(a / b - 1).ravel() for a, b in zip(near.z, far.z, strict=True)])
    return mean, float(np.median(flat))
