"""The extent of a design: centre lines for maps, starts, ends, orders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mri_design import Recipe, UsageError, make_strategy
from mri_design.design import DesignStep, DesignTrace, StopRule, Strategy, expected_total, lines_expected
from mri_design.experiment import (
    DesignEnd,
    DesignPlan,
    calibration_for,
    centre_for_maps,
    checked_end,
    in_acquisition_order,
    stop_rule,
)
from mri_design.readouts import LineReadouts, PlaneReadouts, ShotReadouts
from tests.design_steps import changed, design_step
from tests.refusals import refused

PLANE = Recipe().replacing("design", encoding="plane")


@pytest.mark.parametrize(
    ("recipe", "wanted"),
    [  # fewer where the usual ones would be the whole mask
        (Recipe(), {None: None, 64: None, 25: None, 24: 12, 21: 12, 16: 12, 13: 12, 12: 8, 9: 8, 8: 8}),
        # the side of an eighth of the mask, and ten at least where half of it allows
        (PLANE, {5000: None, 4608: None, 2048: 16, 768: 10, 300: 10, 200: 10, 128: 8, 90: 8}),
        # what was asked for
        (Recipe().replacing("design", start=20), {16: 20}),
        (PLANE.replacing("design", start=30), {100: 30}),
        (PLANE.replacing("coils", maps="auto:16"), {700: None}),
        (Recipe().replacing("coils", maps="auto:10"), {13: None, 10: 8}),
        (Recipe().replacing("design", encoding="radial"), {6: None}),
    ],
)
def test_lines_for_the_maps_are_as_many_as_leave_some_to_choose(
    recipe: Recipe, wanted: dict[int | None, int | None]
) -> None:
    assert {count: calibration_for(recipe, count) for count in wanted} == wanted


@pytest.mark.parametrize(
    ("count", "designed", "drawn"), [(None, 8, 24), (64, 8, 24), (24, 8, 12), (23, 7, 12), (16, 5, 12), (12, 4, 8)]
)
def test_designs_begin_with_fewer_lines_than_maps_are_usually_estimated_from(
    count: int | None, designed: int, drawn: int
) -> None:
    blind = make_strategy("vd-polynomial:3", "lines")
    for name in ("corrected-error", "information-gain"):
        assert centre_for_maps(make_strategy(name, "lines"), Recipe(), count, n_coils=8) == designed
    assert centre_for_maps(blind, Recipe(), count, n_coils=8) == drawn
    planned = make_strategy("calibrated", "lines")
    assert [centre_for_maps(planned, Recipe(), count, n_coils=coils) for coils in (2, 4, 8)] == [
        designed,
        4,
        4,
    ]
    compressed = Recipe().replacing("coils", coil_compression=3)  # which leaves three of the eight
    assert centre_for_maps(planned, compressed, count, n_coils=8) == designed
    for asked in (Recipe().replacing("design", start=10), Recipe().replacing("coils", maps="auto:10")):
        assert centre_for_maps(planned, asked, 64, n_coils=8) == 10
        assert centre_for_maps(blind, asked, 64, n_coils=8) == 10


GAIN, RANDOM = make_strategy("information-gain"), make_strategy("random")


def test_rules_by_recipe() -> None:
    recipe = Recipe()
    error, gain = recipe.replacing("design", until_error=0.1), recipe.replacing("design", until_gain=3.0)
    assert stop_rule(recipe, GAIN) is None and checked_end(recipe, GAIN, 12) is None
    assert stop_rule(error, GAIN) == StopRule(error=0.1)
    assert stop_rule(gain, GAIN) == StopRule(gain=3.0)
    assert stop_rule(error.replacing("design", until_gain=3.0), GAIN) == StopRule(error=0.1, gain=3.0)
    assert checked_end(error, GAIN, None) == StopRule(error=0.1, by_image=True)
    for wrong, strategy in ((error, RANDOM), (gain, RANDOM), (recipe, GAIN)):  # predicts nothing, and has no end
        with pytest.raises(UsageError):
            checked_end(wrong, strategy, None)


@pytest.mark.parametrize(
    ("section", "settings", "field"),
    [
        ("design", {"order": "interleaved"}, "order"),
        ("design", {"order": "interleaved:5", "block": 4}, "effective echo"),
        ("constraints", {"forbid": "1-4", "require": "4"}, "constraints"),
        ("constraints", {"forbid": "nine"}, "recipe: constraints.forbid"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_before_any_scan(
    section: str, settings: dict[str, object], field: str
) -> None:
    with refused(field):
        checked_end(Recipe().replacing(section, **settings), GAIN, 12)


def test_orders_that_break_short_jumps_are_refused() -> None:
    jumps = Recipe().replacing("constraints", max_jump=4)
    for order, fine in (("as-chosen", True), ("ascending", True), ("centre-out", False), ("interleaved", False)):
        recipe = jumps.replacing("design", order=order, block=4)
        if fine:
            checked_end(recipe, GAIN, 12)
        else:
            with refused("order"):
                checked_end(recipe, GAIN, 12)


def test_trains_are_as_long_as_blocks() -> None:
    recipe = Recipe().replacing("design", block=3, order="interleaved")
    made = in_acquisition_order(range(9), LineReadouts((16, 16)), recipe)
    assert made is not None and [len(t) for t in made.trains] == [3, 3, 3]
    longer = recipe.replacing("design", block=5, order="interleaved:1")
    made = in_acquisition_order(range(2, 12), LineReadouts((16, 16)), longer)
    assert made is not None and [len(t) for t in made.trains] == [5, 5] and made.dc_echo == 1


def test_samples_of_a_plane_have_trains_only_in_an_order() -> None:
    plane = PlaneReadouts((8, 8))
    recipe = Recipe().replacing("design", encoding="plane", block=4)
    assert in_acquisition_order(range(9), plane, recipe) is None
    trains = recipe.replacing("design", order="centre-out", block=3)
    made = in_acquisition_order(range(20, 32), plane, trains)
    assert made is not None and [len(t) for t in made.trains] == [3] * 4
    assert checked_end(trains, make_strategy("calibrated", "plane"), 20) is None
    with refused("order"):
        checked_end(PLANE.replacing("design", order="interleaved"), GAIN, 20)
    spokes = trains.replacing("design", encoding="radial")
    with pytest.raises(UsageError):
        checked_end(spokes, GAIN, 20)


LINES = LineReadouts((64, 64))


def plan(strategy: Strategy = GAIN, start: int | None = None, **limits: object) -> DesignPlan:
    return DesignPlan.of(strategy, Recipe().replacing("constraints", **limits).replacing("design", start=start), LINES)


def test_starts_hold_what_is_forced_and_leave_both_sides_open() -> None:
    everything = np.ones(64, dtype=bool)
    assert len(plan(RANDOM, 10, require="3").start_lines(everything, 32)) == 11
    jumps = plan(max_jump=5)
    first = jumps.start_lines(everything, None)
    assert (jumps.start_count(32), len(first), jumps.rules.most_lines(everything, first)) == (4, 4, 64)
    assert plan(start=8, max_jump=5).start_count(32) == 8
    assert 31 not in plan(forbid="31").start_lines(everything, 32)
    for start, calibration in ((8, 0), (None, 8)):
        with refused("forced centre"):
            plan(start=start, forbid="31").start_lines(everything, 32, calibration)
    assert plan().start_count(24) == GAIN.default_start(LINES, 24)
    assert (plan(start=3).start_count(24), plan(start=3).start_count(24, calibration=12)) == (3, 12)
    learning = plan(make_strategy("calibrated"))
    assert [learning.start_count(24, *given) for given in ((0, 1), (0, 2), (0, 8), (12, 8))] == [8, 4, 2, 12]
    assert learning.start_count(64, 0, 8) == 4  # no plan that leaves nothing out
    with refused("start lines"):
        plan().start_count(24, calibration=32)
    assert plan(partial_fourier=0.5).rules.most_lines(everything, (32,)) == 32


def known(line: int, error: float, pending: int = 0) -> DesignStep:
    return design_step(line, expected=np.array([error**2]), image_energy=1 - error**2, pending=pending)


ENDED = DesignTrace("information-gain", 8, (4, 3), (known(6, 0.5), known(0, 0.25), known(1, 0.1, 1)))
RULE = StopRule(error=0.2)


def test_what_was_missed_is_what_can_no_longer_be_reached() -> None:
    start = DesignTrace("information-gain", 8, (4, 3))
    ended = replace(ENDED, closing=known(0, 0.21).forecast)
    hopeless = replace(ENDED, declined=changed(known(2, 0.4), least_error=0.3))
    everything = replace(ENDED, closing=replace(known(0, 0.21).forecast, least_error=0.21, recent_fall=0.0))
    for trace, how, target, missed in (
        (start, "never asked", "missed", False),
        (ENDED, "all measured", "missed", False),
        (ended, "all measured", "missed", False),
        (everything, "all measured", "missed", True),
        (hopeless, "stopped", "missed", True),
        (replace(ENDED, declined=known(2, 0.1)), "stopped", "met", False),
        (replace(start, declined=known(2, 0.1)), "stopped", "met at the start", False),
    ):
        end = DesignEnd.of(trace, RULE, 8, LINES)
        assert (end.how, end.target, end.missed) == (how, target, missed)
        assert [fact.code for fact in end.facts] == ["out of reach" if missed else "error"] * (trace is not start)
    shots = ShotReadouts((8, 8), np.zeros((2, 8, 2)), "radial")
    for trace, readouts, how in ((ENDED, LINES, ""), (start, LINES, "start alone"), (start, shots, "")):
        end = DesignEnd.of(trace, None, 8, readouts)
        assert (end.how, end.target, end.facts) == (how, "", ())


def test_what_falls_is_expected_to_reach_its_limit_as_it_fell_in_its_latter_half() -> None:
    errors = [(count, 4.0 / count**2) for count in range(10, 21)]
    assert expected_total(errors, 4.0 / 40**2, 128) == 40
    assert expected_total([(5, 0.001), *errors], 4.0 / 40**2, 128) == 40  # what began otherwise
    assert expected_total(errors, 4.0 / 40**2, 30) == 30 and expected_total(errors, 0.5, 128) == 21
    assert expected_total(errors, 1e-300, 128) == 128
    rising, unknown = [(1, 1.0), (2, 1.1)], [(1, float("nan")), (2, 0.5)]
    assert expected_total(rising, 0.1, 64) == expected_total(unknown, 0.1, 64) == expected_total([], 0.1, 64) == 64


def test_a_design_that_a_rule_ends_is_expected_to_end_where_its_error_or_gain_gets_there() -> None:
    steps = []
    for count in range(8, 24):
        share = (2.0 / count) ** 2  # of the energy expected
        left = np.full(8, share / 8)
        known = {"image_energy": 1 - share, "information": 64.0 / count, "tested": 4.0}
        steps.append(design_step(count, expected=left, **known))
    trace = DesignTrace("information-gain", 128, tuple(range(8)), tuple(steps))
    assert steps[-1].predicted_error == pytest.approx(2.0 / 23)
    assert lines_expected(trace, None, 100) == 100
    assert lines_expected(trace, StopRule(gain=1.0), 100) == 64
    assert lines_expected(trace, StopRule(error=0.04), 100) == 50
    assert lines_expected(trace, StopRule(gain=1.0, error=0.04), 100) == 50
    looked = replace(trace, steps=(*steps[:-1], changed(steps[-1], image_error=0.8 * steps[-1].predicted_error)))
    assert lines_expected(looked, StopRule(error=0.04, by_image=True), 100) == 40
