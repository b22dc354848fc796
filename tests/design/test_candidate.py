import numpy as np
import pytest

from mri_design import InputError, LineCandidates, centre_lines
from tests.refusals import refused

ALL = np.ones(10, dtype=bool)


def test_what_remains_is_measurable_and_not_acquired() -> None:
    measurable = ALL.copy()
    measurable[[0, 9]] = False
    candidates = LineCandidates(measurable, (5, 4), 6, 2)
    assert np.flatnonzero(candidates.remaining).tolist() == [1, 2, 3, 6, 7, 8]
    assert np.flatnonzero(candidates.mask).tolist() == [4, 5]
    assert candidates.n_lines == 10


def test_after_a_line_it_is_acquired_and_the_rest_is_as_before() -> None:
    before = LineCandidates(ALL, (5,), 3, 1)
    after = before.after(7)
    assert after.acquired == (5, 7)
    assert not after.remaining[7]
    assert (after.target, after.n_start) == (3, 1)
    assert before.remaining[7]
    with refused("lines"):
        after.after(5)


@pytest.mark.parametrize(
    ("acquired", "target", "field", "wanted"),
    [
        ((3, 3), 5, "lines", "different line numbers from 0 to 9"),
        ((-1,), 5, "lines", "different line numbers from 0 to 9"),
        ((10,), 5, "lines", "different line numbers from 0 to 9"),
        ((0,), 5, "lines", "lines that hold data"),
        ((3, 4, 5), 2, "number of lines", "3 (start lines) to 9 (lines with data)"),
        ((3,), 10, "number of lines", "1 (start lines) to 9 (lines with data)"),
    ],
)
def test_impossible_states_are_refused(acquired: tuple[int, ...], target: int, field: str, wanted: str) -> None:
    measurable = ALL.copy()
    measurable[0] = False
    with pytest.raises(InputError) as caught:
        LineCandidates(measurable, acquired, target)
    assert (caught.value.field, caught.value.wanted) == (field, wanted)


@pytest.mark.parametrize(("n", "order"), [(8, (4, 3, 5, 2, 6, 1, 7, 0)), (7, (3, 2, 4, 1, 5, 0, 6))])
def test_centre_lines_go_outwards_from_dc(n: int, order: tuple[int, ...]) -> None:
    for count in range(1, n + 1):
        assert centre_lines(np.ones(n, dtype=bool), count) == order[:count]


@pytest.mark.parametrize("count", [0, -1, 9])
def test_more_centre_lines_than_exist_are_refused(count: int) -> None:
    with refused("start lines"):
        centre_lines(np.ones(8, dtype=bool), count)
