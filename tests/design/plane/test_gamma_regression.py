"""The gamma regression against a general optimiser, and on energies that were made by its own model."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mri_design.design import fitted_weights

PRIOR = (np.array([0.0, 1.0, 0.0]), np.array([2.0, 0.3, 0.5]))
TRUE = np.array([0.5, 0.7, -0.3])


def made(count: int, floor: float, shape: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(count), rng.normal(0, 2, count), rng.normal(size=count)])
    mean = floor + np.exp(features @ TRUE)
    return features, mean * rng.gamma(shape, 1 / shape, count), np.full(count, floor)


def test_the_weights_are_the_most_probable_ones() -> None:
    features, energies, floor = made(60, 0.3, 1.0)

    def objective(w: np.ndarray) -> float:
        m = floor + np.exp(features @ w)
        return float(np.sum(np.log(m) + energies / m) + np.sum(((w - PRIOR[0]) / PRIOR[1]) ** 2) / 2)

    best = minimize(objective, PRIOR[0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})
    np.testing.assert_allclose(fitted_weights(features, energies, floor, 1.0, PRIOR), best.x, atol=1e-4)


def test_many_energies_tell_the_weights_that_made_them() -> None:
    features, energies, floor = made(5000, 0.1, 2.0)
    np.testing.assert_allclose(fitted_weights(features, energies, floor, 2.0, PRIOR), TRUE, atol=0.05)


@pytest.mark.parametrize("factor", [1e-4, 200.0, 1e6])
@pytest.mark.parametrize("shape", [1.0, 8.0])
def test_predictions_that_are_wrong_by_a_large_factor_are_put_right(factor: float, shape: float) -> None:
    """As for a scan whose posterior is far too sure of itself: predicted energies sum to what was found."""
    features, energies, _ = made(80, 1e-9, shape)
    weights = fitted_weights(features, factor * energies, np.full(80, 1e-12), shape, PRIOR)
    predicted = np.exp(features @ weights)
    assert 0.7 < predicted.mean() / (factor * energies.mean()) < 1.4
