"""The circulant preconditioner: exact on circulants, and worth its FFTs on a posterior precision."""

import numpy as np
import pytest

from mri_design.model import circulant_inverse


def noise(shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    rng = np.random.default_rng(1)
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if is_complex else values


@pytest.mark.parametrize(
    ("shape", "single", "is_complex"), [((6, 6), False, True), ((7, 5), True, True), ((8, 3), False, False)]
)
def test_inverts_circulants(shape, single, is_complex):
    spectrum = np.fft.fftfreq(shape[0])[:, None] ** 2 + np.abs(np.fft.fftfreq(shape[1])) + 0.5
    kernel = np.fft.ifft2(spectrum)

    def convolve(u: np.ndarray) -> np.ndarray:
        total = np.zeros_like(u)
        for i, j in np.ndindex(*shape):
            total += kernel[i, j].astype(u.dtype) * np.roll(u, (i, j), axis=(-2, -1))
        return total

    assert np.abs(kernel.imag).max() < 1e-15
    kernel = kernel.real
    u = noise((3, *shape), is_complex)
    if single:
        u = u.astype(np.complex64 if np.iscomplexobj(u) else np.float32)
    back = circulant_inverse(spectrum)(convolve(u))
    assert back.dtype == u.dtype
    np.testing.assert_allclose(back, u, atol=1e-5 if single else 1e-12)


@pytest.mark.parametrize("shape", [(5, 4)])
def test_on_real_vectors_it_is_the_real_part_and_positive_definite(shape):
    rng = np.random.default_rng(3)
    spectrum = rng.uniform(0.1, 10, shape)
    precondition = circulant_inverse(spectrum)
    n = shape[0] * shape[1]
    matrix = precondition(np.eye(n).reshape(n, *shape)).reshape(n, n)
    expected = np.fft.ifft2(np.fft.fft2(np.eye(n).reshape(n, *shape)) / spectrum).real.reshape(n, n)
    np.testing.assert_allclose(matrix, expected, atol=1e-12)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > 0
