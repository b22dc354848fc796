"""A posterior that knows which lines come next, but not yet what they will say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.line_variances import all_lines, line_energies
from mri_design.model import GaussianPosterior, PosteriorPrecision
from mri_design.operators import CartesianLines
from mri_design.variances import VarianceEstimator

__all__ = ["least_energies", "with_unseen_lines"]

_DRAWS = 12
"""Posterior draws behind line energies, where inference knows nothing better."""


def with_unseen_lines(
    posterior: GaussianPosterior, lines: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> GaussianPosterior:
    """The posterior with the rows of further lines in its precision: same mean, same widths, new draws.

    Under a Gaussian the covariance after a measurement does not depend on what it says, so lines can be chosen one
    after another between two acquisitions (echo trains). Only the widths are behind: they will change with the data.

    Parameters
    ----------
    posterior : GaussianPosterior
        Before.
    lines : sequence of int
        All lines that it should know: those measured, and those that will be.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.

    Returns
    -------
    GaussianPosterior
        With marginals that hold no z of sites, only what line scores need.
    """
    every = all_lines(posterior)
    measurement = CartesianLines(lines, every.grid, every.maps, every.library)
    precision = PosteriorPrecision(measurement, posterior.precision.blocks, posterior.precision.site_precisions)
    marginals = estimator(precision, (), rng, posterior.mean, previous=posterior.marginals)
    return replace(posterior, precision=precision, marginals=marginals)


def least_energies(
    posterior: GaussianPosterior, lines: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Expected energy of the error on every line once all of ``lines`` have been measured, (ky,): what noise leaves.

    Parameters
    ----------
    posterior, lines, estimator, rng
        As for `with_unseen_lines`.
    """
    return line_energies(with_unseen_lines(posterior, lines, estimator, rng), rng, _DRAWS)
