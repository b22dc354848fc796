"""Masks of growing distances: their lines, the variance that they leave, and designs that choose within one."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    Calibrated,
    DesignEngine,
    DesignState,
    ExpectedError,
    StopRule,
    distances,
    lines_expected,
)
from mri_design.design.distances import NEAREST, Column, growing_masks, totals_after
from mri_design.operators.cartesian_fourier import aliasing_of
from mri_design.readouts import LineConstraints, LineReadouts
from mri_design.variances import ControlVariate, Exact
from tests.design.conftest import make_slice
from tests.refusals import refused


def free_lines(n: int, start: int, forbidden: slice = slice(0, 0)) -> np.ndarray:
    free = np.ones(n, dtype=bool)
    free[n // 2 - start // 2 :][:start] = False
    free[forbidden] = False
    return free


@pytest.mark.parametrize(("n", "count"), [(96, 22), (96, 10), (97, 13), (64, 8), (16, 3), (9, 1), (32, 29)])
@pytest.mark.parametrize("forbidden", [slice(0, 0), slice(0, 3), slice(-2, None)])
def test_masks_hold_as_many_free_lines_as_are_wanted(n: int, count: int, forbidden: slice) -> None:
    free = free_lines(n, 2, forbidden)
    count = min(count, int(free.sum()))
    masks = growing_masks(free, count)
    assert len(set(masks)) == len(masks) >= 1
    for mask in masks:
        assert len(set(mask)) == count and free[list(mask)].all()


def test_distances_begin_with_the_nearest_and_grow_outwards() -> None:
    for count in (10, 14, 22):
        gaps = []
        for mask in growing_masks(free_lines(96, 2), count):
            right = np.array([line for line in mask if line > 48])
            gaps.append(np.diff(right)[[0, -1]])
        first, last = np.mean(gaps, axis=0)
        assert abs(first - NEAREST) < 0.8 and last > 1.5 * first


def test_enough_lines_are_equally_far_apart_and_all_lines_are_one_mask() -> None:
    (whole,) = growing_masks(free_lines(32, 2), 30)
    assert len(whole) == 30
    for mask in growing_masks(free_lines(96, 2), 47):
        assert set(np.diff([line for line in mask if line > 48])) <= {1, 2, 3}
    assert growing_masks(free_lines(16, 2), 0) == [()]


def test_one_side_takes_all_lines_where_the_other_is_forbidden() -> None:
    for mask in growing_masks(free_lines(32, 2, slice(0, 16)), 5):
        assert len(mask) == 5 and min(mask) > 16


def test_totals_are_those_of_the_dense_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sites on pixels alone no column depends on another, and without a phase both parts count alike."""
    monkeypatch.setattr(distances, "IMAGINARY", 1.0)
    one = make_slice(4)
    known = one.model((8, 7))
    pixels = replace(known, blocks=known.blocks[:1])
    posterior = md.DoubleLoop(Exact(), outer_iterations=2).infer(pixels, np.random.default_rng(0))
    masks = [(8, 7), (8, 7, 3), (8, 7, 12, 5, 1)]
    found = totals_after(posterior, masks, columns=10_000)
    for mask, total in zip(masks, found, strict=True):
        later = replace(posterior.precision, measurement=one.model(mask).measurement)
        dense = np.trace(np.linalg.inv(later.dense_real()))
        np.testing.assert_allclose(total, posterior.model.noise_variance * dense, rtol=1e-5)


def test_a_line_opposite_to_a_measured_one_tells_nothing_of_a_real_image() -> None:
    uniform = np.ones((16, 16), dtype=complex)
    for imaginary, least in ((1.0, 0.999), (1e8, 1.3)):
        column = Column(np.diag(np.repeat([0.01, 0.01 * imaginary], 16)), uniform)
        one, pair, apart = (
            column.total(aliasing_of(np.isin(np.arange(16), lines))) for lines in ([8, 11], [8, 11, 5], [8, 11, 4])
        )
        assert (one - apart) / (one - pair) >= least


