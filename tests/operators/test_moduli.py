"""Squared moduli in one pass, against NumPy."""

import numpy as np
import pytest

from mri_design.operators.base import squared_modulus


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (2, 5, 13)], ids=str)
def test_of_every_length_and_precision(dtype, shape):
    rng = np.random.default_rng(0)
    s = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype in "FD" else 0)).astype(dtype)
    found = squared_modulus(s)
    assert found.dtype == s.real.dtype
    np.testing.assert_allclose(found, np.abs(s) ** 2, rtol=10 * np.finfo(dtype).eps)
    np.testing.assert_allclose(squared_modulus(s[..., ::2]), found[..., ::2], rtol=10 * np.finfo(dtype).eps)
