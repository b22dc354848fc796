"""The bias that early-stopped solves leave in sampled variances, and what the estimators say of it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    Convergence,
    DoubleLoop,
    Exact,
    ExactByColumns,
    GaussianPosterior,
    Lanczos,
    MonteCarlo,
    MRSlice,
    Status,
    Wavelet,
    load_phantom,
)
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.monte_carlo import SolvedDraws
from tests.slow_cases import slow_case

SHAPE = (20, 20)
LINES = [*range(7, 13), 1, 4, 16, 18]
Case = tuple[PosteriorPrecision, np.ndarray]
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


def run(estimator: VarianceEstimator, case: Case, seed: int) -> Variances:
    precision, like = case
    return estimator(precision, [b.analysis for b in precision.blocks], np.random.default_rng(seed), like)


def together(values: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.concatenate([v.ravel() for v in values]).astype(float)


@pytest.fixture(scope="module")
def case_of(scan_like) -> Callable[..., Case]:
    """(prior, coils) -> a precision, and an image of its shape."""

    @cache
    def build(prior: str, coils: int) -> Case:
        model, pi = scan_like(LINES, SHAPE, prior, coils)
        return PosteriorPrecision(model.measurement, model.blocks, pi), np.zeros(SHAPE, complex)

    return build


@pytest.fixture(scope="module")
def exact_of(case_of) -> Callable[[str, int], np.ndarray]:
    """(prior, coils) -> exact z of all coefficients."""

    @cache
    def solve(prior: str, coils: int) -> np.ndarray:
        return together(run(Exact(), case_of(prior, coils), 0).values)

    return solve


@pytest.mark.parametrize("name", CASES)
def test_the_stated_bias_is_one_to_eight_times_the_true_one(name, case_of):
    """In root mean square, and above it for nearly every coefficient, against the same draws solved tightly."""
    estimator, prior, coils = CASES[name]
    if isinstance(estimator, ControlVariate):
        estimator = replace(estimator, extrapolated=False)
    case = case_of(prior, coils)
    many = replace(estimator, samples=128)
    loose, tight = (together(run(one, case, 9).values) for one in (many, replace(many, tolerance=1e-5)))
    bias = loose - tight
    for samples, going_on, covered in ((8, 1, 0.8), (64, 8, 0.93)):
        for seed in range(3):
            stated = together(run(replace(estimator, samples=samples), case, seed).bias)
            ratio = np.sqrt(np.mean((stated / tight) ** 2) / np.mean((bias / tight) ** 2))
            assert 1 < ratio < (8 if going_on == 1 else 6)
            assert np.mean(np.abs(bias) <= stated) > covered


@pytest.mark.parametrize("name", ["circulant", "circulant, wavelets", "columns, wavelets"])
def test_the_stated_bias_of_extrapolated_draws_is_two_to_eight_times_what_these_draws_lack(name, case_of):
    """What all draws lack in common is smaller still: a few that go on do not tell it from their own scatter."""
    estimator, prior, coils = CASES[name]
    case = case_of(prior, coils)
    for samples, most in ((8, 8), (64, 6)):
        for seed in range(3):
            made = run(replace(estimator, samples=samples), case, seed)
            tight = together(run(replace(estimator, samples=samples, tolerance=1e-5), case, seed).values)
            lacking, stated = together(made.values) - tight, together(made.bias)
            ratio = np.sqrt(np.mean((stated / tight) ** 2) / np.mean((lacking / tight) ** 2))
            assert 2 < ratio < most
            assert np.mean(np.abs(lacking) <= stated) > 0.98


@pytest.mark.parametrize("seed", [0, slow_case(1), slow_case(2)])
@pytest.mark.parametrize("name", LOOSE)
def test_many_draws_cover_the_truth_with_the_bias_and_not_without(name, seed, case_of, exact_of):
    estimator, prior, coils = LOOSE[name]
    made = run(replace(estimator, samples=768), case_of(prior, coils), seed)
    error = np.abs(together(made.values) - exact_of(prior, coils))
    assert np.mean(error <= 3 * together(made.std_error)) < 0.9
    assert np.mean(error <= 3 * together(made.std_error) + together(made.bias)) > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_coefficients_are_covered_too(seed, case_of, exact_of):
    """The mean over a block has a standard error far below its bias."""
    case = case_of("db2", 4)
    made = run(MonteCarlo(256, tolerance=0.1), case, seed)
    powers = [
        np.sum(np.abs(b.analysis(made.samples)) ** 2, axis=tuple(range(1, b.analysis(made.samples).ndim)))
        for b in case[0].blocks
    ]
    exact = np.split(exact_of("db2", 4), [np.prod(SHAPE)])
    for power, values, bias, truth in zip(powers, made.values, made.bias, exact, strict=True):
        error = abs(values.sum(dtype=float) - truth.sum())
        deviation = power.std(ddof=1) / np.sqrt(len(power))
        assert error > 3 * deviation
        assert error <= 3 * deviation + bias.sum(dtype=float)


def test_a_tighter_tolerance_has_a_smaller_bias(case_of):
    case = case_of("differences", 1)
    totals = [together(run(MonteCarlo(64, tolerance=t), case, 0).bias).sum() for t in (0.1, 0.01, 1e-3)]
    assert all(later < 0.5 * earlier for earlier, later in pairwise(totals))


def test_a_warm_start_leaves_a_bias_that_is_stated_as_well(case_of):
    """From the draws of a nearby precision few iterations are needed, and some of the bias is that of the start."""
    precision, like = case_of("db2", 1)
    analyses = [b.analysis for b in precision.blocks]
    rng = np.random.default_rng(1)
    nearby = tuple((p * np.exp(0.1 * rng.standard_normal(p.shape))).astype(p.dtype) for p in precision.site_precisions)
    estimator = ControlVariate(512, tolerance=0.1)
    before = run(estimator, (replace(precision, site_precisions=nearby), like), 4)
    warm = estimator(precision, analyses, np.random.default_rng(4), like, before)
    tight = run(replace(estimator, tolerance=1e-5), (precision, like), 4)
    assert warm.convergence.iterations < 4
    tight_z, stated = together(tight.values), together(warm.bias)
    bias = np.abs(together(warm.values) - tight_z)
    assert np.mean(bias <= stated) > 0.93
    assert 1 < np.sqrt(np.mean((stated / tight_z) ** 2) / np.mean((bias / tight_z) ** 2)) < 6


def test_the_bias_costs_a_tenth_at_most_and_changes_nothing_else(case_of):
    precision, like = case_of("differences", 1)
    analyses = [b.analysis for b in precision.blocks]
    for estimator in (ControlVariate(), MonteCarlo(), ControlVariate(control="none")):
        draws = estimator(precision, (), np.random.default_rng(3), like)
        made = estimator(precision, analyses, np.random.default_rng(3), like)
        assert draws.bias == ()
        assert draws.convergence.matvecs < made.convergence.matvecs <= 1.1 * draws.convergence.matvecs
        np.testing.assert_array_equal(made.samples, draws.samples)
        without = replace(estimator, with_bias=False)(precision, analyses, np.random.default_rng(3), like)
        assert without.bias is None and without.convergence.matvecs == draws.convergence.matvecs
        for value, same in zip(without.values, made.values, strict=True):
            np.testing.assert_array_equal(value, same)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [(name, tolerance) for name in ("circulant", "circulant, wavelets") for tolerance in (0.03, 0.1)]
    + [("columns, wavelets", 0.3)],
)
def test_extrapolated_draws_have_half_of_the_bias_at_most_by_no_more_products(name, tolerance, case_of):
    """Of the sum over coefficients, and 0.6 of that of single ones, by the same draws solved tightly."""
    estimator, prior, coils = CASES[name]
    case, estimator = case_of(prior, coils), replace(estimator, samples=64, tolerance=tolerance, with_bias=False)
    tight = together(run(replace(estimator, tolerance=1e-6), case, 5).values)
    made = run(estimator, case, 5)
    before = run(replace(estimator, extrapolated=False), case, 5)
    assert made.convergence == before.convergence
    left, whole = (together(each.values) - tight for each in (made, before))
    assert abs(left.sum()) < 0.5 * abs(whole.sum())
    assert np.mean((left / tight) ** 2) < 0.6**2 * np.mean((whole / tight) ** 2)


def test_what_is_exact_or_no_sample_has_no_bias_of_this_kind(case_of, monkeypatch):
    case = case_of("differences", 4)
    columns = run(ControlVariate(), case, 0)
    assert columns.kind == "exact" and not together(columns.bias).any()
    assert all(run(one, case, 0).bias is None for one in (Exact(), ExactByColumns(), Lanczos(20)))
    monkeypatch.setattr("mri_design.variances.columns.WIDE_LIMIT", 0)  # wavelets have to be sampled from exact draws
    precision, like = case
    beside = ControlVariate()(precision, [Wavelet(SHAPE, "db2", 2)], np.random.default_rng(0), like)
    assert beside.kind == "unbiased" and not together(beside.bias).any()


def test_a_posterior_carries_the_bias_of_its_variances():
    scan = MRSlice.from_data(load_phantom("brain", shape=24, rng=np.random.default_rng(0)))
    posterior = DoubleLoop(ControlVariate(8, 0.1), outer_iterations=3).infer(
        scan.model(range(8, 16)), np.random.default_rng(0)
    )
    made, blocks = posterior.marginals, posterior.model.blocks
    assert [b.shape for b in made.bias] == [b.analysis.out_shape for b in blocks]
    exact = run(Exact(), (posterior.precision, posterior.mean.astype(complex)), 0)
    covered = np.abs(together(made.values) - together(exact.values))
    assert np.mean(covered <= 3 * together(made.std_error) + together(made.bias)) > 0.97
    assert posterior.variances.bias is made.bias


def test_a_model_of_one_block_has_an_array_of_biases(tiny_model):
    model = replace(tiny_model("matrix"), blocks=tiny_model("matrix").blocks[:1])
    posterior = DoubleLoop(MonteCarlo(20, tolerance=0.3)).infer(model, np.random.default_rng(0))
    assert isinstance(posterior, GaussianPosterior)
    assert posterior.variances.bias.shape == posterior.variances.values.shape
    assert (posterior.variances.bias >= 0).all() and posterior.variances.bias.any()


def test_the_arithmetic_of_the_estimate():
    """Two groups of 64; one draw changes the small half by 0.1 and the large half by -0.4 relative to z."""
    z = np.concatenate([np.full(64, 1.0), np.full(64, 10.0)])
    relative = np.repeat([0.1, -0.4], 64)

    def unchanged(which: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return np.asarray

    sampled, solved = np.stack([z] * 3), Convergence(Status.CONVERGED, 1, 0.1)
    one = SolvedDraws(sampled, solved, np.array([2]), ((1 + relative) * z)[None], 0.5)
    np.testing.assert_allclose(one.bias(unchanged, z, z), 2 * np.abs(relative) * z)
    two = SolvedDraws(sampled, solved, np.array([2, 0]), np.stack([(1 + relative) * z] * 2), 0.0)
    np.testing.assert_allclose(two.bias(unchanged, z, z), np.sqrt(2.5) * np.abs(relative) * z)
    np.testing.assert_allclose(two.bias(unchanged, z, 4 * z), np.sqrt(2.5) * np.abs(relative) * z)
    assert not SolvedDraws.exact(sampled).bias(unchanged, z, z).any()
    assert not one.bias(unchanged, 0 * z, z).any()
