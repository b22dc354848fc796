"""Coil sensitivities and phase, on grids and as trigonometric series."""

import numpy as np
import pytest

from mri_design.scan.simulation import (
    TrigonometricSeries,
    checked_shape,
    phase_series,
    rough_phase,
    simulate_coil_maps,
    smooth_phase,
)
from tests.refusals import refused

Y, X = np.linspace(-0.5, 0.5, 31), np.linspace(-0.5, 0.5, 23)


def random_series(shape, seed):
    rng = np.random.default_rng(seed)
    return TrigonometricSeries(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))


@pytest.mark.parametrize("n_coils", [1, 3, 32])
@pytest.mark.parametrize("shape", [(40, 33), (31, 64)])
def test_maps_have_unit_root_sum_of_squares(n_coils, shape):
    maps = simulate_coil_maps(shape, n_coils, np.random.default_rng(0))
    assert maps.shape == (n_coils, *shape)
    assert maps.dtype == np.complex64
    np.testing.assert_allclose((np.abs(maps) ** 2).sum(axis=0), 1, atol=1e-5)


def test_same_seed_gives_the_same_coils_on_every_grid():
    fine = simulate_coil_maps(64, 4, np.random.default_rng(3))
    coarse = simulate_coil_maps((32, 64), 4, np.random.default_rng(3))
    np.testing.assert_allclose(fine[:, ::2], coarse, atol=1e-6)
    other = simulate_coil_maps(64, 4, np.random.default_rng(4))
    assert np.abs(fine - other).max() > 0.1


def test_smooth_phase_is_a_polynomial_of_its_degree():
    phase = smooth_phase(40, np.random.default_rng(1), degree=2)
    mixed = np.diff(np.diff(phase, n=2, axis=0), axis=1)
    for third in (np.diff(phase, n=3, axis=0), np.diff(phase, n=3, axis=1), mixed):
        assert np.abs(third).max() < 1e-12
    assert np.abs(np.diff(phase, n=2, axis=0)).max() > 1e-6


def test_product_of_series_is_product_of_values():
    first, second = random_series((3, 5), 1), random_series((7, 1), 2)
    np.testing.assert_allclose((first * second).values(Y, X), first.values(Y, X) * second.values(Y, X), rtol=1e-10)


def test_product_drops_only_negligible_rims():
    padded = np.zeros((9, 7), complex)
    padded[4, 3], padded[4, 4], padded[8, 3] = 1.0, 0.5, 1e-12
    product = TrigonometricSeries(padded) * TrigonometricSeries(np.ones((1, 1), complex))
    assert product.coefficients.shape == (1, 3)
    np.testing.assert_allclose(product.values(Y, X), TrigonometricSeries(padded).values(Y, X), atol=1e-11)


@pytest.mark.parametrize("amplitude", [0.3, np.pi / 2, np.pi])
def test_phase_series_has_unit_modulus_and_keeps_its_range(amplitude):
    for seed in range(3):
        values = phase_series(np.random.default_rng(seed), amplitude).values(Y, X)
        np.testing.assert_allclose(np.abs(values), 1, atol=1e-6)
        turned = np.unwrap(np.unwrap(np.angle(values), axis=0), axis=1)
        assert 0 < np.ptp(turned) <= 2 * amplitude + 1e-6


@pytest.mark.parametrize(
    ("direction", "still"), [((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 1), (1, -1)), ((1, -1), (1, 1))]
)
def test_each_wave_of_the_phase_varies_along_its_own_direction_only(direction, still, monkeypatch):
    monkeypatch.setattr("mri_design.scan.simulation.scenes._DIRECTIONS", (direction,))
    series = phase_series(np.random.default_rng(0))

    def along(step):
        return np.array([series.values(np.array([t * step[0]]), np.array([t * step[1]]))[0, 0] for t in Y])

    np.testing.assert_allclose(along(still), along(still)[0], atol=1e-7)
    assert np.abs(np.diff(along(direction))).max() > 0.01


def test_wrong_settings_are_refused_by_name():
    rng = np.random.default_rng(0)
    for amplitude in (-1.0, np.nan):
        with refused("amplitude"):
            rough_phase(16, rng, amplitude=amplitude)
    with refused("degree"):
        smooth_phase(16, rng, degree=0)
    for n_coils in (0, 129, 2.0, True):
        with refused("n_coils"):
            simulate_coil_maps(16, n_coils, rng)
    for shape in (3, (8, 2), (8, 8, 8), 8.5, "8", (True, 8), 10**6):
        with refused("shape"):
            checked_shape(shape)
