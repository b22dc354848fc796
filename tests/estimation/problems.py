"""Inner problems of tiny models, and J of an image."""

import numpy as np

from mri_design import GeneralizedLinearModel, PenalisedProblem
from mri_design.operators import Array


def problem_of(model: GeneralizedLinearModel, z: float = 0.3) -> PenalisedProblem:
    """The inner problem with all z equal."""
    real = model.data.real.dtype
    return PenalisedProblem.smoothed(model, tuple(np.full(b.site_shape, z, dtype=real) for b in model.blocks))


def value_at(problem: PenalisedProblem, u: Array) -> float:
    """J(u)."""
    model = problem.model
    return problem.value(model.data - model.measurement(u), model.analysis_coefficients(u))
