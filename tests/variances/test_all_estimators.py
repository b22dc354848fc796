"""What all estimators of variances share: their precision, no bias beyond the standard error, draws as a start."""

import numpy as np
import pytest

from mri_design import ControlVariate, Exact, Lanczos, MonteCarlo
from mri_design.model import PosteriorPrecision
from tests.slow_cases import slow_case
from tests.variances.running import run_on, together

PLAIN = MonteCarlo(samples=400, tolerance=1e-6, max_iterations=300)
CONTROLLED = ControlVariate(samples=120, tolerance=1e-6, max_iterations=300)


@pytest.mark.parametrize(
    "estimator", [Exact(), Lanczos(30), MonteCarlo(3), ControlVariate(20)], ids=lambda e: type(e).__name__
)
def test_single_precision_stays_single(estimator, tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    pi = tuple(p.astype(np.float32) for p in random_precisions(model, 5))
    made = run_on(estimator, model, pi)
    assert all(v.dtype == np.float32 for v in (*made.values, *(made.std_error or ()), *(made.bias or ())))
    images = [v for v in (made.samples, made.factors and made.factors.basis) if v is not None]
    assert all(image.dtype == np.complex64 for image in images)
    if made.kind != "unbiased":
        np.testing.assert_allclose(made.values[0], run_on(Exact(), model, pi).values[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("estimator", "model_name"),
    [
        (PLAIN, "coils"),
        (PLAIN, "parts"),
        slow_case(PLAIN, "matrix"),
        (CONTROLLED, "groups"),
        (CONTROLLED, "coils"),
        (CONTROLLED, "wavelet"),
        slow_case(CONTROLLED, "matrix"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_unbiased_within_the_standard_error(estimator, model_name, tiny_model, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    exact = together(run_on(Exact(), model, pi).values)
    results = [run_on(estimator, model, pi, seed) for seed in range(8)]
    assert all(r.convergence.converged for r in results)
    if estimator is CONTROLLED and model_name == "coils":  # columns leave nothing to sample
        assert all(r.kind == "exact" for r in results)
        np.testing.assert_allclose(together(results[0].values), exact, rtol=1e-10)
        return
    assert all(r.kind == "unbiased" for r in results)
    values = np.array([together(r.values) for r in results])
    errors = np.array([together(r.std_error) for r in results])
    # Every run: z-scores of unit size. They are correlated within a run, hence the generous limits.
    scores = (values - exact) / errors
    assert np.abs(scores).max() < 6
    assert 0.8 < np.sqrt(np.mean(scores**2)) < 1.2
    # All runs together, so that a bias of a few percent would show.
    pooled = (values.mean(axis=0) - exact) / np.sqrt((errors**2).mean(axis=0) / len(results))
    assert np.abs(pooled).max() < 4.5
    assert abs(np.mean(values / exact) - 1) < 0.02


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
