"""The compiled Gram of Cartesian lines against the plain transform, over sizes, precisions, coils and batches."""

import pickle

import numpy as np
import pytest

from mri_design import cartesian
from mri_design.operators.kernels.fft import filter_lines, in_strips, suits
from tests.operators.noise import noise

ROUNDING = {np.complex64: 2e-6, np.complex128: 1e-14}


def plain(u, mask, maps):
    def one_coil(v):
        return np.fft.ifft(mask[:, None] * np.fft.fft(v, axis=-2), axis=-2)

    u = u.astype(np.complex128)
    if maps is None:
        return one_coil(u)
    return sum(s.conj() * one_coil(s * u) for s in maps.astype(np.complex128))


# Fours alone, a two at the end and in the middle, every other radix, last strips whole and overlapping.
GRIDS = [(4, 8), (2, 9), (3, 8), (8, 40), (16, 33), (96, 12), (9, 17), (60, 8), (7, 65), (13, 10), (22, 8), (64, 64)]


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid[0]}x{grid[1]}")
@pytest.mark.parametrize(("batch", "coils"), [((), 0), ((3,), 1), ((2, 2), 3)], ids=str)
def test_lines_are_filtered_as_by_the_plain_transform(dtype, grid, batch, coils):
    u, mask = noise((*batch, *grid), dtype, 1), np.random.default_rng(2).random(grid[0])
    maps = noise((coils, *grid), dtype, 3) if coils else None
    assert suits(grid, u.dtype)
    found = filter_lines(u, mask, None if maps is None else in_strips(maps, u.dtype))
    expected = plain(u, mask, maps)
    assert found.dtype == dtype
    assert np.abs(found - expected).max() <= ROUNDING[dtype] * np.abs(expected).max()


def test_slices_of_larger_arrays_are_filtered_and_batches_have_the_bits_of_one():
    stack = noise((3, 16, 48), np.complex128, 4)
    u, mask = stack[::2, :, ::3], np.arange(16.0)
    np.testing.assert_allclose(filter_lines(u, mask, None), plain(u, mask, None), atol=1e-12)
    u, maps = noise((5, 32, 40), np.complex64, 7), noise((4, 32, 40), np.complex64, 8)
    for X in (cartesian([1, 5, 16], (32, 40)), cartesian([1, 5, 16], (32, 40), maps)):
        together = X.gram(u)
        assert all((X.gram(one) == image).all() for one, image in zip(u, together, strict=True))


@pytest.mark.parametrize("grid", [(1, 8), (17, 8), (34, 16), (8, 3)], ids=str)
def test_sizes_it_does_not_know_go_to_the_library(grid):
    assert not suits(grid, np.dtype(np.complex64))
    u, maps, lines = noise((2, *grid), np.complex64, 5), noise((2, *grid), np.complex64, 6), [0, grid[0] // 2]
    X = cartesian(sorted(set(lines)), grid, maps)
    expected = X.adjoint(X(u))
    np.testing.assert_allclose(X.gram(u), expected, atol=1e-5 * np.abs(expected).max())


# compiled, and by the library
@pytest.mark.parametrize(
    ("grid", "coils", "batch"), [((16, 24), 0, (2,)), ((16, 24), 3, (2, 2)), ((17, 8), 0, ()), ((17, 8), 3, (2,))]
)
def test_rotated_lines_are_as_far_from_the_rotated_data(grid, coils, batch):
    maps = noise((coils, *grid), np.complex128, 1) if coils else None
    X = cartesian([3, 9, 0, 14], grid, maps)
    u, y = noise((*batch, *grid), np.complex128, 2), noise((*batch, *X.out_shape), np.complex128, 3)
    Q, rotated = X.rotated(y)
    assert Q.out_shape == X.out_shape and Q.rotated(rotated) == (Q, rotated)
    axes = tuple(range(-3, 0))
    np.testing.assert_allclose(np.linalg.norm(rotated - Q(u), axis=-1), np.linalg.norm(y - X(u), axis=-1), rtol=1e-12)
    np.testing.assert_allclose(Q.adjoint(rotated), X.adjoint(y), atol=1e-12)
    np.testing.assert_allclose(Q.gram(u), X.adjoint(X(u)), atol=1e-10)
    np.testing.assert_allclose(
        np.sum(np.conj(rotated) * Q(u), axis=axes), np.sum(np.conj(Q.adjoint(rotated)) * u, axis=(-2, -1)), rtol=1e-10
    )


def test_rotated_lines_keep_single_precision_and_travel_without_what_is_made_again():
    X = cartesian([3, 9], (16, 24), noise((2, 16, 24), np.complex64, 1))
    Q, rotated = X.rotated(noise(X.out_shape, np.complex64, 2))
    assert rotated.dtype == Q(noise((16, 24), np.complex64, 3)).dtype == Q.adjoint(rotated).dtype == np.complex64
    assert Q.gram is X.gram
    X = cartesian([3, 9], (16, 24), noise((2, 16, 24), np.complex64, 1))
    alone = len(pickle.dumps(X))
    u = noise((2, 16, 24), np.complex64, 3)
    expected = X.gram(u)
    X.circulant_spectrum()
    Q, _ = X.rotated(noise(X.out_shape, np.complex64, 2))
    assert len(pickle.dumps(X)) == alone and len(pickle.dumps(Q)) < 1.1 * alone
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(X)).gram(u), expected)
