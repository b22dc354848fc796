"""Candidates, the choice of the best of them, and when coil maps are made anew from those measured."""

from itertools import pairwise

import numpy as np
import pytest

from mri_design import MriDesignError
from mri_design.design import LineCandidates, best_line, map_lines
from mri_design.readouts import centre_lines
from tests.refusals import refused

ALL = np.ones(10, dtype=bool)


def test_what_remains_is_measurable_and_not_acquired() -> None:
    measurable = ALL.copy()
    measurable[[0, 9]] = False
    before = LineCandidates(measurable, (5, 4), 6, 2)
    assert np.flatnonzero(before.remaining).tolist() == [1, 2, 3, 6, 7, 8]
    assert np.flatnonzero(before.mask).tolist() == [4, 5]
    after = before.after(7)
    assert (after.acquired, after.target, after.n_start) == ((5, 4, 7), 6, 2)
    assert not after.remaining[7] and before.remaining[7]
    with refused("lines"):
        after.after(5)


@pytest.mark.parametrize(
    ("acquired", "target", "field"),
    [
        *((lines, 5, "lines") for lines in ((3, 3), (-1,), (10,), (0,))),
        *((lines, target, "number of lines") for lines, target in (((3, 4, 5), 2), ((3,), 10))),
    ],
)
def test_impossible_states_are_refused(acquired: tuple[int, ...], target: int, field: str) -> None:
    measurable = ALL.copy()
    measurable[0] = False
    with refused(field):
        LineCandidates(measurable, acquired, target)


@pytest.mark.parametrize(("n", "order"), [(8, (4, 3, 5, 2, 6, 1, 7, 0)), (7, (3, 2, 4, 1, 5, 0, 6))])
def test_centre_lines_go_outwards_from_dc(n: int, order: tuple[int, ...]) -> None:
    for count in range(1, n + 1):
        assert centre_lines(np.ones(n, dtype=bool), count) == order[:count]
    for count in (0, -1, n + 1):
        with refused("start lines"):
            centre_lines(np.ones(n, dtype=bool), count)


CANDIDATES = LineCandidates(np.array([False, True, True, True, True, True]), (3,), 4)


def scores(*values: float) -> np.ndarray:
    return np.array(values)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ((0, 1, 5, 2, 3, 4), 2),
        ((99, 1, 2, 99, 0, 0), 2),  # acquired and unmeasurable lines never win
        ((7, 1, 4, 7, 4, 4), 2),  # ties go to the lowest line
        ((0,) * 6, 1),
        ((-1e300,) * 6, 1),  # very low scores still win over nothing
        *(((0, bad, bad, 0, -5, bad), 4) for bad in (np.nan, -np.inf, np.inf)),
    ],
)
def test_the_largest_score_of_a_candidate_wins(values: tuple[float, ...], line: int) -> None:
    assert best_line(scores(*values), CANDIDATES).line == line


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_without_a_finite_score_there_is_an_error_instead_of_line_zero(bad: float) -> None:
    for values in (np.full(6, bad), scores(3, bad, bad, 3, bad, bad)):
        with pytest.raises(MriDesignError):
            best_line(values, CANDIDATES)


@pytest.mark.parametrize("start", [1, 2, 4, 8, 24])
def test_maps_rest_on_lines_that_are_measured_and_are_renewed_ever_later(start: int) -> None:
    known = [map_lines(start, count) for count in range(start, 200)]
    assert known[0] == start and all(lines <= start + place for place, lines in enumerate(known))
    renewals = sorted(set(known))
    assert all(later - before <= 16 for before, later in pairwise(renewals)) and len(renewals) < 20
    assert all(start + place - lines < 16 for place, lines in enumerate(known))


def test_the_first_maps_of_a_design_of_24_lines() -> None:
    assert sorted({map_lines(4, count) for count in range(4, 25)}) == [4, 6, 9, 14, 21]
