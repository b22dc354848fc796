"""Fitting images to the scan matrix."""

import numpy as np
import pytest

from mri_design.errors import InputError
from mri_design.scan.simulation.resize import fit_to_matrix


def test_no_matrix_leaves_the_images_alone():
    images = np.random.default_rng(0).random((2, 9, 7)).astype(np.float32)
    np.testing.assert_array_equal(fit_to_matrix(images, None), images)
    np.testing.assert_array_equal(fit_to_matrix(images, (9, 7)), images)


@pytest.mark.parametrize(("shape", "matrix"), [((49, 42), 49), ((40, 61), (80, 61)), ((31, 31), (31, 44))])
def test_padding_keeps_every_pixel_and_the_centre(shape, matrix):
    images = np.zeros((1, *shape))
    images[0, shape[0] // 2, shape[1] // 2] = 5
    images[0, 0, 0] = 3
    fitted = fit_to_matrix(images, matrix)
    assert fitted[0, fitted.shape[1] // 2, fitted.shape[2] // 2] == 5
    assert fitted.sum() == 8


def test_shapes_stay_in_proportion():
    square = np.zeros((1, 120, 90))
    square[0, 30:90, 15:75] = 1  # 60 x 60
    rows, columns = np.nonzero(fit_to_matrix(square, (64, 64))[0] > 0.5)
    assert np.ptp(rows) == np.ptp(columns) == 31


def test_detail_beyond_the_matrix_does_not_alias():
    stripes = np.tile([[1.0], [0.0], [0.0]], (64, 192))[None]  # three rows a cycle: beyond 64 rows' reach
    fitted = fit_to_matrix(stripes, 64)[0]
    assert np.abs(fitted[4:-4] - 1 / 3).max() < 0.05  # picking rows would be off by 0.33
    fine = np.tile([[1.0], [0.0]], (96, 192))[None]
    assert np.ptp(fit_to_matrix(fine, 80)[0, 4:-4]) < 0.2 < np.ptp(fine)


def test_complex_images_keep_real_and_imaginary_parts():
    rng = np.random.default_rng(1)
    images = rng.random((2, 40, 30)) + 1j * rng.random((2, 40, 30))
    fitted = fit_to_matrix(images, (16, 24))
    np.testing.assert_allclose(fitted.real, fit_to_matrix(images.real, (16, 24)))
    np.testing.assert_allclose(fitted.imag, fit_to_matrix(images.imag, (16, 24)))


def test_wrong_matrix_is_refused():
    with pytest.raises(InputError, match="matrix"):
        fit_to_matrix(np.ones((1, 8, 8)), (8, 0))
    with pytest.raises(InputError, match="images"):
        fit_to_matrix(np.ones((1, 3, 8)), None)
