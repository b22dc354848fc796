"""What one design step spends, and how far the posterior it decides by is from the converged one at the same lines."""

from __future__ import annotations

from statistics import median

import numpy as np
from parts.dense_posterior import converged_posterior
from parts.paper_design import OurDesign, our_design

from mri_design.evaluation.tables import Row
from mri_design.inference.base import pooled_variances
from mri_design.operators.base import Array
from mri_design.variances.columns import ExactByColumns


def step_rows(grid: int, start: int, target: int, judged: int, seed: int) -> list[Row]:
    """Medians and worst values over ``judged`` warm steps spread over a design of ours, one coil.

    ``distance of the mean`` is |u - u*| / |u*| in the 2-norm, ``of z`` the median over coefficients of |z - z*| / z*;
    u* and z* belong to the converged posterior with exact variances.
    """
    design = our_design(grid, start, target, seed)
    trace = design.states[target].trace
    counts = [int(count) for count in np.unique(np.linspace(start + 1, target - 1, judged).round())]
    means, zs = zip(*(distance(design, count) for count in counts), strict=True)
    return [
        {
            "grid": grid,
            "design": f"{start} to {target} lines",
            "MVMs per step": median(step.cost.matvecs for step in trace.steps[1:]),
            "s per step": median(step.cost.seconds for step in trace.steps[1:]),
            "distance of the mean": median(means),
            "largest of the mean": max(means),
            "distance of z": median(zs),
            "largest of z": max(zs),
            "steps judged": len(counts),
        }
    ]


def distance(design: OurDesign, count: int) -> tuple[float, float]:
    """Of mean and z behind the decision that followed ``count`` lines."""
    near = design.states[count + 1].warm[0]
    model = design.model(count)
    far = converged_posterior(model, near, variances=ExactByColumns(), tolerance=3e-3)
    mean = float(np.linalg.norm(near.mean - far.mean) / np.linalg.norm(far.mean))
    exact = pooled_variances(model, far.marginals)
    errors: Array = np.concatenate([np.abs(a / b - 1).ravel() for a, b in zip(near.z, exact, strict=True)])
    return mean, float(np.median(errors))
