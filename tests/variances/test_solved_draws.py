"""The bias that early-stopped solves leave in sampled variances, and what the estimators say of it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision
from mri_design.variances import (
    ControlVariate,
    Exact,
    MonteCarlo,
    SolvedDraws,
    VarianceEstimator,
)
from tests.variances.running import run, scan_like, together

SHAPE = (20, 20)
LINES = [*range(7, 13), 1, 4, 16, 18]
CASES: dict[str, tuple[VarianceEstimator, str, int]] = {
    "circulant": (ControlVariate(tolerance=0.1), "differences", 1),
    "circulant, wavelets": (ControlVariate(tolerance=0.1), "db2", 1),
    "columns, wavelets": (ControlVariate(tolerance=0.3, control="columns"), "db2", 4),
    "no control": (ControlVariate(tolerance=0.3, control="none"), "differences", 4),
    "plain, default tolerance": (MonteCarlo(), "differences", 1),
    "plain": (MonteCarlo(tolerance=0.03), "db2", 4),
}
LOOSE = {name: CASES[name] for name in ("circulant", "circulant, wavelets", "no control")} | {
    "plain": (MonteCarlo(tolerance=0.1), "db2", 4)
}


@cache
def case_of(prior: str, coils: int) -> PosteriorPrecision:
    model, pi = scan_like(LINES, SHAPE, prior, coils)
    return PosteriorPrecision(model.measurement, model.blocks, pi)


@pytest.mark.parametrize("name", CASES)
def test_the_stated_bias_is_one_to_eight_times_the_true_one(name):
    """In root mean square, and above it for nearly every coefficient, against the same draws solved tightly."""
    estimator, prior, coils = CASES[name]
    estimator = replace(estimator, extrapolated=False)
    case = case_of(prior, coils)
    many = replace(estimator, samples=128)
    loose, tight = (together(run(one, case, 9).values) for one in (many, replace(many, tolerance=1e-5)))
    bias = loose - tight
    for samples, going_on, covered in ((8, 1, 0.8), (64, 8, 0.93)):
        for seed in range(2):
            stated = together(run(replace(estimator, samples=samples), case, seed).bias)
            ratio = np.sqrt(np.mean((stated / tight) ** 2) / np.mean((bias / tight) ** 2))
            assert 1 < ratio < (8 if going_on == 1 else 6)
            assert np.mean(np.abs(bias) <= stated) > covered


@pytest.mark.parametrize("name", LOOSE)
def test_many_draws_cover_the_truth_with_the_bias_and_not_without(name):
    estimator, prior, coils = LOOSE[name]
    exact, made = (run(one, case_of(prior, coils)) for one in (Exact(), replace(estimator, samples=768)))
    error = np.abs(together(made.values) - together(exact.values))
    assert np.mean(error <= 3 * together(made.std_error)) < 0.9
    assert np.mean(error <= 3 * together(made.std_error) + together(made.bias)) > 0.97


def test_a_warm_start_leaves_a_bias_that_is_stated_as_well():
    """From the draws of a nearby precision few iterations are needed, and some of the bias is that of the start."""
    precision = case_of("db2", 1)
    rng = np.random.default_rng(1)
    nearby = tuple((p * np.exp(0.1 * rng.standard_normal(p.shape))).astype(p.dtype) for p in precision.site_precisions)
    estimator = ControlVariate(512, tolerance=0.1)
    before = run(estimator, replace(precision, site_precisions=nearby), 4)
    warm = run(estimator, precision, 4, None, before)
    tight = run(replace(estimator, tolerance=1e-5), precision, 4)
    assert warm.convergence.iterations < 4
    tight_z, stated = together(tight.values), together(warm.bias)
    bias = np.abs(together(warm.values) - tight_z)
    assert np.mean(bias <= stated) > 0.93
    assert 1 < np.sqrt(np.mean((stated / tight_z) ** 2) / np.mean((bias / tight_z) ** 2)) < 6


def test_the_bias_costs_a_tenth_at_most_and_changes_nothing_else():
    precision = case_of("differences", 1)
    for estimator in (ControlVariate(), MonteCarlo(), ControlVariate(control="none")):
        draws = estimator(precision, (), np.random.default_rng(3), np.zeros(SHAPE, complex))
        made = run(estimator, precision, 3)
        assert draws.bias == ()
        assert draws.convergence.matvecs < made.convergence.matvecs <= 1.1 * draws.convergence.matvecs
        np.testing.assert_array_equal(made.samples, draws.samples)
        without = run(replace(estimator, with_bias=False), precision, 3)
        assert without.bias is None and without.convergence.matvecs == draws.convergence.matvecs
        for value, same in zip(without.values, made.values, strict=True):
            np.testing.assert_array_equal(value, same)


@pytest.mark.parametrize(
    ("name", "tolerance"), [("circulant", 0.03), ("circulant, wavelets", 0.1), ("columns, wavelets", 0.3)]
)
def test_extrapolated_draws_have_half_of_the_bias_at_most_by_no_more_products(name, tolerance):
    """Half for the sum over coefficients, 0.6 for single ones, against the same draws solved tightly."""
    estimator, prior, coils = CASES[name]
    case, estimator = case_of(prior, coils), replace(estimator, samples=64, tolerance=tolerance, with_bias=False)
    tight = together(run(replace(estimator, tolerance=1e-6), case, 5).values)
    made = run(estimator, case, 5)
    before = run(replace(estimator, extrapolated=False), case, 5)
    assert made.convergence == before.convergence
    left, whole = (together(each.values) - tight for each in (made, before))
    assert abs(left.sum()) < 0.5 * abs(whole.sum())
    assert np.mean((left / tight) ** 2) < 0.6**2 * np.mean((whole / tight) ** 2)


def test_the_arithmetic_of_the_estimate():
    """Two groups of 64; one draw changes the small half by 0.1 and the large half by -0.4 relative to z."""
    z = np.concatenate([np.full(64, 1.0), np.full(64, 10.0)])
    relative = np.repeat([0.1, -0.4], 64)

    def unchanged(which: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return np.asarray

    sampled, solved = np.stack([z] * 3), md.Convergence(md.Status.CONVERGED, 1, 0.1)
    one = SolvedDraws(sampled, solved, np.array([2]), ((1 + relative) * z)[None], 0.5)
    np.testing.assert_allclose(one.bias(unchanged, z, z), 2 * np.abs(relative) * z)
    two = SolvedDraws(sampled, solved, np.array([2, 0]), np.stack([(1 + relative) * z] * 2), 0.0)
    np.testing.assert_allclose(two.bias(unchanged, z, z), np.sqrt(2.5) * np.abs(relative) * z)
    np.testing.assert_allclose(two.bias(unchanged, z, 4 * z), np.sqrt(2.5) * np.abs(relative) * z)
    assert not SolvedDraws.exact(sampled).bias(unchanged, z, z).any()
    assert not one.bias(unchanged, 0 * z, z).any()
