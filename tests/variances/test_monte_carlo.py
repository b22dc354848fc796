"""Perturb-and-solve: unbiased within its own standard error on every kind of model."""

import numpy as np
import pytest

from mri_design import MonteCarlo, Status
from tests.variances.running import run_on, together

ACCURATE = MonteCarlo(samples=400, tolerance=1e-6, max_iterations=300)


def test_standard_errors_follow_from_the_number_of_samples(tiny_model, random_precisions):
    """sqrt(2 / K) relative on real coefficients, sqrt(1 / K) on complex ones of a complex-linear A."""
    for name, factor in [("moduli", 1), ("real image", 2), ("parts", 2)]:
        model = tiny_model(name)
        result = run_on(ACCURATE, model, random_precisions(model, 2))
        relative = together(result.std_error) / together(result.values)
        assert relative.mean() == pytest.approx(np.sqrt(factor / 400), rel=0.05)


def test_samples_are_handed_on_seeds_repeat_and_short_solves_are_flagged(tiny_model, random_precisions):
    model = tiny_model("coils")
    pi = random_precisions(model, 4)
    first, again, other = (run_on(MonteCarlo(5), model, pi, seed) for seed in (1, 1, 2))
    assert first.samples.shape == (5, *model.image_shape)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - other.samples).max() > 0.01
    power = np.abs(model.blocks[1].analysis(first.samples)) ** 2
    np.testing.assert_allclose(first.values[1], power.mean(axis=0))
    assert first.log_determinant is None
    model = tiny_model("moduli")
    result = run_on(MonteCarlo(3, tolerance=1e-8, max_iterations=2), model, random_precisions(model, 6))
    assert result.convergence.status is Status.MAX_ITERATIONS
    assert result.convergence.matvecs == 6 + 2  # one draw goes on, to tell the bias
