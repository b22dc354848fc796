"""The centred unitary FFT and samples anywhere against their defining sums, and the two libraries."""

import numpy as np
import pytest

from mri_design.operators import CentredFFT, DirectFourier, transform

SIZES = [(4, 4), (5, 4), (4, 7), (9, 5), (1, 6)]


def centred_matrix(n: int) -> np.ndarray:
    """exp(-2 pi i j k / n) / sqrt(n) with j and k counted from n // 2."""
    position = np.arange(n) - n // 2
    return np.exp(-2j * np.pi * np.outer(position, position) / n) / np.sqrt(n)


@pytest.mark.parametrize("library", ["scipy", "pyfftw"])
@pytest.mark.parametrize("grid", SIZES)
def test_it_is_the_centred_sum(grid, library):
    rng = np.random.default_rng(0)
    u = rng.standard_normal(grid) + 1j * rng.standard_normal(grid)
    expected = centred_matrix(grid[0]) @ u @ centred_matrix(grid[1]).T
    np.testing.assert_allclose(CentredFFT(grid, library)(u), expected, atol=1e-13)


@pytest.mark.parametrize("axes", [(-1,), (-2,), (-2, -1)])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.float32, np.float64])
def test_both_libraries_agree(axes, inverse, dtype):
    rng = np.random.default_rng(1)
    u = rng.standard_normal((3, 6, 5)).astype(dtype)
    u *= dtype(1 + 0.5j) if np.iscomplexobj(u) else dtype(1)
    by_scipy, by_pyfftw = (transform(u, axes, inverse=inverse, library=name) for name in ("scipy", "pyfftw"))
    assert by_scipy.dtype == by_pyfftw.dtype == np.result_type(dtype, np.complex64)
    np.testing.assert_allclose(by_pyfftw, by_scipy, atol=20 * np.finfo(dtype).eps)


def test_a_cached_plan_gives_fresh_arrays():
    rng = np.random.default_rng(2)
    u, v = (rng.standard_normal((4, 4)) + 0j for _ in range(2))
    first = transform(u, (-2, -1), library="pyfftw")
    kept = first.copy()
    transform(v, (-2, -1), library="pyfftw")
    np.testing.assert_array_equal(first, kept)


def coils(count, shape, rng):
    return rng.standard_normal((count, *shape)) + 1j * rng.standard_normal((count, *shape)) if count else None


@pytest.mark.parametrize("shape", [(6, 8), (7, 5)])
@pytest.mark.parametrize("count", [0, 3])
def test_at_whole_numbers_it_is_the_fft(shape, count):
    rng = np.random.default_rng(0)
    maps, u = coils(count, shape, rng), rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    ky, kx = (axis.ravel() - n // 2 for axis, n in zip(np.indices(shape), shape, strict=True))
    found = DirectFourier(np.stack([ky, kx], axis=1), shape, maps)(u)
    expected = CentredFFT(shape)(u if maps is None else maps * u)
    np.testing.assert_allclose(found, expected.reshape(count or 1, -1), atol=1e-13)


@pytest.mark.parametrize("count", [0, 2])
def test_between_them_it_is_the_sum_and_its_adjoint(count):
    rng = np.random.default_rng(1)
    shape, k = (5, 6), rng.uniform(-2.5, 2.5, (7, 2))
    maps = coils(count, shape, rng)
    X = DirectFourier(k, shape, maps)
    y, x = (np.arange(5) - 2) / 5, (np.arange(6) - 3) / 6
    rows = np.exp(-2j * np.pi * (k[:, 0, None, None] * y[:, None] + k[:, 1, None, None] * x)) / np.sqrt(30)
    expected = (np.ones((1, *shape)) if maps is None else maps)[:, None] * rows
    np.testing.assert_allclose(X.to_dense(), expected.reshape(-1, 30), atol=1e-13)
    np.testing.assert_allclose(X.H.to_dense(), X.to_dense().conj().T, atol=1e-13)
    batch = rng.standard_normal((4, *shape)) + 0j
    np.testing.assert_allclose(X(batch)[2], X(batch[2]), atol=1e-14)
    assert X(batch.astype(np.complex64)).dtype == np.complex64
