import numpy as np
import pytest
from scipy.stats import chisquare

from mri_design.design import (
    CentredLines,
    DesignView,
    Draw,
    LineCandidates,
    LowPass,
    RegularLines,
    Strategy,
    VariableDensity,
    inclusion_masses,
)
from mri_design.readouts import LineReadouts, centre_lines

EVEN = CentredLines(spread="even", centre_fraction=0.08, name="fastmri-equispaced")
GOLDEN = CentredLines(spread="golden", centre_fraction=0.08, name="golden-ratio")
RULES: list[Strategy] = [
    LowPass(),
    CentredLines(),
    CentredLines(centre_fraction=0.08, name="fastmri-random"),
    VariableDensity(),
    VariableDensity(family="gaussian", power=20.0),
    VariableDensity(family="polynomial", power=300.0),  # so steep that the density underflows at the edge
    *(
        VariableDensity(draw=draw, power=power)
        for draw in ("jittered", "half", "systematic", "golden")
        for power in (0.0, 4.0, 300.0)
    ),
    RegularLines(),
    RegularLines(spacing=3),
    RegularLines(spacing=1000),
    EVEN,
    GOLDEN,
]


def lines_of(
    rule: Strategy, measurable: np.ndarray, target: int, seed: int = 0, start: int | None = None
) -> tuple[int, ...]:
    """What the rule picks, a fresh generator for every step as the engine gives it."""
    count = rule.default_start(LineReadouts((len(measurable), 1)), target) if start is None else start
    candidates = LineCandidates(measurable, centre_lines(measurable, count), target, count)
    for step in range(target - count):
        candidates = candidates.after(rule.choose(DesignView(candidates), np.random.default_rng([seed, step])).line)
    return candidates.acquired


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.name}-{getattr(r, 'power', '')}")
def test_every_rule_gives_the_target_of_different_measurable_lines_by_its_generator_alone(rule: Strategy) -> None:
    assert not rule.needs_posterior
    for n, target in ((32, 12), (31, 31), (24, 1), (16, 15)):
        measurable = np.ones(n, dtype=bool)
        measurable[: max(0, min(3, n - target))] = False
        for seed in range(3):
            lines = lines_of(rule, measurable, target, seed)
            assert len(set(lines)) == len(lines) == target
            assert measurable[list(lines)].all()
    everything = np.ones(48, dtype=bool)
    first, again, *others = (lines_of(rule, everything, 20, seed) for seed in (1, 1, 2, 3, 4))
    assert first == again
    one_mask = all(first == other for other in others)
    assert one_mask == (rule.name in ("low-pass", "golden-ratio"))


@pytest.mark.parametrize("n", [16, 17])
def test_low_pass_is_the_centre(n: int) -> None:
    everything = np.ones(n, dtype=bool)
    assert lines_of(LowPass(), everything, 7) == centre_lines(everything, 7)


@pytest.mark.parametrize(
    ("rule", "n_lines", "target", "start"),
    [
        (CentredLines(), 256, 64, 4),
        (CentredLines(), 256, 3, 3),
        (CentredLines(centre_fraction=0.08), 320, 80, 26),  # round(320 x 0.08): fastMRI at acceleration 4
        (CentredLines(centre_fraction=0.04), 320, 40, 13),  # and at 8
        (CentredLines(centre_fraction=0.08), 320, 10, 10),
        (CentredLines(centre_fraction=0.001), 320, 10, 1),
        (EVEN, 320, 80, 26),
        (EVEN, 320, 40, 20),
        (EVEN, 320, 1, 1),
        (GOLDEN, 320, 80, 26),
        (VariableDensity(centre=8), 256, 64, 8),
        (VariableDensity(centre=8), 256, 5, 5),
        (LowPass(), 256, 64, 1),
    ],
)
def test_centre_counts(rule: Strategy, n_lines: int, target: int, start: int) -> None:
    assert rule.default_start(LineReadouts((n_lines, 1)), target) == start


@pytest.mark.parametrize(
    "rule",
    [CentredLines(), VariableDensity(power=3.0), VariableDensity(family="gaussian", power=6.0)],
)
def test_draws_follow_the_density_over_what_remains(rule: CentredLines | VariableDensity) -> None:
    measurable = np.ones(17, dtype=bool)
    measurable[:2] = False
    candidates = LineCandidates(measurable, (8,), 2, 1)
    picks = [rule.choose(DesignView(candidates), np.random.default_rng(s)).line for s in range(6000)]
    left = candidates.remaining
    every = np.bincount(picks, minlength=17)
    density = (rule.density(candidates.frequencies) if isinstance(rule, VariableDensity) else np.ones(17))[left]
    likely, counts = density / density.sum() * 6000 > 5, every[left]
    expected = density[likely] / density[likely].sum() * counts[likely].sum()
    assert every[~left].sum() == 0 and chisquare(counts[likely], expected).pvalue > 0.001


