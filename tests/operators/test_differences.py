"""Compiled finite differences and their adjoint, bit for bit what NumPy makes of them, on rows of every length."""

import numpy as np
import pytest

from mri_design import FiniteDifferences
from mri_design.operators.kernels.compiling import COUNT
from tests.operators.noise import noise


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
