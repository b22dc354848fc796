"""Mean and variances of all rows as functions of alpha and lambda: theorem 4.1 of Khan 2014, no inverse of S."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mri_design.inference.prior_and_sites import PriorAndSites
from mri_design.operators import Array

__all__ = ["DualState"]


@dataclass(frozen=True)
class DualState:
    """Mean and variances of every row at (alpha, lambda), and the pieces that derivatives need.

    Parameters
    ----------
    mean, variance : arrays
        Of s: means - S alpha, diag of the covariance; S = G G^T.
    covariance : array
        Of all rows.
    log_determinant : float
        log|B|, B = I + L^(1/2) S L^(1/2) with L = diag(lambda): log|A| less that of the Gaussian part.
    trace : float
        tr B^-1.
    """

    mean: Array
    variance: Array
    covariance: Array
    log_determinant: float
    trace: float

    @classmethod
    def of(cls, S: Array, means: Array, alpha: Array, weights: Array) -> DualState:
        """By one Cholesky factorisation, without an inverse of S."""
        root = np.sqrt(weights)
        factor = scipy.linalg.cholesky(np.eye(len(S)) + root[:, None] * S * root, lower=True)
        half = scipy.linalg.solve_triangular(factor, root[:, None] * S, lower=True)
        covariance = S - half.T @ half
        inverse = scipy.linalg.solve_triangular(factor, np.eye(len(S)), lower=True)
        variance = np.maximum(np.diag(covariance), 1e-14 * np.diag(S))
        logarithm = 2 * float(np.sum(np.log(np.diag(factor))))
        return cls(means - S @ alpha, variance, covariance, logarithm, float(np.sum(inverse**2)))

    def half_phi(self, split: PriorAndSites, S: Array, alpha: Array) -> tuple[float, Array, Array]:
        """phi / 2 of the Gaussian with these parameters, and the derivatives of sum E log t in mean and variance."""
        value, slope, bend = split.expectation(self.mean, self.variance)
        divergence = self.log_determinant + self.trace - len(S) + alpha @ S @ alpha
        return 0.5 * (float(divergence) + split.constant) - value, slope, bend
