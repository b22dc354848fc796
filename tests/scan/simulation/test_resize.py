"""Fitting images to the scan matrix."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.simulation.scanner import fit_to_matrix, fitted_geometry


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


@pytest.mark.parametrize(("shape", "matrix"), [((6, 5), (12, 10)), ((12, 9), (8, 6)), ((6, 10), 5), ((7, 4), None)])
def test_a_bright_spot_stays_where_it_was(shape: tuple[int, int], matrix: int | tuple[int, int] | None) -> None:
    rows, columns = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij")
    place = SliceGeometry((1.5, 2.0), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    spot = np.exp(-((rows - shape[0] / 2 + 0.2) ** 2 + (columns - shape[1] / 2 - 0.1) ** 2) / 1.5)
    fitted = fit_to_matrix(spot[np.newaxis], matrix)[0]
    found = []
    for image, geometry in ((spot, place), (fitted, fitted_geometry(place, shape, matrix))):
        middle = [np.average(np.arange(n), weights=image.sum(axis=1 - k)) for k, n in enumerate(image.shape)]
        corner = geometry.first_pixel((image.shape[0], image.shape[1]))
        found.append(np.add(corner[:2], [middle[1] * geometry.pixel[1], middle[0] * geometry.pixel[0]]))
    np.testing.assert_allclose(found[0], found[1], atol=0.25)
