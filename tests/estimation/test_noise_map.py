"""Least squares, their noise by pixel and g-factors: against folded pixels and dense algebra."""

import numpy as np
import pytest

from mri_design import Status, least_squares, zero_filled
from mri_design.estimation import least_squares_noise, posterior_noise
from mri_design.model import GaussianPosterior, GeneralizedLinearModel, PosteriorPrecision, SiteBlock, Variances
from mri_design.operators import CartesianLines, CartesianSamples, Identity
from mri_design.potentials import Laplace
from mri_design.scan.simulation import simulate_coil_maps
from mri_design.status import Convergence
from tests.estimation.problems import embedded

GRID, VARIANCE = (24, 16), 0.25

NO_MARGINALS = Variances((), "exact", Convergence(Status.CONVERGED, 0, 0.0))


def unit_maps(coils: int) -> np.ndarray:
    maps = simulate_coil_maps(GRID, coils, np.random.default_rng(coils))
    return np.asarray(maps / np.linalg.norm(maps, axis=0), dtype=np.complex64)


def model_of(measurement: CartesianLines | CartesianSamples, data: np.ndarray | None = None) -> GeneralizedLinearModel:
    samples = np.zeros(measurement.out_shape, np.complex64) if data is None else data
    sites = SiteBlock("pixels", Identity(GRID), Laplace(1.0))  # which least squares do not look at
    return GeneralizedLinearModel(measurement, samples, VARIANCE, (sites,))


def folded_g_factor(maps: np.ndarray, step: int) -> np.ndarray:
    """Pruessmann's equation 23, pixel by pixel: pixels one field of view over ``step`` apart fold onto each other."""
    rows, columns = maps.shape[1:]
    found = np.empty((rows, columns))
    for y in range(rows // step):
        folded = y + rows // step * np.arange(step)
        for x in range(columns):
            sensitivities = maps[:, folded, x].astype(np.complex128)
            gram = sensitivities.conj().T @ sensitivities
            found[folded, x] = np.sqrt(np.diag(np.linalg.inv(gram)).real * np.diag(gram).real)
    return found


@pytest.mark.parametrize("step", [2, 3])
def test_every_nth_line_has_the_closed_g_factor_of_sense(step: int) -> None:
    maps = unit_maps(6)
    measurement = CartesianLines(range(0, GRID[0], step), GRID, maps)
    found = least_squares_noise(model_of(measurement), 1e-9, np.random.default_rng(0))
    np.testing.assert_allclose(found.g_factor, folded_g_factor(maps, step), rtol=1e-4)
    assert found.g_factor.max() > 1.05  # else nothing was tested
    np.testing.assert_allclose(found.std, np.sqrt(2 * VARIANCE * step) * found.g_factor, rtol=1e-5)
    assert found.replicas == 0


def test_samples_of_a_plane_get_replicas_near_the_exact_map_of_the_same_lines() -> None:
    lines, maps = list(range(0, GRID[0], 2)), unit_maps(6)
    mask = np.zeros(GRID, dtype=bool)
    mask[lines] = True
    exact = least_squares_noise(model_of(CartesianLines(lines, GRID, maps)), 1e-3, np.random.default_rng(0))
    drawn = least_squares_noise(model_of(CartesianSamples(mask, maps)), 1e-3, np.random.default_rng(0), replicas=100)
    assert drawn.replicas == 100
    assert np.sqrt(np.mean((drawn.std / exact.std - 1) ** 2)) < 0.07  # 1 / (2 sqrt(100)) of each is .05
    assert abs(np.mean(drawn.g_factor / exact.g_factor) - 1) < 0.01


def test_a_posterior_mean_has_less_noise_than_least_squares_and_that_of_dense_algebra() -> None:
    rng = np.random.default_rng(2)
    lines = [0, 2, 5, 7, 10, 11, 12, 13, 14, 17, 19, 22]
    measurement = CartesianLines(lines, GRID, unit_maps(4))
    model = model_of(measurement)
    rates = tuple(rng.uniform(0.05, 0.5, size=block.analysis.out_shape) for block in model.blocks)
    precision = PosteriorPrecision(measurement, model.blocks, rates)
    posterior = GaussianPosterior(
        model, np.zeros(GRID, np.complex64), precision, NO_MARGINALS, convergence=NO_MARGINALS.convergence
    )
    found = posterior_noise(posterior, np.random.default_rng(3), replicas=100)
    inverse, x = np.linalg.inv(precision.dense_real()), measurement.to_dense_real()
    exact = np.sqrt(VARIANCE * np.diag(inverse @ x.T @ x @ inverse).reshape(2, *GRID).sum(axis=0))
    assert np.sqrt(np.mean((found.std / exact - 1) ** 2)) < 0.07
    assert abs(np.mean(found.std / exact) - 1) < 0.01
    assert np.mean(found.std) < np.mean(least_squares_noise(model, 1e-3, rng).std)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_equals_the_dense_solution(damping, tiny_model, model_name):
    """For more unknowns than data: the one of minimum norm."""
    model = tiny_model(model_name)
    np.testing.assert_array_equal(zero_filled(model), model.measurement.adjoint(model.data))
    X, y = model.measurement.to_dense_real(), embedded(model.data, model.measurement.out_complex)
    n = X.shape[1]
    dense = np.linalg.lstsq(
        np.vstack([X, np.sqrt(damping) * np.eye(n)]), np.concatenate([y, np.zeros(n)]), rcond=1e-10
    )[0]
    u, convergence = least_squares(model, damping=damping, tolerance=1e-10, max_iterations=500)
    assert convergence.converged
    np.testing.assert_allclose(embedded(u, model.measurement.in_complex), dense, atol=1e-7)


def test_one_coil_is_zero_filling_and_several_take_iterations(tiny_model):
    model = tiny_model("moduli")
    u, convergence = least_squares(model)
    np.testing.assert_allclose(u, zero_filled(model), atol=1e-12)
    assert convergence.iterations == 1
    _, convergence = least_squares(tiny_model("coils"), tolerance=1e-12, max_iterations=2)
    assert convergence.status is Status.MAX_ITERATIONS
