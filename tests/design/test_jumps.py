import numpy as np
import pytest

from mri_design.design.constraints import longest_walk, open_moves


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


@pytest.mark.parametrize(("jump", "found"), [(1, 5), (2, 9), (9, 9)])
def test_a_loop_on_one_side_needs_jumps_over_a_line(jump: int, found: int) -> None:
    assert longest_walk(4, [0, 1, 2, 3, 5, 6, 7, 8, 9], jump) == found


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


def test_a_move_that_strands_the_walk_is_closed() -> None:
    free = np.array([True, True, False, True, True, True, True])
    free[3] = False  # the walk stands there
    assert np.flatnonzero(open_moves(3, free, 2, 1)).tolist() == [1, 4, 5]
    assert np.flatnonzero(open_moves(3, free, 2, 3)).tolist() == [4, 5]  # line 1 leads to line 0 and no further
    assert not open_moves(3, free, 2, 6).any()
