import numpy as np
import pytest

from mri_design import DesignView, LineCandidates, VariableDensity, centre_lines
from mri_design.design.strategies.line_masks import GoldenDensity, JitteredDensity, SystematicDensity, inclusion_masses
from mri_design.design.strategy import Strategy

N, TARGET, START = 96, 28, 8


def drawn(rule: Strategy, seed: int, target: int = TARGET) -> tuple[int, ...]:
    everything = np.ones(N, dtype=bool)
    candidates = LineCandidates(everything, centre_lines(everything, START), target, START)
    for step in range(target - START):
        candidates = candidates.after(rule.choose(DesignView(candidates), np.random.default_rng([seed, step])).line)
    return candidates.acquired


@pytest.mark.parametrize("power", [0.0, 2.0, 9.0, 200.0])
def test_masses_add_up_and_none_is_above_one(power: float) -> None:
    density = VariableDensity(power=power).density(np.arange(-40, 40)) + 1e-300
    for count in (1, 13, 79, 80):
        masses = inclusion_masses(density, count)
        assert masses.sum() == pytest.approx(count)
        assert masses.max() <= 1 and masses.min() >= 0
        free = masses < 1
        if free.any():  # below one they are proportional to the density
            ratio = masses[free] / density[free]
            assert np.ptp(ratio) <= 1e-9 * ratio.max()


@pytest.mark.slow
@pytest.mark.parametrize("rule", [JitteredDensity(power=2.0), SystematicDensity(power=2.0)])
def test_lines_are_drawn_as_often_as_their_mass_says(rule: VariableDensity) -> None:
    everything = np.ones(N, dtype=bool)
    free = np.setdiff1d(np.arange(N), centre_lines(everything, START))
    masses = inclusion_masses(rule.density(free - N // 2), TARGET - START)
    draws = 600
    counts = np.zeros(N)
    for seed in range(draws):
        counts[list(drawn(rule, seed)[START:])] += 1
    frequency = counts[free] / draws
    noise = np.sqrt(masses * (1 - masses) / draws)
    # systematic offsets are found again from a line, to within its mass: lines of the comb share a few per cent
    assert np.abs(frequency - masses).max() < 5 * noise.max() + 0.12
    assert np.abs(frequency - masses).mean() < 0.05


@pytest.mark.parametrize("rule", [JitteredDensity(power=1.0), SystematicDensity(power=1.0)])
def test_every_unit_of_mass_gets_its_line(rule: VariableDensity) -> None:
    """Independent draws leave units empty; even ones hold half a line or more of each."""
    everything = np.ones(N, dtype=bool)
    free = np.setdiff1d(np.arange(N), centre_lines(everything, START))
    masses = inclusion_masses(rule.density(free - N // 2), TARGET - START)
    edges = np.cumsum(masses)

    def imbalance(lines: tuple[int, ...]) -> float:
        taken = np.cumsum(np.isin(free, lines[START:]))
        return float(np.abs(taken - edges).max())

    for seed in range(10):
        assert imbalance(drawn(rule, seed)) <= 2.0
    independent = [imbalance(drawn(VariableDensity(power=1.0), seed)) for seed in range(10)]
    assert np.median(independent) > 2.0


def test_systematic_lines_lie_at_equal_distances_where_the_density_is_flat() -> None:
    for seed in range(5):
        lines = np.sort(drawn(SystematicDensity(power=0.0), seed)[START:])
        outer = lines[lines < N // 2 - START]
        assert np.ptp(np.diff(outer)) <= 1


def test_golden_draws_are_even_whenever_one_stops() -> None:
    rule = GoldenDensity(power=0.0)
    lines = drawn(rule, 3, 60)[START:]
    for count in (5, 8, 13, 21):
        gaps = np.diff(np.sort(lines[:count]), append=min(lines[:count]) + N)
        assert gaps.max() <= 3 * N / count
