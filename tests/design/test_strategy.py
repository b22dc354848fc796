import numpy as np
import pytest

from mri_design import LineCandidates, MriDesignError
from mri_design.design.strategy import NoUsableScoreError, best_line

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
    with pytest.raises(NoUsableScoreError):
        best_line(np.full(6, bad), CANDIDATES)
    with pytest.raises(MriDesignError):
        best_line(scores(3, bad, bad, 3, bad, bad), CANDIDATES)
