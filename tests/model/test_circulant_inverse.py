"""The circulant preconditioner: exact on circulants, and worth its FFTs on a posterior precision."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Gaussian, Identity, MRSlice, SiteBlock, SparsityBlock, cartesian
from mri_design.krylov.conjugate_gradients import conjugate_gradients
from mri_design.model.circulant_inverse import circulant_inverse
from mri_design.model.precision import PosteriorPrecision


def noise(shape: tuple[int, ...], is_complex: bool) -> np.ndarray:
    rng = np.random.default_rng(1)
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if is_complex else values


@pytest.mark.parametrize("shape", [(6, 6), (7, 5), (8, 3)])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_inverts_circulants(shape, single, is_complex):
    spectrum = np.fft.fftfreq(shape[0])[:, None] ** 2 + np.abs(np.fft.fftfreq(shape[1])) + 0.5
    kernel = np.fft.ifft2(spectrum)

    def convolve(u: np.ndarray) -> np.ndarray:
        total = np.zeros_like(u)
        for i, j in np.ndindex(*shape):
            total += kernel[i, j].astype(u.dtype) * np.roll(u, (i, j), axis=(-2, -1))
        return total

    assert np.abs(kernel.imag).max() < 1e-15
    kernel = kernel.real
    u = noise((3, *shape), is_complex)
    if single:
        u = u.astype(np.complex64 if np.iscomplexobj(u) else np.float32)
    back = circulant_inverse(spectrum)(convolve(u))
    assert back.dtype == u.dtype
    np.testing.assert_allclose(back, u, atol=1e-5 if single else 1e-12)


def test_complex_vectors_take_spectra_without_symmetry():
    rng = np.random.default_rng(2)
    spectrum, u = rng.uniform(1, 2, (5, 4)), rng.standard_normal((5, 4)) + 1j * rng.standard_normal((5, 4))
    image = np.fft.ifft2(spectrum * np.fft.fft2(u))
    np.testing.assert_allclose(circulant_inverse(spectrum)(image), u, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 4), (6, 7)])
def test_on_real_vectors_it_is_the_real_part_and_positive_definite(shape):
    rng = np.random.default_rng(3)
    spectrum = rng.uniform(0.1, 10, shape)
    precondition = circulant_inverse(spectrum)
    n = shape[0] * shape[1]
    matrix = precondition(np.eye(n).reshape(n, *shape)).reshape(n, n)
    expected = np.fft.ifft2(np.fft.fft2(np.eye(n).reshape(n, *shape)) / spectrum).real.reshape(n, n)
    np.testing.assert_allclose(matrix, expected, atol=1e-12)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > 0


def scene(shape: tuple[int, int]) -> np.ndarray:
    y, x = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None] - 0.5
    image = 1.0 * (y**2 + 1.4 * x**2 < 0.18) + 0.6 * (np.abs(y - 0.1) + np.abs(x) < 0.12)
    return image * np.exp(1j * (2 * y + x))


def realistic_precision(shape: tuple[int, int], coils: int, prior: tuple[SparsityBlock, ...]) -> PosteriorPrecision:
    """A of a slice under the site precisions that the true image would have with z = 0.3 (sites' own units)."""
    rng = np.random.default_rng(4)
    sd, n = 0.02, shape[0]
    maps = None
    if coils:
        y, x = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None] - 0.5
        angle = 2 * np.pi * np.arange(coils) / coils
        maps = np.exp(
            -2 * ((y - 0.4 * np.sin(angle)[:, None, None]) ** 2 + (x - 0.4 * np.cos(angle)[:, None, None]) ** 2)
        )
        maps = (maps / np.sqrt((maps**2).sum(axis=0))).astype(complex)
    every = np.ones(n, dtype=bool)
    blank = MRSlice(np.zeros((max(coils, 1), *shape), dtype=complex), every, sd**2, maps, prior=prior)
    clean = blank.encoding()(scene(shape))
    noise = rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape)
    slice_ = MRSlice(clean + sd * noise, every, sd**2, maps, prior=prior)
    lines = sorted({*range(n // 2 - 3, n // 2 + 4), *rng.choice(n, n // 4, replace=False).tolist()})
    model = slice_.model(lines)
    pi = tuple(
        block.potential.site_precision(block.site_power(s) / sd**2 + 0.3 * block.potential.start_variance)
        for block, s in zip(model.blocks, model.analysis_coefficients(scene(shape)), strict=True)
    )
    return PosteriorPrecision(model.measurement, model.blocks, pi)


TOTAL_VARIATION = (SparsityBlock("pixels", 3.0), SparsityBlock("differences", 100.0))
WAVELETS = (SparsityBlock("wavelet", 30.0), SparsityBlock("differences", 10.0))
DEFAULT = (SparsityBlock("pixels", 100.0), SparsityBlock("differences", 10.0))


@pytest.mark.parametrize(
    ("shape", "coils", "prior", "gain"),
    [
        ((48, 48), 0, TOTAL_VARIATION, 2.3),
        ((45, 41), 4, TOTAL_VARIATION, 2.2),
        ((48, 48), 0, WAVELETS, 1.6),
        ((45, 41), 0, WAVELETS, 1.4),
        ((45, 41), 4, WAVELETS, 1.4),
        ((48, 48), 0, DEFAULT, 1.1),
    ],
    ids=["TV", "TV, coils", "wavelets", "wavelets, padded", "wavelets, coils", "pixels, which gain little"],
)
def test_saves_iterations_on_a_posterior_precision(shape, coils, prior, gain):
    precision = realistic_precision(shape, coils, prior)
    b = precision.perturbations(np.random.default_rng(5), 2, like=np.zeros(shape, dtype=complex))
    exact, _ = conjugate_gradients(precision, b, n_axes=2, tolerance=1e-9, max_iterations=2000)

    def error(iterations: int, preconditioned: bool) -> float:
        """Error in the norm of A, which both methods make small."""
        precondition = precision.preconditioner if preconditioned else None
        x, _ = conjugate_gradients(
            precision, b, n_axes=2, preconditioner=precondition, tolerance=0, max_iterations=iterations
        )
        return float(np.vdot(x - exact, precision(x - exact)).real)

    for iterations in (12, 20):
        assert error(iterations, True) < error(int(gain * iterations), False)


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_a_circulant_precision_needs_one_iteration(is_complex):
    """All lines and equal precisions make A circulant, so its preconditioner is its inverse."""
    shape = (9, 8)
    blocks = tuple(
        SiteBlock(name, analysis, Gaussian(1.0))
        for name, analysis in [("pixels", Identity(shape)), ("differences", FiniteDifferences(shape))]
    )
    precision = PosteriorPrecision(cartesian([0, 3, 4, 5], shape), blocks, (np.array(0.2), np.array(3.0)))
    b = noise((2, *shape), is_complex) + 0j
    _, convergence = conjugate_gradients(
        precision, b, n_axes=2, preconditioner=precision.preconditioner, tolerance=1e-10
    )
    assert convergence.converged and convergence.iterations == 1
