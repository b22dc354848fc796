"""The best free encoding against dense algebra, random rows and every line."""

import numpy as np
import pytest
import scipy.optimize

from mri_design.design import exact_gains
from mri_design.glm import best_free_encoding, water_filling
from mri_design.readouts import LineReadouts
from tests.design.conftest import make_posterior


@pytest.fixture(scope="module")
def posterior():
    return make_posterior(1, tuple(range(4, 12)))


@pytest.mark.slow
def test_directions_are_the_top_eigenvectors_of_the_covariance(posterior, rng):
    found = best_free_encoding(posterior, rng, rows=3, energy=5.0)
    values = np.linalg.eigvalsh(np.linalg.inv(posterior.precision.dense_real()))[::-1]
    np.testing.assert_allclose(found.variances, values[:6:2], rtol=1e-4)  # real and imaginary part: every value twice
    flat = found.rows.reshape(3, -1)
    np.testing.assert_allclose(flat.conj() @ flat.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.energies.sum(), 5.0)
    assert found.convergence.converged and found.convergence.matvecs > 0


def test_the_gain_is_that_of_its_rows_and_no_random_row_beats_it(posterior, rng):
    found = best_free_encoding(posterior, rng, rows=2, energy=3.0)
    A = posterior.precision.dense_real()
    x = found.rows.reshape(2, -1) * np.sqrt(found.energies)[:, None]

    def gain(rows):
        real = np.block([[rows.real, rows.imag], [-rows.imag, rows.real]])
        return np.linalg.slogdet(np.eye(len(real)) + real @ np.linalg.solve(A, real.T))[1]

    np.testing.assert_allclose(gain(x), found.gain, rtol=1e-5)
    for _ in range(20):
        other = rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape)
        assert gain(other * np.sqrt(3.0 / np.sum(np.abs(other) ** 2))) < found.gain


@pytest.mark.slow
def test_no_line_beats_free_rows_of_its_number_and_energy(posterior, rng):
    """And more rows for the same energy never tell less."""
    lines = exact_gains(posterior.precision, LineReadouts(posterior.model.measurement.grid))
    gains = [best_free_encoding(posterior, rng, rows=k, energy=16.0).gain for k in (1, 4, 16)]
    assert lines.max() < gains[-1]
    assert gains[0] <= gains[1] <= gains[2] * (1 + 1e-9)


def test_water_filling_is_the_best_share(rng):
    variances = np.sort(rng.random(4))[::-1]
    energies = water_filling(variances, 1.3)
    np.testing.assert_allclose(energies.sum(), 1.3)
    best = scipy.optimize.minimize(
        lambda e: -np.sum(np.log1p(e * variances)),
        np.full(4, 1.3 / 4),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda e: e.sum() - 1.3},
    )
    np.testing.assert_allclose(np.sum(np.log1p(energies * variances)), -best.fun, rtol=1e-6)
    assert water_filling(np.array([1.0, 1e-3]), 0.5)[1] == 0
