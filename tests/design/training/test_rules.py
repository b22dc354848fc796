"""Orders that are learnt from scans whose truth is known, of lines and planes, and exchanges that improve a mask."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mri_design import SliceModel
from mri_design.design import (
    LBCS,
    DesignTrace,
    DesignView,
    Evaluate,
    Exchange,
    ExchangeRules,
    LineCandidates,
    OrderTraining,
    Outcome,
    ReferenceSlice,
    Refinement,
    TrainedDesign,
    TrainedOrder,
    TrainingResidual,
    TrainingRule,
    Trial,
    begin_refinement,
    begin_training,
    covering,
    refine,
    removed_share,
    thinned,
    train,
    with_exchanges,
)
from mri_design.estimation import zero_filled
from mri_design.experiment import load_trained, save_trained
from mri_design.operators import Array
from mri_design.readouts import LineReadouts, PlaneConstraints, PlaneReadouts, centre_lines
from tests.design.conftest import make_slice
from tests.design.plane.conftest import plane_slice
from tests.design_steps import design_step, replayed
from tests.refusals import refused
from tests.slow_cases import slow_case

START = centre_lines(np.ones(16, dtype=bool), 3)


def plain(one: SliceModel, lines: Sequence[int]) -> Array:
    return zero_filled(one.model(lines))


@pytest.fixture
def scans() -> list[ReferenceSlice]:
    names = [("brain", 0), ("shepp-logan", 1), ("brain", 2)]
    slices = [make_slice(name=name, seed=seed) for name, seed in names]
    return [ReferenceSlice(str(i), one, one.encoding().adjoint(one.kspace)) for i, one in enumerate(slices)]


def training(
    scans: Sequence[ReferenceSlice],
    rule: TrainingRule,
    target: int = 8,
    evaluate: Evaluate | None = None,
    seed: int = 0,
) -> OrderTraining:
    return OrderTraining(scans, rule, target, evaluate or replayed(plain, scans), seed=seed)


def learnt(scans: Sequence[ReferenceSlice], rule: TrainingRule, target: int = 8, seed: int = 0) -> TrainedDesign:
    return train(training(scans, rule, target, seed=seed), begun(scans, rule, target))


def begun(scans: Sequence[ReferenceSlice], rule: TrainingRule, target: int = 8) -> TrainedDesign:
    return begin_training(training(scans, rule, target), START)


def mean_error(scans: Sequence[ReferenceSlice], lines: Sequence[int]) -> float:
    """Straight from the definition."""
    pairs = [(np.abs(plain(scan.slice_model, lines)), np.abs(scan.reference)) for scan in scans]
    return float(np.mean([np.linalg.norm(image - truth) / np.linalg.norm(truth) for image, truth in pairs]))


def test_lbcs_picks_as_brute_force_does(scans: list[ReferenceSlice]) -> None:
    lines = list(START)
    for picked in learnt(scans, LBCS(), 6).lines[3:]:
        left = [line for line in range(16) if line not in lines]
        assert picked == min(left, key=lambda line: mean_error(scans, [*lines, line]))
        lines.append(picked)


def test_residual_greedy_picks_where_the_images_are_most_wrong(scans: list[ReferenceSlice]) -> None:
    """The residual is that of the definition: |F(u_hat - u)|^2 over the image's energy."""
    state = learnt(scans, TrainingResidual())
    for step, picked in enumerate(state.lines[3:]):
        lines = state.lines[: 3 + step]
        total = np.zeros(16)
        for scan in scans:
            image = plain(scan.slice_model, lines) - scan.reference
            wrong = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(image), norm="ortho"))
            total += np.sum(np.abs(wrong) ** 2, axis=1) / np.sum(np.abs(scan.reference) ** 2)
        np.testing.assert_allclose(state.profile[step], total / len(scans), rtol=1e-4, atol=1e-9)
        total[list(lines)] = 0
        around = np.convolve(total, [0.25, 1, 0.25], mode="same")
        around[list(lines)] = -1
        assert picked == int(np.argmax(around))


def test_stochastic_lbcs_tries_some_lines_on_some_scans(scans: list[ReferenceSlice]) -> None:
    tried: list[list[Trial]] = []

    def watched(trials: Sequence[Trial]) -> Iterable[Outcome]:
        tried.append(list(trials))
        return replayed(plain, scans)(trials)

    rule = LBCS(candidates=4, scans=2)
    train(training(scans, rule, 7, watched, seed=1), begun(scans, rule))
    for attempt in tried[::2]:
        counts = len({lines[-1] for _, lines in attempt}), len({scan for scan, _ in attempt}), len(attempt)
        assert counts == (4, 2, 8)
    assert learnt(scans, rule, seed=1).lines == learnt(scans, rule, seed=1).lines
    assert len({learnt(scans, rule, seed=seed).lines for seed in range(4)}) > 1


