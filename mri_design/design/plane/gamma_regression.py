"""Regression of energies: gamma distributed around a noise floor plus the exponential of weighted features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

STEPS, HALVINGS = 30, 40
CLOSE = 1e-8
"""Relative decrease of the objective at which the iteration ends."""


def fitted_weights(
    features: Numbers, energies: Numbers, floor: Numbers, shape: float, prior: tuple[Numbers, Numbers]
) -> Numbers:
    """The most probable weights w of E[energy] = floor + exp(features . w).

    An energy is the squared modulus of complex Gaussian values, summed: a gamma distribution with that mean, whose
    shape is the number of independent complex values.

    Parameters
    ----------
    features : float array, shape (count, features)
        One row per energy.
    energies : float array, shape (count,)
        Zero or more.
    floor : float array, shape (count,)
        Known part of the means: that of noise; positive.
    shape : float
        Of the gamma distributions.
    prior : tuple of float arrays, shape (features,)
        Means and standard deviations of the weights, which are independent and Gaussian.

    Returns
    -------
    float array, shape (features,)

    Notes
    -----
    Fisher scoring. A step is halved for as long as that is better: where predictions are many times too small, a whole
    one makes them larger by that many powers of e, which is less wrong and still useless. The negative log posterior is
    sum_i shape (log m_i + e_i / m_i) + sum_j (w_j - mean_j)^2 / (2 sd_j^2), m = floor + exp(features . w).
    """
    mean, sd = prior
    weights = mean.copy()

    def objective(w: Numbers) -> float:
        m = floor + np.exp(np.clip(features @ w, -700, 700))
        return float(shape * np.sum(np.log(m) + energies / m) + np.sum(((w - mean) / sd) ** 2) / 2)

    value = objective(weights)
    for _ in range(STEPS):
        signal = np.exp(np.clip(features @ weights, -700, 700))
        m = floor + signal
        slope = shape * (signal / m) * (1 - energies / m)
        gradient = features.T @ slope + (weights - mean) / sd**2
        information = (features * (shape * (signal / m) ** 2)[:, None]).T @ features + np.diag(1 / sd**2)
        step = np.linalg.solve(information, gradient)
        found, candidate = value, weights
        for halving in range(HALVINGS):
            tried = weights - step / 2**halving
            reached = objective(tried)
            if reached <= found:
                found, candidate = reached, tried
            elif found < value:
                break
        done = value - found <= CLOSE * (1 + abs(value))
        weights, value = candidate, found
        if done:
            return weights
    return weights
