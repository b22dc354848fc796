"""Circulants between two diagonals: their parts against dense matrices, and which one is taken."""

import numpy as np
import pytest

import mri_design as md
from mri_design.krylov import conjugate_gradients
from mri_design.model import PosteriorPrecision, ScaledCirculantInverse
from mri_design.operators import FiniteDifferences, GraphDifferences, Identity, LinearOperator, PhasedParts
from mri_design.sites import Laplace
from tests.arrays import smooth_maps

GRID = (8, 10)
SIZE = 80


def operators() -> dict[str, LinearOperator]:
    further = np.random.default_rng(5).integers(1, SIZE, size=(3, *GRID))
    graph = GraphDifferences((np.arange(SIZE).reshape(GRID) + further) % SIZE)
    return {"pixels": Identity(GRID), "differences": FiniteDifferences(GRID), "graph": graph}


def square(strength: float = 1.0, coils: int = 1, phase: bool = False) -> PosteriorPrecision:
    """Site precisions as those of a bright square: small inside and on its edge."""
    image = np.zeros(GRID, complex)
    image[2:-2, 3:-3] = 5
    inner = list(operators().values())
    pi = [strength / (0.05 + np.abs(one(image))) for one in inner]
    if phase:
        rotation = np.exp(1j * np.linspace(0, 1, SIZE).reshape(GRID))
        inner, pi = [PhasedParts(one, rotation, 1.5) for one in inner], [p[..., None] * [1.0, 2.0] for p in pi]
    blocks = tuple(md.SiteBlock(f"block {k}", one, Laplace(1.0)) for k, one in enumerate(inner))
    maps = smooth_maps(GRID, coils) if coils > 1 else None
    return PosteriorPrecision(md.operators.cartesian([3, 4, 5, 1], GRID, maps), blocks, tuple(pi))


def real_matrix(function: object) -> np.ndarray:
    """A real-linear map of images as a matrix on (real parts, imaginary parts)."""
    unit = np.concatenate([np.eye(SIZE), 1j * np.eye(SIZE)]).reshape(-1, *GRID)
    images = function(unit).reshape(2 * SIZE, -1)
    return np.concatenate([images.real, images.imag], axis=1).T


@pytest.mark.parametrize("name", ["pixels", "differences", "graph"])
def test_diagonals_and_scaled_weights_are_those_of_dense_matrices(name):
    operator, rng = operators()[name], np.random.default_rng(1)
    B, scale = operator.to_dense().real, rng.uniform(0.5, 2, GRID)
    for shape in {operator.out_shape, (1, *GRID) if name == "graph" else operator.out_shape}:
        weights = rng.uniform(0.1, 3, shape)
        whole = np.broadcast_to(weights, operator.out_shape).ravel()
        gram = B.T @ (whole[:, None] * B)
        np.testing.assert_allclose(operator.gram_diagonal(weights).ravel(), np.diag(gram), rtol=1e-12)
        scaled = np.broadcast_to(operator.scaled_weights(weights, scale), operator.out_shape).ravel()
        apart = B.T @ (scaled[:, None] * B) - scale.ravel()[:, None] * gram * scale.ravel()
        assert np.abs(apart - np.diag(np.diag(apart))).max() < 1e-12  # off the diagonal they are equal
    spectrum = np.abs(np.fft.fft2(rng.standard_normal(GRID))) ** 2 + 1
    P = np.fft.ifft2(spectrum[None] * np.fft.fft2(np.eye(SIZE).reshape(-1, *GRID))).real.reshape(SIZE, SIZE).T
    V = scale.ravel()[:, None] * P * scale.ravel()
    np.testing.assert_allclose(operator.row_powers(spectrum).ravel(), np.einsum("ij,jk,ik->i", B, P, B), rtol=1e-10)
    found = operator.row_powers(spectrum, scale).ravel()
    np.testing.assert_allclose(found, np.einsum("ij,jk,ik->i", B, V, B), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 6), (6, 1), (1, 1), (2, 3)])
def test_a_side_of_one_pixel_has_no_differences(shape):
    B = FiniteDifferences(shape)
    dense, weights = B.to_dense().real, np.random.default_rng(4).uniform(1, 2, B.out_shape)
    exact = np.diag(dense.T @ (weights.ravel()[:, None] * dense))
    np.testing.assert_allclose(B.gram_diagonal(weights).ravel(), exact, atol=1e-12)


def test_the_measurement_has_the_nearest_circulant_between_the_diagonals():
    """Sites on pixels alone: T^H A T less its own part that is no circulant has the same Fourier diagonal."""
    rng = np.random.default_rng(2)
    X, pi = md.operators.cartesian([3, 4, 5, 1], GRID), 1 / rng.uniform(0.2, 5, GRID)
    A = PosteriorPrecision(X, (md.SiteBlock("pixels", Identity(GRID), Laplace(1.0)),), (pi,))
    P = A.preconditioner
    fourier = np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in GRID))
    dense = A(np.eye(SIZE, dtype=complex).reshape(-1, *GRID)).reshape(SIZE, SIZE).T
    between = P.scale.ravel()[:, None] * dense * P.scale.ravel()
    np.testing.assert_allclose(1 / P.own.ravel(), np.diag(fourier @ between @ fourier.conj().T).real, rtol=1e-10)
    inverse = P.scale.ravel()[:, None] * (fourier.conj().T @ (P.own.ravel()[:, None] * fourier)) * P.scale.ravel()
    r = rng.standard_normal((SIZE, 2)) @ [1, 1j]
    np.testing.assert_allclose(P(r.reshape(GRID)).ravel(), inverse @ r, atol=1e-12)


@pytest.mark.parametrize("phase", [False, True])
@pytest.mark.parametrize("coils", [1, 3])
def test_it_is_symmetric_positive_and_its_volume_that_of_the_matrix(coils, phase):
    P = square(coils=coils, phase=phase).preconditioner
    assert P.scale is not None and (P.other is not None) is phase
    matrix = real_matrix(P)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    sign, volume = np.linalg.slogdet(matrix)
    assert sign > 0 and np.linalg.eigvalsh(matrix).min() > 0
    np.testing.assert_allclose(2 * P.log_volume, volume, rtol=1e-10)


@pytest.mark.parametrize("phase", [False, True])
@pytest.mark.parametrize("coils", [1, 3])
def test_it_takes_fewer_products_than_the_circulant_of_the_image_itself(coils, phase):
    A = square(coils=coils, phase=phase)
    b = A.perturbations(np.random.default_rng(3), 4, np.zeros(GRID, complex))
    spent = []
    for P in (A.preconditioner, ScaledCirculantInverse(1 / A.circulant_spectrum)):
        x, ended = conjugate_gradients(A, b, n_axes=2, preconditioner=P, tolerance=1e-6)
        np.testing.assert_allclose(A(x), b, atol=1e-3)
        spent.append(ended.matvecs)
    assert spent[0] < 0.85 * spent[1]


def test_where_sites_are_weak_the_circulant_of_the_image_itself_is_nearer():
    A = square(strength=1e-7)
    P = A.preconditioner
    assert P.scale is None
    np.testing.assert_allclose(P.own, 1 / A.circulant_spectrum, rtol=1e-12)
