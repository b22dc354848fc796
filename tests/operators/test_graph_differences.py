"""Differences along the edges of a graph: the textbook matrix, compiled products, the same bits every time."""

from dataclasses import dataclass

import numpy as np
import pytest

from mri_design import FiniteDifferences, Identity, Wavelet
from mri_design.operators import GraphDifferences
from tests.operators.noise import noise

SHAPES = [(1, 1), (3, 5), (9, 8), (17, 12)]
ROUNDING = {"f": 3e-5, "F": 3e-5, "d": 1e-12, "D": 1e-12}


@dataclass(frozen=True)
class Case:
    """Random numbers of a kind."""

    shape: tuple[int, int]
    dtype: str
    batch: tuple[int, ...] = ()

    @property
    def operator(self) -> GraphDifferences:
        return GraphDifferences(neighbours(self.shape), is_complex=self.dtype in "FD")

    def numbers(self, shape: tuple[int, ...], seed: int) -> np.ndarray:
        return noise((*self.batch, *shape), self.dtype, seed)


def neighbours(shape: tuple[int, int], count: int = 4) -> np.ndarray:
    return np.random.default_rng(2).integers(0, shape[0] * shape[1], (count, *shape))


def textbook(shape: tuple[int, int]) -> np.ndarray:
    size = shape[0] * shape[1]
    flat = neighbours(shape).reshape(-1, size)
    return np.concatenate([np.eye(size) - np.eye(size)[row] for row in flat])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_are_those_of_the_textbook(shape):
    np.testing.assert_array_equal(GraphDifferences(neighbours(shape)).to_dense(), textbook(shape))


@pytest.mark.parametrize("dtype", "FD")
@pytest.mark.parametrize("batch", [(), (1,), (3,), (9,)], ids=str)
def test_parts_may_have_weights_of_their_own(dtype, batch):
    case = Case((9, 8), dtype, batch)
    u, total = case.numbers((9, 8), 1), np.zeros((*batch, 9, 8), dtype)
    weights = np.random.default_rng(4).uniform(0.1, 2, (4, 9, 8, 2)).astype(u.real.dtype)
    case.operator.add_weighted_parts(weights, u, total)
    for part, of_total, of_u in ((0, total.real, u.real), (1, total.imag, u.imag)):
        real = GraphDifferences(neighbours((9, 8)), is_complex=False)
        expected = real.weighted_gram(weights[..., part], np.ascontiguousarray(of_u))
        np.testing.assert_allclose(of_total, expected, atol=ROUNDING[dtype])


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
