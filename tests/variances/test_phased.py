"""The control variate beside sites that know the image's phase, against exact variances."""

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    Exact,
    FiniteDifferences,
    Identity,
    Laplace,
    LinearOperator,
    SiteBlock,
    Wavelet,
    cartesian,
)
from mri_design.model import PosteriorPrecision, least_memory
from mri_design.operators import GraphDifferences, PhasedParts
from mri_design.variances import PhasedControl
from tests.variances.running import run, together

N = (12, 14)
SIZE = N[0] * N[1]


def maps(coils: int) -> np.ndarray | None:
    if coils == 1:
        return None
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in N), indexing="ij")
    angles = 2 * np.pi * np.arange(coils) / coils
    seen = np.array([np.exp(-((y - np.sin(a)) ** 2) - (x - np.cos(a)) ** 2 + 1j * a) for a in angles])
    return seen / np.sqrt(np.sum(np.abs(seen) ** 2, axis=0))


def inner_operators() -> tuple[LinearOperator, ...]:
    further = np.random.default_rng(5).integers(1, SIZE, size=(3, *N))
    neighbours = (np.arange(SIZE).reshape(N) + further) % SIZE
    return Identity(N), FiniteDifferences(N), GraphDifferences(neighbours), Wavelet(N, "db2", 1)


def precision_of(coils: int = 1, apart: bool = True) -> PosteriorPrecision:
    """Site precisions as those of an image: small on a square's edge; imaginary parts are held tighter."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in N), indexing="ij")
    rotation = np.exp(1j * (0.8 * y + 0.5 * x**2))
    emphasis = 1 + 0.6 * np.exp(-(y**2) - x**2)
    image = np.zeros(N, complex)
    image[3:-3, 4:-4] = 1
    blocks, pi = [], []
    for name, inner in zip("abcd", inner_operators()[:3], strict=False):
        analysis = PhasedParts(inner, rotation, emphasis)
        edges = np.abs(inner(image))[..., None]
        weights = 1 / (0.3 + 2 * edges) * np.array([1.0, 3.0 if apart else 1.0])
        blocks.append(SiteBlock(name, analysis, Laplace(1.0)))
        pi.append(weights)
    X = cartesian([4, 5, 6, 7, 8, 1, 10], N, maps(coils))
    return PosteriorPrecision(X, tuple(blocks), tuple(pi))


def real_matrix(function: object) -> np.ndarray:
    """A real-linear map of images as a matrix on (real parts, imaginary parts)."""
    unit = np.concatenate([np.eye(SIZE), 1j * np.eye(SIZE)]).reshape(-1, *N)
    images = function(unit).reshape(2 * SIZE, -1)
    return np.concatenate([images.real, images.imag], axis=1).T if np.iscomplexobj(images) else images.T


@pytest.mark.parametrize("coils", [1, 3])
def test_the_known_moment_is_that_of_dense_matrices(coils):
    precision = precision_of(coils)
    control = PhasedControl.of(precision)
    assert control.whole_gram is (coils == 1)
    P = real_matrix(control.image)
    rotation = precision.blocks[0].analysis.rotation
    emphasis = precision.blocks[0].analysis.imaginary
    for inner in inner_operators():
        on_grid = inner.out_shape[-2:] == N
        parts = PhasedParts(inner, rotation, emphasis if on_grid else 1.3)
        B = real_matrix(parts)
        first, second = control.moments(parts)
        np.testing.assert_allclose(first.ravel(), np.einsum("ij,jk,ik->i", B, P, B), rtol=1e-9)
        assert second is None
    first, _ = control.moments(Identity(N))
    both = np.diag(P).reshape(2, SIZE).sum(axis=0)
    np.testing.assert_allclose(2 * first.ravel(), both, rtol=1e-9)
    assert control.moments(FiniteDifferences(N)) is None  # of the image itself, phase and all
    assert control.moments(PhasedParts(Identity(N), rotation.copy())) is None  # who knows whether that is the phase


def test_without_a_phase_there_is_no_such_control():
    straight = tuple(SiteBlock("a", operator, Laplace(1.0)) for operator in inner_operators()[:2])
    precision = PosteriorPrecision(cartesian([6, 7, 8], N), straight, (np.ones(N), np.ones((2, *N))))
    assert PhasedControl.of(precision) is None


@pytest.mark.parametrize(("coils", "apart"), [(1, False), (3, True)])
def test_unbiased_and_far_nearer_than_plain_draws(coils, apart):
    precision = precision_of(coils, apart)
    exact = together(run(Exact(), precision).values)
    accurate = ControlVariate(samples=8, tolerance=1e-6, with_bias=False)
    results = [run(accurate, precision, seed) for seed in range(16)]
    assert all(r.kind == "unbiased" and r.convergence.converged for r in results)
    values = np.array([together(r.values) for r in results])
    scatter = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    scores = (values.mean(axis=0) - exact) / scatter
    assert abs(np.mean(scores)) < 0.15  # coefficients scatter together
    assert np.abs(scores).max() < 6
    assert np.sqrt(np.mean(scores**2)) < 1.2
    stated = np.array([together(r.std_error) for r in results])
    assert 0.8 < np.sqrt(np.mean(stated**2)) / np.sqrt(np.mean(values.var(axis=0, ddof=1))) < 1.2
    dense = np.linalg.inv(precision.dense_real())
    pixels = np.diag(dense).reshape(2, *N).sum(axis=0)
    images = np.array([r.image for r in results])
    error = images.std(axis=0, ddof=1) / np.sqrt(len(images))
    assert abs(np.mean((images.mean(axis=0) - pixels) / error)) < 0.3
    assert np.sqrt(np.mean(((images.mean(axis=0) - pixels) / error) ** 2)) < 1.3


def test_draws_a_few_at_a_time_are_the_same_and_single_precision_stays_single():
    precision = precision_of()
    whole = run(ControlVariate(8, with_bias=False), precision)
    real = precision.site_precisions[0].dtype
    least = least_memory(8, precision.measurement, [block.analysis for block in precision.blocks], real)
    little = run(ControlVariate(8, with_bias=False, memory=least), precision)
    np.testing.assert_allclose(together(little.values), together(whole.values), rtol=1e-6)
    np.testing.assert_allclose(little.image, whole.image, rtol=1e-6)
    assert whole.explained is not None
    precision = precision_of()
    single = tuple(pi.astype(np.float32) for pi in precision.site_precisions)
    precision = PosteriorPrecision(precision.measurement, precision.blocks, single)
    made = run(ControlVariate(4), precision, like=np.zeros(N, np.complex64))
    assert made.samples.dtype == np.complex64
    assert all(v.dtype == np.float32 for v in (*made.values, *made.std_error, *made.bias, made.image))
    assert all((b > 0).all() for b in made.bias)
