"""circulant_spectrum is the diagonal of F A^H W A F^H: the circulant nearest to A^H W A."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, LinearOperator, Wavelet, cartesian
from mri_design.operators import CentredFFT, Diagonal, GraphDifferences, ScalarOperator

SHAPES = [(8, 8), (9, 7), (6, 4)]


def dense_spectrum(operator: LinearOperator, weights: np.ndarray | float) -> np.ndarray:
    """Diagonal of F (A^H W A) F^H with the plain (uncentred) unitary DFT."""
    matrix = operator.to_dense()
    full = np.broadcast_to(weights, operator.out_shape).ravel()
    fourier = np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in operator.in_shape))
    gram = matrix.conj().T @ (full[:, None] * matrix)
    return np.einsum("ki,ij,kj->k", fourier, gram, fourier.conj()).real.reshape(operator.in_shape)


def maps(shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.standard_normal((3, *shape)) + 1j * rng.standard_normal((3, *shape))


EXACT = {
    "identity": Identity,
    "multiple": lambda shape: ScalarOperator(2.5j, shape),
    "diagonal": lambda shape: Diagonal(maps(shape)[0]),
    "Fourier": CentredFFT,
    "differences": FiniteDifferences,
    "differences, real": lambda shape: FiniteDifferences(shape, is_complex=False),
    "graph": lambda shape: GraphDifferences(np.random.default_rng(1).integers(0, shape[0] * shape[1], (3, *shape))),
    "lines, one coil": lambda shape: cartesian([0, 3, 4], shape),
    "lines, three coils": lambda shape: cartesian([5, 1, 2], shape, maps(shape)),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", list(EXACT))
def test_exact_for_any_weights(name, shape):
    operator = EXACT[name](shape)
    rng = np.random.default_rng(6)
    full = rng.uniform(0.1, 3, operator.out_shape)
    for weights in (1.0, full, full[..., :1]):
        spectrum = operator.circulant_spectrum(weights)
        assert spectrum.shape == shape and spectrum.dtype == np.float64
        np.testing.assert_allclose(spectrum, dense_spectrum(operator, weights), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(("shape", "levels"), [((8, 8), 2), ((8, 4), 1), ((16, 8), 3)])
@pytest.mark.parametrize("wavelet", ["haar", "db4"])
def test_exact_for_wavelets_whose_levels_divide_the_grid(shape, levels, wavelet):
    operator = Wavelet(shape, wavelet, levels)
    weights = np.random.default_rng(7).uniform(0.1, 3, operator.out_shape)
    np.testing.assert_allclose(operator.circulant_spectrum(weights), dense_spectrum(operator, weights), atol=1e-10)
    np.testing.assert_allclose(operator.circulant_spectrum(), 1.0, atol=1e-10)


@pytest.mark.parametrize("shape", [(9, 11), (17, 14)])
def test_close_for_wavelets_on_other_grids(shape):
    """Padding spoils the shifts: exact for equal weights, and near for weights that follow the levels."""
    operator = Wavelet(shape, "db4", 2)
    np.testing.assert_allclose(operator.circulant_spectrum(), 1.0, atol=1e-10)
    weights = np.array([0.01, 1.0, 10.0])[operator.level_map()]
    exact = dense_spectrum(operator, weights)
    error = np.linalg.norm(operator.circulant_spectrum(weights) - exact)
    assert error < 0.5 * np.linalg.norm(exact.mean() - exact)
