"""Fourier transforms, wavelets and measurements against plain sums, and circulant spectra."""

import numpy as np
import pytest
import scipy.fft

import mri_design as md
from mri_design.experiment import load_scan
from mri_design.operators import (
    CartesianSamples,
    CentredFFT,
    Diagonal,
    FiniteDifferences,
    GraphDifferences,
    Identity,
    LinearOperator,
    ScalarOperator,
    Wavelet,
    cartesian,
    chosen_flags,
    chosen_numbers,
)
from tests.arrays import noise
from tests.refusals import refused

SIZES = [(4, 4), (5, 4), (4, 7), (9, 5), (1, 6)]


def centred_matrix(n: int) -> np.ndarray:
    """exp(-2 pi i j k / n) / sqrt(n) with j and k counted from n // 2."""
    position = np.arange(n) - n // 2
    return np.exp(-2j * np.pi * np.outer(position, position) / n) / np.sqrt(n)


@pytest.mark.parametrize("grid", SIZES)
def test_it_is_the_centred_sum(grid):
    u = noise(grid)
    expected = centred_matrix(grid[0]) @ u @ centred_matrix(grid[1]).T
    np.testing.assert_allclose(CentredFFT(grid)(u), expected, atol=1e-13)


SHAPES = [(8, 8), (9, 7), (6, 4)]


def dense_spectrum(operator: LinearOperator, weights: np.ndarray | float) -> np.ndarray:
    """Diagonal of F (A^H W A) F^H with the plain (uncentred) unitary DFT."""
    matrix = operator.to_dense()
    full = np.broadcast_to(weights, operator.out_shape).ravel()
    fourier = np.kron(*(np.fft.fft(np.eye(n), norm="ortho") for n in operator.in_shape))
    gram = matrix.conj().T @ (full[:, None] * matrix)
    return np.einsum("ki,ij,kj->k", fourier, gram, fourier.conj()).real.reshape(operator.in_shape)


def maps(shape: tuple[int, int]) -> np.ndarray:
    return noise((3, *shape), seed=5)


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


@pytest.mark.parametrize("name", ["haar", "db4", "sym5", "coif1"])
@pytest.mark.parametrize(
    ("grid", "levels", "padded"),
    [((8, 8), 3, (8, 8)), ((4, 12), 2, (4, 12)), ((9, 7), 2, (12, 8)), ((5, 6), 1, (6, 6)), ((13, 16), 3, (16, 16))],
)
def test_isometric_on_any_grid(name, grid, levels, padded):
    W = Wavelet(grid, name, levels, is_complex=False).to_dense()
    assert W.shape == (np.prod(padded), np.prod(grid))
    np.testing.assert_allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-10)


def test_levels_are_where_the_map_says_and_a_constant_is_coarse_alone():
    levels = Wavelet((16, 8), "db4", 2).level_map()
    assert levels.shape == (16, 8)
    assert np.bincount(levels.ravel()).tolist() == [4 * 2, 3 * 4 * 2, 3 * 8 * 4]
    assert (levels[:4, :2] == 0).all()
    assert (levels[8:] == 2).all() and (levels[:, 4:] == 2).all()
    operator = Wavelet((16, 16), "db4", 2)
    coefficients, levels = operator(np.ones((16, 16), dtype=complex)), operator.level_map()
    assert np.abs(coefficients[levels > 0]).max() < 1e-9
    np.testing.assert_allclose(coefficients[levels == 0], 4.0, rtol=1e-9)


def test_lines_come_in_acquisition_order_from_the_centred_spectrum():
    shape, lines = (7, 6), [5, 0, 3]
    u, maps = noise(shape), noise((2, *shape), seed=1)
    X = cartesian(lines, shape, maps)
    assert X.out_shape == (2, 3, 6)
    for coil in range(2):
        np.testing.assert_allclose(X(u)[coil], CentredFFT(shape)(maps[coil] * u)[lines], atol=1e-13)
    np.testing.assert_allclose(cartesian(lines, shape)(u)[0], CentredFFT(shape)(u)[lines], atol=1e-13)
    assert X.lines.tolist() == lines
    assert np.flatnonzero(X.mask).tolist() == [0, 3, 5]


@pytest.mark.parametrize("shape", [(8, 6), (7, 9), (6, 1)])
@pytest.mark.parametrize("coils", [0, 1, 4])
def test_grams_are_two_passes_also_of_real_arrays(shape, coils):
    maps = noise((coils, *shape)) if coils else None
    lines, samples = [0, shape[0] - 1, shape[0] // 2], np.random.default_rng(1).random(shape) < 0.4
    u = noise((2, *shape), seed=2)
    for X in (cartesian(lines, shape, maps), CartesianSamples(samples, maps)):
        np.testing.assert_allclose(X.gram(u), X.adjoint(X(u)), atol=1e-12)
        np.testing.assert_allclose(X.gram(u.real), X.adjoint(X(u.real)), atol=1e-12)
        assert X.gram(u.astype(np.complex64)).dtype == np.complex64 and X.gram is X.gram


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(24, 20), (25, 17), (11, 10), (131, 16)])  # the last one is left to the library
@pytest.mark.parametrize("coils", [0, 3])
def test_the_adjoint_of_shared_noise_is_that_of_the_lines_own_noise(shape, coils, real):
    real, maps = np.dtype(real), noise((coils, *shape)) if coils else None
    X = cartesian([3, 1, 7, shape[0] - 1], shape, maps)
    Y = CartesianSamples(np.random.default_rng(5).random(shape) < 0.4, maps)
    for operator in (X, Y):
        shared = operator.shared_noise(np.random.default_rng(6), 2, real)
        assert shared.shape == (2, *operator.noise_shape) and shared.real.dtype == real
        own = operator.adjoint(operator.unit_noise(np.random.default_rng(6), 2, real))
        np.testing.assert_allclose(operator.adjoint_of_noise(shared), own, atol=20 * np.finfo(real).eps)


