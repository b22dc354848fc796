"""Control variates: exact moments, no bias beyond their own standard error, and far less noise than plain sampling."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision
from mri_design.operators import (
    CartesianSamples,
    FiniteDifferences,
    GraphDifferences,
    Identity,
    LinearOperator,
    NonUniformFourier,
    PhasedParts,
    Wavelet,
)
from mri_design.sites import Laplace
from mri_design.variances import CirculantControl, ColumnControl, ControlVariate, Exact, MonteCarlo, ScaledControl
from tests.arrays import smooth_maps, spiral, spokes
from tests.variances.running import narrow_memory, run, run_on, scan_like, together


def test_the_moments_of_the_circulant_control_are_those_of_dense_matrices():
    shape, rng = (12, 16), np.random.default_rng(0)
    operators = [Identity(shape), FiniteDifferences(shape), Wavelet(shape, "db2", 2)]
    blocks = tuple(md.SiteBlock(f"block {i}", B, Laplace(1.0)) for i, B in enumerate(operators))
    pi = tuple(rng.uniform(0.1, 3, B.out_shape) for B in operators)
    precision = PosteriorPrecision(md.operators.cartesian([6, 5, 7, 1, 9], shape), blocks, pi)
    control = CirculantControl.of(precision)
    unit = np.eye(192).reshape(192, *shape) + 0j
    A, P = (f(unit).reshape(192, 192).T for f in (precision, control.image))
    for operator in operators:
        B = operator.to_dense()
        first, second = control.moments(operator)
        np.testing.assert_allclose(first.ravel(), np.diag(B @ P @ B.conj().T).real, rtol=1e-10)
        np.testing.assert_allclose(second.ravel(), np.diag(B @ P @ A @ P @ B.conj().T).real, rtol=1e-10)


@pytest.mark.parametrize("prior", ["differences", "db2"])
def test_few_samples_and_few_products_come_within_two_percent(prior):
    model, pi = scan_like([*range(9, 15), 1, 4, 6, 18, 21], (24, 24), prior)
    exact = together(run_on(Exact(), model, pi).values)
    few = [run_on(ControlVariate(8, tolerance=0.1), model, pi, seed) for seed in range(3)]
    plain = run_on(MonteCarlo(samples=8), model, pi)
    errors = [np.median(np.abs(together(r.values) / exact - 1)) for r in few]
    assert max(errors) < 0.02
    assert np.median(np.abs(together(plain.values) / exact - 1)) > 10 * max(errors)
    assert all(r.convergence.converged for r in few)
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    for seed, made in enumerate(few):
        draws = ControlVariate(8, tolerance=0.1)(precision, (), np.random.default_rng(seed), model.back_projection())
        assert draws.convergence.matvecs <= 50
        assert made.convergence.matvecs <= 1.1 * draws.convergence.matvecs  # with what the bias takes


N = 16
SHAPE = (N, N)


MASK = np.random.default_rng(0).random(SHAPE) < 0.2
MASK[6:10, 6:10] = True
MEASUREMENTS: dict[str, Callable[[], LinearOperator]] = {
    "spokes": lambda: NonUniformFourier(spokes(6, N), SHAPE),
    "spirals": lambda: NonUniformFourier(spiral(N, 1.5, 3, 3, 120), SHAPE, smooth_maps(SHAPE, 4)),
    "mask": lambda: CartesianSamples(MASK, smooth_maps(SHAPE, 4)),
    "lines": lambda: md.operators.cartesian([1, 4, 6, 7, 8, 9, 11, 14], SHAPE, smooth_maps(SHAPE, 4)),
}


@pytest.fixture(scope="module", params=MEASUREMENTS)
def precision(request: pytest.FixtureRequest) -> PosteriorPrecision:
    """Site precisions as inference leaves them: data decide inside the object, the sites in flat parts and outside."""
    if request.param in ("spokes", "spirals"):
        pytest.importorskip("finufft")
    y, x = np.meshgrid(*2 * (np.arange(N) - N // 2,), indexing="ij")
    image = np.hypot(y / 6, x / 5) < 1
    blocks = tuple(md.SiteBlock(str(B), B, Laplace(1.0)) for B in (Identity(SHAPE), FiniteDifferences(SHAPE)))
    edges = (np.abs(block.analysis(image)) for block in blocks)
    pi = tuple(rate / (0.1 + 3 * edge) for rate, edge in zip((0.01, 0.1), edges, strict=True))
    return PosteriorPrecision(MEASUREMENTS[request.param](), blocks, pi)


def scores_of(precision: PosteriorPrecision, estimator: ControlVariate) -> tuple[list, np.ndarray]:
    """Sixteen runs, and how far their mean is from the exact values, in standard errors of it."""
    exact = together(run(Exact(), precision).values)
    results = [run(estimator, precision, seed) for seed in range(16)]
    assert all(r.kind == "unbiased" and r.convergence.converged for r in results)
    values = np.array([together(r.values) for r in results])
    return results, (values.mean(axis=0) - exact) / (values.std(axis=0, ddof=1) / 4)


def stated_over_seen(results: list) -> float:
    """Standard errors as the runs state them over the scatter among them."""
    values, stated = (np.array([together(getattr(r, name)) for r in results]) for name in ("values", "std_error"))
    return np.sqrt(np.mean(stated**2)) / np.sqrt(np.mean(values.var(axis=0, ddof=1)))


def test_unbiased_and_far_nearer_than_plain_draws(precision):
    results, scores = scores_of(precision, ControlVariate(samples=8, tolerance=1e-6, column_limit=0))
    assert abs(np.mean(scores)) < 0.2  # coefficients scatter together
    assert np.abs(scores).max() < 7 and np.sqrt(np.mean(scores**2)) < 1.25
    assert 0.7 < stated_over_seen(results) < 1.3


@pytest.mark.parametrize("sites", [1.0, 0.01])
def test_loose_solves_leave_the_total_within_two_percent(precision, sites):
    weaker = replace(precision, site_precisions=tuple(sites * pi for pi in precision.site_precisions))
    exact = run(Exact(), weaker).values[0].sum()
    estimator = ControlVariate(samples=8, tolerance=0.03, column_limit=0, with_bias=False)
    totals = [run(estimator, weaker, seed).values[0].sum() for seed in range(16)]
    assert abs(np.mean(totals) / exact - 1) < 0.02


def test_the_known_moment_is_that_of_the_dense_matrix(precision):
    assert CirculantControl.of(precision) is None
    control = ScaledControl.of(precision)
    P = control.image(np.eye(N * N).reshape(-1, *SHAPE) + 0j).reshape(N * N, N * N).T
    for block in precision.blocks:
        B = block.analysis.to_dense()
        first, second = control.moments(block.analysis)
        np.testing.assert_allclose(first.ravel(), np.einsum("ij,jk,ik->i", B, P, B.conj()).real, rtol=1e-9)
        assert second is None


def test_lines_of_several_coils_keep_their_columns():
    blocks = (md.SiteBlock("pixels", Identity(SHAPE), Laplace(1.0)),)
    precision = PosteriorPrecision(
        md.operators.cartesian([6, 7, 8, 9, 3], SHAPE, smooth_maps(SHAPE, 3)), blocks, (np.ones(SHAPE),)
    )
    assert isinstance(ControlVariate()._control(precision), ColumnControl)
    assert isinstance(ControlVariate(column_limit=0)._control(precision), ScaledControl)
    assert ControlVariate(column_limit=0, extrapolated=False)._control(precision) is None
    assert isinstance(ControlVariate(control="circulant")._control(precision), ScaledControl)


GRID = (12, 14)
SIZE = 168


def inner_operators() -> tuple[LinearOperator, ...]:
    further = np.random.default_rng(5).integers(1, SIZE, size=(3, *GRID))
    neighbours = (np.arange(SIZE).reshape(GRID) + further) % SIZE
    return Identity(GRID), FiniteDifferences(GRID), GraphDifferences(neighbours), Wavelet(GRID, "db2", 1)


def precision_of(coils: int = 1, apart: bool = True) -> PosteriorPrecision:
    """Site precisions as those of an image: small on a square's edge; imaginary parts are held tighter."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in GRID), indexing="ij")
    rotation = np.exp(1j * (0.8 * y + 0.5 * x**2))
    emphasis = 1 + 0.6 * np.exp(-(y**2) - x**2)
    image = np.zeros(GRID, complex)
    image[3:-3, 4:-4] = 1
    operators, tighter = inner_operators()[:3], np.array([1.0, 3.0 if apart else 1.0])
    pi = tuple(1 / (0.3 + 2 * np.abs(inner(image))[..., None]) * tighter for inner in operators)
    parts = (PhasedParts(inner, rotation, emphasis) for inner in operators)
    blocks = tuple(md.SiteBlock(name, one, Laplace(1.0)) for name, one in zip("abc", parts, strict=True))
    return PosteriorPrecision(
        md.operators.cartesian([4, 5, 6, 7, 8, 1, 10], GRID, smooth_maps(GRID, coils)), blocks, pi
    )