def test_a_posterior_without_coils_is_refused() -> None:
    posterior = md.DoubleLoop(Exact(), outer_iterations=1).infer(make_slice(1).model((8, 7)), np.random.default_rng(0))
    with refused("posterior"):
        totals_after(posterior, [(8, 7, 3)])


def design(
    coils: int,
    rule: ExpectedError,
    target: int = 10,
    block: int = 1,
    stop: StopRule | None = None,
    **limits: object,
) -> DesignState:
    one = make_slice(coils, (32, 32))
    constraints = LineConstraints(**limits)  # type: ignore[arg-type]
    engine = DesignEngine(rule, md.DoubleLoop(ControlVariate(4)), block=block, constraints=constraints)
    return engine.run([one], engine.begin([one], (16, 15)), target, stop=stop)


@pytest.mark.parametrize("block", [1, 3])
def test_with_four_coils_a_design_is_one_of_the_masks(block: int) -> None:
    trace = design(4, Calibrated(), block=block).trace
    assert tuple(sorted(trace.lines[2:])) in growing_masks(free_lines(32, 2), 8)
    assert np.isfinite(trace.steps[0].choice.scores).sum() == 8  # no other line can come first, whatever its score
    assert design(4, Calibrated(planned=False), block=block).trace.lines != trace.lines


@pytest.mark.parametrize(("jump", "block"), [(4, 1), (5, 1), (5, 3), (7, 1)])
def test_jumps_are_within_the_widest_mask_that_they_can_measure_whole(jump: int, block: int) -> None:
    lines = design(4, Calibrated(), block=block, max_jump=jump).trace.lines
    assert np.abs(np.diff(lines[1:])).max() <= jump
    rules, start, possible = LineConstraints(max_jump=jump), lines[:2], list[set[tuple[int, ...]]]()
    for beyond in range(12):  # outermost lines on either side
        free = free_lines(32, 2) & (np.abs(np.arange(32) - 15.5) < 16 - beyond)
        whole = {mask: np.isin(np.arange(32), (*start, *mask)) for mask in growing_masks(free, 8)}
        possible.append({mask for mask, flags in whole.items() if rules.most_lines(flags, start) == 10})
    assert tuple(sorted(lines[2:])) in next(masks for masks in possible if masks)


def test_lines_that_are_in_no_mask_stand_for_the_nearest_lines_of_the_mask_that_follows() -> None:
    one, engine = make_slice(4, (32, 32)), DesignEngine(Calibrated(), md.DoubleLoop(ControlVariate(4)))
    smaller = engine.run([one], engine.begin([one], (16, 15)), 6)
    lines = engine.run([one], smaller, 10).trace.lines
    assert lines[:6] == smaller.trace.lines
    apart = []
    for mask in growing_masks(free_lines(32, 2), 8):
        pairs = [list(zip(lines[2:6], some, strict=True)) for some in permutations(mask, 4)]
        least = min(pairs, key=lambda pair: sum((a - b) ** 2 for a, b in pair))
        left = set(mask) - {b for _, b in least}
        apart.append((sum((a - b) ** 2 for a, b in least), left == set(lines[6:])))
    assert min(apart)[0] > 0 and any(own for distance, own in apart if distance == min(apart)[0])


def test_two_coils_are_designed_line_by_line() -> None:
    assert design(2, Calibrated()).trace.lines == design(2, Calibrated(planned=False)).trace.lines


@pytest.mark.parametrize("jump", [None, 5])
def test_an_interrupted_design_goes_on_within_its_mask(jump: int | None) -> None:
    whole, one = design(4, Calibrated(), max_jump=jump).trace.lines, make_slice(4, (32, 32))
    engine = DesignEngine(Calibrated(), md.DoubleLoop(ControlVariate(4)), constraints=LineConstraints(max_jump=jump))
    states: list[DesignState] = []
    engine.run([one], engine.begin([one], (16, 15)), 10, callback=states.append)
    assert engine.run([one], states[3], 10).trace.lines == whole


