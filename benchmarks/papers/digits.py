"""Gaussian process classification of the USPS threes and fives as a linear model, and the bound's classical minimisers.

Weights N(0, I) are seen through the Cholesky factor of the kernel, so that every engine for linear models applies.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from mri_design.glm.dense import PriorAndSites, half_phi_of_factor
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.elementary import Dense, Identity
from mri_design.sites.base import Site
from mri_design.sites.likelihoods import Logistic

from .data import require

Array = NDArray[np.float64]
Told = Callable[[float], None]
"""Hears of phi / 2 after every step."""
JITTER = 1e-8  # of the variance, on the diagonal


class OutOfTime(Exception):  # noqa: N818 (no error: a limit)
    """A method's time is over."""


class Trace:
    """Negative bounds with the processor seconds at which they were reached."""

    def __init__(self, limit: float) -> None:
        self.limit, self.began, self.steps = limit, time.process_time(), list[tuple[float, float]]()

    def __call__(self, half_phi: float) -> None:
        spent = time.process_time() - self.began
        self.steps.append((spent, half_phi))
        if spent > self.limit:
            raise OutOfTime


def digits(data: Path | None, count: int, seed: int) -> tuple[Array, Array]:
    """Pixels in (-1, 1) and labels of threes (+1) and fives (-1), by a seeded permutation; toys without data."""
    if data is None:
        rng = np.random.default_rng(seed)
        points = rng.uniform(-1, 1, (count, 256))
        return points, np.where(points[:, :8].sum(1) + 0.5 * rng.standard_normal(count) > 0, 1.0, -1.0)
    with np.load(require(data, "usps_3v5.npz")) as file:
        points, labels = file["X"].astype(float), file["y"].astype(float)
    chosen = np.random.default_rng(seed).permutation(len(labels))[:count]
    return points[chosen], labels[chosen]


def kernel(points: Array, scale: float, log_deviation: float) -> Array:
    """exp(2 log sigma) exp(-|x - x'|^2 / (2 scale)): the paper's s is the scale."""
    square = np.sum(points**2, axis=1)
    distance = np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0)
    np.fill_diagonal(distance, 0.0)
    return np.exp(2 * log_deviation - 0.5 * distance / scale)


def classification(K: Array, labels: Array, site: type[Site] = Logistic) -> GeneralizedLinearModel:
    """X = I, y = 0 and sigma = 1: the negative bound is phi / 2."""
    root = np.linalg.cholesky(K + JITTER * K[0, 0] * np.eye(len(K)))
    block = SiteBlock("labels", Dense(root), site(labels))
    return GeneralizedLinearModel(Identity((len(K),), is_complex=False), np.zeros(len(K)), 1.0, (block,))


def by_lbfgs(
    objective: Callable[[Array], tuple[float, Array]], begin: Array, told: Told, tolerance: float = 1e-5
) -> Array:
    """Minimise by L-BFGS until the gradient is below ``tolerance``."""
    options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 10, "ftol": 1e-15, "gtol": tolerance}

    def step(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        told(float(intermediate_result.fun))

    found = scipy.optimize.minimize(objective, begin, jac=True, method="L-BFGS-B", callback=step, options=options)
    return np.asarray(found.x)


def cholesky(model: GeneralizedLinearModel, rng: np.random.Generator, told: Told, tolerance: float = 1e-5) -> Array:
    """Over mean and Cholesky factor of the covariance of the whitened weights (Challis and Barber 2011)."""
    split = PriorAndSites.of(model)
    n = len(split.centre)
    begin = np.concatenate([0.1 * rng.standard_normal(n), np.eye(n)[np.tril_indices(n)]])
    return by_lbfgs(half_phi_of_factor(split), begin, told, tolerance)


def opper_archambeau(model: GeneralizedLinearModel, rng: np.random.Generator, told: Told) -> Array:
    """Over alpha and log lambda: m = -S alpha, V = (S^-1 + diag(lambda))^-1 (Opper and Archambeau 2009)."""
    split = PriorAndSites.of(model)
    S, n = split.rows @ split.rows.T, len(split.rows)

    def half_phi(flat: Array) -> tuple[float, Array]:
        alpha, weights = flat[:n], np.exp(flat[n:])
        root = np.sqrt(weights)
        inverse = np.linalg.inv(np.eye(n) + root[:, None] * S * root)
        V = S - (S * root) @ inverse @ (root[:, None] * S)
        value, slope, bend = split.expectation(-S @ alpha, np.maximum(np.diag(V), 1e-14))
        logarithm = -np.linalg.slogdet(inverse)[1]
        total = 0.5 * (logarithm + np.trace(inverse) - n + alpha @ S @ alpha) - value
        by_weights = 0.5 * V**2 @ (weights + 2 * bend) * weights
        return float(total) + 0.5 * split.constant, np.concatenate([S @ (alpha + slope), by_weights])

    begin = np.concatenate([0.01 * rng.standard_normal(n), np.log(0.1) + 0.1 * rng.standard_normal(n)])
    return by_lbfgs(half_phi, begin, told)
