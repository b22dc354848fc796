"""Arrays in other conventions are recognised by what they look like."""

import numpy as np
import pytest

from mri_design import equispaced_angles, radial_spokes
from mri_design.operators import checked_trajectory, look_of_trajectory
from tests.refusals import refused

SHAPE = (64, 64)
SPOKES = radial_spokes(64, equispaced_angles(7), oversampling=2)


@pytest.mark.parametrize(
    ("trajectory", "shape", "convention"),
    [
        (SPOKES, SHAPE, "cycles per field of view"),
        (SPOKES.astype(np.float32), SHAPE, "cycles per field of view"),
        (SPOKES / 64, SHAPE, "cycles per pixel"),
        (SPOKES / 64 * 2 * np.pi, SHAPE, "radians per pixel"),
        (SPOKES / 32, SHAPE, "fractions of the largest frequency"),
        (SPOKES / 0.24, SHAPE, "cycles per metre"),
        (SPOKES / 0.24 * 2 * np.pi, SHAPE, "radians per metre"),
        (2 * SPOKES, SHAPE, "cycles per field of view of a larger grid"),
        (SPOKES * [0.5, 1.0], (64, 32), "swapped columns"),
        (SPOKES * [0.5, 1.0], (32, 64), "cycles per field of view"),
        (np.moveaxis(SPOKES, -1, 0), SHAPE, "coordinates on the first axis"),
        (np.zeros((3, 128, 7)), SHAPE, "coordinates on the first axis"),
        (np.zeros((3, 128, 7), complex), SHAPE, "coordinates on the first axis"),
        (SPOKES[..., 1] + 1j * SPOKES[..., 0], SHAPE, "complex kx + i ky"),
        (np.zeros((7, 128, 3)), SHAPE, "three columns"),
        (np.zeros((7, 128)), SHAPE, "unknown"),
    ],
)
def test_looks_and_refusals(trajectory, shape, convention):
    look = look_of_trajectory(trajectory, shape)
    assert look.convention == convention
    if convention == "cycles per field of view":
        assert not look.cure
        np.testing.assert_array_equal(checked_trajectory(trajectory, shape), trajectory)
        return
    with refused("trajectory") as caught:
        checked_trajectory(trajectory, shape)
    assert caught.value.cure == look.cure


def test_without_a_grid_only_the_layout_is_looked_at():
    assert checked_trajectory(SPOKES / 64).dtype == np.float64
    assert checked_trajectory([[1, 2]]).tolist() == [[1.0, 2.0]]
