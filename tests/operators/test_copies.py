"""The halves of an ADMM step in one pass, against NumPy."""

import numpy as np
import pytest

from mri_design.operators.kernels.copies import pulled, relax, split

ROUNDING = {"f": 1e-5, "F": 1e-5, "d": 1e-13, "D": 1e-13}


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("shape", [(3,), (2, 9, 7), (1500,)])
def test_both_halves_are_what_numpy_makes_of_them(shape, dtype):
    rng, close = np.random.default_rng(0), {"rtol": ROUNDING[dtype], "atol": ROUNDING[dtype]}
    numbers = rng.standard_normal((3, *shape)) + (1j * rng.standard_normal((3, *shape)) if dtype in "FD" else 0)
    given, copies, scaled = numbers.astype(dtype)
    before, expected = copies.copy(), scaled + 1.7 * given - 0.7 * copies
    powers = relax(given, copies, scaled, 1.7)
    assert powers.dtype == scaled.real.dtype
    np.testing.assert_allclose(scaled, expected, **close)
    np.testing.assert_allclose(powers, np.abs(expected) ** 2, **close)
    factor = rng.random(shape).astype(powers.dtype)
    as_given = given.copy()
    norms = split(given, copies, scaled, factor, 0.3)
    np.testing.assert_allclose(copies, factor * expected, **close)
    np.testing.assert_allclose(scaled, (1 - factor) * expected, **close)
    np.testing.assert_allclose(given, 0.3 * (copies - scaled), **close)
    np.testing.assert_array_equal(given, pulled(copies, scaled, 0.3))
    wanted = [np.sum(np.abs(v) ** 2) for v in (as_given - copies, copies - before, as_given, copies, scaled)]
    np.testing.assert_allclose(norms, wanted, rtol=10 * ROUNDING[dtype])
