"""Posteriors that know where further data will be measured, and not yet their values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.model.posterior import GaussianPosterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import LinearOperator
from mri_design.variances.base import VarianceEstimator


def with_unseen(
    posterior: GaussianPosterior, measurement: LinearOperator, estimator: VarianceEstimator, rng: np.random.Generator
) -> GaussianPosterior:
    """The posterior with the rows of further data in its precision: same mean, same widths, new draws.

    Under a Gaussian the covariance after a measurement does not depend on the measured values. The widths are those
    from before: they change with data.

    Parameters
    ----------
    posterior : GaussianPosterior
        Before.
    measurement : LinearOperator
        X of everything that is in its precision afterwards: what is measured, and what will be.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.

    Returns
    -------
    GaussianPosterior
        With marginals that hold no z of sites, only draws.
    """
    precision = PosteriorPrecision(measurement, posterior.precision.blocks, posterior.precision.site_precisions)
    marginals = estimator(precision, (), rng, posterior.mean, previous=posterior.marginals)
    return replace(posterior, precision=precision, marginals=marginals)
