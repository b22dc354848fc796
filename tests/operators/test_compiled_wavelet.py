"""The compiled wavelet transform against PyWavelets, over sizes, filters, precisions and batches."""

import numpy as np
import pytest
import pywt

from mri_design import Wavelet
from tests.operators.noise import noise

ROUNDING = {"f": 3e-6, "F": 3e-6, "d": 1e-13, "D": 1e-13}
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
    np.testing.assert_allclose(W(u), coefficients, atol=ROUNDING[dtype] * np.abs(coefficients).max())
    np.testing.assert_allclose(W.adjoint(v), images, atol=ROUNDING[dtype] * np.abs(images).max())


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
