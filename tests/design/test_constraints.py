from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    DesignEngine,
    DesignView,
    InformationGain,
    LineCandidates,
    Strategy,
)
from mri_design.readouts import LineConstraints, longest_walk, open_moves
from mri_design.variances import ControlVariate
from tests.design.conftest import make_slice
from tests.design.strategies.test_fixed import RULES
from tests.refusals import refused

ALL = np.ones(32, dtype=bool)
ASKED = {
    "forbidden": LineConstraints(forbidden=(0, 1, 14, 20, 31)),
    "required": LineConstraints(required=(3, 29), centre=4),
    "partial Fourier": LineConstraints(partial_fourier=0.7),
    "jumps": LineConstraints(max_jump=5),
    "everything": LineConstraints((9, 22), (12, 25), 2, 0.75, "positive", 4),
}


def finished(rule: Strategy, constraints: LineConstraints, target: int, seed: int = 0) -> LineCandidates:
    """A design by a rule that knows nothing of constraints."""
    start = constraints.start(ALL, 3)
    candidates = LineCandidates(ALL, start, target, len(start), constraints)
    for step in range(target - len(start)):
        choice = rule.choose(DesignView(candidates), np.random.default_rng([seed, step]))
        assert candidates.remaining[choice.line]
        candidates = candidates.after(choice.line)
    return candidates


@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: f"{rule.name}-{getattr(rule, 'draw', '')}-{getattr(rule, 'power', '')}"
)
def test_every_rule_obeys(rule: Strategy) -> None:
    for asked, seed, target in ((asked, *of) for asked in ASKED.values() for of in ((0, 12), (1, 15), (2, 18))):
        lines = finished(rule, asked, target, seed).acquired
        assert len(set(lines)) == target
        assert not set(lines) & set(asked.forbidden)
        assert set(lines) >= set(asked.needed(ALL))
        assert asked.allowed(32)[list(lines)].all()
        if asked.max_jump is not None:
            assert max(abs(b - a) for a, b in pairwise(lines)) <= asked.max_jump

    short = LineConstraints(max_jump=4)
    assert short.most_lines(ALL, short.start(ALL, 3)) == 32
    assert sorted(finished(rule, short, 32).acquired) == list(range(32))


@pytest.mark.parametrize("block", [1, 3])
def test_a_posterior_strategy_obeys(block: int) -> None:
    one = make_slice()
    asked = LineConstraints(forbidden=(4, 10), required=(13,), max_jump=6)
    start = asked.start(one.measured, 3)
    engine = DesignEngine(InformationGain(), md.DoubleLoop(ControlVariate(4)), block=block, constraints=asked)
    trace = engine.run([one], engine.begin([one], start), 12).trace
    assert len(set(trace.lines)) == 12 and not {4, 10} & set(trace.lines)
    assert max(abs(b - a) for a, b in pairwise(trace.lines)) <= 6
    for step in trace.steps:
        assert step.choice.scores is not None and np.isnan(step.choice.scores[[4, 10]]).all()


def test_an_engine_refuses_a_start_that_breaks_its_constraints() -> None:
    one = make_slice()
    engine = DesignEngine(InformationGain(), constraints=LineConstraints(forbidden=(7,)))
    with refused("lines"):
        engine.run([one], engine.begin([one], (8, 7)), 5)


@pytest.mark.parametrize(
    ("n", "share", "half", "first", "last"),
    [
        (16, 0.75, "positive", -4, 7),
        (16, 0.75, "negative", -8, 4),
        (16, 0.5, "positive", 0, 7),
        (16, 0.5, "negative", -8, 0),
        (15, 0.6, "positive", -1, 7),
        (256, 0.625, "positive", -32, 127),
        (16, 1.0, "negative", -8, 7),
    ],
)
def test_partial_fourier_keeps_one_half_and_a_band_about_dc(
    n: int, share: float, half: str, first: int, last: int
) -> None:
    kept = LineConstraints(partial_fourier=share, whole_half=half).allowed(n)  # type: ignore[arg-type]
    k = np.flatnonzero(kept) - n // 2
    assert (k[0], k[-1], len(k)) == (first, last, last - first + 1)


def test_needed_lines_go_outwards_and_start_the_design() -> None:
    asked = LineConstraints(required=(30, 3, 16), centre=3)
    assert asked.needed(ALL) == (16, 15, 17, 3, 30)
    assert asked.start(ALL, 4) == (16, 15, 17, 14, 3, 30)


