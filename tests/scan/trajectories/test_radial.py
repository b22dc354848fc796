"""Spokes: spacing, reach, direction."""

import numpy as np
import pytest

from mri_design import equispaced_angles, golden_angles, interleaf_angles, radial_spokes, turned
from tests.refusals import refused


@pytest.mark.parametrize("matrix", [16, 17])
def test_the_first_spoke_is_the_grids_own_line(matrix):
    spokes = radial_spokes(matrix, equispaced_angles(4))
    assert spokes.shape == (4, matrix, 2)
    np.testing.assert_array_equal(spokes[0], np.stack([np.zeros(matrix), np.arange(matrix) - matrix // 2], axis=1))
    np.testing.assert_allclose(spokes[2][:, 0], np.arange(matrix) - matrix // 2, atol=1e-14)


def test_bad_input():
    with refused("matrix"):
        radial_spokes(2, [0.0])
    with refused("oversampling"):
        radial_spokes(16, [0.0], oversampling=0)
    with refused("centre_out"):
        radial_spokes(16, [0.0], centre_out=1)


@pytest.mark.parametrize(
    ("tiny", "degrees"),
    [(1, 111.2461), (2, 68.7539), (3, 49.7508), (4, 38.9776), (5, 32.0397), (6, 27.1984), (7, 23.6281)],
)
def test_tiny_golden_angles_are_those_of_the_paper(tiny, degrees):
    assert np.rad2deg(golden_angles(2, tiny=tiny)[1]) == pytest.approx(degrees, abs=1e-4)
    assert np.rad2deg(golden_angles(2, tiny=tiny, turn=2 * np.pi)[1]) == pytest.approx(2 * degrees, abs=2e-4)


@pytest.mark.parametrize("tiny", [1, 2, 7])
def test_any_run_of_a_fibonacci_number_of_golden_angles_leaves_two_or_three_gaps(tiny):
    """The three-distance theorem, which is what makes any run nearly even."""
    for count in (34, 55):
        run = np.sort(golden_angles(count + 5, tiny=tiny)[5:] % np.pi)
        gaps = np.diff(np.append(run, run[0] + np.pi))
        kinds = np.unique(np.round(gaps, 9))
        assert len(kinds) <= 3
        assert gaps.max() < 2.7 * np.pi / count


@pytest.mark.parametrize(
    ("spread", "count", "step"), [("half-turn", 6, 30), ("full-turn", 6, 60), ("one-missing", 6, 360 / 7)]
)
def test_spreads(spread, count, step):
    np.testing.assert_allclose(np.rad2deg(interleaf_angles(count, spread)), step * np.arange(count))


def test_turning_goes_from_kx_to_ky():
    shot = np.array([[0.0, 3.0], [1.0, 0.0]])
    there = turned(shot, [0.0, np.pi / 2])
    np.testing.assert_allclose(there[0], shot)
    np.testing.assert_allclose(there[1], [[3.0, 0.0], [0.0, -1.0]], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(turned(shot, [0.3]), axis=-1), [[3.0, 1.0]])


def test_bad_angles():
    with refused("count"):
        equispaced_angles(0)
    with refused("turn"):
        equispaced_angles(3, turn=0.0)
    with refused("tiny"):
        golden_angles(3, tiny=0)
    with refused("spread"):
        interleaf_angles(3, "quarter-turn")
    with refused("shot"):
        turned(np.zeros((2, 3, 2)), [0.0])
    with refused("angles"):
        turned(np.ones((3, 2)), [np.nan])
