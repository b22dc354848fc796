"""Exact, Lanczos and sampled variances: against dense matrices, no bias beyond the standard error, draws as a start."""

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision
from tests.slow_cases import slow_case
from tests.variances.running import run_on, together

PLAIN = md.MonteCarlo(samples=400, tolerance=1e-6, max_iterations=300)
CONTROLLED = md.ControlVariate(samples=120, tolerance=1e-6, max_iterations=300)


@pytest.mark.parametrize(
    "estimator", [md.Exact(), md.Lanczos(30), md.MonteCarlo(3), md.ControlVariate(20)], ids=lambda e: type(e).__name__
)
def test_single_precision_stays_single(estimator, tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    pi = tuple(p.astype(np.float32) for p in random_precisions(model, 5))
    made = run_on(estimator, model, pi)
    assert all(v.dtype == np.float32 for v in (*made.values, *(made.std_error or ()), *(made.bias or ())))
    images = [v for v in (made.samples, made.factors and made.factors.basis) if v is not None]
    assert all(image.dtype == np.complex64 for image in images)
    if made.kind != "unbiased":
        np.testing.assert_allclose(made.values[0], run_on(md.Exact(), model, pi).values[0], rtol=1e-3)


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
    exact = together(run_on(md.Exact(), model, pi).values)
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
    estimator = md.MonteCarlo(50, tolerance=1e-4, max_iterations=200)
    before = run_on(estimator, model, pi, seed=8)
    analyses = [b.analysis for b in model.blocks]
    cold, warm = (
        estimator(precision, analyses, np.random.default_rng(8), model.back_projection(), previous)
        for previous in (None, before)
    )
    assert warm.convergence.converged and warm.convergence.matvecs < 0.9 * cold.convergence.matvecs
    np.testing.assert_allclose(together(warm.values), together(cold.values), rtol=2e-3)
    assert np.abs(together(warm.values) / together(before.values) - 1).max() > 0.01


def test_standard_errors_follow_from_the_number_of_samples(tiny_model, random_precisions):
    """sqrt(2 / K) relative on real coefficients, sqrt(1 / K) on complex ones of a complex-linear A."""
    for name, factor in [("moduli", 1), ("real image", 2), ("parts", 2)]:
        model = tiny_model(name)
        result = run_on(PLAIN, model, random_precisions(model, 2))
        relative = together(result.std_error) / together(result.values)
        assert relative.mean() == pytest.approx(np.sqrt(factor / 400), rel=0.05)


def test_samples_are_handed_on_seeds_repeat_and_short_solves_are_flagged(tiny_model, random_precisions):
    model = tiny_model("coils")
    pi = random_precisions(model, 4)
    first, again, other = (run_on(md.MonteCarlo(5), model, pi, seed) for seed in (1, 1, 2))
    assert first.samples.shape == (5, *model.image_shape)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - other.samples).max() > 0.01
    power = np.abs(model.blocks[1].analysis(first.samples)) ** 2
    np.testing.assert_allclose(first.values[1], power.mean(axis=0))
    assert first.log_determinant is None
    model = tiny_model("moduli")
    result = run_on(md.MonteCarlo(3, tolerance=1e-8, max_iterations=2), model, random_precisions(model, 6))
    assert result.convergence.status is md.Status.MAX_ITERATIONS
    assert result.convergence.matvecs == 6 + 2  # one draw goes on, to tell the bias


@pytest.mark.parametrize("name", ["coils", "wavelet", "real image", "matrix"])
def test_they_rise_to_the_exact_values(name, tiny_model, random_precisions):
    model = tiny_model(name)
    pi = random_precisions(model, 1)
    exact = run_on(md.Exact(), model, pi)
    n = int(np.prod(model.image_shape))
    last = tuple(np.zeros(b.analysis.out_shape) for b in model.blocks)
    for steps in sorted({1, 2, 3, 5, n // 4, n // 2, n - 1, n}):
        result = run_on(md.Lanczos(steps), model, pi)
        assert result.kind == "lower_bound" and result.convergence.matvecs == steps
        for low, value, high in zip(last, result.values, exact.values, strict=True):
            assert (value >= low - 1e-9).all()
            assert (value <= high + 1e-9).all()
        last = result.values
    for value, high in zip(last, exact.values, strict=True):
        np.testing.assert_allclose(value, high, rtol=1e-6)
    assert result.log_determinant == pytest.approx(exact.log_determinant, abs=1e-7)
    assert result.factors is not None and len(result.factors.basis) == n


def test_they_are_the_diagonal_of_the_dense_covariance(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 1)
    result = run_on(md.Exact(), model, pi)
    covariance = np.linalg.inv(PosteriorPrecision(model.measurement, model.blocks, pi).dense_real())
    assert result.kind == "exact" and result.convergence.converged and result.std_error is None
    assert result.log_determinant == pytest.approx(-np.linalg.slogdet(covariance)[1], rel=1e-12)
    for block, values in zip(model.blocks, result.values, strict=True):
        B = block.analysis.to_dense_real()
        diagonal = np.einsum("ij,jk,ik->i", B, covariance, B)
        if block.analysis.out_complex:
            diagonal = diagonal.reshape(2, -1).sum(axis=0)
        np.testing.assert_allclose(values, diagonal.reshape(block.analysis.out_shape), rtol=1e-9)


@pytest.mark.parametrize("model_name", ["groups", "parts", "matrix"])
def test_pooled_they_are_the_gradient_of_the_log_determinant(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    pi = random_precisions(model, 2)
    result, step = run_on(md.Exact(), model, pi), 1e-5
    rng = np.random.default_rng(3)
    for number, block in enumerate(model.blocks):
        z = block.pooled(result.values[number])
        assert z.shape == block.site_shape
        for _ in range(4):
            site = tuple(int(rng.integers(n)) for n in block.site_shape)
            ends = []
            for sign in (1, -1):
                moved = tuple(p.copy() for p in pi)
                moved[number][site] += sign * step
                ends.append(run_on(md.Exact(), model, moved).log_determinant)
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(z[site], rel=1e-6)


def test_site_precisions_over_twelve_decades_are_legitimate(tiny_model):
    model = tiny_model("matrix")
    pi = tuple(np.geomspace(1e-6, 1e6, int(np.prod(b.site_shape))).reshape(b.site_shape) for b in model.blocks)
    assert all((z > 0).all() for z in run_on(md.Exact(), model, pi).values)
