from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    DesignView,
    InformationGain,
    LineCandidates,
    exact_gains,
    gains_and_energies,
    gains_of_values,
    rows_of,
)
from mri_design.krylov import lanczos
from mri_design.model import PosteriorPrecision
from mri_design.readouts import LineReadouts
from tests.design.conftest import make_posterior

LINES = LineReadouts((16, 16))
COILS = [1, 4]


def log_determinant(precision: PosteriorPrecision, lines: list[int]) -> float:
    """log|A| after measuring ``lines``, by dense linear algebra."""
    x = precision.measurement
    measured = md.operators.cartesian(lines, x.grid, x.maps)
    return float(np.linalg.slogdet(replace(precision, measurement=measured).dense_real())[1])


@pytest.mark.parametrize("coils", COILS)
def test_the_exact_gain_is_the_growth_of_the_log_determinant(coils: int) -> None:
    posterior = make_posterior(coils)
    lines = posterior.model.measurement.lines.tolist()
    scores = exact_gains(posterior.precision, LINES)
    before = log_determinant(posterior.precision, lines)
    for line in (0, 5, 10, 15):
        after = log_determinant(posterior.precision, [*lines, line])
        assert scores[line] == pytest.approx(after - before, rel=1e-8)


@pytest.mark.parametrize("coils", COILS)
def test_lanczos_scores_are_lower_bounds_that_become_exact_at_full_rank(coils: int) -> None:
    posterior = make_posterior(coils)
    exact = exact_gains(posterior.precision, LINES)
    rng = np.random.default_rng(1)
    start = rng.standard_normal((16, 16)) + 1j * rng.standard_normal((16, 16))

    def scores(steps: int) -> np.ndarray:
        marginals = replace(posterior.marginals, factors=lanczos(posterior.precision, start, steps))
        return gains_and_energies(replace(posterior, marginals=marginals), LINES, rng, 1)[0]

    few, *others = (scores(steps) for steps in (10, 40, 120, 256))
    previous = np.zeros(16)
    for found in (few, *others):
        assert np.all(found >= previous * (1 - 1e-9))
        assert np.all(found <= exact * (1 + 1e-6))
        previous = found
    np.testing.assert_allclose(previous, exact, rtol=1e-5)
    assert np.median(few / exact) < 0.5  # far too small, as the papers' own scores are


@pytest.mark.parametrize(("coils", "count"), [(1, 3), (4, 6), (4, 3)])
def test_the_score_is_a_determinant_per_image_column(coils: int, count: int) -> None:
    encoding = rows_of(make_posterior(coils), LINES, range(16))
    rng = np.random.default_rng(4)
    draws = rng.standard_normal((count, 16, 16)) + 1j * rng.standard_normal((count, 16, 16))
    maps = np.ones((1, 16, 16)) if encoding.maps is None else encoding.maps
    k = np.arange(16) - 8
    wave = np.exp(-2j * np.pi * np.outer(k, k) / 16) / 4  # centred orthonormal DFT along ky
    expected = np.zeros(16)
    for line in range(16):
        for x in range(16):
            values = np.array([[wave[line] @ (s[:, x] * w[:, x]) for s in maps] for w in draws])
            covariance = values.T @ np.conj(values) / (2 * count)
            expected[line] += 2 * np.linalg.slogdet(np.eye(len(maps)) + covariance)[1]
    np.testing.assert_allclose(gains_of_values(LINES.values(draws, encoding.maps)), expected, rtol=1e-6)


@pytest.mark.parametrize("steps", [0, 60])
def test_the_rule_chooses_a_line_near_the_best_and_sums_over_posteriors(steps: int) -> None:
    """From draws, and from Lanczos vectors."""
    posterior, rule = make_posterior(1), InformationGain()
    if steps:
        factors = lanczos(posterior.precision, np.ones((16, 16), complex) + np.eye(16), steps)
        posterior = replace(posterior, marginals=replace(posterior.marginals, factors=factors))
    lines = tuple(posterior.model.measurement.lines.tolist())
    candidates = LineCandidates(np.ones(16, dtype=bool), lines, 10)
    choice = rule.choose(DesignView(candidates, [posterior]), np.random.default_rng(0))
    exact = exact_gains(posterior.precision, LINES)
    left = candidates.remaining
    assert exact[choice.line] > 0.9 * exact[left].max()
    assert np.array_equal(np.isnan(choice.scores), ~left)
    both = rule.choose(DesignView(candidates, [posterior, posterior]), np.random.default_rng(0))
    np.testing.assert_allclose(both.scores[left], 2 * choice.scores[left], rtol=0.25)


@pytest.mark.parametrize(
    ("n_lines", "target", "start"), [(256, 64, 32), (256, 20, 10), (256, 200, 32), (64, 16, 8), (16, 5, 5)]
)
def test_the_start_is_half_of_the_target_within_bounds(n_lines: int, target: int, start: int) -> None:
    assert InformationGain().default_start(LineReadouts((n_lines, 8)), target) == start