def test_errors_and_reconstructions_without_convergence_are_those_of_the_scans(scans: list[ReferenceSlice]) -> None:
    def stalled(trials: Sequence[Trial]) -> Iterable[Outcome]:
        found = replayed(plain, scans)(trials)
        return [replace(outcome, converged=i != 1) for (i, _), outcome in zip(trials, found, strict=True)]

    watched = training(scans, TrainingResidual(), 8, stalled)
    state = train(watched, begin_training(watched, START))
    assert (state.reconstructions, state.unconverged) == (18, 6)
    for row, value in enumerate(state.errors):
        assert value == pytest.approx(mean_error(scans, state.lines[: 3 + row]), rel=1e-5)


@pytest.mark.parametrize("rule", [TrainingResidual(), LBCS(candidates=5, scans=2)])
def test_an_interrupted_training_goes_on_to_the_same_order(scans: list[ReferenceSlice], rule: TrainingRule) -> None:
    seen: list[TrainedDesign] = []
    whole = train(training(scans, rule, seed=3), begun(scans, rule), seen.append)
    rest = train(training(scans, rule, seed=3), seen[2])
    assert (rest.lines, rest.reconstructions) == (whole.lines, whole.reconstructions)
    np.testing.assert_array_equal(rest.errors, whole.errors)
    np.testing.assert_array_equal(rest.profile, whole.profile)


def test_what_cannot_be_trained_on_is_refused(scans: list[ReferenceSlice]) -> None:
    other = make_slice(shape=(12, 12))
    small = ReferenceSlice("small", other, other.encoding().adjoint(other.kspace))
    for given in ([], [*scans, small]):
        with refused("training scans"):
            begun(given, LBCS())
    with refused("number of lines"):
        begun(scans, LBCS(), 17)
    with refused("reference empty"):
        ReferenceSlice("empty", scans[0].slice_model, np.zeros((16, 16), dtype=complex))
    with refused("candidates"):
        LBCS(candidates=0)


POOR = (8, 7, 9, 0, 1, 15, 14)
"""A centre, and the edge of k-space where there is little."""


@pytest.fixture
def pair(scans: list[ReferenceSlice]) -> list[ReferenceSlice]:
    return scans[:2]


@pytest.fixture
def evaluate(pair: list[ReferenceSlice]) -> Evaluate:
    return replayed(plain, pair)


def test_an_exchange_drops_what_hurts_least_and_adds_where_the_images_are_most_wrong(
    pair: list[ReferenceSlice], evaluate: Evaluate
) -> None:
    begun = begin_refinement(pair, POOR, evaluate)
    first = refine(pair, begun, 1, evaluate, ExchangeRules(keep=POOR[:3], shortlist=99)).exchanges[0]
    without = {gone: [line for line in POOR if line != gone] for gone in POOR[3:]}
    assert first.removed == min(without, key=lambda gone: mean_error(pair, without[gone]))
    left = [scan.outcome(plain(scan.slice_model, without[first.removed])) for scan in pair]
    residual = np.mean([outcome.residual for outcome in left], axis=0)
    residual[list(POOR)] = -1
    assert first.added == np.argmax(residual)
    assert first.error == pytest.approx(mean_error(pair, [*without[first.removed], first.added]), rel=1e-5)


@pytest.mark.parametrize("lines", [POOR, (8, 7, 9, 6, 10, 5), (8, 3, 12, 15)])
@pytest.mark.parametrize("shortlist", [slow_case(1), 3, slow_case(99)])
def test_the_error_never_rises_and_is_that_of_the_lines(
    pair: list[ReferenceSlice], evaluate: Evaluate, lines: tuple[int, ...], shortlist: int
) -> None:
    seen: list[Refinement] = []
    begun = begin_refinement(pair, lines, evaluate)
    final = refine(pair, begun, 8, evaluate, ExchangeRules(keep=lines[:1], shortlist=shortlist), seen.append)
    errors = [begun.error, *(state.error for state in seen)]
    assert all(b <= a for a, b in pairwise(errors))
    for state in seen:
        assert len(set(state.lines)) == len(state.lines) == len(lines)
        assert state.lines[0] == lines[0]
        assert state.error == pytest.approx(mean_error(pair, state.lines), rel=1e-5)
        assert (state.error == state.exchanges[-1].error) == state.exchanges[-1].accepted
    assert final == seen[-1]
    if lines == POOR:
        assert final.error < 0.95 * begun.error