def test_with_short_jumps_the_start_is_a_walk_that_leaves_most_open() -> None:
    asked = LineConstraints(required=(20,), max_jump=3)
    start = asked.start(ALL, 2)
    assert start == (15, 16, 19, 20) or start == (20, 19, 16, 15)
    assert asked.most_lines(ALL, start) == max(asked.most_lines(ALL, o) for o in (start, start[::-1]))
    lopsided = ALL.copy()
    lopsided[20:] = False
    assert LineConstraints(max_jump=2).start(lopsided, 4) == (17, 16, 15, 14)  # most lines lie below


def test_forbidden_lines_at_the_centre_are_left_out_unless_they_are_forced() -> None:
    asked = LineConstraints(forbidden=(15,))
    assert asked.start(ALL, 3) == (16, 17, 14)
    with refused("forced centre"):
        asked.start(ALL, 3, forced=3)
    with refused("forced centre"):
        LineCandidates(ALL, (16,), 5, 1, LineConstraints(forbidden=(15,), centre=2))


def empty_start(*asked: object, **limits: object) -> Callable[[], object]:
    return lambda: LineConstraints(*asked, **limits).start(ALL, 1)


def candidates(acquired: tuple[int, ...], target: int, **limits: object) -> Callable[[], object]:
    return lambda: LineCandidates(ALL, acquired, target, len(acquired), LineConstraints(**limits))


NO_DATA = ALL.copy()
NO_DATA[3] = False


@pytest.mark.parametrize(
    ("contradiction", "field"),
    [
        (lambda: LineConstraints((3, 4), (4,)), "constraints"),
        (lambda: LineConstraints((True,)), "forbidden lines"),
        (lambda: LineConstraints(""), "forbidden lines"),
        (lambda: LineConstraints("3"), "forbidden lines"),
        (lambda: LineConstraints(partial_fourier=0.4), "partial Fourier"),
        (lambda: LineConstraints(partial_fourier=float("nan")), "partial Fourier"),
        (lambda: LineConstraints(max_jump=0), "max_jump"),
        (lambda: LineConstraints(centre=-1), "forced centre"),
        (lambda: LineConstraints(whole_half="left"), "whole half"),
        (empty_start((32, 40)), "forbidden lines"),
        (empty_start((3, 16)), "forbidden lines"),
        (empty_start((), (-1,)), "required lines"),
        (empty_start(tuple(range(32))), "constraints"),
        (empty_start((), (1,), 0, 0.5), "required lines"),
        (empty_start(centre=4, partial_fourier=0.5), "forced centre"),
        (empty_start(tuple(range(18, 22)), (25,), max_jump=3), "max_jump"),
        (lambda: LineConstraints(required=(3,)).start(NO_DATA, 2), "required lines"),
        (candidates((16,), 17, partial_fourier=0.5), "number of lines"),
        (candidates((16,), 18, max_jump=1), "number of lines"),
        (candidates((14, 15, 16, 17, 18), 20, max_jump=3), "number of lines"),
        (candidates((), 33, max_jump=1), "number of lines"),
        (candidates((16,), 5, required=(3,)), "required lines"),
        (candidates((16, 20), 5, max_jump=3), "max_jump"),
    ],
)
def test_contradictions_are_refused_at_once(contradiction: Callable[[], object], field: str) -> None:
    with refused(field):
        contradiction()


def by_search(current: int, free: frozenset[int], jump: int) -> int:
    """The longest walk, every one tried."""
    near = [line for line in free if abs(line - current) <= jump]
    return max((1 + by_search(line, free - {line}, jump) for line in near), default=0)


@pytest.mark.slow
def test_the_longest_walk_is_that_of_an_exhaustive_search() -> None:
    rng = np.random.default_rng(0)
    for _ in range(1500):
        n, jump = int(rng.integers(3, 14)), int(rng.integers(1, 6))
        current = int(rng.integers(n))
        free = sorted(set(np.flatnonzero(rng.random(n) < 0.6).tolist()[:9]) - {current})
        found = longest_walk(current, free, jump)
        assert found == by_search(current, frozenset(free), jump), (current, free, jump)


def test_open_moves_never_lead_to_a_dead_end() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        free = rng.random(24) < 0.7
        jump = int(rng.integers(1, 5))
        starts = np.flatnonzero(open_moves(None, free, jump, 5))
        if not len(starts):
            continue
        line, wanted = int(rng.choice(starts)), 5
        while wanted > 1:
            free[line] = False
            wanted -= 1
            moves = np.flatnonzero(open_moves(line, free, jump, wanted))
            assert len(moves) and np.all(np.abs(moves - line) <= jump)
            line = int(rng.choice(moves))
