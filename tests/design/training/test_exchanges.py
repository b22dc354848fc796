from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mri_design import MRSlice, zero_filled
from mri_design.design import (
    DesignTrace,
    Evaluate,
    Exchange,
    ExchangeRules,
    ReferenceSlice,
    Refinement,
    begin_refinement,
    refine,
    with_exchanges,
)
from mri_design.operators import Array
from tests.design_steps import design_step, replayed
from tests.slow_cases import slow_case

POOR = (8, 7, 9, 0, 1, 15, 14)
"""A centre, and the edge of k-space where there is little."""


def plain(one: MRSlice, lines: Sequence[int]) -> Array:
    return zero_filled(one.model(lines))


@pytest.fixture
def scans(make_slice: Callable[..., MRSlice]) -> list[ReferenceSlice]:
    slices = [make_slice(name=name, seed=seed) for name, seed in (("brain", 0), ("shepp-logan", 1))]
    return [ReferenceSlice("", one, one.encoding().adjoint(one.kspace)) for one in slices]


@pytest.fixture
def evaluate(scans: list[ReferenceSlice]) -> Evaluate:
    return replayed(plain, scans)


def mean_error(scans: Sequence[ReferenceSlice], lines: Sequence[int]) -> float:
    images = [plain(scan.slice_model, lines) for scan in scans]
    return float(
        np.mean(
            [
                np.linalg.norm(np.abs(i) - np.abs(s.reference)) / np.linalg.norm(s.reference)
                for i, s in zip(images, scans, strict=True)
            ]
        )
    )


def test_an_exchange_drops_what_hurts_least_and_adds_where_the_images_are_most_wrong(
    scans: list[ReferenceSlice], evaluate: Evaluate
) -> None:
    begun = begin_refinement(scans, POOR, evaluate)
    first = refine(scans, begun, 1, evaluate, ExchangeRules(keep=POOR[:3], shortlist=99)).exchanges[0]
    without = {gone: [line for line in POOR if line != gone] for gone in POOR[3:]}
    assert first.removed == min(without, key=lambda gone: mean_error(scans, without[gone]))
    residual = np.mean(
        [scan.outcome(plain(scan.slice_model, without[first.removed])).residual for scan in scans], axis=0
    )
    residual[list(POOR)] = -1
    assert first.added == np.argmax(residual)
    assert first.error == pytest.approx(mean_error(scans, [*without[first.removed], first.added]), rel=1e-5)


@pytest.mark.parametrize("lines", [POOR, (8, 7, 9, 6, 10, 5), (8, 3, 12, 15)])
@pytest.mark.parametrize("shortlist", [slow_case(1), 3, slow_case(99)])
def test_the_error_never_rises_and_is_that_of_the_lines(
    scans: list[ReferenceSlice], evaluate: Evaluate, lines: tuple[int, ...], shortlist: int
) -> None:
    seen: list[Refinement] = []
    begun = begin_refinement(scans, lines, evaluate)
    final = refine(scans, begun, 8, evaluate, ExchangeRules(keep=lines[:1], shortlist=shortlist), seen.append)
    errors = [begun.error, *(state.error for state in seen)]
    assert all(b <= a for a, b in pairwise(errors))
    for state in seen:
        assert len(set(state.lines)) == len(state.lines) == len(lines)
        assert state.lines[0] == lines[0]
        assert state.error == pytest.approx(mean_error(scans, state.lines), rel=1e-5)
        assert (state.error == state.exchanges[-1].error) == state.exchanges[-1].accepted
    assert final == seen[-1]
    if lines == POOR:
        assert final.error < 0.95 * begun.error


def test_it_ends_where_no_exchange_helps(scans: list[ReferenceSlice], evaluate: Evaluate) -> None:
    begun = begin_refinement(scans, POOR, evaluate)
    final = refine(scans, begun, 500, evaluate, ExchangeRules(keep=POOR[:3], shortlist=2))
    assert begun.reconstructions == 2 and final.reconstructions <= 2 + len(final.exchanges) * (2 * 2 + 2)
    assert len(final.exchanges) < 100
    assert [e.accepted for e in final.exchanges[-4:]] == [False] * 4
    assert {e.removed for e in final.exchanges[-4:]} == set(final.lines) - set(POOR[:3])
    assert refine(scans, final, 1000, evaluate, ExchangeRules(keep=POOR[:3], shortlist=2)) == final


def test_the_least_important_lines_are_tried_first(scans: list[ReferenceSlice], evaluate: Evaluate) -> None:
    begun = begin_refinement(scans, POOR, evaluate)
    known = {0: 4.0, 1: 2.0, 15: 3.0}
    for line, importance in ((1, known), (0, {}), (15, {1: 9.0, 15: 8.0})):
        rules = ExchangeRules(keep=POOR[:3], importance=importance, shortlist=1)
        found = refine(scans, begun, 1, evaluate, rules)
        assert found.exchanges[0].removed == line


@pytest.mark.parametrize("by_data", [True, False], ids=["without data", "not allowed"])
def test_lines_that_cannot_be_measured_do_not_come_in(
    scans: list[ReferenceSlice], evaluate: Evaluate, by_data: bool
) -> None:
    there = np.ones(16, dtype=bool)
    there[[5, 6, 10, 11]] = False
    if by_data:
        scans = [replace(scan, slice_model=replace(scan.slice_model, measured=there)) for scan in scans]
    rules = ExchangeRules(keep=POOR[:3], allowed=None if by_data else there)
    final = refine(scans, begin_refinement(scans, POOR, evaluate), 12, evaluate, rules)
    assert final.exchanges and there[[e.added for e in final.exchanges]].all()


def test_nothing_is_exchanged_where_nothing_may_be(scans: list[ReferenceSlice], evaluate: Evaluate) -> None:
    begun = begin_refinement(scans, POOR, evaluate)
    assert refine(scans, begun, 0, evaluate) == begun
    assert refine(scans, begun, 5, evaluate, ExchangeRules(keep=POOR)) == begun


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
    known = [(s.outcome.predicted_energy, s.forecast.expected) for s in made.steps[:4]]
    assert [predicted - expected[0] for predicted, expected in known if expected is not None] == [1, 1, 1, 1]
    there_and_back = (Exchange(0, 9, 0.3, True), Exchange(9, 0, 0.2, True))
    back = with_exchanges(trace, Refinement((6, 7, 1, 2, 3, 4, 5, 0), 0.2, there_and_back))
    assert np.isnan(back.steps[-1].outcome.actual_energy)