def test_it_ends_where_no_exchange_helps(pair: list[ReferenceSlice], evaluate: Evaluate) -> None:
    begun = begin_refinement(pair, POOR, evaluate)
    final = refine(pair, begun, 500, evaluate, ExchangeRules(keep=POOR[:3], shortlist=2))
    assert begun.reconstructions == 2 and final.reconstructions <= 2 + len(final.exchanges) * (2 * 2 + 2)
    assert len(final.exchanges) < 100
    assert [e.accepted for e in final.exchanges[-4:]] == [False] * 4
    assert {e.removed for e in final.exchanges[-4:]} == set(final.lines) - set(POOR[:3])
    assert refine(pair, final, 1000, evaluate, ExchangeRules(keep=POOR[:3], shortlist=2)) == final
    assert refine(pair, begun, 0, evaluate) == refine(pair, begun, 5, evaluate, ExchangeRules(keep=POOR)) == begun


def test_the_least_important_lines_are_tried_first(pair: list[ReferenceSlice], evaluate: Evaluate) -> None:
    begun = begin_refinement(pair, POOR, evaluate)
    known = {0: 4.0, 1: 2.0, 15: 3.0}
    for line, importance in ((1, known), (0, {}), (15, {1: 9.0, 15: 8.0})):
        rules = ExchangeRules(keep=POOR[:3], importance=importance, shortlist=1)
        found = refine(pair, begun, 1, evaluate, rules)
        assert found.exchanges[0].removed == line


@pytest.mark.parametrize("by_data", [True, False], ids=["without data", "not allowed"])
def test_lines_that_cannot_be_measured_do_not_come_in(
    pair: list[ReferenceSlice], evaluate: Evaluate, by_data: bool
) -> None:
    there = np.ones(16, dtype=bool)
    there[[5, 6, 10, 11]] = False
    if by_data:
        pair = [replace(scan, slice_model=replace(scan.slice_model, measured=there)) for scan in pair]
    rules = ExchangeRules(keep=POOR[:3], allowed=None if by_data else there)
    final = refine(pair, begin_refinement(pair, POOR, evaluate), 12, evaluate, rules)
    assert final.exchanges and there[[e.added for e in final.exchanges]].all()


def test_steps_that_stay_keep_what_their_block_had_expected() -> None:
    """Two blocks of three; the first line of the second is dropped, one of the first comes back unpredicted."""
    expected = [np.full(12, 100.0)] * 3 + [np.full(12, 10.0)] * 3
    steps = tuple(
        design_step(line, predicted_energy=e[0] + 1, actual_energy=7.0, expected=e, corrected=e / 2, pending=i % 3)
        for i, (line, e) in enumerate(zip(range(6), expected, strict=True))
    )
    trace = DesignTrace("calibrated", 12, (6, 7), steps)
    exchanges = (Exchange(3, 9, 0.2, True), Exchange(1, 8, 0.3, False), Exchange(2, 11, 0.2, True))
    made = with_exchanges(trace, Refinement((6, 7, 0, 1, 4, 5, 9, 11), 0.2, exchanges))
    assert made.lines == (6, 7, 0, 1, 4, 5, 9, 11)
    assert [step.choice.pending for step in made.steps] == [0] * 6
    forecasts = [step.forecast for step in made.steps]
    assert [None if f.corrected is None else f.corrected[0] for f in forecasts] == [50, 50, 5, 5, None, None]
    known = [(s.predicted_energy, s.forecast.expected) for s in made.steps[:4]]
    assert [predicted - expected[0] for predicted, expected in known if expected is not None] == [1, 1, 1, 1]
    there_and_back = (Exchange(0, 9, 0.3, True), Exchange(9, 0, 0.2, True))
    back = with_exchanges(trace, Refinement((6, 7, 1, 2, 3, 4, 5, 0), 0.2, there_and_back))
    assert np.isnan(back.steps[-1].actual_energy)


PLANE = PlaneReadouts((16, 16))
CENTRE = tuple(PLANE.outwards[:20].tolist())


def plane_training(n_coils: int = 1, target: int = 60) -> OrderTraining:
    slices = [plane_slice(n_coils, seed=seed) for seed in (0, 1)]
    scans = [ReferenceSlice(str(i), one, one.plain_image(range(256))) for i, one in enumerate(slices)]
    evaluate, constraints = replayed(plain, scans), PlaneConstraints(PLANE)
    return OrderTraining(scans, TrainingResidual(), target, evaluate, constraints=constraints, block=16)


def learnt_plane(n_coils: int = 1) -> TrainedDesign:
    return train(plane_training(n_coils), begin_training(plane_training(n_coils), CENTRE))


