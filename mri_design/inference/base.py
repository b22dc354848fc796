"""What every inference method offers: init, step, infer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mri_design.model import GaussianPosterior, GeneralizedLinearModel, Variances
from mri_design.operators import Array
from mri_design.status import Convergence

__all__ = ["InferenceMethod", "StepInfo", "WarmStart", "pooled_variances"]


def pooled_variances(model: GeneralizedLinearModel, marginals: Variances) -> tuple[Array, ...]:
    """z per site: variances summed over each site's group, kept away from zero."""
    floor = np.finfo(np.float32).tiny
    return tuple(
        np.maximum(block.pooled(values), floor) for block, values in zip(model.blocks, marginals.values, strict=True)
    )


@dataclass(frozen=True)
class WarmStart:
    """What one inference hands to the next: an image, pooled z per block, and draws to start new ones from.

    Parameters
    ----------
    mean : array
        Image to start the inner problem from.
    z : tuple of float arrays
        Per block, pooled over groups, in units of sigma^2.
    samples : array, shape (count, *image shape), optional
        Draws with nearly the covariance wanted, made from the same seed: where their solves may start.
    """

    mean: Array
    z: tuple[Array, ...]
    samples: Array | None = None

    @classmethod
    def from_posterior(cls, posterior: GaussianPosterior) -> WarmStart:
        """Everything that a posterior can hand on."""
        marginals = posterior.marginals
        return cls(posterior.mean, pooled_variances(posterior.model, marginals), marginals.samples)


@dataclass(frozen=True)
class StepInfo:
    """What one outer loop did, for progress displays.

    Parameters
    ----------
    loop : int
        Number of the outer loop, from 1.
    criterion : float or None
        phi, where log|A| was available.
    change : float
        Change that the stopping rule looks at.
    inner : Convergence
        Of the inner problem.
    variances : Convergence
        Of the variance estimation.
    """

    loop: int
    criterion: float | None
    change: float
    inner: Convergence
    variances: Convergence


class InferenceMethod(Protocol):
    """Frozen settings that turn a model into a Gaussian posterior."""

    def infer(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> GaussianPosterior:
        """The posterior of ``model``."""
        ...
