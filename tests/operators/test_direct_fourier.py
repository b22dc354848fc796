"""Samples anywhere in k-space, against the grid's own and the algebra of adjoints."""

import numpy as np
import pytest

from mri_design.operators import CentredFFT, DirectFourier


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