def real_matrix(function: object) -> np.ndarray:
    """A real-linear map of images as a matrix on (real parts, imaginary parts)."""
    unit = np.concatenate([np.eye(SIZE), 1j * np.eye(SIZE)]).reshape(-1, *GRID)
    images = function(unit).reshape(2 * SIZE, -1)
    return np.concatenate([images.real, images.imag], axis=1).T if np.iscomplexobj(images) else images.T


@pytest.mark.parametrize("coils", [1, 3])
def test_the_known_moment_is_that_of_dense_matrices(coils):
    precision = precision_of(coils)
    control = ScaledControl.of(precision)
    assert control.inverse.scale is not None and control.inverse.other is not None
    P = real_matrix(control.image)
    rotation, emphasis = precision.blocks[0].analysis.rotation, precision.blocks[0].analysis.imaginary
    *known, wavelet = inner_operators()
    assert control.moments(PhasedParts(wavelet, rotation)) is None  # whose rows between two diagonals are not
    for inner in known:
        parts = PhasedParts(inner, rotation, emphasis)
        B = real_matrix(parts)
        first, second = control.moments(parts)
        np.testing.assert_allclose(first.ravel(), np.einsum("ij,jk,ik->i", B, P, B), rtol=1e-9)
        assert second is None
    first, _ = control.moments(Identity(GRID))
    np.testing.assert_allclose(2 * first.ravel(), np.diag(P).reshape(2, SIZE).sum(axis=0), rtol=1e-9)
    assert control.moments(FiniteDifferences(GRID)) is None  # of the image itself, phase and all
    other = PhasedParts(Identity(GRID), rotation.copy())  # who knows whether that is the phase
    assert control.moments(other) is None