@pytest.mark.parametrize(("block", "within"), [(1, 8), (3, 8), (5, 12)])
def test_a_design_that_a_rule_may_end_is_planned_for_a_quarter_of_the_lines_in_whole_blocks(
    block: int, within: int
) -> None:
    trace = design(4, Calibrated(), 32, block, StopRule(0.2)).trace
    scored = np.flatnonzero(np.isfinite(trace.steps[0].choice.scores))
    assert tuple(scored) in growing_masks(free_lines(32, 2), within - 2)


def test_a_design_that_a_rule_may_end_chooses_among_as_many_lines_as_are_expected_to_be_left() -> None:
    rule = StopRule(0.02, fewest=2)
    trace, counts = design(4, Calibrated(), 32, stop=rule).trace, set[int]()
    for at, step in enumerate(trace.steps):
        expected = lines_expected(replace(trace, steps=trace.steps[:at]), rule, 32, at + 3, 8)
        assert np.isfinite(step.choice.scores).sum() == expected - at - 2
        counts.add(expected)
    assert len(counts) > 2


@pytest.mark.parametrize(("jump", "block"), [(None, 1), (None, 3), (5, 1), (7, 2)])
def test_an_interrupted_design_that_a_rule_ends_goes_on_to_the_same_lines(jump: int | None, block: int) -> None:
    rule, limits = StopRule(0.1, fewest=2), LineConstraints(max_jump=jump)
    whole, one = design(4, Calibrated(), 32, block, rule, max_jump=jump).trace.lines, make_slice(4, (32, 32))
    assert jump is None or np.abs(np.diff(whole[1:])).max() <= jump
    engine = DesignEngine(Calibrated(), md.DoubleLoop(ControlVariate(4)), constraints=limits, block=block)
    states: list[DesignState] = []
    engine.run([one], engine.begin([one], (16, 15)), 32, callback=states.append, stop=rule)
    assert engine.run([one], states[1], 32, stop=rule).trace.lines == whole


def test_limits_of_the_sequence_come_before_the_mask() -> None:
    state = design(4, Calibrated(), forbidden=tuple(range(20, 32)))
    assert len(state.trace.lines) == 10 and max(state.trace.lines) < 20


def test_a_planned_mask_is_no_beginning_of_a_larger_one() -> None:
    readouts = LineReadouts((32, 32))
    assert Calibrated().plans_ahead(readouts, 4) and not Calibrated().plans_ahead(readouts, 1)
    small, large = (set(design(4, Calibrated(), target=count).trace.lines) for count in (8, 12))
    assert not small <= large


@pytest.mark.parametrize("coils", [(4, 2), (2, 4)])
def test_slices_that_share_lines_begin_as_those_with_the_fewest_coils(coils: tuple[int, ...]) -> None:
    slices = [make_slice(count, (32, 32)) for count in coils]
    assert len(md.run_design(slices, "calibrated", 5, "local").trace.start) == 4


def test_designs_without_a_choice_measure_what_is_left() -> None:
    start, others = (16, 15), tuple(line for line in range(32) if line not in (15, 16, 20))
    assert design(4, Calibrated(), target=2).trace.lines == start
    assert design(4, Calibrated(), target=3, forbidden=others).trace.lines == (*start, 20)
    with refused("number of lines"):
        design(4, Calibrated(), target=4, forbidden=others)
    one, engine = make_slice(4, (32, 32)), DesignEngine(Calibrated(), md.DoubleLoop(ControlVariate(4)))
    met = engine.run([one], engine.begin([one], start), 10, stop=StopRule(0.9, fewest=0)).trace
    assert len(met.steps) == 1 and met.declined is not None  # which has tested what was predicted