def test_densities_are_the_formulas_of_their_families() -> None:
    k = np.arange(-4, 4)
    np.testing.assert_allclose(VariableDensity(family="polynomial", power=2.0).density(k), (1 - np.abs(k) / 5) ** 2)
    np.testing.assert_allclose(VariableDensity(family="gaussian", power=2.0).density(k), np.exp(-((k / 5) ** 2)))
    np.testing.assert_array_equal(VariableDensity(family="polynomial", power=0.0).density(k), 1.0)


@pytest.mark.parametrize(("n", "target"), [(64, 16), (65, 20), (48, 47)])
def test_equispaced_lines_are_equally_spaced_outside_the_centre(n: int, target: int) -> None:
    everything = np.ones(n, dtype=bool)
    start = EVEN.default_start(LineReadouts((n, 1)), target)
    free = np.setdiff1d(np.arange(n), centre_lines(everything, start))
    offsets = set()
    for seed in range(12):
        lines = lines_of(EVEN, everything, target, seed)
        teeth = np.searchsorted(free, lines[start:])
        assert set(np.diff(teeth)) <= {len(free) // len(teeth), len(free) // len(teeth) + 1}
        assert teeth[0] < len(free) / len(teeth)
        assert len(free) - teeth[-1] <= len(free) / len(teeth) + 1
        offsets.add(int(teeth[0]))
    assert len(offsets) > 1 or len(free) < 2 * (target - start)


def test_golden_ratio_lines_cover_the_grid_evenly_at_any_time() -> None:
    """No gap is much longer than the mean gap, whenever one stops; random lines leave gaps twice as long."""
    n = 144
    everything = np.ones(n, dtype=bool)
    lines = lines_of(GOLDEN, everything, 72, start=1)
    for count in (8, 13, 21, 40, 72):
        gaps = np.diff(np.sort(lines[:count]), append=min(lines[:count]) + n)
        assert gaps.max() <= 3 * n / count
    random_gaps = [
        np.diff(np.sort(lines_of(CentredLines(), everything, 40, s, start=1)), append=n).max() for s in range(5)
    ]
    golden = np.diff(np.sort(lines[:40]), append=min(lines[:40]) + n).max()
    assert golden < 0.6 * np.median(random_gaps)


def test_a_half_density_leaves_the_other_half_until_its_own_is_full() -> None:
    lines = lines_of(VariableDensity(draw="half", power=2.0, centre=4), np.ones(16, dtype=bool), 14)
    k = np.array(lines[4:]) - 8
    assert np.all(k[:6] > 0)  # 2 to 7
    assert np.all(k[6:] < 0)


@pytest.mark.parametrize(("spacing", "n", "target", "start"), [(4, 64, 22, 8), (3, 63, 26, 6), (2, 48, 30, 12)])
def test_the_comb_runs_through_the_whole_grid_and_the_rest_widens_the_centre(
    spacing: int, n: int, target: int, start: int
) -> None:
    lines = lines_of(RegularLines(spacing=spacing), np.ones(n, dtype=bool), target, start=start)[start:]
    offset = lines[0] % spacing
    mask = np.zeros(n, dtype=bool)
    mask[[*lines, *centre_lines(np.ones(n, dtype=bool), start)]] = True
    assert mask[offset::spacing].all()
    extra = [line for line in np.flatnonzero(mask) if line % spacing != offset]
    k = np.abs(np.array(extra) - n // 2)
    missing = [line for line in np.flatnonzero(~mask) if line % spacing != offset]
    assert k.max() <= np.abs(np.array(missing) - n // 2).min()


EVERYTHING = np.ones(96, dtype=bool)
FREE = np.setdiff1d(np.arange(96), centre_lines(EVERYTHING, 8))
"""Lines outside the start of even draws."""


def drawn(rule: Strategy, seed: int, target: int = 28) -> tuple[int, ...]:
    return lines_of(rule, EVERYTHING, target, seed)[8:]


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


@pytest.mark.parametrize("draw", ["jittered", "systematic"])
def test_every_unit_of_mass_gets_its_line(draw: Draw) -> None:
    """Independent draws leave units empty; even ones hold half a line or more of each."""
    rule = VariableDensity(draw=draw, power=1.0)
    masses = inclusion_masses(rule.density(FREE - 48), 20)
    edges = np.cumsum(masses)

    def imbalance(lines: tuple[int, ...]) -> float:
        taken = np.cumsum(np.isin(FREE, lines))
        return float(np.abs(taken - edges).max())

    for seed in range(10):
        assert imbalance(drawn(rule, seed)) <= 2.0
    independent = [imbalance(drawn(VariableDensity(power=1.0), seed)) for seed in range(10)]
    assert np.median(independent) > 2.0