@pytest.mark.parametrize(("coils", "apart"), [(1, False), (3, True)])
def test_beside_a_phase_unbiased_and_far_nearer_than_plain_draws(coils, apart):
    precision = precision_of(coils, apart)
    results, scores = scores_of(precision, ControlVariate(samples=8, tolerance=1e-6, with_bias=False))
    assert abs(np.mean(scores)) < 0.15  # coefficients scatter together
    assert np.abs(scores).max() < 6 and np.sqrt(np.mean(scores**2)) < 1.2
    assert 0.8 < stated_over_seen(results) < 1.2
    dense = np.linalg.inv(precision.dense_real())
    pixels = np.diag(dense).reshape(2, *GRID).sum(axis=0)
    images = np.array([r.image for r in results])
    scores = (images.mean(axis=0) - pixels) / (images.std(axis=0, ddof=1) / 4)
    assert abs(np.mean(scores)) < 0.3 and np.sqrt(np.mean(scores**2)) < 1.3


def test_draws_a_few_at_a_time_are_the_same_and_single_precision_stays_single():
    precision = precision_of()
    whole = run(ControlVariate(8, with_bias=False), precision)
    little = run(ControlVariate(8, with_bias=False, memory=narrow_memory(precision, 8)), precision)
    np.testing.assert_allclose(together(little.values), together(whole.values), rtol=1e-6)
    np.testing.assert_allclose(little.image, whole.image, rtol=1e-6)
    assert whole.explained is not None
    single = tuple(pi.astype(np.float32) for pi in precision.site_precisions)
    precision = PosteriorPrecision(precision.measurement, precision.blocks, single)
    made = run(ControlVariate(4), precision)
    assert made.samples.dtype == np.complex64
    assert all(v.dtype == np.float32 for v in (*made.values, *made.std_error, *made.bias, made.image))
    assert all((b > 0).all() for b in made.bias)
