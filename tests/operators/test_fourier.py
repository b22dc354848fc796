"""The centred unitary FFT against its defining sum, and the two libraries against each other."""

import numpy as np
import pytest

from mri_design.operators import CentredFFT, transform

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
