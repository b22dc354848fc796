"""A = X^H X + B^H diag(pi) B: products, dense form, determinants, perturbations and the circulant nearby."""

import numpy as np
import pytest

from mri_design import GeneralizedLinearModel, Identity, Laplace, SiteBlock
from mri_design.model import PosteriorPrecision
from tests.slow_cases import slow_case

Pi = tuple[np.ndarray, ...]


def precision_of(model: GeneralizedLinearModel, pi: Pi) -> PosteriorPrecision:
    return PosteriorPrecision(model.measurement, model.blocks, pi)


def as_real(u: np.ndarray, is_complex: bool) -> np.ndarray:
    flat = u.reshape(len(u), -1)
    return np.concatenate([flat.real, flat.imag], axis=1) if is_complex else flat.real


def test_products_are_those_of_the_dense_matrix(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A = precision_of(model, random_precisions(model, 1))
    rng, is_complex = np.random.default_rng(2), model.measurement.in_complex
    u = rng.standard_normal((3, *model.image_shape))
    if is_complex:
        u = u + 1j * rng.standard_normal(u.shape)
    matrix = A.dense_real()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(as_real(A(u), is_complex), as_real(u, is_complex) @ matrix, atol=1e-11)
    np.testing.assert_allclose(A(u[0]), A(u)[0], atol=1e-12)
    blocks, u = (SiteBlock("pixels", Identity((3, 2)), Laplace(1.0)),), np.ones((3, 2), complex)
    A = PosteriorPrecision(Identity((3, 2)), blocks, (np.full((3, 2), 2.0),))
    np.testing.assert_allclose(A(u), 3)
    assert (u == 1).all()


def test_complex_linear_where_real_and_imaginary_parts_are_exchangeable(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A = precision_of(model, random_precisions(model, 3))
    assert A.complex_linear == (model_name in ("moduli", "groups", "coils", "wavelet"))
    if model.measurement.in_complex:
        u = np.random.default_rng(4).standard_normal(model.image_shape) + 0j
        assert A.complex_linear == np.allclose(A(1j * u), 1j * A(u))


def test_single_precision_stays_single(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name, real=np.float32)
    if model_name in ("coils", "matrix"):
        pytest.skip("the operator's own arrays are double")
    A = precision_of(model, tuple(p.astype(np.float32) for p in random_precisions(model, 5)))
    like = model.back_projection()
    assert like.dtype in (np.float32, np.complex64)
    assert A(like).dtype == A.perturbations(np.random.default_rng(0), 2, like).dtype == like.dtype


@pytest.mark.parametrize("model_name", ["groups", "coils", "matrix", slow_case("parts"), slow_case("wavelet")])
def test_perturbations_have_covariance_A(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A, count = precision_of(model, random_precisions(model, 6)), 8_000
    b = A.perturbations(np.random.default_rng(7), count, like=model.back_projection())
    assert b.shape == (count, *model.image_shape)
    flat, matrix = as_real(b, model.measurement.in_complex), A.dense_real()
    # The standard error of an empirical covariance entry is sqrt((A_ii A_jj + A_ij^2) / count).
    error = np.sqrt((np.outer(matrix.diagonal(), matrix.diagonal()) + matrix**2) / count)
    z = (flat.T @ flat / count - matrix) / error
    assert np.abs(z).max() < 5
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.25
    assert np.abs(flat.mean(axis=0) * np.sqrt(count / matrix.diagonal())).max() < 5


@pytest.mark.parametrize("model_name", ["coils", "matrix"])
def test_perturbations_that_are_made_again_are_the_same(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A, like = precision_of(model, random_precisions(model, 6)), model.back_projection()
    made = [A.perturbations(np.random.default_rng(7), 3, like, again=again) for again in (False, True, True)]
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])


def test_circulant_spectrum_where_every_block_knows_its_own(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    A = precision_of(model, random_precisions(model, 8))
    if model_name in ("parts", "real image", "matrix"):
        assert A.circulant_spectrum is None and A.preconditioner is None
        return
    fourier = np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in model.image_shape))
    unit = np.eye(len(fourier), dtype=complex).reshape(-1, *model.image_shape)
    dense = A(unit).reshape(len(fourier), -1).T
    exact = np.einsum("ki,ij,kj->k", fourier, dense, fourier.conj()).real.reshape(model.image_shape)
    tolerance = 0.3 if model_name == "wavelet" else 1e-12  # a padded wavelet knows it only nearly
    np.testing.assert_allclose(A.circulant_spectrum, exact, rtol=tolerance)
    r = np.random.default_rng(9).standard_normal(model.image_shape) + 0j
    np.testing.assert_allclose(A.preconditioner(r), np.fft.ifft2(np.fft.fft2(r) / A.circulant_spectrum), atol=1e-12)
