"""The default recipe's variances against exact ones, at the recipe's own solver tolerance."""

import numpy as np
import pytest

from mri_design import Exact, MonteCarlo, MRSlice, Recipe


@pytest.mark.parametrize(("tolerance", "lowest"), [(None, 0.9), (1e-3, 0.98)])
def test_truncated_draws_are_low_by_no_more_than_documented(
    one: MRSlice, tolerance: float | None, lowest: float
) -> None:
    recipe = Recipe()
    posterior = recipe.inference.engine().infer(one.model([8, 7, 9, 6, 10, 2, 13]), np.random.default_rng(0))
    analyses = [block.analysis for block in posterior.model.blocks]
    exact = Exact()(posterior.precision, analyses, np.random.default_rng(0), posterior.mean)
    estimator = MonteCarlo(600, tolerance or recipe.inference.solver_tolerance)
    found = estimator(posterior.precision, analyses, np.random.default_rng(1), posterior.mean)
    for values, truth in zip(found.values, exact.values, strict=True):
        assert lowest < np.mean(values / truth) < 1.02
