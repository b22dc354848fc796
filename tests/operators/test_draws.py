"""Means over draws in one pass, against NumPy."""

import numpy as np
import pytest

from mri_design.operators.kernels.draws import mean_squares


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("shape", [(3,), (2, 9, 7), (1500,)])
def test_it_is_the_mean_of_what_is_left(shape, dtype):
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((2, 5, *shape)) + (1j * rng.standard_normal((2, 5, *shape)) if dtype in "FD" else 0)
    draws, known = numbers.astype(dtype)
    for share in (rng.random(shape), np.array(0.4)):
        found = mean_squares(draws, known, share)
        assert found.dtype == draws.real.dtype
        expected = np.mean(np.abs(draws - share * known) ** 2, axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype in "fF" else 1e-13)
