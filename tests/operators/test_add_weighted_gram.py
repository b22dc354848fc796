"""Sums of weighted Gram products in place: compiled and general ways agree, arguments stay what they were."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, LinearOperator, Wavelet
from mri_design.operators.base import ScalarOperator
from mri_design.operators.elementary import RealAndImaginary
from tests.operators.noise import noise

ROUNDING = {"f": 5e-6, "F": 5e-6, "d": 1e-13, "D": 1e-13}
SHAPES = [(1, 1), (2, 2), (3, 5), (8, 8), (16, 9), (9, 40), (33, 70)]


def textbook_differences(weights, u):
    total = 0
    for axis, w in zip((-2, -1), np.broadcast_to(weights, (2, *u.shape[-2:])), strict=True):
        slope = w * (np.roll(u, -1, axis) - u)
        total = total + np.roll(slope, 1, axis) - slope
    return total


def check(operator: LinearOperator, weights, u, expected):
    """``total`` gains what is expected, in its own precision; nothing else changes."""
    total, before = noise(u.shape, u.dtype, 9), u.copy()
    kept = total.copy()
    operator.add_weighted_gram(weights, u, total)
    tolerance = ROUNDING[u.dtype.char] * max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(total, kept + expected, atol=tolerance)
    np.testing.assert_allclose(operator.weighted_gram(weights, u), expected, atol=tolerance)
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)], ids=str)
@pytest.mark.parametrize("groups", [False, True])
def test_differences(dtype, shape, batch, groups):
    u = noise((*batch, *shape), np.dtype(dtype), 1)
    weights = np.exp(noise((1 if groups else 2, *shape), u.real.dtype, 2))
    operator = FiniteDifferences(shape, is_complex=dtype in "FD")
    check(operator, weights, u, textbook_differences(weights.astype(float), u.astype(np.result_type(u, float))))


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", [*SHAPES, (70, 60)], ids=str)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_pixels(dtype, shape, batch):
    u = noise((*batch, *shape), np.dtype(dtype), 3)
    weights = np.exp(noise(shape, u.real.dtype, 4))
    check(Identity(shape, is_complex=dtype in "FD"), weights, u, weights * u)
    check(ScalarOperator(-2.0, shape, is_complex=dtype in "FD"), weights, u, 4 * weights * u)
    check(Identity(shape, is_complex=dtype in "FD"), np.float64(0.5), u, 0.5 * u)


@pytest.mark.parametrize("dtype", "FD")
def test_arrays_out_of_order_and_weights_of_a_batch_go_the_general_way(dtype):
    stack = noise((4, 12, 20), np.dtype(dtype), 5)
    u = stack[::2, :, ::2]
    weights = np.exp(noise((2, 2, 12, 10), u.real.dtype, 6))
    check(FiniteDifferences((12, 10)), weights[0], u, textbook_differences(weights[0], u))
    each = np.stack([textbook_differences(w, one) for w, one in zip(weights, u, strict=True)])
    check(FiniteDifferences((12, 10)), weights, u, each)
    check(Identity((12, 10)), weights[:, 0], u, weights[:, 0] * u)


def test_single_precision_stays_single_under_double_weights():
    u, total = noise((8, 8), np.dtype("F"), 7), np.zeros((8, 8), np.complex64)
    for operator in (Identity((8, 8)), FiniteDifferences((8, 8)), Wavelet((8, 8), "db2", 2)):
        operator.add_weighted_gram(np.ones(operator.out_shape), u, total)
    assert total.dtype == np.complex64


def test_operators_without_a_form_of_their_own_add_too():
    operator = RealAndImaginary((6, 5))
    u = noise((2, 6, 5), np.dtype("D"), 8)
    weights = np.exp(noise((6, 5, 2), np.dtype("d"), 9))
    check(operator, weights, u, weights[..., 0] * u.real + 1j * weights[..., 1] * u.imag)
