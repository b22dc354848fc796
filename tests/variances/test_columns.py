"""Elimination by columns: parts of the inverse, exact variances with coils, a control beside wavelets."""

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision
from mri_design.variances import ColumnFactors


def ring(count: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A positive definite ring of blocks, and the same as one matrix (column by column)."""
    rng = np.random.default_rng(seed)
    below = rng.standard_normal((count, n, n)) + 1j * rng.standard_normal((count, n, n))
    diagonal = rng.standard_normal((count, n, n)) + 1j * rng.standard_normal((count, n, n))
    diagonal = diagonal @ np.conj(np.swapaxes(diagonal, -1, -2)) + 8 * n * np.eye(n)
    matrix = np.zeros((count, n, count, n), dtype=complex)
    for k in range(count):
        after = (k + 1) % count
        matrix[k, :, k] += diagonal[k]
        matrix[after, :, k] += below[k]
        matrix[k, :, after] += below[k].conj().T
    return diagonal, below, matrix.reshape(count * n, count * n)


@pytest.mark.parametrize(("count", "n"), [(3, 4), (4, 1), (7, 5)])
def test_factors_are_those_of_the_whole_matrix(count, n):
    diagonal, below, matrix = ring(count, n)
    factors = ColumnFactors.of(diagonal, below)
    inverse = np.linalg.inv(matrix).reshape(count, n, count, n).transpose(0, 2, 1, 3)
    own, following = factors.neighbours
    k = np.arange(count)
    np.testing.assert_allclose(own, inverse[k, k], atol=1e-13)
    np.testing.assert_allclose(following, inverse[(k + 1) % count, k], atol=1e-13)
    np.testing.assert_allclose(factors.inverse(), inverse, atol=1e-7)
    assert factors.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12)
    b = np.random.default_rng(1).standard_normal((2, 3, n, count)) + 0j
    flat = np.moveaxis(b, -1, -2).reshape(6, -1)
    expected = np.moveaxis(np.linalg.solve(matrix, flat.T).T.reshape(2, 3, count, n), -1, -2)
    np.testing.assert_allclose(factors.solve(b), expected, atol=1e-13)
    assert factors.solve(b.astype(np.complex64)).dtype == np.complex64


def test_indefinite_matrices_have_no_factors():
    diagonal, below, _ = ring(4, 3)
    diagonal[2] -= 100 * np.eye(3)
    assert ColumnFactors.of(diagonal, below) is None


def coils_and_sites(
    shape: tuple[int, int], coils: int, operators: list[md.LinearOperator], seed: int = 0
) -> PosteriorPrecision:
    rng = np.random.default_rng(seed)
    maps = rng.standard_normal((coils, *shape)) + 1j * rng.standard_normal((coils, *shape))
    maps /= np.sqrt((np.abs(maps) ** 2).sum(axis=0))
    lines = rng.choice(shape[0], shape[0] // 2, replace=False).tolist()
    blocks = tuple(md.SiteBlock(f"block {i}", B, md.Laplace(1.0)) for i, B in enumerate(operators))
    pi = tuple(10 ** rng.uniform(-2, 0.5, B.out_shape) for B in operators)
    return PosteriorPrecision(md.cartesian(lines, shape, maps if coils > 1 else None), blocks, pi)


@pytest.mark.parametrize(("shape", "coils"), [((8, 7), 4), ((5, 3), 1), ((6, 10), 4)])
def test_pixels_and_differences_are_exact(shape, coils):
    operators = [md.Identity(shape), md.FiniteDifferences(shape)]
    precision = coils_and_sites(shape, coils, operators)
    like, rng = np.zeros(shape, complex), np.random.default_rng(0)
    exact = md.Exact()(precision, operators, rng, like)
    fast = md.ExactByColumns()(precision, operators, rng, like)
    control = md.ControlVariate(control="columns")(precision, operators, rng, like)
    for made in (fast, control):
        assert made.kind == "exact" and made.convergence.matvecs == 0
        assert made.log_determinant == pytest.approx(exact.log_determinant, rel=1e-12)
        for value, reference in zip(made.values, exact.values, strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-10)
    np.testing.assert_allclose(control.image, exact.values[0], rtol=1e-10)
    b = precision.perturbations(np.random.default_rng(0), 8, like)
    again = md.ControlVariate(control="columns")(precision, operators, np.random.default_rng(0), like)
    np.testing.assert_allclose(precision(again.samples), b, atol=1e-11)


def test_what_had_to_be_sampled_beside_exact_columns_is_not_called_exact(monkeypatch):
    shape = (16, 16)
    operators = [md.Identity(shape), md.FiniteDifferences(shape)]
    precision = coils_and_sites(shape, 2, operators)
    asked = [*operators, md.Wavelet(shape, "db2", 2)]
    like = np.zeros(shape, complex)
    assert md.ControlVariate()(precision, asked, np.random.default_rng(0), like).kind == "exact"
    monkeypatch.setattr("mri_design.variances.columns.WIDE_LIMIT", 0)  # as for a large image
    made = md.ControlVariate(samples=50)(precision, asked, np.random.default_rng(0), like)
    assert made.kind == "unbiased"
    assert (made.std_error[2] > 0).all()
    assert made.std_error[1].max() < 1e-6 * made.values[1].min()
    assert made.log_determinant is not None


def test_wavelets_beside_differences_are_unbiased_with_many_coils():
    shape = (16, 16)
    operators = [md.Wavelet(shape, "db2", 2), md.FiniteDifferences(shape)]
    precision = coils_and_sites(shape, 4, operators)
    like = np.zeros(shape, complex)
    exact = md.Exact()(precision, operators, np.random.default_rng(0), like)
    estimator = md.ControlVariate(samples=100, tolerance=1e-5)
    results = [estimator(precision, operators, np.random.default_rng(seed), like) for seed in range(5)]
    for block, reference in enumerate(exact.values):
        values = np.array([r.values[block] for r in results])
        errors = np.array([r.std_error[block] for r in results])
        scores = (values - reference) / errors
        assert 0.85 < np.sqrt(np.mean(scores**2)) < 1.15
        assert np.abs(scores.mean(axis=0)).max() < 2.5
        assert np.median(errors / values) < 0.2 * np.sqrt(1 / 100)  # of plain sampling's
    assert all(r.kind == "unbiased" and r.log_determinant is None for r in results)


def test_the_draws_have_the_posterior_covariance_with_any_control():
    """Same right-hand sides, same solutions."""
    shape = (16, 16)
    operators = [md.Wavelet(shape, "db2", 2), md.FiniteDifferences(shape)]
    precision = coils_and_sites(shape, 1, operators)
    draws = [
        md.ControlVariate(4, tolerance=1e-7, control=name)(
            precision, operators, np.random.default_rng(3), np.zeros(shape, complex)
        ).samples
        for name in ("columns", "circulant", "none")
    ]
    np.testing.assert_allclose(draws[0], draws[2], atol=1e-5)
    np.testing.assert_allclose(draws[1], draws[2], atol=1e-5)
