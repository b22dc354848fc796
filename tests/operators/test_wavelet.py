"""Wavelets: orthonormal where the grid divides, isometric everywhere, levels where they belong."""

import warnings

import numpy as np
import pytest

from mri_design import Wavelet


@pytest.mark.parametrize("name", ["haar", "db4", "sym5", "coif1"])
@pytest.mark.parametrize(("grid", "levels"), [((8, 8), 3), ((16, 8), 2), ((4, 12), 2)])
def test_orthonormal_where_the_levels_divide_the_grid(name, grid, levels):
    W = Wavelet(grid, name, levels, is_complex=False).to_dense()
    assert W.shape == (np.prod(grid), np.prod(grid))
    np.testing.assert_allclose(W.T @ W, np.eye(len(W)), atol=1e-10)


@pytest.mark.parametrize("name", ["haar", "db4"])
@pytest.mark.parametrize(
    ("grid", "levels", "padded"), [((9, 7), 2, (12, 8)), ((5, 6), 1, (6, 6)), ((13, 16), 3, (16, 16))]
)
def test_isometric_on_grids_that_do_not_divide(name, grid, levels, padded):
    operator = Wavelet(grid, name, levels)
    assert operator.out_shape == padded
    W = operator.to_dense()
    np.testing.assert_allclose(W.conj().T @ W, np.eye(W.shape[1]), atol=1e-10)


def test_levels_are_where_the_map_says_and_a_constant_is_coarse_alone():
    levels = Wavelet((16, 8), "db4", 2).level_map()
    assert levels.shape == (16, 8)
    assert np.bincount(levels.ravel()).tolist() == [4 * 2, 3 * 4 * 2, 3 * 8 * 4]
    assert (levels[:4, :2] == 0).all()
    assert (levels[8:] == 2).all() and (levels[:, 4:] == 2).all()
    operator = Wavelet((16, 16), "db4", 2)
    coefficients, levels = operator(np.ones((16, 16), dtype=complex)), operator.level_map()
    assert np.abs(coefficients[levels > 0]).max() < 1e-9
    np.testing.assert_allclose(coefficients[levels == 0], 4.0, rtol=1e-9)


def test_small_images_raise_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Wavelet((8, 8), "db4", 3)(np.ones((8, 8)))
