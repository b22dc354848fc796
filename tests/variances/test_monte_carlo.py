"""Perturb-and-solve: unbiased within its own standard error on every kind of model."""

import numpy as np
import pytest

from mri_design import Exact, InputError, MonteCarlo, Status
from mri_design.model.precision import PosteriorPrecision
from tests.slow_cases import slow_case
from tests.variances.running import run_on, together

ACCURATE = MonteCarlo(samples=400, tolerance=1e-6, max_iterations=300)


@pytest.mark.parametrize("model_name", ["coils", "parts", slow_case("matrix")])
def test_unbiased_within_the_standard_error(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    exact, seeds = together(run_on(Exact(), model, pi).values), range(8)
    results = [run_on(ACCURATE, model, pi, seed) for seed in seeds]
    assert all(r.kind == "unbiased" and r.convergence.converged for r in results)
    values = np.array([together(r.values) for r in results])
    errors = np.array([together(r.std_error) for r in results])
    # Every run: z-scores of unit size. They are correlated within a run, hence the generous limits.
    scores = (values - exact) / errors
    assert np.abs(scores).max() < 6
    assert 0.8 < np.sqrt(np.mean(scores**2)) < 1.2
    # All runs together: 3200 samples, so that a bias of a few percent would show.
    pooled = (values.mean(axis=0) - exact) / np.sqrt((errors**2).mean(axis=0) / len(results))
    assert np.abs(pooled).max() < 4.5
    assert abs(np.mean(values / exact) - 1) < 0.02


def test_standard_errors_follow_from_the_number_of_samples(tiny_model, random_precisions):
    """sqrt(2 / K) relative on real coefficients, sqrt(1 / K) on complex ones of a complex-linear A."""
    for name, factor in [("moduli", 1), ("real image", 2), ("parts", 2)]:
        model = tiny_model(name)
        result = run_on(ACCURATE, model, random_precisions(model, 2))
        relative = together(result.std_error) / together(result.values)
        assert relative.mean() == pytest.approx(np.sqrt(factor / 400), rel=0.05)


def test_samples_are_handed_on_and_seeds_repeat(tiny_model, random_precisions):
    model = tiny_model("coils")
    pi = random_precisions(model, 4)
    first, again, other = (run_on(MonteCarlo(5), model, pi, seed) for seed in (1, 1, 2))
    assert first.samples.shape == (5, *model.image_shape)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - other.samples).max() > 0.01
    power = np.abs(model.blocks[1].analysis(first.samples)) ** 2
    np.testing.assert_allclose(first.values[1], power.mean(axis=0))
    assert first.log_determinant is None


def test_draws_for_a_nearby_precision_are_a_start_and_no_more(tiny_model, random_precisions):
    """Same noise, sites 5 % stronger: the same values as from zero, for fewer multiplications."""
    model = tiny_model("coils")
    pi = random_precisions(model, 7)
    precision = PosteriorPrecision(model.measurement, model.blocks, tuple(1.05 * p for p in pi))
    estimator = MonteCarlo(50, tolerance=1e-4, max_iterations=200)
    before = run_on(estimator, model, pi, seed=8)
    analyses = [b.analysis for b in model.blocks]
    cold, warm = (
        estimator(precision, analyses, np.random.default_rng(8), model.back_projection(), previous)
        for previous in (None, before)
    )
    assert warm.convergence.converged and warm.convergence.matvecs < 0.9 * cold.convergence.matvecs
    np.testing.assert_allclose(together(warm.values), together(cold.values), rtol=2e-3)
    assert np.abs(together(warm.values) / together(before.values) - 1).max() > 0.01


def test_single_precision_stays_single(tiny_model, random_precisions):
    model = tiny_model("groups", real=np.float32)
    pi = tuple(p.astype(np.float32) for p in random_precisions(model, 5))
    result = run_on(MonteCarlo(3), model, pi)
    assert result.values[0].dtype == result.std_error[0].dtype == result.bias[0].dtype == np.float32
    assert result.samples.dtype == np.complex64


def test_solves_cut_short_are_flagged(tiny_model, random_precisions):
    model = tiny_model("moduli")
    result = run_on(MonteCarlo(3, tolerance=1e-8, max_iterations=2), model, random_precisions(model, 6))
    assert result.convergence.status is Status.MAX_ITERATIONS
    assert result.convergence.matvecs == 6 + 2  # one draw goes on, to tell the bias


def test_a_single_sample_has_no_error_estimate_and_is_refused():
    with pytest.raises(InputError, match=r"variance samples.*1.*2 or more"):
        MonteCarlo(1)
