"""Cartesian lines: which samples they are, and the fused Gram operator."""

import numpy as np
import pytest
import scipy.fft

from mri_design import cartesian
from mri_design.operators import CartesianSamples, CentredFFT


def test_lines_come_in_acquisition_order_from_the_centred_spectrum():
    rng = np.random.default_rng(0)
    shape, lines = (7, 6), [5, 0, 3]
    u = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    maps = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    X = cartesian(lines, shape, maps)
    assert X.out_shape == (2, 3, 6)
    for coil in range(2):
        np.testing.assert_allclose(X(u)[coil], CentredFFT(shape)(maps[coil] * u)[lines], atol=1e-13)
    np.testing.assert_allclose(cartesian(lines, shape)(u)[0], CentredFFT(shape)(u)[lines], atol=1e-13)
    assert X.lines.tolist() == lines
    assert np.flatnonzero(X.mask).tolist() == [0, 3, 5]


@pytest.mark.parametrize("shape", [(8, 6), (7, 9), (6, 1)])
@pytest.mark.parametrize("library", ["scipy", "pyfftw"])
@pytest.mark.parametrize("coils", [0, 1, 4])
def test_grams_are_two_passes_also_of_real_arrays(shape, library, coils):
    rng = np.random.default_rng(1)
    maps = rng.standard_normal((coils, *shape)) + 1j * rng.standard_normal((coils, *shape)) if coils else None
    lines, samples = [0, shape[0] - 1, shape[0] // 2], rng.random(shape) < 0.4
    u = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    for X in (cartesian(lines, shape, maps, library), CartesianSamples(samples, maps, library)):
        np.testing.assert_allclose(X.gram(u), X.adjoint(X(u)), atol=1e-12)
        np.testing.assert_allclose(X.gram(u.real), X.adjoint(X(u.real)), atol=1e-12)
        assert X.gram(u.astype(np.complex64)).dtype == np.complex64 and X.gram is X.gram


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(24, 20), (25, 17), (11, 10), (34, 16)])  # the last one is left to the library
@pytest.mark.parametrize("coils", [0, 3])
def test_the_adjoint_of_shared_noise_is_that_of_the_lines_own_noise(shape, coils, real):
    rng, real = np.random.default_rng(5), np.dtype(real)
    maps = rng.standard_normal((coils, *shape)) + 1j * rng.standard_normal((coils, *shape)) if coils else None
    X = cartesian([3, 1, 7, shape[0] - 1], shape, maps)
    Y = CartesianSamples(rng.random(shape) < 0.4, maps)
    for operator in (X, Y):
        shared = operator.shared_noise(np.random.default_rng(6), 2, real)
        assert shared.shape == (2, *operator.noise_shape) and shared.real.dtype == real
        own = operator.adjoint(operator.unit_noise(np.random.default_rng(6), 2, real))
        np.testing.assert_allclose(operator.adjoint_of_noise(shared), own, atol=20 * np.finfo(real).eps)


@pytest.mark.parametrize("shape", [(24, 20), (25, 17), (7, 9), (34, 16)])  # the last two are left to the library
@pytest.mark.parametrize("coils", [0, 3])
def test_columns_are_lines_with_readouts_transformed_back(shape, coils):
    rng = np.random.default_rng(7)
    u = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    maps = rng.standard_normal((coils, *shape)) + 1j * rng.standard_normal((coils, *shape)) if coils else None
    X = cartesian([5, 0, 3], shape, maps)
    expected = scipy.fft.fftshift(scipy.fft.ifft(scipy.fft.ifftshift(X(u), axes=-1), norm="ortho"), axes=-1)
    np.testing.assert_allclose(X.columns(u), expected, atol=1e-13)
    np.testing.assert_allclose(X.columns(u[0]), expected[0], atol=1e-13)
    np.testing.assert_allclose(X.columns(u.astype(np.complex64)), expected, atol=1e-5)


def test_a_mask_of_whole_lines_is_those_lines():
    rng = np.random.default_rng(4)
    shape, lines = (8, 6), [1, 4, 5]
    maps = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    mask = np.zeros(shape, dtype=bool)
    mask[lines] = True
    u = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    for known in (None, maps):
        X, Y = cartesian(lines, shape, known), CartesianSamples(mask, known)
        np.testing.assert_allclose(Y(u), X(u).reshape(Y.out_shape), atol=1e-13)
        np.testing.assert_allclose(Y.gram(u), X.gram(u), atol=1e-12)
        np.testing.assert_allclose(Y.circulant_spectrum(), X.circulant_spectrum(), atol=1e-13)
        noises = [operator.unit_noise(np.random.default_rng(0), 3, np.dtype(np.float32)) for operator in (X, Y)]
        np.testing.assert_array_equal(noises[0].reshape(noises[1].shape), noises[1])
