"""The compiled circulant filter against the library's transforms, over sizes, precisions and batches."""

import numpy as np
import pytest

from mri_design.model import circulant_inverse
from mri_design.operators.kernels.fft import filter_images, in_groups, suits_both
from tests.operators.noise import noise

ROUNDING = {np.complex64: 2e-6, np.complex128: 1e-14}
# Fours alone, a two, a three, a five and a seven among them, sides of different kinds, a last panel that is not full.
GRIDS = [(16, 16), (64, 16), (16, 128), (32, 48), (80, 64), (112, 16), (192, 64), (8, 64), (48, 320)]


def plain(images, response):
    return np.fft.ifft2(response * np.fft.fft2(images.astype(np.complex128)))


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid[0]}x{grid[1]}")
@pytest.mark.parametrize("batch", [(), (2, 2)], ids=str)
def test_images_are_filtered_as_by_the_library(dtype, grid, batch):
    images, response = noise((*batch, *grid), dtype, 1), np.random.default_rng(2).random(grid)
    kept = images.copy()
    assert suits_both(images.shape, images.dtype)
    found, expected = filter_images(images, in_groups(response, images.dtype)), plain(images, response)
    assert found.dtype == dtype and found.shape == images.shape
    assert np.abs(found - expected).max() <= ROUNDING[dtype] * np.abs(expected).max()
    np.testing.assert_array_equal(images, kept)


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize(
    ("small", "grid"), [((16, 16), (32, 32)), ((80, 16), (112, 80)), ((16, 64), (16, 128))], ids=str
)
def test_images_on_a_larger_grid_are_those_with_zeros_around(dtype, small, grid):
    images, response = noise((3, *small), dtype, 11), np.random.default_rng(12).random(grid)
    kept, padded = images.copy(), np.zeros((3, *grid), complex)
    padded[:, : small[0], : small[1]] = images
    expected = plain(padded, response)[:, : small[0], : small[1]]
    found = filter_images(images, in_groups(response, images.dtype), grid)
    assert found.dtype == dtype and found.shape == images.shape
    assert np.abs(found - expected).max() <= ROUNDING[dtype] * np.abs(expected).max()
    np.testing.assert_array_equal(images, kept)


def test_slices_of_larger_arrays_are_filtered_and_batches_have_the_bits_of_one():
    stack = noise((3, 16, 48), np.complex128, 4)
    images, response = stack[::2, :, ::3], np.arange(256.0).reshape(16, 16)
    np.testing.assert_allclose(
        filter_images(images, in_groups(response, images.dtype)), plain(images, response), atol=1e-10
    )
    images, response = noise((5, 32, 64), np.complex64, 5), in_groups(np.random.default_rng(6).random((32, 64)), "F")
    together = filter_images(images, response)
    for one, image in zip(together, images, strict=True):
        np.testing.assert_array_equal(filter_images(image, response), one)


@pytest.mark.parametrize("grid", [(9, 16), (16, 20), (17, 16), (64, 72), (1, 16), (44, 16), (176, 16)], ids=str)
def test_other_sizes_and_real_images_go_to_the_library(grid, monkeypatch):
    images = noise((2, *grid), np.complex64, 7)
    assert not suits_both(images.shape, images.dtype)
    assert not suits_both((16, 16), np.dtype(np.float32))
    monkeypatch.setattr("mri_design.operators.kernels.fft.filter_images", None)
    spectrum = 1 + np.random.default_rng(8).random(grid)
    expected = plain(images, 1 / spectrum)
    np.testing.assert_allclose(circulant_inverse(spectrum)(images), expected, atol=1e-5)