@pytest.mark.parametrize("shape", [(24, 20), (25, 17), (7, 9), (131, 16)])  # the last two are left to the library
@pytest.mark.parametrize("coils", [0, 3])
def test_columns_are_lines_with_readouts_transformed_back(shape, coils):
    u, maps = noise((2, *shape)), noise((coils, *shape), seed=7) if coils else None
    X = cartesian([5, 0, 3], shape, maps)
    expected = scipy.fft.fftshift(scipy.fft.ifft(scipy.fft.ifftshift(X(u), axes=-1), norm="ortho"), axes=-1)
    np.testing.assert_allclose(X.columns(u), expected, atol=1e-13)
    np.testing.assert_allclose(X.columns(u[0]), expected[0], atol=1e-13)
    np.testing.assert_allclose(X.columns(u.astype(np.complex64)), expected, atol=1e-5)


def test_a_mask_of_whole_lines_is_those_lines():
    shape, lines = (8, 6), [1, 4, 5]
    u, maps, mask = noise(shape), noise((2, *shape), seed=4), np.zeros(shape, dtype=bool)
    mask[lines] = True
    for known in (None, maps):
        X, Y = cartesian(lines, shape, known), CartesianSamples(mask, known)
        np.testing.assert_allclose(Y(u), X(u).reshape(Y.out_shape), atol=1e-13)
        np.testing.assert_allclose(Y.gram(u), X.gram(u), atol=1e-12)
        np.testing.assert_allclose(Y.circulant_spectrum(), X.circulant_spectrum(), atol=1e-13)
        noises = [operator.unit_noise(np.random.default_rng(0), 3, np.dtype(np.float32)) for operator in (X, Y)]
        np.testing.assert_array_equal(noises[0].reshape(noises[1].shape), noises[1])


CHOSEN = [3, 6, 7, 8, 9, 12]
MASK = np.isin(np.arange(16), CHOSEN)


@pytest.fixture(scope="module")
def head() -> md.SliceModel:
    return md.calibrate(load_scan("phantom:brain", md.Recipe.of({"input": {"matrix": 16}}))).slice_model()


def test_a_mask_gives_the_same_image_design_and_model_as_its_numbers(head: md.SliceModel) -> None:
    by_number = md.reconstruct(head, CHOSEN, with_std=False)
    for mask in (MASK, MASK.tolist()):
        np.testing.assert_array_equal(md.reconstruct(head, mask, with_std=False).image, by_number.image)
    np.testing.assert_array_equal(head.acquire(MASK), head.acquire(CHOSEN))
    np.testing.assert_array_equal(head.model(MASK).data, head.model(CHOSEN).data)
    assert head.measurement(MASK).lines.tolist() == md.operators.cartesian(MASK, (16, 16)).lines.tolist() == CHOSEN
    by_mask = md.run_design([head], "random", 6, start=np.isin(np.arange(16), [7, 8, 9]))
    assert by_mask.trace.lines == md.run_design([head], md.make_strategy("random"), 6, start=[7, 8, 9]).trace.lines
    assert by_mask.trace.start == (7, 8, 9)
    for call in (md.reconstruct, md.SliceModel.model, lambda one, mask: md.run_design([one], "random", 6, start=mask)):
        with refused("lines"):
            call(head, MASK[1:])


@pytest.mark.parametrize("dtype", [int, np.uint8, np.float32, complex, list])
def test_zeros_and_ones_of_any_type_are_a_mask(dtype: type) -> None:
    ones = MASK.astype(int).tolist() if dtype is list else MASK.astype(dtype)
    for given in (ones, np.asarray(ones).reshape(1, 16)):  # a row of MATLAB
        assert list(chosen_numbers(given, (16,), "line")) == CHOSEN
        np.testing.assert_array_equal(chosen_flags(given, (16,)), MASK)
    plane = np.zeros((4, 6), dtype=bool)
    plane[3, 1], plane[0, 2] = True, True
    assert chosen_numbers(plane, (4, 6), "sample") == [2, 19]


def test_numbers_stay_numbers() -> None:
    for given in ([0, 1], np.array([1]), np.arange(16)[::-1], np.array([3.0, 5.0]), []):
        assert list(chosen_numbers(given, (16,), "line")) == np.asarray(given, dtype=int).tolist()
    both = md.operators.cartesian((0, 1), (2, 4))  # may be both: a tuple is a design of two lines
    assert both(np.ones((2, 4), complex)).size == 8


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ([0, 1, 1, 0, 1], 16),  # a mask of another length
        (np.repeat([0, 255], 8), 16),  # values that are neither
        (np.linspace(0, 1, 16)[[0, 0, *range(14)]], 16),
        (np.array([3.0, 5.5]), 16),
        (np.eye(5), 16),
        (["a"], 16),
        ("abc", 16),
        (3, 16),
        (None, 16),
        ([0, 1], 2),  # may be both
        (np.array([1, 0]), 2),
    ],
)
def test_what_is_neither_or_may_be_both_is_refused(given: object, lines: int) -> None:
    with refused("lines"):
        chosen_numbers(given, (lines,), "line")  # type: ignore[arg-type]
