"""Gaussian process classification as a linear model: weights N(0, I) seen through a Cholesky factor of the kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import mri_design as md
from mri_design.operators.dense import Dense

JITTER = 1e-8  # of the variance, on the diagonal


def digits(folder: Path | None, count: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pixels in (-1, 1) and labels of USPS threes (+1) and fives (-1), by a seeded permutation; toys without data."""
    if folder is None or not (folder / "usps_3v5.npz").exists():
        rng = np.random.default_rng(seed)
        points = rng.uniform(-1, 1, (count, 256))
        return points, np.where(points[:, :8].sum(axis=1) + 0.5 * rng.standard_normal(count) > 0, 1.0, -1.0)
    with np.load(folder / "usps_3v5.npz") as file:
        points, labels = file["X"].astype(float), file["y"].astype(float)
    chosen = np.random.default_rng(seed).permutation(len(labels))[:count]
    return points[chosen], labels[chosen]


def kernel(points: NDArray[np.float64], log_length: float, log_deviation: float) -> NDArray[np.float64]:
    """Squared exponential, exp(2 log sigma) exp(-|x - x'|^2 / (2 exp(2 log ell)))."""
    square = np.sum(points**2, axis=1)
    distance = np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0)
    np.fill_diagonal(distance, 0.0)
    return np.exp(2 * log_deviation - 0.5 * distance * np.exp(-2 * log_length))


def classification(
    points: NDArray[np.float64], labels: NDArray[np.float64], log_length: float, log_deviation: float
) -> md.GeneralizedLinearModel:
    """The prior is X = I with data zero and sigma = 1; its bound on log P(y) has no further constants."""
    K = kernel(points, log_length, log_deviation)
    root = np.linalg.cholesky(K + JITTER * np.exp(2 * log_deviation) * np.eye(len(K)))
    unit = md.Identity((len(K),), is_complex=False)
    blocks = (md.SiteBlock("labels", Dense(root), md.Logistic(labels)),)
    return md.GeneralizedLinearModel(unit, np.zeros(len(K)), 1.0, blocks)