@pytest.mark.parametrize("n_coils", [1, 3])
def test_samples_come_in_blocks_where_the_images_are_most_wrong(n_coils: int) -> None:
    design, scans = learnt_plane(n_coils), plane_training(n_coils).scans
    assert design.counts == ((20, 36, 52, 60) if n_coils == 1 else (20, 42, 58, 60))  # of several coils a disc first
    assert len(set(design.lines)) == 60 and design.lines[:20] == CENTRE
    for row, count in enumerate(design.counts):
        total = np.zeros(256)
        for scan in scans:
            wrong = plain(scan.slice_model, design.lines[:count]) - scan.reference
            wrong = PLANE.values(wrong[None], scan.slice_model.maps)
            total += np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3)) / np.sum(np.abs(scan.reference) ** 2) / 2
        np.testing.assert_allclose(design.profile[row], total, rtol=1e-3, atol=1e-9)
    candidates = LineCandidates(np.ones(256, dtype=bool), CENTRE, 60, 20, PlaneConstraints(PLANE), PLANE)
    scores = TrainingResidual().scores(candidates, design.profile[0])
    if n_coils == 1:
        assert design.lines[20] == int(np.argmax(np.where(candidates.remaining, scores, -1)))


@pytest.mark.parametrize(("n_coils", "row"), [(1, 0), (3, 1)])
def test_a_block_is_spread_by_the_errors_of_the_training_images(n_coils: int, row: int) -> None:
    """The map of squared errors stands in the place of a posterior's variances."""
    design, scans = learnt_plane(n_coils), plane_training(n_coils).scans
    begin = design.counts[row]
    there = design.lines[:begin]
    candidates = LineCandidates(np.ones(256, dtype=bool), there, 60, 20, PlaneConstraints(PLANE), PLANE)
    scores = TrainingResidual().scores(candidates, design.profile[row])
    shares = []
    for scan in scans:
        squared = np.abs(plain(scan.slice_model, there) - scan.reference) ** 2
        shares.append(removed_share(squared, scan.slice_model.maps, scan.slice_model.noise_variance))
    squared, free = np.fft.fftshift(np.mean(shares, axis=0)), candidates.remaining
    if n_coils == 1:
        expected = thinned(np.where(free, scores, np.nan), squared, PLANE, 16)
    else:
        expected = covering(np.where(free, scores, 0), squared, PLANE, free, 16)[0]
    assert list(design.lines[begin : begin + 16]) == expected
    assert set(expected) != set(np.argsort(-np.where(free, scores, -1))[:16].tolist())


def test_a_design_follows_the_order_in_blocks_of_its_own_and_goes_on_by_the_last_residual(tmp_path: Path) -> None:
    save_trained(tmp_path / "order.npz", learnt_plane())
    rule = TrainedOrder(design=load_trained(tmp_path / "order.npz"))
    order = learnt_plane().lines
    assert rule.design.counts == learnt_plane().counts and rule.default_start(PLANE, 60) == 20
    measurable = np.ones(256, dtype=bool)
    measurable[order[25]] = False
    candidates = LineCandidates(measurable, CENTRE, 80, 20, PlaneConstraints(PLANE), PLANE)
    block = [choice.line for choice in rule.choose_block(DesignView(candidates), np.random.default_rng(0), 50)]
    assert block[:39] == [*order[20:25], *order[26:]]
    left = np.where(candidates.remaining, rule.design.profile[-1], -1)
    left[block[:39]] = -1
    assert block[39:] == np.argsort(-left, kind="stable")[:11].tolist()


def test_lines_and_counts_that_fall_are_refused() -> None:
    with refused("trained design"):
        TrainedOrder(design=learnt_plane()).default_start(LineReadouts((16, 16)), 8)
    with refused("trained design"):
        view = DesignView(LineCandidates(np.ones(24, dtype=bool), (12,), 8, 1))
        TrainedOrder(design=learnt_plane()).choose(view, np.random.default_rng(0))
    with refused("trained design: counts"):
        replace(learnt_plane(), counts=(20, 52, 36, 60))


def test_a_sample_that_training_took_counts_with_its_residual_before(rng: np.random.Generator) -> None:
    design = learnt_plane()
    for acquired, row in ((5, 0), (20, 0), (35, 0), (36, 1), (51, 1), (60, 3), (99, 3)):
        values = design.residual(acquired)
        measured = design.lines[: design.counts[row]]
        left = np.setdiff1d(np.arange(256), measured)
        np.testing.assert_array_equal(values[left], design.profile[row, left])
        for place, sample in enumerate(measured[20:], 20):
            before = max(r for r, count in enumerate(design.counts) if count <= place)
            assert values[sample] == min(values[left].max(), design.profile[before, sample])
