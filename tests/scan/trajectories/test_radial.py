"""Spokes: spacing, reach, direction."""

import numpy as np
import pytest

from mri_design import InputError, equispaced_angles, radial_spokes


@pytest.mark.parametrize("matrix", [16, 17])
def test_the_first_spoke_is_the_grids_own_line(matrix):
    spokes = radial_spokes(matrix, equispaced_angles(4))
    assert spokes.shape == (4, matrix, 2)
    np.testing.assert_array_equal(spokes[0], np.stack([np.zeros(matrix), np.arange(matrix) - matrix // 2], axis=1))
    np.testing.assert_allclose(spokes[2][:, 0], np.arange(matrix) - matrix // 2, atol=1e-14)


@pytest.mark.parametrize("oversampling", [1, 2, 3])
def test_oversampling_keeps_the_reach_and_narrows_the_steps(oversampling):
    spokes = radial_spokes(16, equispaced_angles(5), oversampling=oversampling)
    assert spokes.shape[1] == 16 * oversampling
    np.testing.assert_allclose(np.linalg.norm(np.diff(spokes, axis=1), axis=-1), 1 / oversampling)
    assert np.abs(spokes).max() == 8
    np.testing.assert_array_equal(spokes[:, 8 * oversampling], 0)


def test_spokes_from_the_centre_are_halves_of_diameters():
    angles = equispaced_angles(3)
    np.testing.assert_allclose(
        radial_spokes(16, angles, oversampling=2, centre_out=True), radial_spokes(16, angles, oversampling=2)[:, 16:]
    )


def test_bad_input():
    with pytest.raises(InputError, match="matrix"):
        radial_spokes(2, [0.0])
    with pytest.raises(InputError, match="oversampling"):
        radial_spokes(16, [0.0], oversampling=0)
    with pytest.raises(InputError, match="centre_out"):
        radial_spokes(16, [0.0], centre_out=1)
