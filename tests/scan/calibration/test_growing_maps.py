"""Coil maps from the lines measured so far."""

import numpy as np
import pytest

from mri_design import load_input
from mri_design.errors import InputError
from mri_design.scan.calibration.growing_maps import MapEstimate, maps_from_lines


@pytest.fixture(scope="module")
def head():
    """16 coils of a raw head, (coil, ky, kx)."""
    return load_input("phantom:head-16ch").kspace[0, :6, 32:96, 32:96]


def test_maps_rest_on_measured_lines_alone(head):
    measured = np.zeros(64, dtype=bool)
    measured[[12, 20, *range(28, 37), 44, 50]] = True
    poisoned = np.where(measured[:, None], head, np.nan)
    maps = maps_from_lines(poisoned, measured).maps
    assert np.isfinite(maps).all()
    np.testing.assert_array_equal(maps, maps_from_lines(head, measured).maps)


def test_maps_have_unit_root_sum_of_squares_and_say_what_they_rest_on(head):
    measured = np.zeros(64, dtype=bool)
    measured[[18, *range(24, 40), 46]] = True
    estimate = maps_from_lines(head, measured)
    np.testing.assert_allclose(np.linalg.norm(estimate.maps, axis=0), 1, atol=1e-5)
    assert estimate.centre == 16
    assert estimate.lines == 18
    assert "16 gapless centre lines" in estimate.text


def test_prediction_error_is_said_where_lines_could_be_held_back():
    maps = np.ones((1, 2, 2), np.complex64)
    assert "error of 21%" in MapEstimate(maps, "completed", 8, 14, 37, 0.21).text
    assert "error" not in MapEstimate(maps, "completed", 8, 14, 37).text


def test_too_small_a_centre_is_refused(head):
    measured = np.zeros(64, dtype=bool)
    measured[30:35] = True
    with pytest.raises(InputError, match="at least 8"):
        maps_from_lines(head, measured)
