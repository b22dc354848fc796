"""Compiled loops against NumPy, PyWavelets and plain transforms, in every precision, on sizes that fill no register."""

import numpy as np
import pytest
import pywt

from mri_design.model import circulant_inverse
from mri_design.operators import FiniteDifferences, Wavelet, cartesian, squared_modulus
from mri_design.operators.fourier import SpectralFilter
from mri_design.operators.kernels.compiling import COUNT
from mri_design.operators.kernels.fft import filter_lines, in_strips, suits, suits_both
from mri_design.operators.kernels.pixels import (
    mean_squares,
    pulled,
    relax,
    split,
)
from tests.arrays import noise

ROUNDING = {"f": 1e-5, "F": 1e-5, "d": 1e-13, "D": 1e-13}


def near(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for the rounding of what was found, whose type the expected array has."""
    assert found.dtype == expected.dtype
    rounding = ROUNDING[found.dtype.char]
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (2, 5, 13)], ids=str)
def test_squared_moduli(shape, dtype):
    s = noise(shape, dtype, 0)
    found = squared_modulus(s)
    assert found.dtype == s.real.dtype
    for one, of in ((found, s), (squared_modulus(s[..., ::2]), s[..., ::2])):
        np.testing.assert_allclose(one, np.abs(of) ** 2, rtol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(3,), (2, 9, 7), (1500,)])
def test_mean_squares_of_what_is_left_of_draws(shape, dtype):
    draws, known = noise((2, 5, *shape), dtype, 0)
    for fraction in (np.random.default_rng(1).random(shape), np.array(0.4)):
        found = mean_squares(draws, known, fraction)
        assert found.dtype == draws.real.dtype
        expected = np.mean(np.abs(draws - fraction * known) ** 2, axis=0)
        np.testing.assert_allclose(found, expected, rtol=ROUNDING[dtype])


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(3,), (2, 9, 7), (1500,)])
def test_both_halves_of_an_admm_step(shape, dtype):
    given, copies, scaled = noise((3, *shape), dtype, 0)
    before, expected = copies.copy(), scaled + 1.7 * given - 0.7 * copies
    powers = relax(given, copies, scaled, 1.7)
    near(scaled, expected)
    near(powers, np.abs(expected) ** 2)
    factor = np.random.default_rng(1).random(shape).astype(powers.dtype)
    as_given = given.copy()
    norms = split(given, copies, scaled, factor, 0.3)
    near(copies, factor * expected)
    near(scaled, (1 - factor) * expected)
    near(given, 0.3 * (copies - scaled))
    np.testing.assert_array_equal(given, pulled(copies, scaled, 0.3))
    wanted = [np.sum(np.abs(v) ** 2) for v in (as_given - copies, copies - before, as_given, copies, scaled)]
    np.testing.assert_allclose(norms, wanted, rtol=10 * ROUNDING[dtype])


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("height", [1, 2, 5])
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_both_ways_on_rows_shorter_and_longer_than_a_register(dtype, height, batch):
    in_a_register = COUNT[np.dtype(dtype.lower()).itemsize]
    for width in range(1, 2 * in_a_register + 3):
        u = noise((*batch, height, width), dtype, width)
        found = FiniteDifferences((height, width), is_complex=dtype in "FD")(u)
        expected = np.stack([np.roll(u, -1, -2) - u, np.roll(u, -1, -1) - u], -3)
        assert found.dtype == u.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"width {width}")
        v = noise((*batch, 2, height, width), dtype, width)
        found = FiniteDifferences((height, width), is_complex=dtype in "FD").adjoint(v)
        along_y, along_x = v[..., 0, :, :], v[..., 1, :, :]
        expected = (np.roll(along_y, 1, -2) - along_y) + (np.roll(along_x, 1, -1) - along_x)
        assert found.dtype == v.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"width {width}")


CASES = [
    ((8, 8), "db4", 3),  # filters longer than the coarse images
    ((8, 8), "db20", 3),
    ((16, 16), "haar", 2),
    ((9, 7), "db2", 2),  # padded
    ((13, 40), "coif3", 3),
    ((64, 48), "sym5", 4),
    ((33, 70), "db6", 2),
    ((2, 2), "db3", 1),
]


def padded(u, shape):
    widths = [(0, wanted - given) for wanted, given in zip(shape, u.shape[-2:], strict=True)]
    return np.pad(u, [(0, 0)] * (u.ndim - 2) + widths)


def by_pywavelets(u, wavelet, levels):
    """Coefficients in the nested layout."""
    details = []
    for _ in range(levels):
        u, detail = pywt.dwt2(u, wavelet, mode="periodization", axes=(-2, -1))
        details.append(detail)
    return pywt.coeffs_to_array([u, *reversed(details)], axes=(-2, -1))[0]


def back_by_pywavelets(v, wavelet, levels):
    for level in range(levels, 0, -1):
        y, x = v.shape[-2] >> level, v.shape[-1] >> level
        low, high_y, high_x = v[..., :y, :x], v[..., y : 2 * y, :x], v[..., :y, x : 2 * x]
        bands = low, (high_y, high_x, v[..., y : 2 * y, x : 2 * x])
        v = v.copy()
        v[..., : 2 * y, : 2 * x] = pywt.idwt2(bands, wavelet, mode="periodization", axes=(-2, -1))
    return v


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("shape", "name", "levels"), CASES, ids=str)
@pytest.mark.parametrize("batch", [(3,)], ids=str)
def test_the_same_coefficients_and_images_as_pywavelets(dtype, shape, name, levels, batch):
    W = Wavelet(shape, name, levels, is_complex=dtype in "FD")
    u, v = noise((*batch, *shape), dtype, 1), noise((*batch, *W.out_shape), dtype, 2)
    double = np.result_type(dtype, np.float64)
    coefficients = by_pywavelets(padded(u.astype(double), W.out_shape), name, levels)
    images = back_by_pywavelets(v.astype(double), name, levels)[..., : shape[0], : shape[1]]
    assert W(u).dtype == W.adjoint(v).dtype == u.dtype
    np.testing.assert_allclose(W(u), coefficients, atol=0.3 * ROUNDING[dtype] * np.abs(coefficients).max())
    np.testing.assert_allclose(W.adjoint(v), images, atol=0.3 * ROUNDING[dtype] * np.abs(images).max())


def test_every_orthogonal_filter_is_known():
    u = noise((24, 16), "D", 5)
    for name in pywt.wavelist(kind="discrete"):
        if pywt.Wavelet(name).orthogonal:
            found = Wavelet((24, 16), name, 2)(u)
            np.testing.assert_allclose(found, by_pywavelets(u, name, 2), atol=1e-10, err_msg=name)


def test_whole_numbers_are_taken_in_double_precision():
    u = np.arange(64).reshape(8, 8)
    W = Wavelet((8, 8), "db2", 1, is_complex=False)
    np.testing.assert_allclose(W(u), by_pywavelets(u.astype(float), "db2", 1), atol=1e-12)
    np.testing.assert_allclose(W.adjoint(W(u)), u, atol=1e-9)


FFT_ROUNDING = {np.complex64: 2e-6, np.complex128: 1e-14}
# Fours alone, a two, odd factors small and large among them, sides of different kinds, a last panel that is not full,
# a last strip and a last group that overlap others.
FILTERED_GRIDS = [(16, 16), (64, 16), (16, 128), (32, 48), (80, 64), (112, 16), (192, 64), (8, 64), (48, 320)]
FILTERED_GRIDS += [(9, 16), (16, 20), (44, 13), (31, 46), (230, 60), (46, 368), (12, 372), (127, 8)]


def filtered(images, response):
    return np.fft.ifft2(response * np.fft.fft2(images.astype(np.complex128)))


LARGER = [((16, 16), (32, 32)), ((80, 16), (112, 80)), ((16, 64), (16, 128)), ((23, 31), (46, 62))]


@pytest.mark.parametrize("dtype", list(FFT_ROUNDING))
@pytest.mark.parametrize(("shape", "grid"), [*((grid, grid) for grid in FILTERED_GRIDS), *LARGER], ids=str)
@pytest.mark.parametrize("batch", [(), (2, 2)], ids=str)
def test_images_are_filtered_as_by_the_library_also_with_zeros_around(dtype, shape, grid, batch):
    images, response = noise((*batch, *shape), dtype, 1), np.random.default_rng(2).random(grid)
    kept, around = images.copy(), np.zeros((*batch, *grid), complex)
    around[..., : shape[0], : shape[1]] = images
    assert suits_both(around.shape, images.dtype)
    found = SpectralFilter(response)(images)
    expected = filtered(around, response)[..., : shape[0], : shape[1]]
    assert found.dtype == dtype and found.shape == images.shape
    assert np.abs(found - expected).max() <= FFT_ROUNDING[dtype] * np.abs(expected).max()
    np.testing.assert_array_equal(images, kept)


def test_slices_of_larger_arrays_are_filtered_and_images_of_a_batch_have_the_bits_of_one():
    stack = noise((3, 16, 48), np.complex128, 4)
    images, response = stack[::2, :, ::3], np.arange(256.0).reshape(16, 16)
    np.testing.assert_allclose(SpectralFilter(response)(images), filtered(images, response), atol=1e-10)
    images, found = noise((5, 32, 64), np.complex64, 5), SpectralFilter(np.random.default_rng(6).random((32, 64)))
    for one, image in zip(found(images), images, strict=True):
        np.testing.assert_array_equal(found(image), one)


@pytest.mark.parametrize("grid", [(131, 16), (16, 262), (1, 16), (7, 16), (16, 3)], ids=str)
def test_other_sizes_and_real_images_go_to_the_library(grid, monkeypatch):
    images = noise((2, *grid), np.complex64, 7)
    assert not suits_both(images.shape, images.dtype)
    assert not suits_both((16, 16), np.dtype(np.float32))
    monkeypatch.setattr("mri_design.operators.kernels.fft.filter_images", None)
    spectrum = 1 + np.random.default_rng(8).random(grid)
    expected = filtered(images, 1 / spectrum)
    np.testing.assert_allclose(circulant_inverse(spectrum)(images), expected, atol=1e-5)


def plain(u, mask, maps):
    def one_coil(v):
        return np.fft.ifft(mask[:, None] * np.fft.fft(v, axis=-2), axis=-2)

    u = u.astype(np.complex128)
    if maps is None:
        return one_coil(u)
    return sum(s.conj() * one_coil(s * u) for s in maps.astype(np.complex128))


# Fours alone, a two at the end, many other radices, last strips whole and overlapping.
GRIDS = [(4, 8), (2, 9), (3, 8), (8, 40), (16, 33), (96, 12), (9, 17), (60, 8), (7, 65), (13, 10), (22, 8), (64, 64)]
GRIDS += [(230, 9), (368, 8), (372, 8), (31, 8), (46, 12), (34, 16), (127, 8)]


@pytest.mark.parametrize("dtype", list(FFT_ROUNDING))
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid[0]}x{grid[1]}")
@pytest.mark.parametrize(("batch", "coils"), [((), 0), ((3,), 1), ((2, 2), 3)], ids=str)
def test_lines_are_filtered_as_by_the_plain_transform(dtype, grid, batch, coils):
    u, mask = noise((*batch, *grid), dtype, 1), np.random.default_rng(2).random(grid[0])
    maps = noise((coils, *grid), dtype, 3) if coils else None
    assert suits(grid, u.dtype)
    found = filter_lines(u, mask, None if maps is None else in_strips(maps, u.dtype))
    expected = plain(u, mask, maps)
    assert found.dtype == dtype
    assert np.abs(found - expected).max() <= FFT_ROUNDING[dtype] * np.abs(expected).max()


def test_slices_of_larger_arrays_are_filtered_and_batches_have_the_bits_of_one():
    stack = noise((3, 16, 48), np.complex128, 4)
    u, mask = stack[::2, :, ::3], np.arange(16.0)
    np.testing.assert_allclose(filter_lines(u, mask, None), plain(u, mask, None), atol=1e-12)
    u, maps = noise((5, 32, 40), np.complex64, 7), noise((4, 32, 40), np.complex64, 8)
    for X in (cartesian([1, 5, 16], (32, 40)), cartesian([1, 5, 16], (32, 40), maps)):
        together = X.gram(u)
        assert all((X.gram(one) == image).all() for one, image in zip(u, together, strict=True))


@pytest.mark.parametrize("grid", [(1, 8), (131, 8), (262, 16), (8, 3)], ids=str)
def test_sizes_it_does_not_know_go_to_the_library(grid):
    assert not suits(grid, np.dtype(np.complex64))
    u, maps, lines = noise((2, *grid), np.complex64, 5), noise((2, *grid), np.complex64, 6), [0, grid[0] // 2]
    X = cartesian(sorted(set(lines)), grid, maps)
    expected = X.adjoint(X(u))
    np.testing.assert_allclose(X.gram(u), expected, atol=1e-5 * np.abs(expected).max())


# compiled, and by the library
@pytest.mark.parametrize(
    ("grid", "coils", "batch"),
    [((16, 24), 0, (2,)), ((16, 24), 3, (2, 2)), ((17, 8), 3, (2,)), ((131, 8), 0, ()), ((131, 8), 3, (2,))],
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
    single = cartesian([3, 9, 0, 14], grid, None if maps is None else maps.astype(np.complex64))
    P, of_single = single.rotated(y.astype(np.complex64))
    assert of_single.dtype == P(u.astype(np.complex64)).dtype == P.adjoint(of_single).dtype == np.complex64
    assert P.gram is single.gram
    np.testing.assert_allclose(
        np.sum(np.conj(rotated) * Q(u), axis=axes), np.sum(np.conj(Q.adjoint(rotated)) * u, axis=(-2, -1)), rtol=1e-10
    )
