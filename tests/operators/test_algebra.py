"""Laws of every operator: adjoints, batches, precision, Gram operators, dense matrices, SciPy."""

import numpy as np
import pytest
import scipy.sparse.linalg

from mri_design import FiniteDifferences, Identity, LinearOperator
from mri_design.operators import CentredFFT, Diagonal, RealAndImaginary, RealImage
from tests.refusals import refused

PRECISIONS = (np.float32, np.float64)


def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Re<a, b>."""
    return float(np.sum((np.conj(a).astype(complex) * b).real))


def as_real_vector(array: np.ndarray, is_complex: bool) -> np.ndarray:
    """(real parts, imaginary parts) of one array, or the real array itself."""
    flat = array.ravel()
    return np.concatenate([flat.real, flat.imag]) if is_complex else flat.real


def test_adjoint_shapes_fields_and_precision(built, draw):
    for real in PRECISIONS:
        A = built(real)
        u, v = draw(A, 10, real), draw(A, 11, real, side="out")
        weights = np.full(A.out_shape, 0.5, dtype=real)
        before = [array.copy() for array in (u, v, weights)]
        forward, backward, gram, weighted = A(u), A.adjoint(v), A.gram(u), A.weighted_gram(weights, u)
        for array, kept in zip((u, v, weights), before, strict=True):
            np.testing.assert_array_equal(array, kept)
        assert forward.shape == A.out_shape and forward.dtype == v.dtype
        for image in (backward, gram, weighted):
            assert image.shape == A.in_shape and image.dtype == u.dtype
        assert A.in_size == u.size * (2 if A.in_complex else 1)
        assert A.out_size == v.size * (2 if A.out_complex else 1)
        scale = np.linalg.norm(forward) * np.linalg.norm(v) + np.linalg.norm(backward) * np.linalg.norm(u)
        assert abs(inner(forward, v) - inner(u, backward)) <= 20 * np.finfo(real).eps * scale
        np.testing.assert_array_equal(A.H(v), backward)
        np.testing.assert_array_equal(A.H.H(u), forward)


def test_leading_axes_are_a_batch(built, draw):
    A = built(np.float64)
    u, v = draw(A, 14, batch=(2, 3)), draw(A, 15, batch=(2, 3), side="out")
    weights = np.abs(draw(A, 16, side="out"))
    for function, stack in [
        (A, u),
        (A.adjoint, v),
        (A.gram, u),
        (lambda one: A.weighted_gram(weights, one), u),
    ]:
        together = function(stack)
        for index in np.ndindex(2, 3):
            np.testing.assert_allclose(together[index], function(stack[index]), rtol=1e-12, atol=1e-13)


def test_products_are_those_of_the_dense_matrix(built, draw):
    A = built(np.float64)
    matrix, close = A.to_dense_real(), {"rtol": 1e-12, "atol": 1e-12}
    u, v = draw(A, 21), draw(A, 22, side="out")
    flat = as_real_vector(u, A.in_complex)
    np.testing.assert_allclose(matrix @ flat, as_real_vector(A(u), A.out_complex), **close)
    adjoint = as_real_vector(A.adjoint(v), A.in_complex)
    np.testing.assert_allclose(matrix.T @ as_real_vector(v, A.out_complex), adjoint, **close)
    for gram in (A.gram(u), A.gram.adjoint(u)):
        np.testing.assert_allclose(gram, A.adjoint(A(u)), **close)
    full = np.abs(draw(A, 20, side="out"))
    for weights in (full, full[..., :1], full.reshape(-1)[:1]):  # full size, broadcast along one axis, one number
        if weights.size:
            np.testing.assert_allclose(A.weighted_gram(weights, u), A.adjoint(weights * A(u)), **close)
    if A.in_complex and A.out_complex:
        assert A.complex_linear == np.allclose(A(1j * u), 1j * A(u), atol=1e-12)
    else:
        assert not A.complex_linear
    if A.complex_linear or not A.in_complex:
        np.testing.assert_allclose(A.to_dense() @ u.ravel(), A(u).ravel(), **close)
    else:
        with refused("to_dense"):
            A.to_dense()


def test_a_round_through_parts_is_real_linear_though_both_sides_are_complex(draw):
    keep_real = RealImage((4, 3)) @ RealImage((4, 3)).H
    assert keep_real.in_complex and keep_real.out_complex and not keep_real.complex_linear
    assert not (Identity((4, 3)) @ keep_real).complex_linear
    assert not (keep_real @ Identity((4, 3))).complex_linear
    assert not (Identity((4, 3)) + keep_real).complex_linear
    u = draw(keep_real, 25)
    np.testing.assert_array_equal(keep_real(u), u.real)


def test_algebra_is_that_of_the_matrices(draw):
    shape = (5, 6)
    F, D, G = CentredFFT(shape), Diagonal(np.arange(30.0).reshape(shape) * 1j), FiniteDifferences(shape)
    f, d, g = F.to_dense(), D.to_dense(), G.to_dense()
    for operator, matrix in [
        (G @ F @ D, g @ f @ d),
        ((G @ F) @ D, g @ f @ d),
        (F + D, f + d),
        (2 * F, 2 * f),
        (F * (1 - 3j), (1 - 3j) * f),
        (np.float64(2) * F, 2 * f),
        ((F + D).H, (f + d).conj().T),
        ((G @ D).gram, (g @ d).conj().T @ g @ d),
    ]:
        assert isinstance(operator, LinearOperator)
        np.testing.assert_allclose(operator.to_dense(), matrix, atol=1e-12)


def test_scipy_solvers_take_an_operator(built, draw):
    A = built(np.float64)
    u, v = draw(A, 26), draw(A, 27, side="out")
    interop = A.as_scipy()
    stacked = (A.in_complex or A.out_complex) and not A.complex_linear

    def flat(array):
        return (
            np.concatenate([array.real.ravel(), array.imag.ravel()])
            if stacked and np.iscomplexobj(array)
            else array.ravel()
        )

    assert interop.shape == (flat(v).size, flat(u).size)
    assert np.iscomplexobj(np.zeros(0, interop.dtype)) == A.complex_linear
    np.testing.assert_allclose(interop @ flat(u), flat(A(u)), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(interop.rmatvec(flat(v)), flat(A.adjoint(v)), rtol=1e-13, atol=1e-13)


def test_solvers_of_other_libraries_take_operators(coil_lines):
    """SciPy's singular values and solutions, pylops' solutions, and its dot test of real-linear operators."""
    X = coil_lines((8, 6), coils=3)
    dense, rhs = X.to_dense(), np.arange(48) + 1j
    largest = scipy.sparse.linalg.svds(X.as_scipy(), k=1, return_singular_vectors=False)
    assert largest[0] == pytest.approx(np.linalg.norm(dense, 2), rel=1e-8)
    damped = X.gram + 0.25 * Identity((8, 6))
    solution, failed = scipy.sparse.linalg.cg(damped.as_scipy(), rhs, rtol=1e-12)
    assert not failed
    np.testing.assert_allclose(solution, np.linalg.solve(damped.to_dense(), rhs), atol=1e-8)
    pylops = pytest.importorskip("pylops")
    data = np.arange(dense.shape[0]) + 1j
    found = pylops.cgls(pylops.aslinearoperator(X.as_scipy()), data, niter=400, damp=0.5, tol=1e-24)[0]
    np.testing.assert_allclose(found, np.linalg.solve(damped.to_dense(), dense.conj().T @ data), atol=1e-8)
    for operator in (RealAndImaginary((4, 3)), RealImage((4, 3))):
        interop = operator.as_scipy()
        assert pylops.utils.dottest(pylops.aslinearoperator(interop), *interop.shape, complexflag=0, rtol=1e-10)
