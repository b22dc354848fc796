"""Designs of samples of a plane, their competitors, constraints and memory."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    CaipiSamples,
    Calibrated,
    DesignEngine,
    DesignState,
    ExpectedError,
    Forecast,
    InformationGain,
    LineCandidates,
    LowPass,
    RandomSamples,
    StopRule,
    Strategy,
    innovation,
    poisson_disc,
    radial_density,
)
from mri_design.experiment import available_memory, needed_memory, require_room
from mri_design.experiment import design as memory
from mri_design.readouts import PlaneConstraints, PlaneReadouts
from mri_design.variances import ControlVariate
from tests.design.plane.conftest import make_view, plane_slice
from tests.refusals import refused

INFERENCE = md.DoubleLoop(ControlVariate(4, 0.03), outer_iterations=3, tolerance=0.03)
STRATEGIES = [Calibrated(), Calibrated(drawn=False), ExpectedError(), InformationGain()]


def engine(strategy: Strategy, seed: int = 0, block: int = 9, **rules: object) -> DesignEngine:
    constraints = PlaneConstraints(PlaneReadouts((16, 16)), **rules)  # type: ignore[arg-type]
    return DesignEngine(strategy, INFERENCE, seed=seed, block=block, constraints=constraints)


def designed(slices: list[md.SliceModel], made: DesignEngine, target: int = 60, **more: object) -> DesignState:
    start = made.constraints.start(slices[0].measured, 20)
    return made.run(slices, made.begin(slices, start), target, **more)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=["calibrated", "largest first", "expected error", "gain"])
def test_a_design_that_goes_on_is_the_same_design(strategy: Strategy) -> None:
    slices, made, states = [plane_slice()], engine(strategy), list[DesignState]()
    whole = designed(slices, made, callback=states.append)
    assert len(set(whole.trace.lines)) == 60 and [s.choice.pending for s in whole.trace.steps[:10]] == [*range(9), 0]
    again = made.run(slices, states[1], 60)
    assert again.trace.lines == whole.trace.lines == designed(slices, engine(strategy)).trace.lines


def test_blocks_keep_what_was_predicted_and_found() -> None:
    slices = [plane_slice(2)]
    state = designed(slices, engine(Calibrated(disc_share=0.0)), target=38)
    steps = state.trace.steps
    assert all(step.found and step.actual_energy > 0 for step in steps)
    assert all(np.isnan(step.predicted_energy) for step in steps[:9])  # nothing was found to learn from
    assert all(step.predicted_energy > 0 for step in steps[9:])
    begun = [step.forecast for step in steps[9:] if not step.choice.pending]
    assert all(forecast.information > 0 and forecast.predicted_error > 0 for forecast in begun)
    assert all(step.forecast.expected is None for step in steps if step.choice.pending)
    assert sum(step.matvecs > 0 for step in steps) == 2
    start = state.trace.start
    mean, _ = engine(Calibrated(disc_share=0.0)).inference_of(slices[0], state.signals[0]).update(start)
    for step in steps[:9]:
        assert step.actual_energy == pytest.approx(innovation(slices[0], mean, step.line), rel=1e-3)


def test_nothing_is_believed_and_no_design_ends_before_the_first_innovations() -> None:
    slices, made = [plane_slice()], engine(Calibrated())
    begun = made.begin(slices, made.constraints.start(slices[0].measured, 20))
    asked: list[float] = []

    def rule(forecast: Forecast) -> bool:
        asked.append(forecast.predicted_error)
        return StopRule(error=0.9)(forecast)

    end = made.run(slices, begun, 29, closing=True).trace.closing
    assert end is not None and 0 < end.predicted_error < 1
    trace = made.run(slices, begun, 60, stop=rule).trace
    assert len(trace.lines) == 29 and np.isnan(asked[0]) and 0 < asked[1] <= 0.9 and len(asked) == 2
    ahead = made.run(slices, begun, 60, stop=StopRule(error=0.9)).trace.declined  # looks ahead from block to block
    assert ahead is not None and 0 < ahead.forecast.least_error < ahead.predicted_error
    expected, corrected = trace.steps[0].forecast.expected, trace.steps[0].forecast.corrected
    assert np.array_equal(np.isnan(corrected), ~begun.trace.mask()) and np.all(expected > 0)
    assert np.isnan(trace.steps[0].forecast.information) and not StopRule(gain=1e9)(trace.steps[0].forecast)


@pytest.mark.parametrize("n_coils", [1, 4])
def test_energies_are_drawn_around_what_is_believed_with_the_shape_of_the_regression(n_coils: int) -> None:
    """One coil: an exponential distribution. Coils overlap, so that four count as two independent values."""
    slices = [plane_slice(n_coils, 32)]
    found = {}
    for drawn in (True, False, *((None,) if n_coils == 1 else ())):
        made = DesignEngine(Calibrated(drawn=drawn), INFERENCE, block=40, constraints=PlaneConstraints(PLANE))
        scores = designed(slices, made, 60).trace.steps[0].choice.scores
        found[drawn] = scores[np.isfinite(scores)]
    factors = found[True] / found[False]
    assert np.mean(factors) == pytest.approx(1, abs=0.1)
    assert np.var(factors) == pytest.approx(1 / np.sqrt(n_coils), rel=0.25)
    if n_coils == 1:
        np.testing.assert_array_equal(found[None], found[True])


PLANE = PlaneReadouts((32, 32))
START = tuple(PLANE.outwards[:16].tolist())
RULES = [RandomSamples(), RandomSamples(power=0.0), RandomSamples(power=2.0, disc=True), LowPass(), CaipiSamples()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{getattr(rule, 'power', '')}")
def test_masks_are_exact_new_seeded_and_allowed(rule) -> None:
    rules = PlaneConstraints(PLANE, shutter=True)
    view = make_view((), START, 200, 32, rules)
    lines = [c.line for c in rule.choose_block(view, np.random.default_rng(3), 184)]
    assert len(set(lines)) == 184 and not set(lines) & set(START)
    assert np.all(PLANE.radius[lines] <= 1)
    assert lines == [c.line for c in rule.choose_block(view, np.random.default_rng(3), 184)]


def nearest(samples: np.ndarray) -> np.ndarray:
    at = PLANE.frequencies[samples].astype(float)
    apart = np.hypot(*(at[:, None] - at).T)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))


def test_poisson_disc_keeps_its_distance_and_leaves_no_gap() -> None:
    free, there = np.ones(PLANE.size, dtype=bool), np.zeros(PLANE.size, dtype=bool)
    samples = poisson_disc(PLANE, np.ones(PLANE.size), free, there, 100, np.random.default_rng(0))
    assert len(samples) == 100
    least = nearest(samples).min()
    drawn = np.random.default_rng(0).choice(PLANE.size, 100, replace=False)
    assert least >= 2.2 > nearest(drawn).min()
    at = PLANE.frequencies[samples]
    holes = np.hypot(*(PLANE.frequencies[:, None] - at).T).min(axis=0)
    assert holes.max() <= least + 1.5  # nothing but the few left out could be added


def test_poisson_discs_have_no_checkerboards_where_their_distances_are_a_few_samples() -> None:
    plane = PlaneReadouts((128, 128))
    free, there = np.ones(plane.size, dtype=bool), np.zeros(plane.size, dtype=bool)
    board = np.indices((4, 4)).sum(axis=0) % 2 == 0
    for count in (4096, 2731):
        samples = poisson_disc(plane, radial_density(plane, 2.0), free, there, count, np.random.default_rng(0))
        patches = np.lib.stride_tricks.sliding_window_view(plane.mask(samples.tolist()), (4, 4))
        boards = sum(int((patches == one).all(axis=(-2, -1)).sum()) for one in (board, ~board))
        assert boards < 50  # some 200 where samples lie on their places


def test_poisson_disc_keeps_away_from_the_start() -> None:
    there = PLANE.mask(START).reshape(-1)
    samples = poisson_disc(PLANE, np.ones(PLANE.size), ~there, there, 60, np.random.default_rng(0))
    apart = np.hypot(*(PLANE.frequencies[samples][:, None] - PLANE.frequencies[list(START)]).T)
    assert apart.min() >= 2


def test_caipi_is_regular_and_shifted() -> None:
    pattern = CaipiSamples().pattern(PLANE, (2, 4)).reshape(32, 32)
    assert pattern.sum() == 32 * 32 // 8 and pattern[16, 16] and pattern[18, 18] and not pattern[18, 16]
    view = make_view((), START, 16 + 140, 32)
    lines = [c.line for c in CaipiSamples().choose_block(view, np.random.default_rng(0), 140)]
    flags = PLANE.mask([*START, *lines])
    assert CaipiSamples().pattern(PLANE, (2, 4)).reshape(32, 32)[flags].sum() == 128  # the whole pattern
    narrow = CaipiSamples(spacing=(2, 2), shift=0).choose_block(view, np.random.default_rng(0), 140)
    assert np.all(PLANE.frequencies[[c.line for c in narrow]] % 2 == 0)


LARGE = PlaneReadouts((64, 64))


@pytest.mark.parametrize(("n_coils", "draws"), [(1, 8), pytest.param(8, 4, marks=pytest.mark.slow)])
def test_the_estimate_covers_the_peak_of_a_design_and_is_not_far_above(n_coils: int, draws: int) -> None:
    mr_slice, n, block = plane_slice(n_coils, 48), 48, 48
    loop = md.DoubleLoop(ControlVariate(draws, 0.03), outer_iterations=2)
    made = DesignEngine(Calibrated(draws=draws), loop, block=block, constraints=PlaneReadouts((n, n)).constraints())
    begun = made.begin([mr_slice], made.constraints.start(mr_slice.measured, 256))
    made.run([mr_slice], begun, 256 + block)  # loads what is loaded once
    tracemalloc.start()
    try:
        made.run([mr_slice], begun, 256 + 3 * block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 < needed_memory(PlaneReadouts((n, n)), n_coils, draws, 3) / peak < 4


def test_what_memory_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = md.Recipe().replacing("design", encoding="plane", block=20)
    needed = needed_memory(LARGE, 8, 8, 200)
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    require_room(LARGE, 8, 4000, recipe)
    with refused("candidates"):
        require_room(LARGE, 8, 4000, recipe, processes=2)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    with refused("candidates"):
        require_room(LARGE, 8, 4000, recipe)


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit: Callable[[str], int] = (tmp_path / "memory.max").write_text
    monkeypatch.setattr(memory, "CGROUP_LIMIT", tmp_path / "memory.max")
    installed = available_memory()  # there is no such file yet
    limit("max")
    assert available_memory() == installed > 2**20
    limit("1048576")
    assert available_memory() == 2**20


OBLONG = PlaneReadouts((16, 12))
EVERY = np.ones(OBLONG.size, dtype=bool)


def test_the_shutter_leaves_the_ellipse_that_touches_the_edges_and_partial_fourier_a_half_along_ky() -> None:
    def allowed(**limits: object) -> np.ndarray:
        return PlaneConstraints(OBLONG, **limits).allowed(OBLONG.size).reshape(16, 12)

    shutter, half = allowed(shutter=True), allowed(partial_fourier=0.75)
    assert shutter[8].all() and shutter[:, 6].all() and not shutter[0, 0] and not shutter[15, 11]
    assert abs(shutter.mean() - np.pi / 4) < 0.06
    assert half[4:].all() and not half[:4].any()
    other = allowed(partial_fourier=0.75, whole_half="negative")
    assert other[:13].all() and not other[13:].any()


def test_the_calibration_region_comes_first() -> None:
    rules = PlaneConstraints(OBLONG, calibration=4)
    start = rules.start(EVERY, 30)
    region = OBLONG.mask(start)[6:10, 4:8]
    assert region.all() and len(start) == 30 and start[0] == OBLONG.outwards[0]
    assert set(rules.start(EVERY, 3)) == set(np.flatnonzero(rules.calibration_region).tolist())
    LineCandidates(EVERY, start, 60, constraints=rules, readouts=OBLONG)
    with refused("required lines"):
        LineCandidates(EVERY, start[5:], 60, constraints=rules, readouts=OBLONG)
    with refused("calibration region"):
        PlaneConstraints(OBLONG, calibration=6, partial_fourier=0.5).start(EVERY, 10)
    with refused("start samples"):
        PlaneConstraints(OBLONG).start(EVERY, 500)
