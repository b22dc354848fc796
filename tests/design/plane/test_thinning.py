"""Blocks of samples: the best, each lowering the scores of those that it tells of."""

import numpy as np
import pytest

from mri_design import DesignView, LineCandidates
from mri_design.design.blocks import block_by_scores, plane_of, thinned
from mri_design.design.strategy import NoUsableScoreError
from mri_design.readouts import PlaneReadouts
from tests.design.plane.conftest import measured_ids, plane_posterior
from tests.refusals import refused

PLANE = PlaneReadouts((8, 6))


def near(width: float) -> np.ndarray:
    """|rho|^2 that falls with the distance."""
    return np.exp(-np.sum(PLANE.frequencies**2, axis=1) / width**2).reshape(PLANE.grid)


def brute_force(scores: np.ndarray, squared: np.ndarray, count: int) -> list[int]:
    scores, chosen = scores.copy(), []
    for _ in range(count):
        best = int(np.nanargmax(scores))
        chosen.append(best)
        for other in range(PLANE.size):
            distance = (np.array(divmod(other, 6)) - divmod(best, 6)) % PLANE.grid
            place = tuple((distance + np.array(PLANE.grid) // 2) % PLANE.grid)
            scores[other] *= 1 - squared[place]
        scores[best] = np.nan
    return chosen


def test_thinning_is_what_it_says_one_sample_after_another() -> None:
    scores = np.random.default_rng(0).exponential(size=PLANE.size)
    assert thinned(scores, near(1.5), PLANE, 12) == brute_force(scores, near(1.5), 12)


def test_a_block_is_new_and_its_first_choice_speaks_for_all(make_view) -> None:
    acquired = measured_ids(16)
    view = make_view((plane_posterior(),), acquired)
    scores = np.random.default_rng(2).exponential(size=256)
    block = block_by_scores(scores, view, 20)
    lines = [choice.line for choice in block]
    assert len(set(lines)) == 20 and not set(lines) & set(acquired)
    assert block[0].scores is not None and all(choice.scores is None for choice in block[1:])
    assert lines[0] == int(np.nanargmax(block[0].scores))


def test_scores_that_are_all_nan_and_views_of_lines_are_refused(make_view) -> None:
    view = make_view((plane_posterior(),), measured_ids(16))
    with pytest.raises(NoUsableScoreError):
        block_by_scores(np.full(256, np.nan), view, 3)
    lines = DesignView(LineCandidates(np.ones(16, dtype=bool), (8,), 4))
    with refused("candidates"):
        plane_of(lines)


def test_lines_are_taken_by_their_scores_alone() -> None:
    scores = np.arange(16.0)
    scores[15], scores[3] = np.nan, 14.0
    lines = DesignView(LineCandidates(np.ones(16, dtype=bool), (8,), 5))
    assert [choice.line for choice in block_by_scores(scores, lines, 4)] == [3, 14, 13, 12]
