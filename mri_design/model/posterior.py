"""The Gaussian approximation of the posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.krylov import conjugate_gradients
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.marginals import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators import Array
from mri_design.status import Convergence

__all__ = ["GaussianPosterior"]


@dataclass(frozen=True)
class GaussianPosterior:
    """Q(u) = N(mean, sigma^2 A^-1).

    Parameters
    ----------
    model : GeneralizedLinearModel
        What it is the posterior of.
    mean : array, shape of the image
        Posterior mean, in the units of the data.
    precision : PosteriorPrecision
        A with the final site precisions.
    variances : Variances
        z of the model's blocks under A (per coefficient, not pooled over groups), in units of sigma^2.
    convergence : Convergence
        Of the inference.
    criterion : tuple of float
        Trace of the criterion phi over outer loops; empty where it was not computed.
    criterion_kind : {"exact", "estimate", "none"}
        Whether log|A| in the trace was exact.
    """

    model: GeneralizedLinearModel
    mean: Array
    precision: PosteriorPrecision
    variances: Variances
    convergence: Convergence
    criterion: tuple[float, ...] = ()
    criterion_kind: str = "none"

    def draw(
        self, rng: np.random.Generator, count: int, *, tolerance: float = 1e-2, max_iterations: int = 100
    ) -> tuple[Array, Convergence]:
        """Draws of (u - mean) / sigma, covariance A^-1, by perturb-and-solve.

        Parameters
        ----------
        rng : numpy Generator
            Source of randomness.
        count : int
            Number of draws.
        tolerance, max_iterations : float, int
            Of the conjugate gradients; see `krylov.conjugate_gradients`.
        """
        b = self.precision.perturbations(rng, count, like=self.mean)
        return conjugate_gradients(
            self.precision,
            b,
            n_axes=self.model.n_axes,
            preconditioner=self.precision.preconditioner,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )

    def deviations(self, rng: np.random.Generator, count: int) -> Array:
        """At least ``count`` draws of (u - mean) / sigma: those inference made, topped up where they are too few."""
        made = self.variances.samples
        if made is None:
            return self.draw(rng, count)[0]
        if len(made) >= count:
            return made
        return np.concatenate([made, self.draw(rng, count - len(made))[0]])
