"""Compiled loops over arrays in one pass, against NumPy, in every precision and on lengths that fill no register."""

import numpy as np
import pytest

from mri_design.operators import squared_modulus
from mri_design.operators.kernels.copies import pulled, relax, relax_coils, renew_coils, seen_by_coils, split
from mri_design.operators.kernels.draws import mean_squares
from tests.operators.noise import noise

ROUNDING = {"f": 1e-5, "F": 1e-5, "d": 1e-13, "D": 1e-13}


def near(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for the rounding of what was found, whose type the expected array has."""
    assert found.dtype == expected.dtype
    rounding = ROUNDING[found.dtype.char]
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (9,), (2, 5, 13)], ids=str)
def test_squared_moduli(shape, dtype):
    s = noise(shape, dtype, 0)
    found = squared_modulus(s)
    assert found.dtype == s.real.dtype
    for one, of in ((found, s), (squared_modulus(s[..., ::2]), s[..., ::2])):
        np.testing.assert_allclose(one, np.abs(of) ** 2, rtol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(3,), (2, 9, 7), (1500,)])
def test_mean_squares_of_what_is_left_of_draws(shape, dtype):
    draws, known = noise((2, 5, *shape), dtype, 0)
    for fraction in (np.random.default_rng(1).random(shape), np.array(0.4)):
        found = mean_squares(draws, known, fraction)
        assert found.dtype == draws.real.dtype
        expected = np.mean(np.abs(draws - fraction * known) ** 2, axis=0)
        np.testing.assert_allclose(found, expected, rtol=ROUNDING[dtype])


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [(3,), (2, 9, 7), (1500,)])
def test_both_halves_of_an_admm_step(shape, dtype):
    given, copies, scaled = noise((3, *shape), dtype, 0)
    before, expected = copies.copy(), scaled + 1.7 * given - 0.7 * copies
    powers = relax(given, copies, scaled, 1.7)
    near(scaled, expected)
    near(powers, np.abs(expected) ** 2)
    factor = np.random.default_rng(1).random(shape).astype(powers.dtype)
    as_given = given.copy()
    norms = split(given, copies, scaled, factor, 0.3)
    near(copies, factor * expected)
    near(scaled, (1 - factor) * expected)
    near(given, 0.3 * (copies - scaled))
    np.testing.assert_array_equal(given, pulled(copies, scaled, 0.3))
    wanted = [np.sum(np.abs(v) ** 2) for v in (as_given - copies, copies - before, as_given, copies, scaled)]
    np.testing.assert_allclose(norms, wanted, rtol=10 * ROUNDING[dtype])


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize("shape", [(1, 3, 3), (3, 8, 8), (4, 5, 7), (2, 1, 1)], ids=str)
def test_copies_of_coil_images(shape, dtype):
    maps, copies, scaled, data = noise((4, *shape), dtype, 0)
    image, number = noise(shape[1:], dtype, 1), scaled.real.dtype.type
    near(seen_by_coils(maps, copies, scaled), np.sum(np.conj(maps) * (copies - scaled), axis=0))
    expected = scaled + number(1.7) * maps * image + number(-0.7) * copies
    relax_coils(maps, image, copies, scaled, 1.7)
    near(scaled, expected)
    change = number(0.4) * (data - maps)
    expected = scaled + change
    renew_coils(data, maps, copies, scaled, 0.4)
    near(copies, expected)
    near(scaled, -change)
