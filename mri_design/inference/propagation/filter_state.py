"""What a sequential Gaussian filter knows between two trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array
from mri_design.model.posterior import GaussianPosterior, require_posterior


@dataclass(frozen=True)
class FilterState:
    """N(mean, covariance) of n real unknowns.

    Parameters
    ----------
    mean : float array, shape (n,)
        In the units of the unknowns.
    covariance : float array, shape (n, n)
        Symmetric and positive definite (held to shape and diagonal only: more would cost more than an update).

    Raises
    ------
    InputError
        For shapes that disagree, complex numbers, a mean that is not finite or variances that are not positive.
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def __post_init__(self) -> None:
        mean = number_array("filter state", self.mean, wanted="a mean (n,) of real numbers")
        covariance = number_array("filter state", self.covariance, wanted="a covariance (n, n) of real numbers")
        if mean.ndim != 1 or not mean.size or covariance.shape != (mean.size, mean.size):
            raise InputError("filter state", f"mean {mean.shape} and covariance {covariance.shape}", "(n,) and (n, n)")
        if np.iscomplexobj(mean) or np.iscomplexobj(covariance):
            raise InputError("filter state", "complex numbers", "real unknowns")
        variances = np.diagonal(covariance)
        if not (np.isfinite(mean).all() and np.isfinite(variances).all() and (variances > 0).all()):
            raise InputError("filter state", "NaN, infinite or non-positive values", "a mean and positive variances")
        object.__setattr__(self, "mean", mean.astype(float, copy=False))
        object.__setattr__(self, "covariance", covariance.astype(float, copy=False))

    @classmethod
    def from_posterior(cls, posterior: GaussianPosterior) -> FilterState:
        """Mean and dense covariance of a posterior over real unknowns, in O(n^3).

        Raises
        ------
        InputError
            For complex unknowns.
        """
        require_posterior(posterior)
        if posterior.model.measurement.in_complex:
            raise InputError("posterior", "complex unknowns", "real ones")
        inverse = scipy.linalg.inv(posterior.precision.dense_real())
        covariance = posterior.model.noise_variance * 0.5 * (inverse + inverse.T)
        return cls(np.ravel(posterior.mean), covariance)

    def projection(self, x: NDArray[np.floating]) -> tuple[float, float]:
        """Mean and variance of x^T u."""
        return float(x @ self.mean), float(x @ self.covariance @ x)


def drift_matrix(drift: float | NDArray[np.floating]) -> NDArray[np.float64]:
    """Q as a number (times the identity), a vector (diagonal) or a matrix, refused unless positive semidefinite."""
    Q = number_array("drift", drift, wanted="a number, a diagonal or a matrix of finite numbers")
    fits = Q.dtype.kind in "fiub" and Q.ndim <= 2 and np.isfinite(Q).all()
    if fits and Q.ndim == 2:
        fits = (
            Q.shape[0] == Q.shape[1]
            and np.allclose(Q, Q.T)
            and bool(scipy.linalg.eigvalsh(Q)[0] >= -1e-12 * max(float(np.abs(Q).max()), 1e-300))
        )
    elif fits:
        fits = bool((Q >= 0).all())
    if not fits:
        raise InputError(
            "drift",
            f"{Q.dtype} of shape {Q.shape}" if Q.ndim else str(drift),
            "a positive semidefinite covariance per trial: a number, a diagonal or a matrix",
        )
    return Q.astype(float)
