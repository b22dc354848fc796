"""Sums of weighted Gram products in place: compiled and general ways agree, arguments stay what they were."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, LinearOperator, Wavelet
from mri_design.operators import GraphDifferences, ScalarOperator
from tests.operators.noise import noise

ROUNDING = {"f": 3e-5, "F": 3e-5, "d": 1e-12, "D": 1e-12}
SHAPES = [(1, 1), (2, 2), (3, 5), (8, 8), (16, 9), (9, 40), (33, 70)]


def graph(shape: tuple[int, int], **more) -> GraphDifferences:
    """Edges between any pixels: some chosen often, some never, some by themselves."""
    neighbours = np.random.default_rng(2).integers(0, shape[0] * shape[1], (4, *shape))
    return GraphDifferences(neighbours, **more)


KINDS: dict[str, Callable[..., LinearOperator]] = {
    "pixels": Identity,
    "scalar": lambda shape, **more: ScalarOperator(-2.0, shape, **more),
    "differences": FiniteDifferences,
    "graph": graph,
    "wavelet": lambda shape, **more: Wavelet((2 * shape[0], 2 * shape[1]), "db2", 1, **more),
}


def check(operator: LinearOperator, weights, u):
    """``total`` gains A^H diag(w) A u as in double precision, in its own; nothing else changes."""
    double = u.astype(np.result_type(u, float))
    expected = operator.adjoint(np.asarray(weights, dtype=float) * operator(double))
    total, before = noise(u.shape, u.dtype, 9), u.copy()
    kept = total.copy()
    operator.add_weighted_gram(weights, u, total)
    tolerance = ROUNDING[u.dtype.char] * max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(total, kept + expected, atol=tolerance)
    np.testing.assert_allclose(operator.weighted_gram(weights, u), expected, atol=tolerance)
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_parts(kind, shape, dtype):
    operator = KINDS[kind](shape, is_complex=dtype in "FD")
    for batch in ((), (3,), (2, 5), (9,)):
        u = noise((*batch, *operator.in_shape), np.dtype(dtype), 1)
        weights = np.exp(noise(operator.out_shape, u.real.dtype, 2))
        check(operator, weights, u)
        if len(operator.out_shape) == 3:
            check(operator, weights[:1], u)  # shared by a group
    check(operator, np.float64(0.5), u)


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_out_of_order_and_weights_of_a_batch_go_the_general_way(kind, dtype):
    operator = KINDS[kind]((12, 10))
    rows, columns = operator.in_shape
    u = noise((4, rows, 2 * columns), np.dtype(dtype), 5)[::2, :, ::2]
    weights = np.exp(noise((2, *operator.out_shape), u.real.dtype, 6))
    check(operator, weights[0], u)
    check(operator, weights, u)


def test_sums_have_the_same_bits_alone_in_a_batch_and_every_time():
    for operator in (graph((33, 31)), Wavelet((40, 36), "db4", 2), FiniteDifferences((33, 31))):
        u, weights = noise((5, *operator.in_shape), "F", 1), np.exp(noise(operator.out_shape, "f", 2))
        together = operator.weighted_gram(weights, u)
        np.testing.assert_array_equal(together, operator.weighted_gram(weights, u))
        if not isinstance(operator, GraphDifferences):  # whose images are summed together
            assert all(
                (operator.weighted_gram(weights, one) == image).all() for one, image in zip(u, together, strict=True)
            )
