"""Parts of an image turned by a phase: the adjoint, the dense matrix, compiled products, refusals."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, Wavelet
from mri_design.operators import PhasedParts, RealAndImaginary
from tests.operators.noise import noise

KINDS = {
    "pixels": Identity,
    "differences": FiniteDifferences,
    "wavelet": lambda shape: Wavelet(shape, "db2", 1),
}


def rotation_of(shape, seed=0):
    return np.exp(1j * np.random.default_rng(seed).uniform(-3, 3, shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 2), (6, 5), (8, 12)], ids=str)
def test_it_is_parts_after_analysis_after_turning_back(kind, shape):
    inner, rotation = KINDS[kind](shape), rotation_of(shape)
    operator = PhasedParts(inner, rotation)
    u = noise((3, *shape), "D", 1)
    expected = RealAndImaginary(inner.out_shape)(inner(np.conj(rotation) * u))
    np.testing.assert_allclose(operator(u), expected, atol=1e-12)
    v = noise((3, *operator.out_shape), "d", 2)
    np.testing.assert_allclose(np.sum(operator(u) * v), np.sum(np.conj(u) * operator.adjoint(v)).real, rtol=1e-10)
    assert not operator.complex_linear and not operator.out_complex


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5), (8, 8), (9, 40), (33, 70)], ids=str)
@pytest.mark.parametrize("with_pixels", [False, True])
def test_compiled_differences_with_weights_of_parts_against_the_general_way(dtype, shape, with_pixels):
    u, total = noise((2, *shape), dtype, 1), noise((2, *shape), dtype, 2)
    real = u.real.dtype
    slopes = np.exp(noise((2, *shape, 2), "d", 3)).astype(real)
    pixels = np.exp(noise((*shape, 2), "d", 4)).astype(real) if with_pixels else None
    inner = FiniteDifferences(shape)
    parts = RealAndImaginary(inner.out_shape)
    expected = total + inner.adjoint(parts.adjoint(slopes * parts(inner(u))))
    if pixels is not None:
        on_pixels = RealAndImaginary(shape)
        expected = expected + on_pixels.adjoint(pixels * on_pixels(u))
    before = u.copy()
    inner.add_weighted_parts(slopes, u, total, pixels)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("imaginary", [1.0, 3.0, "varied"])
def test_no_eigenvalue_of_the_gram_matrix_is_below_the_floor(kind, imaginary):
    shape = (4, 6)
    inner = KINDS[kind](shape)
    if imaginary == "varied":
        imaginary = np.random.default_rng(1).uniform(0.5, 2, inner.out_shape)
    operator = PhasedParts(inner, rotation_of(shape), imaginary)
    rows = operator.to_dense_real()
    least = np.linalg.eigvalsh(rows.T @ rows)[0]
    assert operator.gram_floor() <= least + 1e-9
    assert (operator.gram_floor() > 0) == (kind != "differences")  # which do not see a constant image
