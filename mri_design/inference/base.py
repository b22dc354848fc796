"""What every inference method offers: init, step, infer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mri_design.model import GaussianPosterior, GeneralizedLinearModel
from mri_design.operators import Array
from mri_design.status import Convergence

__all__ = ["InferenceMethod", "StepInfo", "WarmStart"]


@dataclass(frozen=True)
class WarmStart:
    """What one inference hands to the next: an image and pooled z per block.

    Parameters
    ----------
    mean : array
        Image to start the inner problem from.
    z : tuple of float arrays
        Per block, pooled over groups, in units of sigma^2.
    """

    mean: Array
    z: tuple[Array, ...]


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
