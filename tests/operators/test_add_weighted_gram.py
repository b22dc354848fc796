"""Sums of weighted Gram products in place, edges of a graph, and parts turned by a phase, against dense matrices."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design.operators import (
    FiniteDifferences,
    GraphDifferences,
    Identity,
    LinearOperator,
    PhasedParts,
    RealAndImaginary,
    ScalarOperator,
    Wavelet,
)
from tests.arrays import noise

ROUNDING = {"f": 3e-5, "F": 3e-5, "d": 1e-12, "D": 1e-12}
SHAPES = [(1, 1), (2, 2), (3, 5), (8, 8), (16, 9), (9, 40), (33, 70)]


def neighbours(shape: tuple[int, int], count: int = 4) -> np.ndarray:
    """Any pixels: some chosen often, some never, some by themselves."""
    return np.random.default_rng(2).integers(0, shape[0] * shape[1], (count, *shape))


def graph(shape: tuple[int, int], **more) -> GraphDifferences:
    return GraphDifferences(neighbours(shape), **more)


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


@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_rows_are_those_of_the_textbook(shape):
    eye = np.eye(shape[0] * shape[1])
    rows = [eye - eye[chosen] for chosen in neighbours(shape).reshape(-1, len(eye))]
    np.testing.assert_array_equal(graph(shape).to_dense(), np.concatenate(rows))


@pytest.mark.parametrize("shape", [(6, 7), (8, 5)], ids=str)
def test_powers_of_rows_under_a_circulant_are_those_of_dense_matrices(shape):
    """diag(A P A^H), for shifted filters and for edges alike."""
    spectrum = np.random.default_rng(5).uniform(0.5, 2, shape)
    fourier = np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in shape))
    P = fourier.conj().T @ (spectrum.reshape(-1, 1) * fourier)
    for operator in (GraphDifferences(neighbours(shape)), Identity(shape), FiniteDifferences(shape)):
        A = operator.to_dense()
        expected = np.einsum("ij,jk,ik->i", A, P, A.conj()).real
        np.testing.assert_allclose(operator.row_powers(spectrum).ravel(), expected, atol=1e-12)
    assert (Identity(shape) + Identity(shape)).row_powers(spectrum) is None
    assert Wavelet((8, 8), "haar", 1).row_powers(np.ones((8, 8))).shape == (8, 8)


PHASED_KINDS = {
    "pixels": Identity,
    "differences": FiniteDifferences,
    "wavelet": lambda shape: Wavelet(shape, "db2", 1),
}


def rotation_of(shape, seed=0):
    return np.exp(1j * np.random.default_rng(seed).uniform(-3, 3, shape))


@pytest.mark.parametrize("kind", PHASED_KINDS)
@pytest.mark.parametrize("shape", [(2, 2), (6, 5), (8, 12)], ids=str)
def test_it_is_parts_after_analysis_after_turning_back(kind, shape):
    inner, rotation = PHASED_KINDS[kind](shape), rotation_of(shape)
    operator = PhasedParts(inner, rotation)
    u = noise((3, *shape), "D", 1)
    expected = RealAndImaginary(inner.out_shape)(inner(np.conj(rotation) * u))
    np.testing.assert_allclose(operator(u), expected, atol=1e-12)
    v = noise((3, *operator.out_shape), "d", 2)
    np.testing.assert_allclose(np.sum(operator(u) * v), np.sum(np.conj(u) * operator.adjoint(v)).real, rtol=1e-10)
    assert not operator.complex_linear and not operator.out_complex


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["graph", "differences", "differences and pixels"])
def test_parts_may_have_weights_of_their_own(kind, shape, dtype):
    """Compiled, against the general way."""
    inner = KINDS[kind.split()[0]](shape)
    for batch in ((), (2,), (9,)):
        u, total = noise((*batch, *shape), dtype, 1), noise((*batch, *shape), dtype, 2)
        before, expected = u.copy(), total.copy()
        terms = [(A, noise((*A.out_shape, 2), "d", 3)) for A in (inner, Identity(shape))[: 1 + ("pixels" in kind)]]
        weights = [np.exp(0.5 * logs).astype(u.real.dtype) for _, logs in terms]
        for (A, _), one in zip(terms, weights, strict=True):
            parts = RealAndImaginary(A.out_shape)
            expected = expected + A.adjoint(parts.adjoint(one * parts(A(u))))
        inner.add_weighted_parts(weights[0], u, total, *weights[1:])
        np.testing.assert_allclose(total, expected, atol=(5e-6 if dtype == "F" else 1e-13) * np.abs(expected).max())
        np.testing.assert_array_equal(u, before)


def test_spectra():
    shape, rotation = (8, 6), rotation_of((8, 6))
    weights = np.exp(noise((*shape, 2), "d", 1))
    dense = PhasedParts(Identity(shape), rotation)
    np.testing.assert_allclose(dense.circulant_spectrum(weights), np.full(shape, weights.mean()), rtol=1e-12)
    np.testing.assert_allclose(dense.gram_spectrum(), np.ones(shape))
    slopes = PhasedParts(FiniteDifferences(shape), rotation)
    assert slopes.gram_spectrum() is None  # the phase does not commute with differences
    assert slopes.circulant_spectrum().shape == shape


@pytest.mark.parametrize("kind", PHASED_KINDS)
@pytest.mark.parametrize("imaginary", [1.0, 3.0, "varied"])
def test_no_eigenvalue_of_the_gram_matrix_is_below_the_floor(kind, imaginary):
    shape = (4, 6)
    inner = PHASED_KINDS[kind](shape)
    if imaginary == "varied":
        imaginary = np.random.default_rng(1).uniform(0.5, 2, inner.out_shape)
    operator = PhasedParts(inner, rotation_of(shape), imaginary)
    rows = operator.to_dense_real()
    least = np.linalg.eigvalsh(rows.T @ rows)[0]
    assert operator.gram_floor() <= least + 1e-9
    assert (operator.gram_floor() > 0) == (kind != "differences")  # which do not see a constant image
