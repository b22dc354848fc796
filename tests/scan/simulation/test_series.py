"""Trigonometric series: values, products, and phases of unit modulus."""

import numpy as np
import pytest

from mri_design.scan.simulation.ellipses import TrigonometricSeries, phase_series

Y, X = np.linspace(-0.5, 0.5, 31), np.linspace(-0.5, 0.5, 23)


def random_series(shape, seed):
    rng = np.random.default_rng(seed)
    return TrigonometricSeries(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))


def test_values_are_the_sum_of_half_cycle_waves():
    series = random_series((3, 5), 0)
    y, x = 0.13, -0.41
    total = sum(
        series.coefficients[1 + i, 2 + j] * np.exp(2j * np.pi * (0.5 * i * y + 0.5 * j * x))
        for i in (-1, 0, 1)
        for j in (-2, -1, 0, 1, 2)
    )
    assert series.values(np.array([y]), np.array([x]))[0, 0] == pytest.approx(total)


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
    monkeypatch.setattr("mri_design.scan.simulation.ellipses._DIRECTIONS", (direction,))
    series = phase_series(np.random.default_rng(0))

    def along(step):
        return np.array([series.values(np.array([t * step[0]]), np.array([t * step[1]]))[0, 0] for t in Y])

    np.testing.assert_allclose(along(still), along(still)[0], atol=1e-7)
    assert np.abs(np.diff(along(direction))).max() > 0.01


def test_phase_series_follows_its_generator():
    draws = [phase_series(np.random.default_rng(seed)).values(Y, X) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert np.abs(draws[0] - draws[2]).max() > 0.1
