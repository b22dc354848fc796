"""Sets that measure k and -k twice are found."""

import numpy as np
import pytest

from mri_design import equispaced_angles, interleaf_angles, nyquist_turns, radial_spokes, turned
from mri_design.scan.trajectories.point_spread import conjugate_coverage
from mri_design.scan.trajectories.spiral import spiral_curve

ARM = spiral_curve(64, nyquist_turns(64, 24), points=400)


def redundancy(count, spread):
    return conjugate_coverage(turned(ARM, interleaf_angles(count, spread))).redundancy


def test_an_even_number_of_spirals_over_the_full_turn_measures_everything_twice():
    assert redundancy(6, "full-turn") > 0.99
    for count, spread in ((6, "half-turn"), (6, "one-missing"), (5, "full-turn"), (7, "full-turn")):
        assert redundancy(count, spread) < 0.4, (count, spread)


def test_the_set_over_half_a_turn_covers_nearly_twice_as_much():
    cells = {
        spread: conjugate_coverage(turned(ARM, interleaf_angles(6, spread))).folded
        for spread in ("half-turn", "full-turn")
    }
    assert cells["half-turn"] > 1.5 * cells["full-turn"]


def test_diameters_measure_k_and_minus_k_each():
    spokes = radial_spokes(32, equispaced_angles(5))
    whole = conjugate_coverage(spokes)
    assert whole.redundancy > 0.9  # all but -N / 2, which has no partner
    half = conjugate_coverage(radial_spokes(32, equispaced_angles(5), centre_out=True))
    assert half.redundancy < 0.1
    assert half.folded == pytest.approx(whole.folded, rel=0.1)


def test_counts_by_hand():
    made = conjugate_coverage(np.array([[0.0, 0.1], [2.0, 1.0], [-2.0, -1.2], [3.0, 0.0], [3.2, 0.0]]))
    assert (made.cells, made.folded) == (4, 3)
    assert made.redundancy == pytest.approx(2 / 3)
    assert conjugate_coverage(np.zeros((3, 2))).redundancy == 0


def test_turning_a_set_keeps_its_redundancy_nearly():
    shots = turned(ARM, interleaf_angles(6))
    values = [conjugate_coverage(turned(shots.reshape(-1, 2), [angle])).redundancy for angle in (0.1, 0.4)]
    assert values[0] == pytest.approx(values[1], abs=0.1)
